//! What the built component can name: what it cannot name it cannot do.

use decant_host::Decant;

/// The interfaces that a component of the contract imports. Those with types only are among them.
const IMPORTS: [&str; 7] = [
    "decant:pruner/blobs@0.1.0",
    "decant:pruner/edits@0.1.0",
    "decant:pruner/host-types@0.1.0",
    "decant:pruner/messages@0.1.0",
    "decant:pruner/notices@0.1.0",
    "decant:pruner/session-log@0.1.0",
    "decant:pruner/summarizer@0.1.0",
];

/// The one thing from outside that libraries may force upon it: the seed of hash maps that the
/// pattern libraries hold. Hosts answer it with a constant.
const INSECURE_SEED: &str = "wasi:random/insecure-seed@";

const EXPORTS: [&str; 3] = [
    "decant:pruner/control@0.1.0",
    "decant:pruner/lifecycle@0.1.0",
    "decant:pruner/query@0.1.0",
];

#[test]
fn the_component_imports_the_contract_and_nothing_that_acts() {
    let decant = Decant::new().expect("the component loads");
    let mut imports = decant.interfaces().imports.clone();
    imports.retain(|name| !name.starts_with(INSECURE_SEED));
    imports.sort();
    assert_eq!(imports, IMPORTS);
}

#[test]
fn the_component_exports_the_contract_and_nothing_else() {
    let decant = Decant::new().expect("the component loads");
    let mut exports = decant.interfaces().exports.clone();
    exports.sort();
    assert_eq!(exports, EXPORTS);
}

#[test]
fn the_component_is_smaller_than_a_megabyte() {
    let decant = Decant::new().expect("the component loads");
    assert!(
        decant.wasm_bytes() < 750_000,
        "{} bytes",
        decant.wasm_bytes()
    );
}
