//! Decant keeps the context of a long-running LLM agent small without losing anything.
//!
//! The crate has two halves. [`engine`] decides: plain data in, plain data out, and one small
//! trait, [`engine::host::Host`], to reach the outside. The glue, built for `wasm32` only, puts the
//! engine behind the WIT contract in `wit/`. Nothing here reads a file, a clock or the environment.

pub mod engine;

#[cfg(target_arch = "wasm32")]
mod component;
