//! The one way out of the engine: everything that a [`Host`] does for a session.

use super::ids::{EntryId, JobId};

/// Why the host could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("not found")]
    NotFound,
    #[error("unavailable: {0}")]
    Unavailable(String),
    #[error("{0}")]
    Failed(String),
}

/// What the log has given to an entry that was appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub entry: EntryId,
    /// The time that a load will hand back with the entry, in Unix milliseconds.
    pub at_ms: u64,
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Info,
    Warning,
    Error,
}

/// A message for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub level: Level,
    pub text: String,
}

impl Notice {
    pub fn info(text: impl Into<String>) -> Self {
        Self {
            level: Level::Info,
            text: text.into(),
        }
    }

    pub fn warning(text: impl Into<String>) -> Self {
        Self {
            level: Level::Warning,
            text: text.into(),
        }
    }

    pub fn error(text: impl Into<String>) -> Self {
        Self {
            level: Level::Error,
            text: text.into(),
        }
    }
}

/// What a summarizer request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    Batch,
    Range,
}

/// Which model should answer a summarizer request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelChoice {
    Configured,
    Session,
}

/// A summarizer request: one user message, no tools, no system prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub kind: JobKind,
    /// Which batch or span of the flush it is for, counted from 0.
    pub index: u32,
    pub prompt: String,
    pub model: ModelChoice,
    /// Empty for [`ModelChoice::Session`].
    pub model_name: String,
    pub thinking: String,
    /// 0: no limit.
    pub idle_timeout_ms: u32,
    /// 0: no limit.
    pub total_timeout_ms: u32,
}

/// What a summarizer request used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JobUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// US dollars.
    pub cost: Option<f64>,
}

/// Why a summarizer request failed, as far as the session acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    Transient,
    Timeout,
    Aborted,
    Permanent,
}

/// How a summarizer job ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Answered {
        text: String,
        /// Whether the model stopped at its output limit.
        truncated: bool,
        usage: Option<JobUsage>,
    },
    Failed {
        kind: FailureKind,
        message: String,
        usage: Option<JobUsage>,
    },
}

/// Cumulative cost of the summarizer in this session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// US dollars.
    pub total: f64,
}

/// What the session asks of the program that loaded it.
///
/// An implementation must not call back into the session. Writes are durable when they return.
pub trait Host {
    /// Appends an entry that the model does not see.
    ///
    /// # Errors
    /// The log cannot be written; nothing was appended.
    fn append(&mut self, kind: &str, data: &str) -> Result<Stamp, HostError>;

    /// Appends a custom message at the end of the transcript.
    ///
    /// # Errors
    /// The log cannot be written; nothing was appended.
    fn append_message(
        &mut self,
        kind: &str,
        content: &str,
        details: &str,
    ) -> Result<Stamp, HostError>;

    /// Reads the data of an entry back; of a message `{"content", "details"}`.
    ///
    /// # Errors
    /// There is no such entry, or the log cannot be read.
    fn read(&mut self, entry: &EntryId) -> Result<String, HostError>;

    /// Writes a blob and returns where it is, in words for the model.
    ///
    /// # Errors
    /// The blob cannot be written; there is none of this name.
    fn write_blob(&mut self, name: &str, text: &str) -> Result<String, HostError>;

    /// Reads a blob back.
    ///
    /// # Errors
    /// There is no such blob, or it cannot be read.
    fn read_blob(&mut self, name: &str) -> Result<String, HostError>;

    /// Starts a summarizer job. Its end comes later, never from inside this call.
    ///
    /// # Errors
    /// No job was started.
    fn submit(&mut self, request: &Request) -> Result<JobId, HostError>;

    /// Ends a job early.
    fn cancel(&mut self, job: JobId);

    /// Shows a notice.
    fn notify(&mut self, notice: &Notice);

    /// Replaces the status line.
    fn status(&mut self, line: &str);

    /// Passes the cumulative cost on.
    fn cost(&mut self, cost: &Cost);
}
