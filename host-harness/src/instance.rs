//! One instance of the component, and the limits of its calls.

use std::collections::BTreeSet;

use wasmtime::{ResourceLimiter, Store, StoreLimits, StoreLimitsBuilder};

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
pub struct State {
    pub(crate) environment: Box<dyn Environment>,
    /// The time that the session was told last.
    pub(crate) now_ms: u64,
    /// Jobs without an outcome.
    pub(crate) running: BTreeSet<u64>,
    /// Messages appended by the call in progress.
    pub(crate) appended: Vec<Message>,
    memory: Memory,
}

/// Holds the instance's memory to its limit, and knows how large it is.
#[derive(Default)]
struct Memory {
    limits: StoreLimits,
    bytes: usize,
}

impl ResourceLimiter for Memory {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let allowed = self.limits.memory_growing(current, desired, maximum)?;
        if allowed {
            self.bytes = desired;
        }
        Ok(allowed)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.limits.table_growing(current, desired, maximum)
    }
}

impl State {
    #[must_use]
    pub fn new(environment: Box<dyn Environment>) -> Self {
        Self {
            environment,
            now_ms: 0,
            running: BTreeSet::new(),
            appended: Vec::new(),
            memory: Memory::default(),
        }
    }
}

/// One instance of the component.
pub struct Instance {
    store: Store<State>,
    pruner: Pruner,
    fuel_spent: u64,
}

/// The exports, ready to be called.
pub struct Call<'a> {
    pub store: &'a mut Store<State>,
    pub lifecycle: &'a lifecycle::Guest,
    pub query: &'a query::Guest,
    pub control: &'a control::Guest,
}

impl Instance {
    /// Makes an instance.
    ///
    /// # Errors
    /// The component cannot be instantiated; the state is given back.
    pub fn new(
        decant: &Decant,
        mut state: State,
        limits: Limits,
    ) -> Result<Self, (Box<State>, wasmtime::Error)> {
        state.memory = Memory {
            limits: StoreLimitsBuilder::new()
                .memory_size(limits.memory_bytes)
                .build(),
            bytes: 0,
        };
        let mut store = Store::new(decant.engine(), state);
        store.limiter(|state| &mut state.memory);
        let made = store
            .set_fuel(limits.fuel)
            .and_then(|()| decant.pruner().instantiate(&mut store));
        match made {
            Ok(pruner) => Ok(Self {
                store,
                pruner,
                fuel_spent: 0,
            }),
            Err(err) => Err((Box::new(store.into_data()), err)),
        }
    }

    /// Calls an export within the limits.
    ///
    /// # Errors
    /// The call trapped or passed a limit: the instance is lost.
    pub fn call<T>(
        &mut self,
        limits: Limits,
        f: impl FnOnce(&mut Call<'_>) -> wasmtime::Result<T>,
    ) -> wasmtime::Result<T> {
        self.store.set_fuel(limits.fuel)?;
        let answer = f(&mut Call {
            store: &mut self.store,
            lifecycle: self.pruner.decant_pruner_lifecycle(),
            query: self.pruner.decant_pruner_query(),
            control: self.pruner.decant_pruner_control(),
        });
        let left = self.store.get_fuel().unwrap_or(0);
        self.fuel_spent += limits.fuel.saturating_sub(left);
        answer
    }

    /// The fuel that all calls together have taken.
    pub(crate) fn fuel_spent(&self) -> u64 {
        self.fuel_spent
    }

    /// The size of the linear memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.store.data().memory.bytes
    }

    pub(crate) fn state(&mut self) -> &mut State {
        self.store.data_mut()
    }

    pub(crate) fn into_state(self) -> State {
        self.store.into_data()
    }
}
