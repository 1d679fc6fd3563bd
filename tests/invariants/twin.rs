//! A session and its twins: after each hook another one is loaded from the log, with the same
//! settings and the same transcript, and has to say the same of everything.
//!
//! A twin is loaded, asked, and thrown away; it has a copy of the disk, so the session that it is
//! compared with does not know of it. A plan is the one thing that a session cannot be asked for
//! without being told that a model call begins. So a twin is asked for its plan where the script asks
//! for one, at the same time and from the same log; after the other hooks all that can be asked at any
//! time is compared: status, tree, the texts behind it, and statistics.

use std::sync::{Arc, Mutex};

use decant::engine::config::{CachePolicy, Config};
use decant::engine::entry::STATS;
use decant::engine::host::Outcome;
use decant::engine::message::{Message, Role};
use decant::engine::plan::{Change, Edit};
use decant::engine::session::{Node, NodeKind, Status, Usage};

use super::host::{FakeHost, Item, Shared, hold};
use super::lane::{Account, EngineLane, Lane};
use super::script::Command;

/// How much later the log stamps an entry than the hook that wrote it was told.
const LAG_MS: u64 = 7;

/// What may differ between a session and its twin, when, and why that is as it should be.
struct Excuse {
    what: &'static [&'static str],
    when: fn(&Moment) -> bool,
    why: &'static str,
}

/// Everything else has to be the same.
const EXCUSES: [Excuse; 6] = [
    Excuse {
        what: &["running jobs", "line"],
        when: |moment| moment.is_flushing,
        why: "a flush in progress is not in the log",
    },
    Excuse {
        what: &["statistics"],
        when: |moment| moment.is_flushing,
        why: "what a flush has asked for is written when it ends",
    },
    Excuse {
        what: &["statistics"],
        when: |moment| moment.are_statistics_refused,
        why: "the log has refused them, and the next flush writes them",
    },
    Excuse {
        what: &["statistics"],
        when: |moment| moment.is_use_unwritten,
        why: "what a flush that was given up has used is written by the next one",
    },
    Excuse {
        what: &["after", "saved", "line", "largest chain"],
        when: |moment| !moment.is_planned && moment.lacks_summaries,
        why: "a summary that the transcript lacks is inserted by the plan, and counts from then on",
    },
    Excuse {
        what: &[
            "after",
            "saved",
            "saved but for summaries",
            "line",
            "largest chain",
            "blocks",
        ],
        when: |moment| !moment.is_planned && moment.is_live,
        why: "under cachePolicy live an epoch comes with each model call and each load, and a turn \
              is between them",
    },
];

/// What is known of a comparison.
struct Moment {
    /// Whether both have just been asked for their plan.
    is_planned: bool,
    is_flushing: bool,
    is_live: bool,
    /// Whether there are summaries in the log that are not in the transcript.
    lacks_summaries: bool,
    are_statistics_refused: bool,
    /// Whether the log has no statistics since the last answer of the summarizer.
    is_use_unwritten: bool,
}

