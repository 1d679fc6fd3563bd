//! What the session tells of itself: status, statistics, progress, tree.

use super::Session;
use crate::engine::entry;
use crate::engine::flush::{Ask, Body, Fate};
use crate::engine::host::Host;
use crate::engine::size::Size;
use crate::engine::view::ledger::{Strategy, rest};

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

impl Session {
    /// The state of the session.
    pub fn status(&mut self) -> Status {
        self.refresh();
        let before = self.basis.transcript.size();
        Status {
            enabled: self.basis.rules.config.enabled,
            line: self.line(),
            before,
            after: rest(before, self.view.ledger.saved()),
            pending_turns: self.pending_turns(),
            running_jobs: self.activity().running_jobs,
            records: count(self.basis.facts.archive().record_count()),
            blocks: count(self.view.layout().blocks.count()),
            strategies: self.strategies(),
            open_cycle_thinking: self.open_cycle_thinking(),
            largest_chain_percent: self.largest_chain_percent(),
            frontier_gap: self.frontier_gap(),
        }
    }

    /// What the summarizer did over the life of the session.
    #[must_use]
    pub fn stats(&self) -> entry::Stats {
        self.basis.facts.stats().plus(self.models.unwritten)
    }

    /// One row for each strategy, also for one that never did anything; the repair of pairing has
    /// one only if there was something to repair.
    fn strategies(&self) -> Vec<StrategyReport> {
        Strategy::ALL
            .into_iter()
            .map(|strategy| (strategy, self.view.ledger.total(strategy)))
            .filter(|(strategy, total)| *strategy != Strategy::Pairing || total.count > 0)
            .map(|(strategy, total)| StrategyReport {
                kind: strategy,
                count: total.count,
                saved: total.saved.chars,
            })
            .collect()
    }

    fn open_cycle_thinking(&self) -> Size {
        let start = self.basis.open_cycle_start(self.basis.transcript.len());
        self.basis.transcript.thinking_from(start)
    }

    fn largest_chain_percent(&self) -> u32 {
        let total = rest(self.basis.transcript.size(), self.view.ledger.saved()).chars;
        let largest = self.view.largest_chain();
        let percent = (largest * 100).checked_div(total).unwrap_or(0);
        u32::try_from(percent.min(100)).unwrap_or(100)
    }

    fn frontier_gap(&self) -> Size {
        self.view.untried().sums().text
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
        if !self.basis.rules.config.show_status_line {
            return String::new();
        }
        if !self.basis.rules.config.enabled {
            return "│ prune: OFF │".to_owned();
        }
        let jobs = self.activity().running_jobs;
        if jobs > 0 {
            return format!("│ prune: summarizing ({jobs} to go) │");
        }
        let mut line = "│ prune: ON".to_owned();
        let before = self.basis.transcript.size();
        let after = rest(before, self.view.ledger.saved());
        if self.view.ledger.saved().chars != 0 {
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
                .filter_map(|call| self.basis.transcript.call(call.site))
                .map(|call| call.tool.as_str())
                .collect();
            let turn = batch
                .calls
                .first()
                .map_or(0, |call| self.basis.turn_index_at(call.at));
            rows.push(BatchProgress {
                label: format!("turn {turn}: {}", tools.join(", ")),
                state,
                chars,
            });
        }
        for span in &flush.spans {
            if let Body::Fused { ask, .. } = &span.body {
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
