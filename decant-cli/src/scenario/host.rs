//! The host of a scenario: a session log, a blob folder and a clock, all in memory.
//!
//! Each lane hands the pruner's calls over to it. It is told what fails, and notes what it is given.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use decant_host::{
    Environment, HostError, JobKind, JobQueue, Level, LogEntry, Message, ModelChoice, Notice,
    Request, Stamp,
};
use serde_json::{Value, json};

use super::message::summary;
use super::outcome::Outcome;

/// The custom kind of the pruner's summaries.
const SUMMARY_KIND: &str = "context-prune-summary";

/// Stands for the folder of the session files, wherever a lane may run.
const SESSIONS: &str = "<sessions>";

/// A host that lanes and driver share.
pub type SharedHost = Arc<Mutex<ScenarioHost>>;

/// What stands behind the pruner's imports.
#[derive(Debug, Default)]
pub struct ScenarioHost {
    pub(super) clock_ms: u64,
    pub(super) log_fails: bool,
    pub(super) blobs_fail: bool,
    pub(super) outcome: Outcome,
    session_id: String,
    summaries_in_transcript: bool,
    log: Vec<Logged>,
    entries_made: u64,
    pub(super) jobs: JobQueue,
}

#[derive(Debug)]
struct Logged {
    id: String,
    at_ms: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    Message(Message),
    Entry {
        kind: String,
        data: String,
    },
    Summary {
        kind: String,
        content: String,
        details: String,
    },
}

impl ScenarioHost {
    pub(super) fn new(session_id: &str, summaries_in_transcript: bool, clock_ms: u64) -> Self {
        Self {
            clock_ms,
            session_id: session_id.to_owned(),
            summaries_in_transcript,
            ..Self::default()
        }
    }

    /// Writes a message of the conversation into the session.
    pub(super) fn add_message(&mut self, message: Message) {
        self.add(message.at_ms(), What::Message(message));
    }

    /// Writes an entry into the session that this run of the pruner did not write.
    pub(super) fn add_entry(&mut self, kind: &str, data: &str) {
        let what = What::Entry {
            kind: kind.to_owned(),
            data: data.to_owned(),
        };
        self.add(self.clock_ms, what);
    }

    /// Goes back to the first `kept` entries, of all kinds.
    pub(super) fn go_back(&mut self, kept: usize) {
        self.log.truncate(kept);
    }

    /// The conversation as it would be sent without the pruner.
    pub(super) fn transcript(&self) -> Vec<Message> {
        let shown = self.log.iter().filter_map(|logged| match &logged.what {
            What::Message(message) => Some(message.clone()),
            What::Entry { .. } => None,
            What::Summary {
                kind,
                content,
                details,
            } => {
                let summary = || summary(kind, content, &parsed(details), logged.at_ms);
                self.summaries_in_transcript.then(summary)
            }
        });
        shown.collect()
    }

    /// The process has died: what it had asked for will not be answered.
    pub(super) fn forget_jobs(&mut self) {
        while self.jobs.take().is_some() {}
    }

    pub(super) fn lose_blobs(&mut self) {
        self.outcome.blobs = BTreeMap::new();
    }

    pub(super) fn note_refusal(&mut self, refusal: &str) {
        self.outcome.commands.push(format!("refused: {refusal}"));
    }

    fn add(&mut self, at_ms: u64, what: What) -> Stamp {
        self.entries_made += 1;
        let id = format!("e{}", self.entries_made);
        let logged = Logged {
            id: id.clone(),
            at_ms,
            what,
        };
        self.log.push(logged);
        Stamp {
            entry: id,
            at: at_ms,
        }
    }

    fn check_log(&self) -> Result<(), HostError> {
        if self.log_fails {
            return Err(HostError::Failed("the session log is full".to_owned()));
        }
        Ok(())
    }
}

