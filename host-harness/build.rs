//! With the feature `embed`, builds the component, or takes the packaged one, and hands it to the
//! library.
//!
//! Without it there is nothing to do: whoever works on the engine does not wait for the component
//! with every check, and tests build it when they run.

use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "src/artifact.rs"]
#[expect(unreachable_pub, reason = "what the library exports is in it")]
mod artifact;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/artifact.rs");
    if env::var_os("CARGO_FEATURE_EMBED").is_none() {
        return;
    }
    let manifest_dir = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    let component = match artifact::workspace(&manifest_dir) {
        Some(root) => built(root, &out_dir),
        None => packaged(&manifest_dir),
    };
    if let Err(err) = fs::copy(&component, out_dir.join("decant.wasm")) {
        panic!("{} cannot be copied: {err}", component.display());
    }
}

fn built(root: &Path, out_dir: &Path) -> PathBuf {
    for source in ["src", "wit", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    let component = artifact::build(root, &target_dir(root, out_dir));
    component.unwrap_or_else(|err| panic!("{err}"))
}

fn packaged(package: &Path) -> PathBuf {
    println!("cargo::rerun-if-changed={}", artifact::PACKAGED);
    package.join(artifact::PACKAGED)
}

/// In a checkout the folder that the tests use as well, so that the component is built once.
fn target_dir(root: &Path, out_dir: &Path) -> PathBuf {
    if out_dir.starts_with(root) {
        root.join("target/component")
    } else {
        out_dir.join("component")
    }
}
