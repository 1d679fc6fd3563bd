//! What `wasmtime` makes of the contract in `wit/`, and nothing else.

wasmtime::component::bindgen!({
    path: "wit",
    world: "pruner",
    additional_derives: [PartialEq],
});
