//! A host that keeps a session file, and fails or dies on demand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use decant::engine::entry;
use decant::engine::host::{Cost, Host, HostError, Notice, Request, Stamp};
use decant::engine::ids::{EntryId, JobId};
use decant::engine::message::{Message, Part, Role};
use decant::engine::session::LogEntry;
use serde_json::{Value, json};

/// One line of the session file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Entry(LogEntry),
    Message(Message),
    /// An entry that may be a message of the transcript too.
    Summary(LogEntry, Message),
    /// The host put this message in the place of all but the last `kept` messages.
    Cut {
        message: Message,
        kept: usize,
    },
}

impl Item {
    pub(crate) fn entry(&self) -> Option<&LogEntry> {
        match self {
            Self::Entry(entry) | Self::Summary(entry, _) => Some(entry),
            Self::Message(_) | Self::Cut { .. } => None,
        }
    }

    /// Whether everything before it counts, once it is written.
    fn commits(&self) -> bool {
        let Some(entry) = self.entry() else {
            return true;
        };
        let data: Value = serde_json::from_str(&entry.data).unwrap_or_default();
        match entry.kind.as_str() {
            entry::SUMMARY => false,
            entry::FRONTIER | entry::EPOCH => true,
            _ => data.get("flush").is_none(),
        }
    }
}

/// What outlives the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    pub items: Vec<Item>,
    pub blobs: BTreeMap<String, String>,
    appended: u32,
}

impl Disk {
    /// What a session file holds.
    pub(crate) fn of(items: Vec<Item>, blobs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            // Behind the ids of any entry.
            appended: u32::MAX / 2,
            blobs: blobs.into_iter().collect(),
            items,
        }
    }

    pub(crate) fn entries(&self) -> Vec<LogEntry> {
        self.items.iter().filter_map(Item::entry).cloned().collect()
    }

    /// How many entries of a kind there are.
    pub(crate) fn count(&self, kind: &str) -> usize {
        let entries = self.items.iter().filter_map(Item::entry);
        entries.filter(|entry| entry.kind == kind).count()
    }

    /// The transcript that the file makes.
    pub(crate) fn transcript(&self, shows_summaries: bool) -> Vec<Message> {
        let mut transcript: Vec<Message> = Vec::new();
        for item in &self.items {
            match item {
                Item::Message(message) => transcript.push(message.clone()),
                Item::Summary(_, message) if shows_summaries => transcript.push(message.clone()),
                Item::Entry(_) | Item::Summary(..) => {}
                Item::Cut { message, kept } => {
                    let from = transcript.len().saturating_sub(*kept);
                    transcript.drain(..from);
                    transcript.insert(0, message.clone());
                }
            }
        }
        transcript
    }

    /// The file without what a flush has written that was not committed.
    pub(crate) fn committed(&self) -> Self {
        let len = self.items.iter().rposition(Item::commits);
        Self {
            items: self.items[..len.map_or(0, |last| last + 1)].to_vec(),
            ..self.clone()
        }
    }
}

/// The host.
#[derive(Debug, Default)]
pub(crate) struct FakeHost {
    pub disk: Disk,
    pub now: u64,
    /// How much later than the hook was told the log has its entries.
    pub lag_ms: u64,
    pub log_fails: bool,
    pub blobs_fail: bool,
    pub submit_fails: bool,
    pub reads_fail: bool,
    /// Writes that still work before one fails.
    pub hiccup_after: Option<u8>,
    /// Writes that still work before the process dies.
    pub dies_after: Option<u8>,
    pub is_dead: bool,
    /// Writes that were refused.
    pub refused: u32,
    /// Whether the log has older statistics than the session wanted to write.
    pub are_statistics_refused: bool,
    /// Running jobs, oldest first.
    pub jobs: Vec<(u64, Request)>,
    /// Jobs that have ended.
    pub ended: Vec<u64>,
    pub(crate) submitted: u64,
    pub notices: Vec<Notice>,
    /// Summaries that are not in the transcript yet.
    pub appended: Vec<Message>,
}

/// The host, shared between the session that it serves and the test.
pub(crate) type Shared = Arc<Mutex<FakeHost>>;

