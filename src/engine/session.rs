//! The state machine of one session.
//!
//! [`Session`] owns everything that is known of a session: the mirror of the transcript, the
//! archive, the blocks, the plan and the flush in progress. It is driven by methods named after
//! the hooks, is told the time, and reaches the outside through [`Host`] only.
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
mod apply;
mod blocks;
mod bodies;
mod candidates;
mod collect;
mod commands;
mod commit;
mod epoch;
mod fit;
mod flush;
mod jobs;
pub mod ledger;
mod legacy;
mod merge;
mod mirror;
mod rebuild;
mod records;
mod report;
mod report_flush;
mod restore;
mod settle;
mod shares;
mod spans;
mod summaries;
mod triggers;
mod untried;
mod upkeep;
mod worth;

use std::collections::{BTreeMap, BTreeSet};

pub use answer::{Answer, Tool};
pub use report::{BatchProgress, BatchState, Node, NodeKind, Status, StrategyReport};

use super::archive::{Archive, Member, Standing};
use super::block::{Block, Extent};
use super::config::Config;
use super::host::{Host, JobUsage, Notice, Outcome};
use super::ids::{BlockId, EntryId, JobId, OccurrenceKey};
use super::message::{Message, StopReason};
use super::plan::{Plan, PlanUpdate};
use super::protect::Protection;
use super::transcript::{Position, Transcript};
use flush::Flush;
use jobs::Summarizer;
use ledger::Ledger;
use restore::{LoadEpoch, Restoring};
use shares::Shares;
use triggers::Budget;
use untried::Untried;

/// Which session this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    pub id: String,
}

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
    info: SessionInfo,
    config: Config,
    protection: Protection,
    transcript: Transcript,
    archive: Archive,
    blocks: Blocks,
    plan: Plan,
    ledger: Ledger,
    shares: Shares,
    epoch: Epoch,
    account: Account,
    flush: Option<Flush>,
    /// Jobs of a flush that was given up while no host was at hand.
    orphaned_jobs: Vec<JobId>,
    /// The number of the last flush in the log, committed or not.
    last_flush: u32,
    summarizer: Summarizer,
    budget: Budget,
    restoring: Option<Restoring>,
    load: LoadEpoch,
    /// Whether no model call has begun since the last turn or reply ended.
    is_at_boundary: bool,
    /// Whether the final reply is there that the mirror does not have yet.
    is_closing: bool,
    /// The time that the hook which is running was told.
    now_ms: u64,
    /// Whether everything has to be settled anew before the next hook does its work.
    is_stale: bool,
    query_tool_offered: bool,
    /// Diagnostics by kind and detail that are in the log.
    diagnosed: BTreeSet<(String, String)>,
    /// Diagnostics that wait for a hook that can write them.
    undiagnosed: Vec<(String, String)>,
    status_line: String,
}

/// The blocks by number, and what they cover.
#[derive(Default)]
struct Blocks {
    all: BTreeMap<BlockId, Block>,
    last_id: u32,
    /// Dropped runs: from, to.
    covered: BTreeMap<Position, Position>,
    /// The block of each dropped run, by where the run begins.
    by_run: BTreeMap<Position, BlockId>,
    /// Which blocks quote a block.
    quoted_by: BTreeMap<BlockId, Vec<BlockId>>,
    /// Final replies of compressed chains.
    replies: BTreeMap<Position, BlockId>,
    /// Blocks whose boundaries were not found when last looked for.
    unplaced: BTreeSet<BlockId>,
    /// Closed chains, by index, that a block may come to stand for.
    candidates: BTreeSet<usize>,
    /// Chains, by index, that are not closed, as long as a block may come to stand for their turns.
    unclosed: BTreeSet<usize>,
    /// The blocks that end at a timestamp.
    ends: BTreeMap<u64, Vec<BlockId>>,
    /// Timestamps of the first messages of chains that the user has taken back.
    undone: BTreeSet<u64>,
    /// Spans that a block has been made for, or that are not worth one.
    decided: BTreeSet<Extent>,
}

