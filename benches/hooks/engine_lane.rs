//! The engine as it is, with a host that keeps everything in memory.

use std::collections::{BTreeSet, VecDeque};

use decant::engine::hook::Hook;
use decant::engine::host::{Cost, Host, HostError, Notice, Outcome, Request, Stamp};
use decant::engine::ids::{EntryId, JobId, OccurrenceKey};
use decant::engine::message::{Message, Part, Role, StopReason, ToolCall};
use decant::engine::session::{LogEntry, Session};
use decant::engine::size::utf16_len;
use decant_host::lean;
use serde_json::json;

use crate::long::{Lane, Said, Steps, summary};

/// A session, its host and the host's transcript.
pub(crate) struct Native {
    session: Session,
    memory: Memory,
    transcript: Vec<Message>,
    /// How many messages the mirror has.
    n_synced: u32,
    revision: Option<u64>,
    config: String,
}

#[derive(Default)]
struct Memory {
    entries: Vec<LogEntry>,
    jobs: VecDeque<JobId>,
    n_jobs: u64,
    now_ms: u64,
}

fn opened(config: &str) -> Session {
    Session::open(config).expect("the settings are good").0
}

/// A message as it crosses at a load: of a known result the size instead of the text.
fn crossing(message: &Message, known: &BTreeSet<OccurrenceKey>) -> Message {
    let Role::ToolResult { call_id, .. } = &message.role else {
        return message.clone();
    };
    let key = OccurrenceKey::new(call_id.clone(), message.at_ms);
    if !known.contains(&key) {
        return message.clone();
    }
    let size = |part: &Part| match part {
        Part::Text(text) => {
            let count = |n: u64| u32::try_from(n).expect("no text is so long");
            let chars = utf16_len(text);
            // In ASCII a code unit is a byte.
            let ascii = match chars == text.len() as u64 {
                true => chars,
                false => text.bytes().filter(u8::is_ascii).count() as u64,
            };
            Part::Withheld {
                chars: count(chars),
                ascii: count(ascii),
            }
        }
        part => part.clone(),
    };
    Message {
        role: message.role.clone(),
        content: message.content.iter().map(size).collect(),
        at_ms: message.at_ms,
    }
}

impl Native {
    fn sync(&mut self) {
        let tail = self.transcript.get(self.n_synced as usize..);
        let tail = tail.unwrap_or_default().to_vec();
        if !tail.is_empty() {
            self.session.sync(self.n_synced, tail).expect("in range");
            self.n_synced = u32::try_from(self.transcript.len()).expect("no session is so long");
        }
    }
}

impl Lane for Native {
    fn open(config: &str) -> Self {
        Self {
            session: opened(config),
            memory: Memory::default(),
            transcript: Vec::new(),
            n_synced: 0,
            revision: None,
            config: config.to_owned(),
        }
    }

    fn load(&mut self, now_ms: u64) -> Steps {
        self.memory.now_ms = now_ms;
        let mut steps = Steps::default();
        self.session = steps.timed("open", || opened(&self.config));
        let entries = steps.timed("lean", || {
            let lean = |entry: &LogEntry| LogEntry {
                id: entry.id.clone(),
                kind: entry.kind.clone(),
                data: lean(&entry.kind, &entry.data).into_owned(),
                at_ms: entry.at_ms,
            };
            self.memory.entries.iter().map(lean).collect()
        });
        let restored = steps.timed("restore: parse", || self.session.restore(entries));
        restored.expect("it has just opened");
        let known = steps.timed("known results: facts", || self.session.known_results());
        let messages = steps.timed("withhold", || {
            let known: BTreeSet<OccurrenceKey> = known.into_iter().collect();
            let messages = self.transcript.iter();
            messages.map(|message| crossing(message, &known)).collect()
        });
        let synced = steps.timed("sync", || self.session.sync(0, messages));
        synced.expect("in range");
        self.n_synced = u32::try_from(self.transcript.len()).expect("no session is so long");
        steps.timed("status: renew", || self.session.status());
        let update = steps.timed("plan", || {
            let mut hook = Hook::new(now_ms, &mut self.memory);
            self.session.plan(None, &mut hook)
        });
        self.revision = update.map(|update| update.revision);
        steps
    }

