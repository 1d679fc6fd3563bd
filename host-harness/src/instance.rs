//! One instance of the component, and the limits of its calls.

use std::collections::BTreeSet;

use wasmtime::{Store, StoreLimits, StoreLimitsBuilder};

use crate::bindings::Pruner;
use crate::bindings::exports::decant::pruner::{control, lifecycle, query};
use crate::{Decant, Environment, Message};

/// What one call of the component may use. Both limits are counted, not timed, so that two runs
/// meet them at the same point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions of one call. The default takes some ten seconds; counting makes calls slower by
    /// a tenth to a third.
    pub fuel: u64,
    /// Bytes of the instance's memory.
    pub memory_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: 50_000_000_000,
            memory_bytes: 512 << 20,
        }
    }
}

/// What the component's imports work on. It outlives the instance.
pub(crate) struct State {
    pub(crate) environment: Box<dyn Environment>,
    /// The time that the session was told last.
    pub(crate) now_ms: u64,
    /// Jobs without an outcome.
    pub(crate) running: BTreeSet<u64>,
    /// Messages appended by the call in progress.
    pub(crate) appended: Vec<Message>,
    memory: StoreLimits,
}

impl State {
    pub(crate) fn new(environment: Box<dyn Environment>) -> Self {
        Self {
            environment,
            now_ms: 0,
            running: BTreeSet::new(),
            appended: Vec::new(),
            memory: StoreLimits::default(),
        }
    }
}

pub(crate) struct Instance {
    store: Store<State>,
    pruner: Pruner,
}

/// The exports, ready to be called.
pub(crate) struct Call<'a> {
    pub(crate) store: &'a mut Store<State>,
    pub(crate) lifecycle: &'a lifecycle::Guest,
    pub(crate) query: &'a query::Guest,
    pub(crate) control: &'a control::Guest,
}

impl Instance {
    /// Makes an instance. Gives the state back if that fails.
    pub(crate) fn new(
        decant: &Decant,
        mut state: State,
        limits: Limits,
    ) -> Result<Self, (Box<State>, wasmtime::Error)> {
        state.memory = StoreLimitsBuilder::new()
            .memory_size(limits.memory_bytes)
            .build();
        let mut store = Store::new(decant.engine(), state);
        store.limiter(|state| &mut state.memory);
        let made = store
            .set_fuel(limits.fuel)
            .and_then(|()| decant.pruner().instantiate(&mut store));
        match made {
            Ok(pruner) => Ok(Self { store, pruner }),
            Err(err) => Err((Box::new(store.into_data()), err)),
        }
    }

    /// Calls an export within the limits. Any error means that the instance is lost.
    pub(crate) fn call<T>(
        &mut self,
        limits: Limits,
        f: impl FnOnce(&mut Call<'_>) -> wasmtime::Result<T>,
    ) -> wasmtime::Result<T> {
        self.store.set_fuel(limits.fuel)?;
        f(&mut Call {
            store: &mut self.store,
            lifecycle: self.pruner.decant_pruner_lifecycle(),
            query: self.pruner.decant_pruner_query(),
            control: self.pruner.decant_pruner_control(),
        })
    }

    /// What is left of the fuel of the last call.
    pub(crate) fn fuel_left(&self) -> u64 {
        self.store.get_fuel().unwrap_or(0)
    }

    pub(crate) fn state(&mut self) -> &mut State {
        self.store.data_mut()
    }

    pub(crate) fn into_state(self) -> State {
        self.store.into_data()
    }
}