/// Which part of the transcript has been sent, and which part due edits may look at.
#[derive(Default)]
struct Epoch {
    /// Edits become due by counting messages before this position only.
    end: Position,
    /// Whether it ended a user turn: the agent's final reply came next.
    is_closed: bool,
    /// The last message before it, as the log has it; `None` in a log of an older program.
    mark: Option<String>,
    /// The transcript's length at the last model call.
    sent: Position,
    last_call_ms: u64,
    is_cold: bool,
    /// Assistant messages with a failed call whose arguments are large.
    purge_waiting: BTreeSet<Position>,
    /// The same, as long as a result of it is in no record.
    purge_unarchived: BTreeSet<Position>,
    /// Outputs of `context_tree_query` that stand as they are.
    recovered_waiting: BTreeSet<Position>,
    /// The same, as long as they are in no record.
    recovered_unarchived: BTreeSet<Position>,
    /// Results that were archived after the model had seen them.
    unshown: BTreeSet<Position>,
    /// How many assistant messages have been looked at for their thinking.
    thinking_done: usize,
}

/// The account of what was tried.
#[derive(Default)]
struct Account {
    /// Results that are answered, unprotected and untried.
    untried: Untried,
    /// Untried results that have not been looked at for their size.
    fresh: Vec<Position>,
    /// Results that were tried and left as they are.
    skipped: BTreeSet<OccurrenceKey>,
    /// Results without a call that are not archived yet.
    orphans: BTreeSet<Position>,
    /// Where old records, which have no timestamp, were found.
    legacy: BTreeMap<Position, Member>,
    legacy_positions: BTreeMap<Member, Position>,
    /// Summaries by batch: where they stand in the transcript.
    summaries: BTreeMap<usize, Position>,
    /// Texts of committed summaries that may have to be inserted; they can be read back from the
    /// log as well.
    unseen: BTreeMap<usize, String>,
    /// Batches whose summary may have to be inserted by the plan.
    to_place: BTreeSet<usize>,
    /// Where the plan inserts the summary of a batch.
    inserted: BTreeMap<usize, u32>,
}

impl Session {
    /// Opens a session. The settings are a JSON object that is merged over the defaults.
    ///
    /// # Errors
    /// [`SessionError::MalformedConfig`] if they are no JSON object. A bad setting is no error: it
    /// is ignored and named in the notices.
    pub fn open(info: SessionInfo, config: &str) -> Result<(Self, Vec<Notice>), SessionError> {
        let (config, notices) = Config::parse(config).map_err(SessionError::MalformedConfig)?;
        let session = Self {
            info,
            protection: Protection::new(&config),
            config,
            transcript: Transcript::default(),
            archive: Archive::default(),
            blocks: Blocks::default(),
            plan: Plan::default(),
            ledger: Ledger::default(),
            shares: Shares::default(),
            epoch: Epoch::default(),
            account: Account::default(),
            flush: None,
            orphaned_jobs: Vec::new(),
            last_flush: 0,
            summarizer: Summarizer::default(),
            budget: Budget::default(),
            restoring: Some(Restoring::default()),
            load: LoadEpoch::default(),
            is_at_boundary: false,
            is_closing: false,
            now_ms: 0,
            is_stale: true,
            query_tool_offered: true,
            diagnosed: BTreeSet::new(),
            undiagnosed: Vec::new(),
            status_line: String::new(),
        };
        Ok((session, notices))
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.info.id
    }

    /// Takes entries of the log, oldest first, in as many pieces as the host likes.
    ///
    /// # Errors
    /// [`SessionError::OutOfOrder`] once the transcript has been given. A broken entry is no error:
    /// it is skipped and named in the notices.
    pub fn restore(&mut self, entries: Vec<LogEntry>) -> Result<Vec<Notice>, SessionError> {
        let Some(restoring) = &mut self.restoring else {
            let why = "entries come before the transcript".to_owned();
            return Err(SessionError::OutOfOrder(why));
        };
        Ok(restoring.take(entries))
    }

    /// The results whose text the log holds: the host may withhold their texts at the load.
    pub fn known_results(&mut self) -> Vec<OccurrenceKey> {
        self.finish_restore();
        let records = self.archive.records().iter();
        let records = records.filter(|record| record.standing != Standing::Archived);
        let keys = records.map(|record| &record.key);
        let keys = keys.chain(self.archive.aliases().iter().map(|alias| &alias.key));
        keys.filter(|key| key.at_ms.is_some()).cloned().collect()
    }

