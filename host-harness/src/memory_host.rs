//! An environment that forgets everything with the process.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{Environment, HostError, JobQueue, LogEntry, Notice, Request, Stamp, TotalCost};

/// Keeps log, blobs and notices in memory and leaves the jobs to be taken.
///
/// Everything in it may be read and changed from outside, so that tests can break it.
#[derive(Clone, Debug, Default)]
pub struct MemoryHost {
    pub entries: Vec<LogEntry>,
    /// By name.
    pub blobs: BTreeMap<String, String>,
    pub jobs: JobQueue,
    pub notices: Vec<Notice>,
    pub status_line: String,
    pub cost: Option<TotalCost>,
    /// Whether appending to the log fails.
    pub log_fails: bool,
    /// Whether writing a blob fails.
    pub blobs_fail: bool,
    /// How many entries were ever appended, so that no id is used twice.
    appended: u64,
}

impl MemoryHost {
    fn push(&mut self, kind: &str, data: String, at: u64) -> Result<Stamp, HostError> {
        if self.log_fails {
            return Err(HostError::Failed("the session log is full".to_owned()));
        }
        self.appended += 1;
        let id = format!("e{}", self.appended);
        self.entries.push(LogEntry {
            id: id.clone(),
            kind: kind.to_owned(),
            data,
            at,
        });
        Ok(Stamp { entry: id, at })
    }
}

/// What the log holds of a message: a JSON object with its `content` and `details`.
pub(crate) fn message_data(content: &str, details: &str) -> String {
    let details = serde_json::from_str(details).unwrap_or_else(|_| Value::String(details.into()));
    json!({ "content": content, "details": details }).to_string()
}

impl Environment for MemoryHost {
    fn append(&mut self, kind: &str, data: &str, at_ms: u64) -> Result<Stamp, HostError> {
        self.push(kind, data.to_owned(), at_ms)
    }

    fn append_message(
        &mut self,
        kind: &str,
        content: &str,
        details: &str,
        at_ms: u64,
    ) -> Result<Stamp, HostError> {
        self.push(kind, message_data(content, details), at_ms)
    }

    fn read(&mut self, entry: &str) -> Result<String, HostError> {
        let found = self.entries.iter().find(|e| e.id == entry);
        found.map(|e| e.data.clone()).ok_or(HostError::NotFound)
    }

    fn entries(&mut self, from: usize) -> Result<Vec<LogEntry>, HostError> {
        Ok(self.entries.get(from..).unwrap_or_default().to_vec())
    }

    fn write_blob(&mut self, name: &str, text: &str) -> Result<String, HostError> {
        if self.blobs_fail {
            return Err(HostError::Failed("the blob folder is full".to_owned()));
        }
        self.blobs.insert(name.to_owned(), text.to_owned());
        Ok(format!("memory:{name}"))
    }

    fn read_blob(&mut self, name: &str) -> Result<String, HostError> {
        self.blobs.get(name).cloned().ok_or(HostError::NotFound)
    }

    fn submit(&mut self, request: Request) -> Result<u64, HostError> {
        Ok(self.jobs.submit(request))
    }

    fn cancel(&mut self, job: u64) {
        self.jobs.cancel(job);
    }

    fn notify(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    fn status(&mut self, line: &str) {
        line.clone_into(&mut self.status_line);
    }

    fn cost(&mut self, cost: TotalCost) {
        self.cost = Some(cost);
    }
}