/// What a session says, by what it says it of.
type Facts = Vec<(&'static str, String)>;

/// The engine, compared with a twin after each hook.
pub(crate) struct TwinLane {
    lane: EngineLane,
    host: Shared,
    settings: String,
    is_offered: bool,
    transcript: Vec<Message>,
    /// Whether the model has changed since the last plan, and when that one was: a load knows
    /// neither. What a host knows of its cache it tells.
    is_cold: bool,
    last_call: u64,
    /// How many statistics the log had at the last answer of the summarizer.
    statistics_before: Option<usize>,
    /// The first difference, which the next plan reports.
    drift: Option<String>,
}

impl TwinLane {
    pub(crate) fn new(host: Shared) -> Self {
        // A log with a clock of its own must make no difference.
        hold(&host).lag_ms = LAG_MS;
        Self {
            lane: EngineLane::new(Arc::clone(&host)),
            host,
            settings: String::new(),
            is_offered: true,
            transcript: Vec::new(),
            is_cold: false,
            last_call: 0,
            statistics_before: None,
            drift: None,
        }
    }

    /// A twin, made from the log as it is now. It has no hiccups: the session tries again at once
    /// what one of them has stopped.
    fn twin(&self) -> EngineLane {
        let host = hold(&self.host);
        let copy = FakeHost {
            now: host.now,
            lag_ms: host.lag_ms,
            log_fails: host.log_fails,
            blobs_fail: host.blobs_fail,
            ..FakeHost::with(host.disk.clone())
        };
        drop(host);
        let mut twin = EngineLane::new(Arc::new(Mutex::new(copy)));
        twin.open(&self.settings, self.is_offered, usize::MAX);
        twin.sync(0, &self.transcript);
        twin
    }

    fn config(&self) -> Config {
        Config::parse(&self.settings).expect("settings").0
    }

    /// When a twin is told that the model call begins: at the same time, or, where the cache is warm
    /// only because of a call that brought no answer, before it gets cold without it.
    fn time_of_twin(&self, now: u64) -> u64 {
        let mut replies = self.transcript.iter().rev();
        let reply = replies.find(|message| matches!(message.role, Role::Assistant { .. }));
        let reply = reply.map_or(0, |reply| reply.at_ms);
        let idle = self.config().idle_cold_ms;
        let is_warm = !self.is_cold && (idle == 0 || now < self.last_call.max(reply) + idle);
        if is_warm && idle > 0 {
            now.min(reply + idle - 1)
        } else {
            now
        }
    }

    /// After each hook but a plan.
    fn compare(&mut self, hook: &str) {
        let host = hold(&self.host);
        let cannot_ask = host.is_dead || host.reads_fail;
        drop(host);
        if cannot_ask || self.drift.is_some() {
            return;
        }
        let mut twin = self.twin();
        let found = self.difference(&mut twin, None);
        self.drift = found.map(|found| format!("after {hook}: {found}"));
    }

    /// The first fact that is not the same, and is not excused.
    fn difference(
        &mut self,
        twin: &mut EngineLane,
        plans: Option<(&[Edit], &[Edit])>,
    ) -> Option<String> {
        let moment = self.moment(plans.is_some());
        let (mut live, mut loaded) = (facts(&mut self.lane), facts(twin));
        if let Some((edits, of_twin)) = plans {
            live.insert(0, ("edits", in_print(edits)));
            loaded.insert(0, ("edits", in_print(of_twin)));
        }
        let mut excused = Vec::new();
        for ((what, one), (_, other)) in live.iter().zip(&loaded) {
            if one == other {
                continue;
            }
            let excuse = EXCUSES
                .iter()
                .find(|excuse| excuse.what.contains(what) && (excuse.when)(&moment));
            match excuse {
                Some(excuse) => excused.push(format!("\n  {what}: {}", excuse.why)),
                None => {
                    let excused = excused.concat();
                    return Some(format!(
                        "a load differs in `{what}`\nlive:   {one}\nloaded: {other}\nexcused:{excused}"
                    ));
                }
            }
        }
        None
    }

    fn moment(&mut self, is_planned: bool) -> Moment {
        let host = hold(&self.host);
        let mut written = host.disk.items.iter().filter_map(|item| match item {
            Item::Summary(_, message) => Some(message),
            _ => None,
        });
        let lacks_summaries = written.any(|summary| !self.transcript.contains(summary));
        let are_statistics_refused = host.are_statistics_refused;
        let statistics = host.disk.count(STATS);
        drop(host);
        Moment {
            is_planned,
            is_flushing: !self.lane.session().progress().is_empty(),
            is_live: self.config().cache_policy == CachePolicy::Live,
            lacks_summaries,
            are_statistics_refused,
            is_use_unwritten: self.statistics_before == Some(statistics),
        }
    }
}

impl Lane for TwinLane {
    fn open(&mut self, settings: &str, is_offered: bool, pieces: usize) {
        self.lane.open(settings, is_offered, pieces);
        settings.clone_into(&mut self.settings);
        self.is_offered = is_offered;
        self.transcript.clear();
        self.is_cold = false;
        self.last_call = 0;
        self.statistics_before = None;
    }

    fn sync(&mut self, at: usize, tail: &[Message]) {
        self.lane.sync(at, tail);
        self.transcript.truncate(at);
        self.transcript.extend_from_slice(tail);
        self.compare("sync");
    }

    fn turn_end(&mut self, usage: Option<Usage>, now: u64) -> bool {
        let is_blocking = self.lane.turn_end(usage, now);
        self.compare("turn-end");
        is_blocking
    }

    fn reply_end(&mut self, closing_at: Option<u64>, now: u64) -> bool {
        let is_blocking = self.lane.reply_end(closing_at, now);
        self.compare("reply-end");
        is_blocking
    }

    fn summary_ready(&mut self, job: u64, outcome: Outcome, now: u64) -> bool {
        self.statistics_before = Some(hold(&self.host).disk.count(STATS));
        let is_blocking = self.lane.summary_ready(job, outcome, now);
        self.compare("summary-ready");
        is_blocking
    }

    fn plan(&mut self, now: u64) -> Result<Vec<Edit>, String> {
        if let Some(drift) = self.drift.take() {
            return Err(drift);
        }
        // From the log before the plan, so that the twin has to write what the session writes.
        let mut twin = self.twin();
        if self.is_cold {
            twin.model_changed();
        }
        let had_hiccup = hold(&self.host).hiccup_after.is_some();
        let edits = self.lane.plan(now)?;
        let host = hold(&self.host);
        let is_over = host.is_dead || (had_hiccup && host.hiccup_after.is_none());
        drop(host);
        if !is_over {
            let of_twin = twin.plan(self.time_of_twin(now))?;
            if let Some(found) = self.difference(&mut twin, Some((&edits, &of_twin))) {
                return Err(format!("after plan: {found}"));
            }
        }
        self.is_cold = false;
        self.last_call = self.last_call.max(now);
        Ok(edits)
    }

    fn forget_plan(&mut self, known: Option<u64>) {
        self.lane.forget_plan(known);
    }

    fn call(&mut self, tool: &str, arguments: &str, now: u64) -> String {
        let said = self.lane.call(tool, arguments, now);
        self.compare("call");
        said
    }

    fn command(&mut self, command: Command, now: u64) -> Result<String, String> {
        let said = self.lane.command(command, now);
        self.compare("command");
        said
    }

    fn configure(&mut self, settings: &str, now: u64) -> Result<(), String> {
        let configured = self.lane.configure(settings, now);
        if configured.is_ok() {
            settings.clone_into(&mut self.settings);
        }
        self.compare("configure");
        configured
    }

    fn account(&mut self) -> Account {
        self.lane.account()
    }

    fn model_changed(&mut self) {
        self.lane.model_changed();
        self.is_cold = true;
        self.compare("model-changed");
    }

    fn offer(&mut self, is_offered: bool) {
        self.lane.offer(is_offered);
        self.is_offered = is_offered;
        self.compare("query-tool-offered");
    }

    fn shutdown(&mut self) {
        self.lane.shutdown();
        self.compare("shutdown");
    }
}

/// All that a session says without being changed by the question.
fn facts(lane: &mut EngineLane) -> Facts {
    let status = lane.session().status();
    let tree = lane.session().tree();
    let statistics = lane.session().stats();
    let but_for_summaries = but_for_summaries(&status);
    let Status {
        enabled,
        line,
        before,
        after,
        pending_turns,
        running_jobs,
        records,
        blocks,
        strategies,
        open_cycle_thinking,
        largest_chain_percent,
        frontier_gap,
    } = status;
    vec![
        ("tree", format!("{tree:?}")),
        ("texts of the tree", format!("{:?}", texts(lane, &tree))),
        ("enabled", format!("{enabled}")),
        ("before", format!("{before:?}")),
        ("records", format!("{records}")),
        ("blocks", format!("{blocks}")),
        ("saved but for summaries", but_for_summaries),
        ("saved", format!("{strategies:?}")),
        ("after", format!("{after:?}")),
        ("pending turns", format!("{pending_turns}")),
        ("frontier gap", format!("{frontier_gap:?}")),
        ("open cycle's thinking", format!("{open_cycle_thinking:?}")),
        ("largest chain", format!("{largest_chain_percent}")),
        ("running jobs", format!("{running_jobs}")),
        ("line", line),
        ("statistics", format!("{statistics:?}")),
    ]
}

/// What blocks say, and summaries. What is behind a call is the query's, which other tests ask.
fn texts(lane: &mut EngineLane, tree: &[Node]) -> Vec<Option<String>> {
    let nodes = (0..).zip(tree);
    let with_text =
        nodes.filter(|(_, node)| matches!(node.kind, NodeKind::Block | NodeKind::Summary));
    with_text.map(|(index, _)| lane.node_text(index)).collect()
}

/// What is saved without what summaries cost: they are booked as a loss of stubs, and as a gain of
/// the block that takes their place.
fn but_for_summaries(status: &Status) -> String {
    let saved_by = |name: &str| -> i64 {
        let rows = status
            .strategies
            .iter()
            .filter(|row| row.kind.name() == name);
        rows.map(|row| row.saved).sum()
    };
    let rest = i128::from(status.after.chars) + i128::from(saved_by("stub") + saved_by("chain"));
    let rows = status.strategies.iter().map(|row| match row.kind.name() {
        "stub" | "chain" => format!("{} {}", row.kind.name(), row.count),
        name => format!("{name} {} {}", row.count, row.saved),
    });
    format!("{:?}, {rest}", rows.collect::<Vec<_>>())
}

/// Edits by position and change. Ids count only where they say in which order insertions stand.
fn in_print(edits: &[Edit]) -> String {
    let is_insertion = |edit: &Edit| {
        matches!(
            edit.change,
            Change::InsertUser { .. } | Change::InsertSummary { .. }
        )
    };
    let mut rows: Vec<(u32, u32, String)> = edits
        .iter()
        .map(|edit| {
            let id = if is_insertion(edit) { edit.id } else { 0 };
            (edit.at, id, format!("\n  {}: {:?}", edit.at, edit.change))
        })
        .collect();
    rows.sort();
    rows.into_iter().map(|(_, _, row)| row).collect()
}