    fn say(&mut self, said: Said, at_ms: u64) {
        let assistant = |stop| Role::Assistant { stop };
        let (role, part) = match said {
            Said::User(text) => (Role::User, Part::Text(text)),
            Said::Reply(text) => (assistant(StopReason::Stop), Part::Text(text)),
            Said::Call { id, command } => {
                let arguments = json!({ "command": command }).to_string();
                let name = "bash".to_owned();
                let call = ToolCall {
                    id,
                    name,
                    arguments,
                };
                (assistant(StopReason::ToolUse), Part::ToolCall(call))
            }
            Said::Result { id, output } => {
                let role = Role::ToolResult {
                    call_id: id,
                    tool: "bash".to_owned(),
                    is_error: false,
                };
                (role, Part::Text(output))
            }
        };
        self.transcript.push(Message {
            role,
            content: vec![part],
            at_ms,
        });
    }

    fn plan(&mut self, now_ms: u64) -> usize {
        self.sync();
        self.memory.now_ms = now_ms;
        let update = self
            .session
            .plan(self.revision, &mut Hook::new(now_ms, &mut self.memory));
        let Some(update) = update else {
            return 0;
        };
        self.revision = Some(update.revision);
        update.added.len() + update.removed.len()
    }

    fn turn_end(&mut self, now_ms: u64) {
        self.sync();
        self.memory.now_ms = now_ms;
        self.session
            .turn_end(None, &mut Hook::new(now_ms, &mut self.memory));
    }

    fn reply_end(&mut self, closing_at_ms: u64, now_ms: u64) {
        self.sync();
        self.memory.now_ms = now_ms;
        let closing_at_ms = Some(closing_at_ms);
        self.session
            .reply_end(closing_at_ms, &mut Hook::new(now_ms, &mut self.memory));
    }

    fn answer_jobs(&mut self, now_ms: u64) {
        self.memory.now_ms = now_ms;
        while let Some(job) = self.memory.jobs.pop_front() {
            let outcome = Outcome::Answered {
                text: summary(job.0),
                truncated: false,
                usage: None,
            };
            self.session
                .summary_ready(job, outcome, &mut Hook::new(now_ms, &mut self.memory));
        }
    }
}

impl Memory {
    fn push(&mut self, kind: &str, data: String) -> Stamp {
        let id = EntryId(self.entries.len().to_string());
        self.entries.push(LogEntry {
            id: id.clone(),
            kind: kind.to_owned(),
            data,
            at_ms: self.now_ms,
        });
        Stamp {
            entry: id,
            at_ms: self.now_ms,
        }
    }
}

impl Host for Memory {
    fn append(&mut self, kind: &str, data: &str) -> Result<Stamp, HostError> {
        Ok(self.push(kind, data.to_owned()))
    }

    fn append_message(
        &mut self,
        kind: &str,
        content: &str,
        details: &str,
    ) -> Result<Stamp, HostError> {
        let details: serde_json::Value = serde_json::from_str(details).expect("details are JSON");
        let data = json!({ "content": content, "details": details });
        Ok(self.push(kind, data.to_string()))
    }

    fn read(&mut self, entry: &EntryId) -> Result<String, HostError> {
        let index: usize = entry.0.parse().map_err(|_| HostError::NotFound)?;
        let entry = self.entries.get(index).ok_or(HostError::NotFound)?;
        Ok(entry.data.clone())
    }

    fn write_blob(&mut self, _: &str, _: &str) -> Result<String, HostError> {
        Err(HostError::Unavailable("no blobs here".to_owned()))
    }

    fn read_blob(&mut self, _: &str) -> Result<String, HostError> {
        Err(HostError::NotFound)
    }

    fn submit(&mut self, _: &Request) -> Result<JobId, HostError> {
        self.n_jobs += 1;
        self.jobs.push_back(JobId(self.n_jobs));
        Ok(JobId(self.n_jobs))
    }

    fn cancel(&mut self, job: JobId) {
        self.jobs.retain(|waiting| *waiting != job);
    }

    fn notify(&mut self, _: &Notice) {}

    fn status(&mut self, _: &str) {}

    fn cost(&mut self, _: &Cost) {}
}
