//! The state machine of one session.
//!
//! [`Session`] holds the [`Basis`] of every decision, the [`View`] that follows from it, and the
//! flush in progress. It is driven by methods named after the hooks. Each is handed a [`Hook`], which
//! tells the time and is the only way to the outside.
//!
//! **Protocol.** [`Session::open`], then [`Session::restore`] with the log, then [`Session::sync`]
//! from position 0. Then, for each model call: `sync` what is new, [`Session::plan`], and after the
//! answer [`Session::turn_end`] or [`Session::reply_end`]; [`Session::summary_ready`] whenever a job
//! ends. Hooks may be repeated; a command that fails has changed nothing.
//!
//! **What decides.** Whether an edit stands is a function of the log, the transcript, the settings
//! and the epoch (`settle`), never of the order in which things happened. So a load reaches the
//! plan that the process before it had.

mod answer;
mod commands;
mod drive;
mod mirror;
mod report;
mod tree;
mod triggers;
mod upkeep;

pub use answer::{Answer, Tool};
pub use report::{BatchProgress, BatchState, Status, StrategyReport};
pub use tree::{Node, NodeKind};

use super::basis::{Basis, Rules};
use super::config::{Config, FlushMode};
use super::facts::{Changes, Fact, Standing};
use super::flush::{Flush, Models, Scene};
use super::hook::Hook;
use super::host::{Host, HostError, Notice, Outcome, Stamp};
use super::ids::{EntryId, JobId, OccurrenceKey};
use super::message::{Message, StopReason};
use super::plan::PlanUpdate;
use super::transcript::Position;
use super::view::View;
use triggers::Budget;

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
    #[error("the text cannot be read: {0}")]
    Unreadable(String),
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

/// The state of one session.
pub struct Session {
    basis: Basis,
    view: View,
    flush: Option<Flush>,
    /// The number of the last flush that was to be written, whether or not the log has anything of
    /// it.
    last_flush: u32,
    /// Jobs of a flush that was given up while no host was at hand.
    orphaned_jobs: Vec<JobId>,
    models: Models,
    budget: Budget,
    /// The entries of the log, until the transcript comes.
    loading: Option<Vec<(Stamp, Fact)>>,
    /// Whether no model call has begun since the last turn or reply ended.
    is_at_boundary: bool,
    /// Whether the view has to be made anew before the next hook does its work.
    is_stale: bool,
    status_line: String,
}

impl Session {
    /// Opens a session. The settings are a JSON object that is merged over the defaults.
    ///
    /// # Errors
    /// [`SessionError::MalformedConfig`] if they are no JSON object. A bad setting is no error: it
    /// is ignored and named in the notices.
    pub fn open(config: &str) -> Result<(Self, Vec<Notice>), SessionError> {
        let (config, notices) = Config::parse(config).map_err(SessionError::MalformedConfig)?;
        let session = Self {
            basis: Basis::new(Rules::new(config)),
            view: View::default(),
            flush: None,
            last_flush: 0,
            orphaned_jobs: Vec::new(),
            models: Models::default(),
            budget: Budget::default(),
            loading: Some(Vec::new()),
            is_at_boundary: false,
            is_stale: true,
            status_line: String::new(),
        };
        Ok((session, notices))
    }

    /// Takes entries of the log, oldest first, in as many pieces as the host likes.
    ///
    /// # Errors
    /// [`SessionError::OutOfOrder`] once the transcript has been given. A broken entry is no error:
    /// it is skipped and named in the notices.
    pub fn restore(&mut self, entries: Vec<LogEntry>) -> Result<Vec<Notice>, SessionError> {
        let Some(loading) = &mut self.loading else {
            let why = "entries come before the transcript".to_owned();
            return Err(SessionError::OutOfOrder(why));
        };
        let mut notices = Vec::new();
        for entry in entries {
            match Fact::read(&entry.kind, &entry.data) {
                Ok(Some(fact)) => loading.push((
                    Stamp {
                        entry: entry.id,
                        at_ms: entry.at_ms,
                    },
                    fact,
                )),
                Ok(None) => {}
                Err(why) => notices.push(Notice::warning(format!(
                    "session log: entry {} ({}) is skipped, it cannot be read: {why}",
                    entry.id.0, entry.kind
                ))),
            }
        }
        Ok(notices)
    }

    /// The results whose text the log holds: nobody will ask for it in the transcript.
    pub fn known_results(&mut self) -> Vec<OccurrenceKey> {
        self.finish_restore();
        let archive = self.basis.facts.archive();
        // What is only archived may still be summarized, and its text be needed for that.
        let records = archive
            .records()
            .filter(|(_, record)| record.standing != Standing::Archived)
            .map(|(_, record)| &record.key);
        let aliases = archive.aliases().map(|alias| &alias.key);
        let known = records.chain(aliases);
        known.filter(|key| key.at_ms.is_some()).cloned().collect()
    }

    /// From position `at` on the transcript is `tail`; what stood there before is gone.
    ///
    /// # Errors
    /// [`SessionError::PositionOutOfRange`] if `at` lies behind the end.
    pub fn sync(&mut self, at: u32, tail: Vec<Message>) -> Result<(), SessionError> {
        let at = at as Position;
        let len = self.basis.transcript.len();
        if at > len {
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            return Err(SessionError::PositionOutOfRange(len));
        }
        self.finish_restore();
        if at < len {
            self.cut_back(at);
        }
        for message in tail {
            self.append(message);
        }
        Ok(())
    }

