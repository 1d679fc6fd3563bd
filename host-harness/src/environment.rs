//! What a session asks of the program around it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{HostError, LogEntry, Notice, Request, Stamp, TotalCost};

/// The surroundings of one session: its log, its blobs, its summarizer and its user.
///
/// Writes are durable when they return. No method may call back into the [`Session`](crate::Session):
/// the end of a job is told to it later, with
/// [`summary_ready`](crate::Session::summary_ready). Times are Unix milliseconds, as the session was
/// told them.
///
/// To keep a handle on an environment that a session owns, share it as `Arc<Mutex<E>>`.
pub trait Environment: Send {
    /// Appends an entry that the model does not see, and returns its id and the time that
    /// [`entries`](Self::entries) will hand back with it. `data` is a JSON text.
    ///
    /// # Errors
    /// The log cannot be written; nothing was appended.
    fn append(&mut self, kind: &str, data: &str, at_ms: u64) -> Result<Stamp, HostError>;

    /// Appends a custom message, and returns the id and the time of its entry. `details` is a JSON
    /// text.
    ///
    /// # Errors
    /// The log cannot be written; nothing was appended.
    fn append_message(
        &mut self,
        kind: &str,
        content: &str,
        details: &str,
        at_ms: u64,
    ) -> Result<Stamp, HostError>;

    /// Reads the data of an entry back; of a message a JSON object with `content` and `details`.
    ///
    /// # Errors
    /// There is no such entry, or the log cannot be read.
    fn read(&mut self, entry: &str) -> Result<String, HostError>;

    /// The entries of the active branch from index `from` on, oldest first: as many as it likes to
    /// hand over at once, none at the end. Called when the session opens and after a trap.
    ///
    /// # Errors
    /// The log cannot be read.
    fn entries(&mut self, from: usize) -> Result<Vec<LogEntry>, HostError>;

    /// Writes a blob and returns where it is, in words that the model may read.
    ///
    /// # Errors
    /// The blob cannot be written; there is none of this name.
    fn write_blob(&mut self, name: &str, text: &str) -> Result<String, HostError>;

    /// Reads a blob back.
    ///
    /// # Errors
    /// There is no such blob, or it cannot be read.
    fn read_blob(&mut self, name: &str) -> Result<String, HostError>;

    /// Starts a summarizer job and returns its id, which no other job of the session has had.
    ///
    /// # Errors
    /// No job was started.
    fn submit(&mut self, request: Request) -> Result<u64, HostError>;

    /// Ends a job early. Its outcome is no longer wanted.
    fn cancel(&mut self, job: u64);

    /// Shows a notice.
    fn notify(&mut self, notice: Notice);

    /// Replaces the status line.
    fn status(&mut self, line: &str) {
        let _ = line;
    }

    /// Passes the cumulative cost of the summarizer on.
    fn cost(&mut self, cost: TotalCost) {
        let _ = cost;
    }
}

impl<E: Environment> Environment for Arc<Mutex<E>> {
    fn append(&mut self, kind: &str, data: &str, at_ms: u64) -> Result<Stamp, HostError> {
        locked(self, |e| e.append(kind, data, at_ms))
    }

    fn append_message(
        &mut self,
        kind: &str,
        content: &str,
        details: &str,
        at_ms: u64,
    ) -> Result<Stamp, HostError> {
        locked(self, |e| e.append_message(kind, content, details, at_ms))
    }

    fn read(&mut self, entry: &str) -> Result<String, HostError> {
        locked(self, |e| e.read(entry))
    }

    fn entries(&mut self, from: usize) -> Result<Vec<LogEntry>, HostError> {
        locked(self, |e| e.entries(from))
    }

    fn write_blob(&mut self, name: &str, text: &str) -> Result<String, HostError> {
        locked(self, |e| e.write_blob(name, text))
    }

    fn read_blob(&mut self, name: &str) -> Result<String, HostError> {
        locked(self, |e| e.read_blob(name))
    }

    fn submit(&mut self, request: Request) -> Result<u64, HostError> {
        locked(self, |e| e.submit(request))
    }

    fn cancel(&mut self, job: u64) {
        locked(self, |e| e.cancel(job));
    }

    fn notify(&mut self, notice: Notice) {
        locked(self, |e| e.notify(notice));
    }

    fn status(&mut self, line: &str) {
        locked(self, |e| e.status(line));
    }

    fn cost(&mut self, cost: TotalCost) {
        locked(self, |e| e.cost(cost));
    }
}

/// A panic elsewhere does not take the session's log away.
fn locked<E, T>(shared: &Mutex<E>, f: impl FnOnce(&mut E) -> T) -> T {
    f(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
}
