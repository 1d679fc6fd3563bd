//! The way to a session: the engine itself here, the component in `component_lane`.

use std::collections::BTreeMap;

use decant::engine::hook::Hook;
use decant::engine::host::{Cost, Host, HostError, Notice, Outcome, Request, Stamp};
use decant::engine::ids::{EntryId, JobId};
use decant::engine::message::Message;
use decant::engine::plan::{Edit, PlanUpdate};
use decant::engine::session::{Session, Usage};

use super::host::{Shared, hold};
use super::script::Command;

/// What a session says of its sizes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Account {
    pub before: u64,
    pub after: u64,
    /// What each strategy saves.
    pub saved: Vec<(String, i64)>,
}

/// A session behind something.
pub(crate) trait Lane {
    /// A new process: a session with these settings, made from the log.
    fn open(&mut self, settings: &str, is_offered: bool, pieces: usize);
    /// From `at` on, the transcript is now `tail`.
    fn sync(&mut self, at: usize, tail: &[Message]);
    /// Each of these says whether the next model call has to wait for jobs.
    fn turn_end(&mut self, usage: Option<Usage>, now: u64) -> bool;
    fn reply_end(&mut self, closing_at: Option<u64>, now: u64) -> bool;
    fn summary_ready(&mut self, job: u64, outcome: Outcome, now: u64) -> bool;
    /// The edits for a model call, in the order of their ids.
    fn plan(&mut self, now: u64) -> Result<Vec<Edit>, String>;
    /// The host knows this revision from here on, whatever it knew before.
    fn forget_plan(&mut self, known: Option<u64>);
    fn call(&mut self, tool: &str, arguments: &str, now: u64) -> String;
    /// What the command says, or why it was refused.
    fn command(&mut self, command: Command, now: u64) -> Result<String, String>;
    fn configure(&mut self, settings: &str, now: u64) -> Result<(), String>;
    fn account(&mut self) -> Account;
    fn model_changed(&mut self);
    fn offer(&mut self, is_offered: bool);
    fn shutdown(&mut self);
}

/// The names that a command takes.
pub(crate) fn undo_name(command: Command) -> Option<String> {
    match command {
        Command::UndoBlock(n) => Some(format!("b{}", u32::from(n) + 1)),
        Command::UndoRef(n) => Some(format!(" t{} ", u32::from(n) + 1)),
        Command::UndoNonsense => Some("t0 `b`".to_owned()),
        Command::Now | Command::Compact | Command::Cancel => None,
    }
}

/// The engine itself.
pub(crate) struct EngineLane {
    host: Outlet,
    session: Session,
    /// The plan as a host puts it together from differences.
    edits: BTreeMap<u32, Edit>,
    known: Option<u64>,
    /// Whether each plan is asked for three times, and each message told at once: that must make no
    /// difference but where a write that failed is tried again.
    asks_again: bool,
    /// What a host keeps until the next hook: from where on the transcript has changed, and all of it.
    untold: Option<usize>,
    transcript: Vec<Message>,
}

impl EngineLane {
    pub(crate) fn new(host: Shared) -> Self {
        Self {
            asks_again: true,
            ..Self::plain(host)
        }
    }

    /// One call for each plan, and one for all messages since the last hook, as a host makes them.
    pub(crate) fn plain(host: Shared) -> Self {
        Self {
            host: Outlet(host),
            session: closed_session(),
            edits: BTreeMap::new(),
            known: None,
            asks_again: false,
            untold: None,
            transcript: Vec::new(),
        }
    }

    /// The session, for what can be asked of it at any time.
    pub(crate) fn session(&mut self) -> &mut Session {
        self.tell();
        &mut self.session
    }

    /// The text of a node of the tree.
    pub(crate) fn node_text(&mut self, index: u32) -> Option<String> {
        self.session.node_text(index, &mut self.host).ok()
    }

    /// Comes before every hook.
    fn tell(&mut self) {
        if let Some(from) = self.untold.take() {
            let at = u32::try_from(from).expect("small");
            let tail = self.transcript[from..].to_vec();
            self.session.sync(at, tail).expect("in range");
        }
    }

    fn take(&mut self, update: PlanUpdate) -> Result<(), String> {
        match update.base {
            None => self.edits.clear(),
            base if base == self.known => {}
            base => return Err(format!("base {base:?} for a host at {:?}", self.known)),
        }
        for gone in &update.removed {
            if self.edits.remove(gone).is_none() {
                return Err(format!("edit {gone} is removed but was not there"));
            }
        }
        let mut last = None;
        for edit in update.added {
            let place = Some((edit.at, edit.id));
            if update.base.is_some() && last >= place {
                return Err(format!("edits out of order: {last:?}, {place:?}"));
            }
            last = place;
            if let Some(before) = self.edits.insert(edit.id, edit) {
                return Err(format!("an id is used again: {before:?}"));
            }
        }
        self.known = Some(update.revision);
        Ok(())
    }
}

fn closed_session() -> Session {
    Session::open("{}").expect("settings").0
}

impl Lane for EngineLane {
    fn open(&mut self, settings: &str, is_offered: bool, pieces: usize) {
        self.session = Session::open(settings).expect("settings").0;
        for piece in hold(&self.host.0).disk.entries().chunks(pieces) {
            self.session.restore(piece.to_vec()).expect("in order");
        }
        self.session.query_tool_offered(is_offered);
        self.edits.clear();
        self.known = None;
        self.transcript.clear();
        self.untold = None;
    }

