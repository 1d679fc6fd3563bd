//! What the session tells of itself: status, statistics, progress, tree.

use super::flush::{Ask, Fate};
use super::ledger::{Strategy, rest};
use super::{CommandError, Session};
use crate::engine::archive::{Member, Standing};
use crate::engine::block::State;
use crate::engine::entry;
use crate::engine::host::Host;
use crate::engine::ids::BlockId;
use crate::engine::size::Size;

/// What one strategy did and saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategyReport {
    pub kind: Strategy,
    /// How many results, chains, calls or messages it stands on.
    pub count: u32,
    /// Characters, net of what was inserted.
    pub saved: i64,
}

/// The state of the session at a glance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub enabled: bool,
    pub line: String,
    /// The context as the host has it, without our summaries.
    pub before: Size,
    /// The context as the model sees it.
    pub after: Size,
    pub pending_turns: u32,
    pub running_jobs: u32,
    pub records: u32,
    pub blocks: u32,
    pub strategies: Vec<StrategyReport>,
    pub open_cycle_thinking: Size,
    pub largest_chain_percent: u32,
    pub frontier_gap: Size,
}

/// Where one request of the flush in progress stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchState {
    Queued,
    Running,
    Answered,
    Failed,
}

/// A row of the progress display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchProgress {
    pub label: String,
    pub state: BatchState,
    /// UTF-16 code units that have arrived.
    pub chars: u32,
}

/// What a node of the tree stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    Block,
    Summary,
    Call,
    Alias,
}

/// A node of the tree of everything that was pruned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub kind: NodeKind,
    /// Block or ref; empty for a summary.
    pub name: String,
    /// One line without the name.
    pub label: String,
    /// Index of the parent, which comes earlier.
    pub parent: Option<u32>,
    pub call_id: String,
}

/// Where the text of a node comes from.
enum Source {
    Block(BlockId),
    /// The summary of a batch, by its index in the archive.
    Summary(usize),
    Member(Member),
}

impl Session {
    /// The state of the session.
    pub fn status(&mut self) -> Status {
        self.refresh();
        let before = self.transcript.size();
        Status {
            enabled: self.config.enabled,
            line: self.line(),
            before,
            after: rest(before, self.ledger.saved()),
            pending_turns: self.pending_turns(),
            running_jobs: self.activity().running_jobs,
            records: count(self.archive.records().len()),
            blocks: count(self.standing_blocks()),
            strategies: self.strategies(),
            open_cycle_thinking: self.open_cycle_thinking(),
            largest_chain_percent: self.largest_chain_percent(),
            frontier_gap: self.frontier_gap(),
        }
    }

    /// What the summarizer did over the life of the session.
    #[must_use]
    pub fn stats(&self) -> entry::Stats {
        self.summarizer.stats
    }

    fn standing_blocks(&self) -> usize {
        self.blocks
            .all
            .values()
            .filter(|block| matches!(block.state, State::Placed(_)))
            .count()
    }

    /// One row for each strategy, also for one that never did anything; the repair of pairing has
    /// one only if there was something to repair.
    fn strategies(&self) -> Vec<StrategyReport> {
        Strategy::ALL
            .into_iter()
            .map(|strategy| (strategy, self.ledger.total(strategy)))
            .filter(|(strategy, total)| *strategy != Strategy::Pairing || total.count > 0)
            .map(|(strategy, total)| StrategyReport {
                kind: strategy,
                count: total.count,
                saved: total.saved.chars,
            })
            .collect()
    }

    fn open_cycle_thinking(&self) -> Size {
        let start = self.open_cycle_start(self.transcript.len());
        self.transcript.thinking_from(start)
    }

    fn largest_chain_percent(&self) -> u32 {
        let total = rest(self.transcript.size(), self.ledger.saved()).chars;
        let largest = self.shares.largest();
        let percent = (largest * 100).checked_div(total).unwrap_or(0);
        u32::try_from(percent.min(100)).unwrap_or(100)
    }

    fn frontier_gap(&self) -> Size {
        self.account.untried.sums().text
    }

    /// What a flush leaves behind, for its metrics entry.
    pub(super) fn gauges(&self) -> entry::Gauges {
        entry::Gauges {
            open_cycle_thinking_tokens: self.open_cycle_thinking().tokens,
            largest_chain_share_pct: self.largest_chain_percent(),
            frontier_gap_tokens: self.frontier_gap().tokens,
        }
    }

    /// Tells the host the status line, if it has changed.
    pub(super) fn report_status(&mut self, host: &mut dyn Host) {
        let line = self.line();
        if line != self.status_line {
            host.status(&line);
            self.status_line = line;
        }
    }

    fn line(&self) -> String {
        if !self.config.show_status_line {
            return String::new();
        }
        if !self.config.enabled {
            return "│ prune: OFF │".to_owned();
        }
        let jobs = self.activity().running_jobs;
        if jobs > 0 {
            return format!("│ prune: summarizing ({jobs} to go) │");
        }
        let mut line = "│ prune: ON".to_owned();
        let before = self.transcript.size();
        let after = rest(before, self.ledger.saved());
        if self.ledger.saved().chars != 0 {
            let percent = percent_of(before.tokens.saturating_sub(after.tokens), before.tokens);
            line.push_str(&format!(
                " · {}->{} (-{percent}%)",
                thousands(before.tokens),
                thousands(after.tokens)
            ));
        }
        let pending = self.pending_turns();
        if pending > 0 {
            line.push_str(&format!(" · {pending} pending"));
        }
        line.push_str(" │");
        line
    }

