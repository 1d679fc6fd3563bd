//! The component, in the host that other programs embed.

use std::sync::{Arc, Mutex};

use decant_host::{
    Decant, Environment, HostError, JobQueue, LogEntry, Message, Notice, Outcome, Request, Session,
    SessionOptions, Stamp, Summary,
};
use serde_json::json;

use crate::long::{Lane, Said, Steps, summary};

/// The component and one session in it.
pub(crate) struct Component {
    pub(crate) session: Session,
    pub(crate) log: Arc<Mutex<Log>>,
    decant: Decant,
    config: String,
}

/// A log in memory, found by index.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) entries: Vec<LogEntry>,
    /// Whether the texts of results are thrown away instead of kept.
    pub(crate) forgets_results: bool,
    /// What a load that is about to come reads: copies that it may have.
    unread: Option<Vec<LogEntry>>,
    pub(crate) notices: Vec<Notice>,
    jobs: JobQueue,
}

impl Component {
    fn options(config: &str) -> SessionOptions {
        let mut options = SessionOptions::new("long", config);
        options.limits.fuel = u64::MAX;
        options
    }
}

impl Lane for Component {
    fn open(config: &str) -> Self {
        let decant = Decant::new().expect("the component loads");
        let log = Arc::<Mutex<Log>>::default();
        let session = decant.open(Self::options(config), log.clone());
        Self {
            session: session.expect("the session opens"),
            log,
            decant,
            config: config.to_owned(),
        }
    }

    fn load(&mut self, now_ms: u64) -> Steps {
        let transcript = self.session.transcript().to_vec();
        let mut log = self.log.lock().expect("not poisoned");
        log.unread = Some(log.entries.clone());
        drop(log);
        let mut steps = Steps::default();
        let opened = steps.timed("open, lean, restore", || {
            self.decant
                .open(Self::options(&self.config), self.log.clone())
        });
        self.session = opened.expect("the session opens");
        self.log.lock().expect("not poisoned").unread = None;
        steps.timed("convert, sync", || {
            self.session.replace_all(transcript);
            self.session.query_tool_offered(true);
        });
        steps.timed("plan, render", || self.plan(now_ms));
        steps
    }

    fn say(&mut self, said: Said, at_ms: u64) {
        match said {
            Said::User(text) => self.session.push(Message::user(&text, at_ms)),
            Said::Reply(text) => self.session.push(Message::reply(&text, at_ms)),
            Said::Call { id, command } => {
                let arguments = json!({ "command": command });
                self.session
                    .push(Message::tool_call(&id, "bash", &arguments, at_ms));
            }
            Said::Result { id, output } => {
                self.session
                    .push(Message::tool_result(&id, "bash", &output, at_ms));
            }
        }
    }

    fn plan(&mut self, now_ms: u64) -> usize {
        let context = self.session.context(now_ms);
        assert!(context.pruned, "the instance was lost");
        context.messages.len() - context.stable_prefix
    }

    fn turn_end(&mut self, now_ms: u64) {
        self.session.turn_end(None, now_ms);
    }

    fn reply_end(&mut self, closing_at_ms: u64, now_ms: u64) {
        self.session.reply_end(Some(closing_at_ms), now_ms);
    }

    fn answer_jobs(&mut self, now_ms: u64) {
        while let Some((job, _)) = self.take_job() {
            let answer = Summary {
                text: summary(job),
                truncated: false,
                usage: None,
            };
            self.session
                .summary_ready(job, &Outcome::Answered(answer), now_ms);
        }
    }
}

impl Component {
    fn take_job(&self) -> Option<(u64, Request)> {
        self.log.lock().expect("not poisoned").jobs.take()
    }
}

impl Log {
    fn push(&mut self, kind: &str, data: String, at: u64) -> Stamp {
        let id = self.entries.len().to_string();
        let is_forgotten = self.forgets_results && kind == "context-prune-index";
        self.entries.push(LogEntry {
            id: id.clone(),
            kind: kind.to_owned(),
            data: if is_forgotten { String::new() } else { data },
            at,
        });
        Stamp { entry: id, at }
    }
}

impl Environment for Log {
    fn append(&mut self, kind: &str, data: &str, at_ms: u64) -> Result<Stamp, HostError> {
        Ok(self.push(kind, data.to_owned(), at_ms))
    }

    fn append_message(
        &mut self,
        kind: &str,
        content: &str,
        details: &str,
        at_ms: u64,
    ) -> Result<Stamp, HostError> {
        let details: serde_json::Value = serde_json::from_str(details).expect("details are JSON");
        let data = json!({ "content": content, "details": details });
        Ok(self.push(kind, data.to_string(), at_ms))
    }

    fn read(&mut self, entry: &str) -> Result<String, HostError> {
        let index: usize = entry.parse().map_err(|_| HostError::NotFound)?;
        let entry = self.entries.get(index).ok_or(HostError::NotFound)?;
        Ok(entry.data.clone())
    }

    fn entries(&mut self, from: usize) -> Result<Vec<LogEntry>, HostError> {
        if let Some(unread) = &mut self.unread {
            let piece = unread.len().min(64);
            return Ok(unread.drain(..piece).collect());
        }
        let rest = self.entries.get(from..).unwrap_or_default();
        Ok(rest.iter().take(64).cloned().collect())
    }

    fn write_blob(&mut self, _: &str, _: &str) -> Result<String, HostError> {
        Err(HostError::Unavailable("no blobs here".to_owned()))
    }

    fn read_blob(&mut self, _: &str) -> Result<String, HostError> {
        Err(HostError::NotFound)
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