    /// A turn is over: the assistant message and all its results are in the mirror.
    pub fn turn_end(&mut self, usage: Option<Usage>, hook: &mut Hook<'_>) -> Activity {
        self.refresh();
        self.is_at_boundary = true;
        if self.basis.rules.config.enabled {
            self.keep_up(hook);
            self.commit_if_ready(hook);
            if let Some(trigger) = self.turn_trigger(usage) {
                self.start_flush(trigger, None, hook);
            }
        }
        self.report_status(hook.host);
        self.activity()
    }

    /// The final reply is there. `closing_at_ms` is its timestamp if it is not in the mirror yet.
    pub fn reply_end(&mut self, closing_at_ms: Option<u64>, hook: &mut Hook<'_>) -> Activity {
        self.refresh();
        self.basis.epoch.is_closing = closing_at_ms.is_some();
        self.is_at_boundary = true;
        if self.basis.rules.config.enabled {
            self.keep_up(hook);
            self.commit_if_ready(hook);
            if closing_at_ms.is_some() || self.ends_with_reply() {
                self.flush_at_reply(closing_at_ms, hook);
            }
        }
        self.report_status(hook.host);
        self.activity()
    }

    /// A model call is about to be made: what changed in the plan since revision `known`.
    ///
    /// `None` means that nothing did. From here on everything in the transcript counts as sent.
    pub fn plan(&mut self, known: Option<u64>, hook: &mut Hook<'_>) -> Option<PlanUpdate> {
        self.refresh();
        self.is_at_boundary = false;
        self.write_oddities(hook.host);
        if self.basis.rules.config.enabled {
            self.archive_orphans(hook);
            self.meet_epoch(hook);
        }
        self.view.place_unseen_summaries(&self.basis, hook.host);
        self.let_go();
        self.view.plan.publish();
        let epoch = &mut self.basis.epoch;
        epoch.sent = self.basis.transcript.len();
        epoch.last_call_ms = epoch.last_call_ms.max(hook.now_ms);
        epoch.is_model_new = false;
        self.view.plan.update(known)
    }

    /// A summarizer job has ended. Unknown jobs are ignored.
    pub fn summary_ready(&mut self, job: JobId, outcome: Outcome, hook: &mut Hook<'_>) -> Activity {
        self.refresh();
        self.job_ended(job, outcome, hook);
        self.report_status(hook.host);
        self.activity()
    }

    /// Output of a job has arrived, `chars` UTF-16 code units so far.
    pub fn summary_progress(&mut self, job: JobId, chars: u32) {
        if let Some(flush) = &mut self.flush {
            flush.progressed(job, chars);
        }
    }

    /// The session runs on another model from here on, so its cache is cold.
    pub fn model_changed(&mut self) {
        self.basis.epoch.is_model_new = true;
    }

    /// Whether the model is offered `context_tree_query`.
    pub fn query_tool_offered(&mut self, offered: bool) {
        self.is_stale |= self.basis.rules.query_tool_offered != offered;
        self.basis.rules.query_tool_offered = offered;
    }

    /// The process is about to end: a flush in progress is given up.
    pub fn shutdown(&mut self, host: &mut dyn Host) {
        self.write_oddities(host);
        self.abandon_flush(host);
    }

    /// Whether the last message of the assistant is a final reply: it stopped by itself and calls no
    /// tool.
    fn ends_with_reply(&self) -> bool {
        let last = self.basis.transcript.assistants().last();
        last.and_then(|at| self.basis.transcript.assistant(*at))
            .is_some_and(|reply| reply.stop == StopReason::Stop && reply.calls.is_empty())
    }

    /// Ends the restoring: from here on the transcript may come.
    fn finish_restore(&mut self) {
        if let Some(entries) = self.loading.take() {
            self.basis.facts.load(entries);
            self.basis.seek_epoch();
        }
    }

    /// Makes the view anew, if a load, a cut or a setting has made it necessary.
    fn refresh(&mut self) {
        self.finish_restore();
        if std::mem::take(&mut self.is_stale) {
            self.basis.settle_in();
            self.basis.hold_still();
            self.view.renew(&self.basis);
            self.basis.open_up();
            self.let_go();
        }
    }

    /// Appends an entry to the log and, once it is there, applies it.
    fn write(&mut self, fact: Fact, host: &mut dyn Host) -> Result<(), HostError> {
        let stamp = fact.append(host)?;
        let changes = self.basis.facts.apply(stamp, fact);
        self.follow(&changes);
        Ok(())
    }

    /// The facts have changed: so does what follows from them.
    fn follow(&mut self, changes: &Changes) {
        if changes.is_epoch {
            self.basis.advance_epoch();
        }
        self.view.apply(&self.basis, changes);
        self.let_go();
    }

    /// Lets the texts go that the log can give back and that nobody needs here.
    fn let_go(&mut self) {
        for (at, site) in self.view.take_unneeded() {
            self.basis.transcript.release(at);
            if let Some(site) = site {
                self.basis.transcript.release_arguments(site);
            }
        }
        for batch in self.view.take_placed_summaries() {
            self.basis.facts.release_summary(batch);
        }
    }

    /// What is looked at while nobody has asked for a flush.
    fn scene(&self) -> Scene<'_> {
        Scene::idle(&self.basis, &self.view)
    }

    fn activity(&self) -> Activity {
        let running_jobs = self.flush.as_ref().map_or(0, Flush::unfinished_jobs);
        let blocking = self.basis.rules.config.flush_mode == FlushMode::Blocking
            || self.flush.as_ref().is_some_and(Flush::is_manual);
        Activity {
            pending_turns: self.pending_turns(),
            running_jobs,
            blocking: blocking && running_jobs > 0,
        }
    }

    /// Tool-using turns with results that wait for a flush.
    fn pending_turns(&self) -> u32 {
        self.view.untried().sums().n_turns
    }
}