    /// The rows of the flush in progress.
    #[must_use]
    pub fn progress(&self) -> Vec<BatchProgress> {
        let Some(flush) = &self.flush else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        for batch in &flush.batches {
            let (state, chars) = match &batch.fate {
                Fate::Skipped(_) => continue,
                Fate::Summarized { content } => (BatchState::Answered, length(content)),
                Fate::Asked { ask, .. } => state_of(ask),
            };
            let tools: Vec<&str> = batch
                .calls
                .iter()
                .filter_map(|call| self.transcript.call(call.site))
                .map(|call| call.tool.as_str())
                .collect();
            let turn = batch
                .calls
                .first()
                .map_or(0, |call| self.turn_index_at(call.at));
            rows.push(BatchProgress {
                label: format!("turn {turn}: {}", tools.join(", ")),
                state,
                chars,
            });
        }
        for span in &flush.spans {
            if let super::flush::Body::Fused { ask, .. } = &span.body {
                let (state, chars) = state_of(ask);
                rows.push(BatchProgress {
                    label: format!("{}: {} outputs", span.id, span.refs.len()),
                    state,
                    chars,
                });
            }
        }
        rows
    }

    /// The tree of blocks, summaries, calls and aliases, each parent before its children.
    #[must_use]
    pub fn tree(&self) -> Vec<Node> {
        self.rows().into_iter().map(|(node, _)| node).collect()
    }

    fn rows(&self) -> Vec<(Node, Source)> {
        let mut rows: Vec<(Node, Source)> = Vec::new();
        let mut blocks = std::collections::BTreeMap::new();
        for block in self.blocks.all.values() {
            if !matches!(block.state, State::Placed(_) | State::Unplaced) {
                continue;
            }
            blocks.insert(block.id, count(rows.len()));
            let node = Node {
                kind: NodeKind::Block,
                name: block.id.to_string(),
                label: format!("{} outputs", block.refs.len()),
                parent: None,
                call_id: String::new(),
            };
            rows.push((node, Source::Block(block.id)));
        }
        for (index, batch) in self.archive.batches().iter().enumerate() {
            let parent = batch.block.and_then(|id| blocks.get(&id).copied());
            let own = count(rows.len());
            let node = Node {
                kind: NodeKind::Summary,
                name: String::new(),
                label: format!("turn {} · {} calls", batch.turn_index, batch.records.len()),
                parent,
                call_id: String::new(),
            };
            rows.push((node, Source::Summary(index)));
            for record in &batch.records {
                self.push_record(*record, Some(own), &mut rows);
            }
        }
        for index in 0..self.archive.records().len() {
            let standing = self.archive.record(index).map(|record| &record.standing);
            if !matches!(standing, Some(Standing::Summarized { .. }) | None) {
                let name = self.archive.record(index).map(|record| record.name);
                let parent = self
                    .blocks
                    .all
                    .values()
                    .find(|block| name.is_some_and(|name| block.refs.contains(&name)))
                    .and_then(|block| blocks.get(&block.id).copied());
                self.push_record(index, parent, &mut rows);
            }
        }
        rows
    }

    fn push_record(&self, index: usize, parent: Option<u32>, rows: &mut Vec<(Node, Source)>) {
        let Some(record) = self.archive.record(index) else {
            return;
        };
        let own = count(rows.len());
        let status = if record.is_error { "failed" } else { "ok" };
        let path = record.path.as_deref().unwrap_or_default();
        let label = [record.tool.as_str(), path, status]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" · ");
        let node = Node {
            kind: NodeKind::Call,
            name: record.name.to_string(),
            label,
            parent,
            call_id: record.key.call_id.clone(),
        };
        rows.push((node, Source::Member(Member::Record(index))));
        for at in self.archive.aliases_of(index) {
            if let Some(alias) = self.archive.alias(*at) {
                let node = Node {
                    kind: NodeKind::Alias,
                    name: record.name.to_string(),
                    label: format!("same output in turn {}", alias.turn_index),
                    parent: Some(own),
                    call_id: alias.key.call_id.clone(),
                };
                rows.push((node, Source::Member(Member::Alias(*at))));
            }
        }
    }

    /// The text of a node, by its index in [`Session::tree`]: of a summary what it says, of a block
    /// its body, of a call or an alias its original, byte for byte.
    ///
    /// # Errors
    /// There is no such node, or its text cannot be read.
    pub fn node_text(&mut self, index: u32, host: &mut dyn Host) -> Result<String, CommandError> {
        let missing = || CommandError::NotFound(format!("node {index}"));
        let source = self.rows().into_iter().nth(index as usize);
        let (_, source) = source.ok_or_else(missing)?;
        match source {
            Source::Block(id) => {
                let block = self.blocks.all.get(&id).ok_or_else(missing)?;
                Ok(block.body.clone())
            }
            Source::Summary(batch) => self.summary_text(batch, host).ok_or_else(|| {
                let why = "the summary is not in the session log";
                CommandError::Unreadable(why.to_owned())
            }),
            Source::Member(member) => {
                let original = self.original_text(member, host);
                original.map_err(|err| CommandError::Unreadable(err.to_string()))
            }
        }
    }
}

fn state_of(ask: &Ask) -> (BatchState, u32) {
    match ask {
        Ask::Queued { .. } => (BatchState::Queued, 0),
        Ask::Running { chars, .. } => (BatchState::Running, *chars),
        Ask::Answered(text) => (BatchState::Answered, length(text)),
        Ask::Failed(_) => (BatchState::Failed, 0),
    }
}

fn length(text: &str) -> u32 {
    u32::try_from(crate::engine::size::utf16_len(text)).unwrap_or(u32::MAX)
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn percent_of(part: u64, whole: u64) -> u64 {
    (part * 100 + whole / 2).checked_div(whole).unwrap_or(0)
}

fn thousands(tokens: u64) -> String {
    if tokens < 1000 {
        tokens.to_string()
    } else {
        format!("{}k", (tokens + 500) / 1000)
    }
}
