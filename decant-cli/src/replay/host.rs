//! What the pruner of a replay finds around it: a log, blobs and a queue of jobs.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use decant_host::{Environment, HostError, JobQueue, LogEntry, Notice, Request, Stamp};
use serde_json::{Value, json};

use super::log::LogFile;

/// Kinds of entries that say that what was sent may change now.
const EPOCH_KINDS: [&str; 4] = [
    "context-prune-frontier",
    "context-prune-chain",
    "context-prune-epoch",
    "context-prune-undo",
];

/// The kind of the entry that tells how an attempt to flush ended.
const METRICS_KIND: &str = "context-prune-flush-metrics";

/// Keeps everything in memory, and the log in a file as well if there is one.
#[derive(Default)]
pub(super) struct ReplayHost {
    entries: Vec<LogEntry>,
    by_id: HashMap<String, usize>,
    /// Blobs by name, for replays without a file.
    blobs: BTreeMap<String, String>,
    /// Folders to look for blobs in; they are written into the first.
    blob_folders: Vec<PathBuf>,
    file: Option<LogFile>,
    pub(super) jobs: JobQueue,
    pub(super) notices: Vec<Notice>,
    /// Ids of messages that were appended, until they are taken.
    appended_messages: Vec<String>,
    /// How many entries were appended that allow a change of what was sent.
    pub(super) epochs: u64,
    /// How many attempts to flush ended in which way.
    pub(super) flushes: BTreeMap<String, u64>,
    numbered: u64,
}

impl ReplayHost {
    /// Keeps the log in a file as well, and the blobs in a folder beside it.
    pub(super) fn with_file(mut self, file: LogFile) -> Self {
        self.blob_folders.push(file.blob_folder());
        self.file = Some(file);
        self
    }

    /// Reads blobs from these folders too.
    pub(super) fn with_blob_folders(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.blob_folders.extend(folders);
        self
    }

    /// A copy of log and blobs that writes no file.
    pub(super) fn snapshot(&self) -> Self {
        Self {
            entries: self.entries.clone(),
            by_id: self.by_id.clone(),
            blobs: self.blobs.clone(),
            blob_folders: self.blob_folders.clone(),
            numbered: self.numbered,
            ..Self::default()
        }
    }

    /// Takes over an entry that is in the log already.
    pub(super) fn adopt(&mut self, entry: LogEntry) {
        self.by_id.insert(entry.id.clone(), self.entries.len());
        self.entries.push(entry);
    }

    /// The ids of the messages that the pruner has appended since this was asked last.
    pub(super) fn take_appended_messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.appended_messages)
    }

    /// Whether the log is kept in a file as well.
    pub(super) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Writes a line of the conversation into the log file.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub(super) fn record(&mut self, id: &str, at_ms: u64, fields: Value) -> Result<()> {
        match &mut self.file {
            Some(file) => file
                .append(id, at_ms, fields)
                .with_context(|| format!("{}: cannot write the log", file.path().display())),
            None => Ok(()),
        }
    }

    fn put(&mut self, kind: &str, data: String, at: u64, line: Value) -> Result<Stamp, HostError> {
        let id = self.next_id();
        if let Some(file) = &mut self.file {
            let written = file.append(&id, at, line);
            written.map_err(|err| HostError::Failed(err.to_string()))?;
        }
        let kind = kind.to_string();
        let entry = LogEntry {
            id: id.clone(),
            kind,
            data,
            at,
        };
        self.epochs += u64::from(EPOCH_KINDS.contains(&entry.kind.as_str()));
        if entry.kind == METRICS_KIND {
            let outcome = parsed(&entry.data)["outcome"]
                .as_str()
                .unwrap_or("?")
                .to_string();
            *self.flushes.entry(outcome).or_default() += 1;
        }
        self.adopt(entry);
        Ok(Stamp { entry: id, at })
    }

    /// Ids of ours begin with a letter that pi's, which are hexadecimal, do not have.
    fn next_id(&mut self) -> String {
        loop {
            self.numbered += 1;
            let id = format!("p{:07}", self.numbered);
            if !self.by_id.contains_key(&id) {
                return id;
            }
        }
    }

    fn blob_path(&self, folder: &Path, name: &str) -> PathBuf {
        folder.join(name)
    }
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.to_string()))
}

/// What the log hands back of a message.
pub(super) fn message_data(content: &str, details: &Value) -> String {
    json!({"content": content, "details": details}).to_string()
}

impl Environment for ReplayHost {
    fn append(&mut self, kind: &str, data: &str, at_ms: u64) -> Result<Stamp, HostError> {
        let line = match &self.file {
            Some(_) => json!({"type": "custom", "customType": kind, "data": parsed(data)}),
            None => Value::Null,
        };
        self.put(kind, data.to_string(), at_ms, line)
    }

    fn append_message(
        &mut self,
        kind: &str,
        content: &str,
        details: &str,
        at_ms: u64,
    ) -> Result<Stamp, HostError> {
        let details = parsed(details);
        let data = message_data(content, &details);
        let line = json!({
            "type": "custom_message",
            "customType": kind,
            "content": content,
            "display": false,
            "details": details,
        });
        let stamp = self.put(kind, data, at_ms, line)?;
        self.appended_messages.push(stamp.entry.clone());
        Ok(stamp)
    }

    fn read(&mut self, entry: &str) -> Result<String, HostError> {
        let index = self.by_id.get(entry).ok_or(HostError::NotFound)?;
        Ok(self.entries[*index].data.clone())
    }

    fn entries(&mut self, from: usize) -> Result<Vec<LogEntry>, HostError> {
        Ok(self.entries.get(from..).unwrap_or_default().to_vec())
    }

    fn write_blob(&mut self, name: &str, text: &str) -> Result<String, HostError> {
        let Some(folder) = self.blob_folders.first().filter(|_| self.file.is_some()) else {
            self.blobs.insert(name.to_string(), text.to_string());
            return Ok(format!("memory:{name}"));
        };
        let failed = |err: std::io::Error| HostError::Failed(err.to_string());
        let path = self.blob_path(folder, name);
        let partial = path.with_added_extension("partial");
        std::fs::create_dir_all(folder).map_err(failed)?;
        std::fs::write(&partial, text).map_err(failed)?;
        std::fs::rename(&partial, &path).map_err(failed)?;
        Ok(path.display().to_string())
    }

    fn read_blob(&mut self, name: &str) -> Result<String, HostError> {
        if let Some(text) = self.blobs.get(name) {
            return Ok(text.clone());
        }
        let paths = self
            .blob_folders
            .iter()
            .map(|folder| self.blob_path(folder, name));
        let mut texts = paths.filter_map(|path| std::fs::read_to_string(path).ok());
        texts.next().ok_or(HostError::NotFound)
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
}
