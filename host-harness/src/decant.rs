//! The loaded component, shared by all sessions.

use std::sync::Arc;

use wasmtime::component::{HasSelf, Linker};
use wasmtime::{Config, Engine};

use crate::bindings::{Pruner, PrunerPre};
use crate::cache;
use crate::component::SourceError;
use crate::instance::State;
use crate::{Cache, ComponentSource, Environment, Interfaces, OpenError, Session, SessionOptions};

/// The interface of a random seed that a component may import: hash maps of libraries want it.
const INSECURE_SEED: &str = "wasi:random/insecure-seed@";

/// Why the component could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Source(#[from] SourceError),
    /// It is no component, or not one of this contract.
    #[error("not a pruner component: {0:#}")]
    Component(wasmtime::Error),
}

/// The compiled component. Cheap to clone; one per process is enough.
#[derive(Clone)]
pub struct Decant {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Engine,
    pruner: PrunerPre<State>,
    interfaces: Interfaces,
    wasm_bytes: usize,
}

/// How to load the component.
#[derive(Clone, Debug, Default)]
pub struct DecantBuilder {
    source: ComponentSource,
    cache: Cache,
}

impl DecantBuilder {
    /// Takes another component than the library's own.
    #[must_use]
    pub fn source(mut self, source: ComponentSource) -> Self {
        self.source = source;
        self
    }

    /// Keeps the compiled form elsewhere, or nowhere.
    #[must_use]
    pub fn cache(mut self, cache: Cache) -> Self {
        self.cache = cache;
        self
    }

    /// Loads the component.
    ///
    /// # Errors
    /// It cannot be read or built, or it is not a pruner component.
    pub fn load(&self) -> Result<Decant, LoadError> {
        let wasm = self.source.bytes()?;
        let shared = Shared::new(&wasm, &self.cache).map_err(LoadError::Component)?;
        Ok(Decant {
            shared: Arc::new(shared),
        })
    }
}

impl Decant {
    /// Loads the library's own component, with the compiled form in the user's cache folder.
    ///
    /// # Errors
    /// See [`DecantBuilder::load`].
    pub fn new() -> Result<Self, LoadError> {
        Self::builder().load()
    }

    #[must_use]
    pub fn builder() -> DecantBuilder {
        DecantBuilder::default()
    }

    /// Opens a session in an instance of its own: restores it from the environment's log.
    ///
    /// # Errors
    /// The settings are no JSON object, the log cannot be read, or the component traps.
    pub fn open(
        &self,
        options: SessionOptions,
        environment: impl Environment + 'static,
    ) -> Result<Session, OpenError> {
        Session::open(self.clone(), options, Box::new(environment))
    }

    /// What the component imports and exports.
    #[must_use]
    pub fn interfaces(&self) -> &Interfaces {
        &self.shared.interfaces
    }

    /// Size of the component in bytes, before it is compiled.
    #[must_use]
    pub fn wasm_bytes(&self) -> usize {
        self.shared.wasm_bytes
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    pub(crate) fn pruner(&self) -> &PrunerPre<State> {
        &self.shared.pruner
    }
}

impl Shared {
    fn new(wasm: &[u8], cache: &Cache) -> wasmtime::Result<Self> {
        let mut config = Config::new();
        config.consume_fuel(true);
        let engine = Engine::new(&config)?;
        let component = cache::compile(&engine, wasm, cache)?;
        let interfaces = Interfaces::of(&component, &engine);
        let linker = linker(&engine, &interfaces)?;
        let pruner = PrunerPre::new(linker.instantiate_pre(&component)?)?;
        Ok(Self {
            engine,
            pruner,
            interfaces,
            wasm_bytes: wasm.len(),
        })
    }
}

fn linker(engine: &Engine, interfaces: &Interfaces) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    Pruner::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    let mut imports = interfaces.imports.iter();
    if let Some(seed) = imports.find(|name| name.starts_with(INSECURE_SEED)) {
        // A constant: nothing that the pruner does may depend on chance.
        linker
            .instance(seed)?
            .func_wrap("insecure-seed", |_, ()| Ok(((0u64, 0u64),)))?;
    }
    Ok(linker)
}