/// Takes the host in hand.
pub(crate) fn hold(host: &Shared) -> MutexGuard<'_, FakeHost> {
    host.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FakeHost {
    /// A healthy host with a copy of a disk.
    pub(crate) fn with(disk: Disk) -> Self {
        Self {
            disk,
            ..Self::default()
        }
    }

    /// A new process: nothing is left but the disk, and what ails the world around it.
    pub(crate) fn restart(&mut self) {
        self.is_dead = false;
        self.dies_after = None;
        let lost = self.jobs.drain(..).map(|(job, _)| job);
        self.ended.extend(lost);
        self.appended.clear();
        self.are_statistics_refused = false;
    }

    /// When something is appended now, by the log's clock.
    fn log_time(&self) -> u64 {
        self.now + self.lag_ms
    }

    fn write(&mut self, fails: bool) -> Result<(), HostError> {
        let written = self.try_write(fails);
        self.refused += u32::from(written.is_err());
        written
    }

    fn try_write(&mut self, fails: bool) -> Result<(), HostError> {
        if self.dies_after == Some(0) {
            self.is_dead = true;
        }
        if self.is_dead {
            return Err(HostError::Unavailable("the process is gone".to_owned()));
        }
        if fails {
            return Err(HostError::Failed("the disk is full".to_owned()));
        }
        if self.hiccup_after == Some(0) {
            self.hiccup_after = None;
            return Err(HostError::Failed("the disk had a hiccup".to_owned()));
        }
        self.dies_after = self.dies_after.map(|left| left - 1);
        self.hiccup_after = self.hiccup_after.map(|left| left - 1);
        Ok(())
    }

    fn entry(&mut self, kind: &str, data: String) -> LogEntry {
        self.disk.appended += 1;
        LogEntry {
            id: EntryId(format!("e{}", self.disk.appended)),
            kind: kind.to_owned(),
            data,
            at_ms: self.log_time(),
        }
    }
}

fn stamp_of(entry: &LogEntry) -> Stamp {
    Stamp {
        entry: entry.id.clone(),
        at_ms: entry.at_ms,
    }
}

impl Host for FakeHost {
    fn append(&mut self, kind: &str, data: &str) -> Result<Stamp, HostError> {
        let written = self.write(self.log_fails);
        if kind == entry::STATS {
            self.are_statistics_refused = written.is_err();
        }
        written?;
        let entry = self.entry(kind, data.to_owned());
        let stamp = stamp_of(&entry);
        self.disk.items.push(Item::Entry(entry));
        Ok(stamp)
    }

    fn append_message(
        &mut self,
        kind: &str,
        content: &str,
        details: &str,
    ) -> Result<Stamp, HostError> {
        self.write(self.log_fails)?;
        let parsed: Value = serde_json::from_str(details).unwrap_or_default();
        let data = json!({ "content": content, "details": parsed }).to_string();
        let entry = self.entry(kind, data);
        let stamp = stamp_of(&entry);
        let message = Message {
            role: Role::Custom {
                kind: kind.to_owned(),
                details: details.to_owned(),
            },
            content: vec![Part::Text(content.to_owned())],
            at_ms: self.log_time(),
        };
        self.appended.push(message.clone());
        self.disk.items.push(Item::Summary(entry, message));
        Ok(stamp)
    }

    fn read(&mut self, entry: &EntryId) -> Result<String, HostError> {
        if self.is_dead || self.reads_fail {
            return Err(HostError::Failed("the disk makes a noise".to_owned()));
        }
        let entries = self.disk.items.iter().filter_map(Item::entry);
        let found = entries.into_iter().find(|known| known.id == *entry);
        found
            .map(|entry| entry.data.clone())
            .ok_or(HostError::NotFound)
    }

    fn write_blob(&mut self, name: &str, text: &str) -> Result<String, HostError> {
        self.write(self.blobs_fail)?;
        self.disk.blobs.insert(name.to_owned(), text.to_owned());
        Ok(format!("/blobs/{name}"))
    }

    fn read_blob(&mut self, name: &str) -> Result<String, HostError> {
        if self.is_dead || self.reads_fail {
            return Err(HostError::Failed("the disk makes a noise".to_owned()));
        }
        self.disk
            .blobs
            .get(name)
            .cloned()
            .ok_or(HostError::NotFound)
    }

    fn submit(&mut self, request: &Request) -> Result<JobId, HostError> {
        if self.is_dead || self.submit_fails {
            return Err(HostError::Unavailable("no model".to_owned()));
        }
        self.submitted += 1;
        self.jobs.push((self.submitted, request.clone()));
        Ok(JobId(self.submitted))
    }

    fn cancel(&mut self, job: JobId) {
        self.jobs.retain(|(id, _)| *id != job.0);
        self.ended.push(job.0);
    }

    fn notify(&mut self, notice: &Notice) {
        self.notices.push(notice.clone());
    }

    fn status(&mut self, _line: &str) {}

    fn cost(&mut self, _cost: &Cost) {}
}
