//! What a flush tells of itself: notices and metrics.

use super::{Flush, SpanWork, Tally, Trigger};
use crate::engine::basis::Rules;
use crate::engine::entry::{self, FlushOutcome};
use crate::engine::host::{Host, Notice};
use crate::engine::ids::BlockId;

impl Flush {
    /// Tells the user what the flush has done. `made` are the blocks that came to be.
    pub fn report(&self, tally: &Tally, made: &[BlockId], rules: &Rules, host: &mut dyn Host) {
        if let Some(frontier) = &tally.frontier {
            if tally.outcome == FlushOutcome::Summarized && self.is_manual() {
                host.notify(&Notice::info(format!(
                    "pruner: pruned {} from {} — summaries {} chars vs {} raw chars",
                    counted(frontier.attempted_tool_call_count, "tool call"),
                    counted(frontier.attempted_batch_count, "batch"),
                    frontier.summary_char_count,
                    frontier.raw_char_count
                )));
            }
            if tally.outcome == FlushOutcome::SkippedOversized
                && !rules.config.quiet_oversized_skips
            {
                host.notify(&Notice::info(format!(
                    "pruner: {} left as they are, a summary would not be shorter ({} raw chars)",
                    counted(frontier.attempted_tool_call_count, "tool call"),
                    frontier.raw_char_count
                )));
            }
        }
        let (merges, chains): (Vec<&SpanWork>, Vec<&SpanWork>) = self
            .spans
            .iter()
            .filter(|span| made.contains(&span.id))
            .partition(|span| span.is_merge());
        if !chains.is_empty() {
            let names: Vec<String> = chains.iter().map(|span| span.id.to_string()).collect();
            let count = u32::try_from(chains.len()).unwrap_or(u32::MAX);
            host.notify(&Notice::info(format!(
                "pruner: compressed {} ({})",
                counted(count, "chain"),
                names.join(", ")
            )));
        }
        for merge in merges {
            let names: Vec<String> = merge.supersedes.iter().map(ToString::to_string).collect();
            host.notify(&Notice::info(format!(
                "pruner: merged {} into {}",
                names.join(", "),
                merge.id
            )));
        }
        let reason = match self.trigger {
            Trigger::Budget => "the context has reached its budget",
            Trigger::Delta => "the context jumped in this turn",
            Trigger::Savings => "a flush saves enough by now",
            Trigger::Reply
            | Trigger::Interrupted
            | Trigger::Manual
            | Trigger::Compact
            | Trigger::Tool => return,
        };
        host.notify(&Notice::info(format!("pruner: flushed, {reason}")));
    }

    /// The metrics of this attempt.
    #[must_use]
    pub fn metrics(
        &self,
        outcome: FlushOutcome,
        gauges: entry::Gauges,
        now_ms: u64,
    ) -> entry::FlushMetrics {
        let captured = u32::try_from(self.batches.len()).unwrap_or(u32::MAX);
        let failed = self
            .batches
            .iter()
            .filter(|batch| batch.is_failed())
            .count();
        entry::FlushMetrics {
            ts: now_ms,
            trigger: self.trigger.name().to_owned(),
            captured_batches: captured,
            processed_batches: captured.saturating_sub(u32::try_from(failed).unwrap_or(u32::MAX)),
            outcome,
            metrics: gauges,
        }
    }
}

fn counted(n: u32, what: &str) -> String {
    match (n, what) {
        (1, _) => format!("1 {what}"),
        (_, "batch") => format!("{n} batches"),
        _ => format!("{n} {what}s"),
    }
}
