//! Where the component comes from, and what it imports and exports.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::{fs, io};

use wasmtime::Engine;
use wasmtime::component::Component;

#[cfg(not(feature = "embed"))]
use crate::artifact;
use crate::artifact::BuildError;

/// The component that was compiled into this library.
#[cfg(feature = "embed")]
const EMBEDDED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/decant.wasm"));

/// Where the component comes from.
#[derive(Clone, Debug, Default)]
pub enum ComponentSource {
    /// The one that belongs to this library: compiled in with the feature `embed`, which is on by
    /// default, else built from the source beside it, once per process, or read from the package.
    #[default]
    Own,
    /// A file.
    File(PathBuf),
    /// The bytes themselves, in the binary format.
    Bytes(Vec<u8>),
}

/// Why the component cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error(transparent)]
    Build(BuildError),
    #[error("cannot read {path}: {err}", path = .0.display(), err = .1)]
    Read(PathBuf, io::Error),
}

impl ComponentSource {
    /// The component's bytes.
    ///
    /// # Errors
    /// The file cannot be read, or the source does not compile.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>, SourceError> {
        match self {
            Self::Own => own().map(Cow::Borrowed),
            Self::File(path) => read(path).map(Cow::Owned),
            Self::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
        }
    }
}

#[cfg(feature = "embed")]
fn own() -> Result<&'static [u8], SourceError> {
    Ok(EMBEDDED)
}

#[cfg(not(feature = "embed"))]
fn own() -> Result<&'static [u8], SourceError> {
    static BUILT: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    // A second thread waits for cargo's lock and finds nothing to do.
    if let Some(bytes) = BUILT.get() {
        return Ok(bytes);
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = match artifact::workspace(package) {
        Some(root) => {
            artifact::build(root, &root.join("target/component")).map_err(SourceError::Build)?
        }
        None => package.join(artifact::PACKAGED),
    };
    let bytes = read(&path)?;
    Ok(BUILT.get_or_init(|| bytes))
}

fn read(path: &Path) -> Result<Vec<u8>, SourceError> {
    fs::read(path).map_err(|err| SourceError::Read(path.to_owned(), err))
}

/// The names of what a component imports and exports, each in the order of the component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    pub imports: Vec<String>,
    pub exports: Vec<String>,
}

impl Interfaces {
    pub(crate) fn of(component: &Component, engine: &Engine) -> Self {
        let component_type = component.component_type();
        let name = |(name, _): (&str, _)| name.to_owned();
        Self {
            imports: component_type.imports(engine).map(name).collect(),
            exports: component_type.exports(engine).map(name).collect(),
        }
    }
}