    fn sync(&mut self, at: usize, tail: &[Message]) {
        self.transcript.truncate(at);
        self.transcript.extend_from_slice(tail);
        self.untold = Some(self.untold.map_or(at, |from| from.min(at)));
        if self.asks_again {
            self.tell();
        }
    }

    fn turn_end(&mut self, usage: Option<Usage>, now: u64) -> bool {
        self.tell();
        self.session
            .turn_end(usage, &mut Hook::new(now, &mut self.host))
            .blocking
    }

    fn reply_end(&mut self, closing_at: Option<u64>, now: u64) -> bool {
        self.tell();
        let activity = self
            .session
            .reply_end(closing_at, &mut Hook::new(now, &mut self.host));
        activity.blocking
    }

    fn summary_ready(&mut self, job: u64, outcome: Outcome, now: u64) -> bool {
        self.tell();
        let job = JobId(job);
        let activity =
            self.session
                .summary_ready(job, outcome, &mut Hook::new(now, &mut self.host));
        activity.blocking
    }

    fn plan(&mut self, now: u64) -> Result<Vec<Edit>, String> {
        self.tell();
        let before = self.known;
        let refused = hold(&self.host.0).refused;
        if let Some(update) = self
            .session
            .plan(self.known, &mut Hook::new(now, &mut self.host))
        {
            self.take(update)?;
        }
        if !self.asks_again {
            return Ok(self.edits.values().cloned().collect());
        }
        let works = hold(&self.host.0).refused == refused;
        if let Some(update) = self
            .session
            .plan(self.known, &mut Hook::new(now, &mut self.host))
        {
            // What a write that failed has put off may work now.
            if works {
                return Err("a second call at once has another plan".to_owned());
            }
            self.take(update)?;
        }
        let whole = self.session.plan(None, &mut Hook::new(now, &mut self.host));
        let mut whole = whole.map(|update| update.added).unwrap_or_default();
        whole.sort_by_key(|edit| edit.id);
        let edits: Vec<Edit> = self.edits.values().cloned().collect();
        if edits != whole {
            return Err(format!(
                "differences since {before:?} make another plan:\n{edits:?}\n{whole:?}"
            ));
        }
        Ok(edits)
    }

    fn forget_plan(&mut self, known: Option<u64>) {
        // A revision that the session has had would be taken at its word.
        self.known = known.filter(|known| *known > 1 << 32);
        self.edits.clear();
    }

    fn call(&mut self, tool: &str, arguments: &str, now: u64) -> String {
        self.tell();
        self.session
            .call(tool, arguments, &mut Hook::new(now, &mut self.host))
            .text
    }

    fn command(&mut self, command: Command, now: u64) -> Result<String, String> {
        self.tell();
        if let Some(name) = undo_name(command) {
            let undone = self
                .session
                .undo(&name, &mut Hook::new(now, &mut self.host));
            return undone.map_err(|err| err.to_string());
        }
        let done = match command {
            Command::Now => self
                .session
                .flush(&mut Hook::new(now, &mut self.host))
                .map(|_| ()),
            Command::Compact => self
                .session
                .compact(&mut Hook::new(now, &mut self.host))
                .map(|_| ()),
            _ => self.session.cancel(&mut self.host),
        };
        done.map(|()| String::new()).map_err(|err| err.to_string())
    }

    fn configure(&mut self, settings: &str, now: u64) -> Result<(), String> {
        self.tell();
        let configured = self
            .session
            .configure(settings, &mut Hook::new(now, &mut self.host));
        configured.map(|_| ()).map_err(|err| err.to_string())
    }

    fn account(&mut self) -> Account {
        self.tell();
        let status = self.session.status();
        for index in 0..self.session.tree().len() {
            let index = u32::try_from(index).expect("small");
            let text = self.session.node_text(index, &mut self.host);
            let _ = text.map(|text| text.len());
        }
        Account {
            before: status.before.chars,
            after: status.after.chars,
            saved: status
                .strategies
                .into_iter()
                .map(|strategy| (strategy.kind.name().to_owned(), strategy.saved))
                .collect(),
        }
    }

    fn model_changed(&mut self) {
        self.tell();
        self.session.model_changed();
    }

    fn offer(&mut self, is_offered: bool) {
        self.tell();
        self.session.query_tool_offered(is_offered);
    }

    fn shutdown(&mut self) {
        self.tell();
        self.session.shutdown(&mut self.host);
    }
}

/// The shared host in the engine's words.
struct Outlet(Shared);

impl Host for Outlet {
    fn append(&mut self, kind: &str, data: &str) -> Result<Stamp, HostError> {
        hold(&self.0).append(kind, data)
    }

    fn append_message(
        &mut self,
        kind: &str,
        content: &str,
        details: &str,
    ) -> Result<Stamp, HostError> {
        hold(&self.0).append_message(kind, content, details)
    }

    fn read(&mut self, entry: &EntryId) -> Result<String, HostError> {
        hold(&self.0).read(entry)
    }

    fn write_blob(&mut self, name: &str, text: &str) -> Result<String, HostError> {
        hold(&self.0).write_blob(name, text)
    }

    fn read_blob(&mut self, name: &str) -> Result<String, HostError> {
        hold(&self.0).read_blob(name)
    }

    fn submit(&mut self, request: &Request) -> Result<JobId, HostError> {
        hold(&self.0).submit(request)
    }

    fn cancel(&mut self, job: JobId) {
        hold(&self.0).cancel(job);
    }

    fn notify(&mut self, notice: &Notice) {
        hold(&self.0).notify(notice);
    }

    fn status(&mut self, _line: &str) {}

    fn cost(&mut self, _cost: &Cost) {}
}
