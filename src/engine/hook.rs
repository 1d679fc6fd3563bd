//! What a hook is told and given.

use super::host::Host;

/// The time of a call, and the host that made it.
pub struct Hook<'h> {
    /// Unix milliseconds.
    pub now_ms: u64,
    pub host: &'h mut dyn Host,
}

impl<'h> Hook<'h> {
    pub fn new(now_ms: u64, host: &'h mut dyn Host) -> Self {
        Self { now_ms, host }
    }
}