impl Environment for ScenarioHost {
    fn append(&mut self, kind: &str, data: &str, _at_ms: u64) -> Result<Stamp, HostError> {
        self.check_log()?;
        let entry = json!({ "customType": kind, "data": parsed(data) });
        self.outcome.entries.push(entry);
        let what = What::Entry {
            kind: kind.to_owned(),
            data: data.to_owned(),
        };
        Ok(self.add(self.clock_ms, what))
    }

    fn append_message(
        &mut self,
        kind: &str,
        content: &str,
        details: &str,
        _at_ms: u64,
    ) -> Result<Stamp, HostError> {
        self.check_log()?;
        let summary = json!({ "content": content, "details": parsed(details) });
        self.outcome.summaries.push(summary);
        let what = What::Summary {
            kind: kind.to_owned(),
            content: content.to_owned(),
            details: details.to_owned(),
        };
        Ok(self.add(self.clock_ms, what))
    }

    fn read(&mut self, entry: &str) -> Result<String, HostError> {
        let logged = self.log.iter().find(|logged| logged.id == entry);
        let entry = logged.and_then(|logged| logged.what.entry());
        entry.map(|(_, data)| data).ok_or(HostError::NotFound)
    }

    fn entries(&mut self, from: usize) -> Result<Vec<LogEntry>, HostError> {
        let entries = self.log.iter().filter_map(|logged| {
            let (kind, data) = logged.what.entry()?;
            Some(LogEntry {
                id: logged.id.clone(),
                kind,
                data,
                at: logged.at_ms,
            })
        });
        Ok(entries.skip(from).collect())
    }

    fn write_blob(&mut self, name: &str, text: &str) -> Result<String, HostError> {
        if self.blobs_fail {
            return Err(HostError::Failed("the blob folder is full".to_owned()));
        }
        let path = format!("{SESSIONS}/{}-blobs/{name}", self.session_id);
        self.outcome.blobs.insert(name.to_owned(), text.to_owned());
        Ok(path)
    }

    fn read_blob(&mut self, name: &str) -> Result<String, HostError> {
        let blob = self.outcome.blobs.get(name);
        blob.cloned().ok_or(HostError::NotFound)
    }

    fn submit(&mut self, request: Request) -> Result<u64, HostError> {
        let kind = match request.kind {
            JobKind::Batch => "batch",
            JobKind::Range => "range",
        };
        let mut noted = json!({ "kind": kind, "prompt": request.prompt });
        if request.model == ModelChoice::Configured {
            noted["model"] = Value::from(request.model_name.as_str());
        }
        self.outcome.requests.push(noted);
        Ok(self.jobs.submit(request))
    }

    fn cancel(&mut self, job: u64) {
        self.jobs.cancel(job);
    }

    fn notify(&mut self, notice: Notice) {
        let level = match notice.level {
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        };
        let notice = json!({ "level": level, "text": notice.text });
        self.outcome.notices.push(notice);
    }
}

impl What {
    /// Kind and data as the log hands them back; `None` for a message of the conversation. Summaries
    /// are the pruner's even if an earlier program wrote them.
    fn entry(&self) -> Option<(String, String)> {
        match self {
            Self::Message(message) => {
                let message_json = message.as_json();
                let kind = message_json["customType"].as_str()?;
                (kind == SUMMARY_KIND).then(|| {
                    let details = &message_json["details"];
                    let data = json!({ "content": message.text(), "details": details });
                    (kind.to_owned(), data.to_string())
                })
            }
            Self::Entry { kind, data } => Some((kind.clone(), data.clone())),
            Self::Summary {
                kind,
                content,
                details,
            } => {
                let data = json!({ "content": content, "details": parsed(details) });
                Some((kind.clone(), data.to_string()))
            }
        }
    }
}

/// A JSON text as a value; one that is malformed is shown as it is.
fn parsed(data: &str) -> Value {
    serde_json::from_str(data).unwrap_or_else(|_| Value::from(data))
}