    /// From position `at` on the transcript is `tail`; what stood there before is gone.
    ///
    /// # Errors
    /// [`SessionError::PositionOutOfRange`] if `at` lies behind the end.
    pub fn sync(&mut self, at: u32, tail: Vec<Message>) -> Result<(), SessionError> {
        let at = at as Position;
        let len = self.transcript.len();
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
    pub fn turn_end(&mut self, usage: Option<Usage>, now_ms: u64, host: &mut dyn Host) -> Activity {
        self.begin(now_ms);
        self.is_at_boundary = true;
        if self.config.enabled {
            self.keep_up(now_ms, host);
            self.commit_if_ready(now_ms, host);
            if let Some(trigger) = self.turn_trigger(usage) {
                self.start_flush(trigger, None, now_ms, host);
            }
        }
        self.report_status(host);
        self.activity()
    }

    /// The final reply is there. `closing_at_ms` is its timestamp if it is not in the mirror yet.
    pub fn reply_end(
        &mut self,
        closing_at_ms: Option<u64>,
        now_ms: u64,
        host: &mut dyn Host,
    ) -> Activity {
        self.begin(now_ms);
        self.is_closing = closing_at_ms.is_some();
        self.is_at_boundary = true;
        if self.config.enabled {
            self.keep_up(now_ms, host);
            self.commit_if_ready(now_ms, host);
            if closing_at_ms.is_some() || self.ends_with_reply() {
                self.flush_at_reply(closing_at_ms, now_ms, host);
            }
        }
        self.report_status(host);
        self.activity()
    }

    /// A model call is about to be made: what changed in the plan since revision `known`.
    ///
    /// `None` means that nothing did. From here on everything in the transcript counts as sent.
    pub fn plan(
        &mut self,
        known: Option<u64>,
        now_ms: u64,
        host: &mut dyn Host,
    ) -> Option<PlanUpdate> {
        self.begin(now_ms);
        self.is_at_boundary = false;
        self.write_diagnostics(host);
        if self.config.enabled {
            self.archive_orphans(now_ms, host);
            self.meet_epoch(now_ms, host);
        }
        self.place_unseen_summaries(host);
        self.plan.publish();
        self.epoch.sent = self.transcript.len();
        self.epoch.last_call_ms = self.epoch.last_call_ms.max(now_ms);
        self.epoch.is_cold = false;
        self.plan.update(known)
    }

    /// A summarizer job has ended. Unknown jobs are ignored.
    pub fn summary_ready(
        &mut self,
        job: JobId,
        outcome: Outcome,
        now_ms: u64,
        host: &mut dyn Host,
    ) -> Activity {
        self.begin(now_ms);
        self.job_ended(job, outcome, now_ms, host);
        self.report_status(host);
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
        self.epoch.is_cold = true;
    }

    /// Whether the model is offered `context_tree_query`.
    pub fn query_tool_offered(&mut self, offered: bool) {
        if self.query_tool_offered != offered {
            self.query_tool_offered = offered;
            self.is_stale = true;
        }
    }

    /// The process is about to end: a flush in progress is given up.
    pub fn shutdown(&mut self, host: &mut dyn Host) {
        self.write_diagnostics(host);
        self.abandon_flush(host);
    }

    /// Whether the last message of the assistant is a final reply: it stopped by itself and calls no
    /// tool.
    fn ends_with_reply(&self) -> bool {
        let last = self.transcript.assistants().last();
        last.and_then(|at| self.transcript.assistant(*at))
            .is_some_and(|reply| reply.stop == StopReason::Stop && reply.calls.is_empty())
    }

    fn begin(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.refresh();
    }

    fn activity(&self) -> Activity {
        let running_jobs = self.flush.as_ref().map_or(0, Flush::unfinished_jobs);
        let blocking = self.config.flush_mode == super::config::FlushMode::Blocking
            || self.flush.as_ref().is_some_and(Flush::is_manual);
        Activity {
            pending_turns: self.pending_turns(),
            running_jobs,
            blocking: blocking && running_jobs > 0,
        }
    }

    /// Tool-using turns with results that wait for a flush.
    fn pending_turns(&self) -> u32 {
        self.account.untried.sums().n_turns
    }
}
