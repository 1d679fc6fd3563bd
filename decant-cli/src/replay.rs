//! Replays recorded sessions through the pruner, as a live host would have run them.
//!
//! Before each recorded answer of the model the context of that call is rendered; then the answer
//! and its results are pushed and the hooks fire. Time is what the recording says, so two replays
//! print the same.

mod cause;
mod check;
mod conversation;
mod driver;
mod host;
mod ledger;
mod log;
mod outcome;
mod stored;
mod turns;

pub(crate) use cause::Cause;
pub(crate) use check::Violation;
pub(crate) use ledger::{Side, Size};
pub(crate) use outcome::{Break, Call, Replayed, Totals};
pub(crate) use stored::Stored;

use std::path::{Path, PathBuf};

use anyhow::Result;
use decant_host::{Decant, Message};
use serde_json::{Map, Value};

use crate::formats::Recording;
use crate::summarizer::Summarizer;

/// How to replay a session.
pub(crate) struct Options<'a> {
    /// Settings, merged over the pruner's defaults.
    pub config: Map<String, Value>,
    /// As though the host had never compacted.
    pub ignore_compactions: bool,
    pub summarizer: &'a dyn Summarizer,
    /// The model's window in tokens, for the triggers that measure against it.
    pub context_window: u64,
    /// Checks the invariants at every model call.
    pub check: bool,
    /// Keeps the session log in this file, and blobs in a folder beside it.
    pub log: Option<PathBuf>,
    /// Goes on where the log ends.
    pub resume: bool,
}

impl<'a> Options<'a> {
    /// The usual way, with a summarizer.
    #[must_use]
    pub(crate) fn new(summarizer: &'a dyn Summarizer) -> Self {
        Self {
            config: Map::new(),
            ignore_compactions: false,
            summarizer,
            context_window: 200_000,
            check: false,
            log: None,
            resume: false,
        }
    }
}

/// Sees a replay while it goes on.
pub(crate) trait Watcher {
    /// The context of a model call has been rendered; they are counted from 1.
    ///
    /// # Errors
    ///
    /// Whatever the watcher fails at ends the replay.
    fn rendered(&mut self, call: usize, context: &[Message]) -> Result<()> {
        let _ = (call, context);
        Ok(())
    }

    /// A step of the recording is done.
    fn stepped(&mut self) {}
}

/// Watches nothing.
impl Watcher for () {}

/// Replays a session.
///
/// `path` is the recording's file, whose own pruner entries are gone on with when
/// [`Options::resume`] is set without a log.
///
/// # Errors
///
/// When the session cannot be opened, or a file cannot be read or written. What the pruner does
/// wrong is no error: see [`Replayed::violation`].
pub(crate) fn replay(
    decant: &Decant,
    path: &Path,
    recording: &Recording,
    options: &Options<'_>,
    watcher: &mut dyn Watcher,
) -> Result<Replayed> {
    driver::Driver::begin(decant, path, recording, options)?.run(watcher)
}
