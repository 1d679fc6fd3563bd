//! The state machine of one session.

use super::host::{Host, Notice, Outcome};
use super::ids::{EntryId, JobId};
use super::message::Message;
use super::size::Size;

/// Which session this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    pub id: String,
    /// Whether an appended message is part of the transcript that the host sends.
    pub summaries_in_transcript: bool,
}

/// Why a hook was refused. The session is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    #[error("out of order: {0}")]
    OutOfOrder(String),
    #[error("position lies behind the end of the transcript, which has {0} messages")]
    PositionOutOfRange(u32),
    #[error("settings are no JSON object: {0}")]
    MalformedConfig(String),
}

/// Why a command was refused. The session is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("pruning is switched off")]
    Disabled,
    #[error("`{0}` is switched off")]
    SwitchedOff(String),
    #[error("a flush is in progress")]
    Busy,
    #[error("nothing to do: {0}")]
    NothingToDo(String),
    #[error("there is no `{0}`")]
    NotFound(String),
    #[error("the session log could not be written: {0}")]
    LogFailed(String),
    #[error("cannot be read: {0}")]
    Malformed(String),
}

/// One entry of the session log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    pub id: EntryId,
    pub kind: String,
    /// A JSON text; for a message `{"content", "details"}`.
    pub data: String,
    /// When it was appended, in Unix milliseconds.
    pub at_ms: u64,
}

/// What the model call that has just ended used of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// `None` while the provider has not said.
    pub tokens: Option<u64>,
    pub context_window: u64,
}

/// What is going on after a hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    pub pending_turns: u32,
    pub running_jobs: u32,
    /// Whether the next model call should wait until `running_jobs` is 0.
    pub blocking: bool,
}
