//! What a flush tells of itself: notices, statistics, metrics.

use super::Session;
use super::commit::Tally;
use super::commit::counted;
use super::flush::{Flush, SpanWork, Trigger};
use crate::engine::entry;
use crate::engine::host::{Cost, Host, Notice};
use crate::engine::ids::BlockId;

impl Session {
    pub(super) fn report_flush(
        &self,
        flush: &Flush,
        result: &Tally,
        made: &[BlockId],
        host: &mut dyn Host,
    ) {
        if let Some(frontier) = &result.frontier {
            if result.outcome == "summarized" && flush.is_manual() {
                host.notify(&Notice::info(format!(
                    "pruner: pruned {} from {} — summaries {} chars vs {} raw chars",
                    counted(frontier.attempted_tool_call_count, "tool call"),
                    counted(frontier.attempted_batch_count, "batch"),
                    frontier.summary_char_count,
                    frontier.raw_char_count
                )));
            }
            if result.outcome == "skipped-oversized" && !self.config.quiet_oversized_skips {
                host.notify(&Notice::info(format!(
                    "pruner: {} left as they are, a summary would not be shorter ({} raw chars)",
                    counted(frontier.attempted_tool_call_count, "tool call"),
                    frontier.raw_char_count
                )));
            }
        }
        let (merges, chains): (Vec<&SpanWork>, Vec<&SpanWork>) = flush
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
        let reason = match flush.trigger {
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

    pub(super) fn write_stats(&mut self, flush: &Flush, host: &mut dyn Host) {
        if flush.requests == 0 && flush.spans.is_empty() {
            return;
        }
        let stats = self.summarizer.stats;
        if let Err(err) = host.append(entry::STATS, &entry::write(&stats)) {
            host.notify(&Notice::warning(format!(
                "pruner: statistics could not be written ({err}); the next flush writes them"
            )));
        }
        host.cost(&Cost {
            input_tokens: stats.total_input_tokens,
            output_tokens: stats.total_output_tokens,
            total: stats.total_cost,
        });
    }

    pub(super) fn write_metrics(
        &mut self,
        flush: &Flush,
        outcome: &str,
        now_ms: u64,
        host: &mut dyn Host,
    ) {
        let captured = u32::try_from(flush.batches.len()).unwrap_or(u32::MAX);
        let failed = flush
            .batches
            .iter()
            .filter(|batch| batch.is_failed())
            .count();
        let metrics = entry::FlushMetrics {
            ts: now_ms,
            trigger: flush.trigger.name().to_owned(),
            captured_batches: captured,
            processed_batches: captured.saturating_sub(u32::try_from(failed).unwrap_or(u32::MAX)),
            outcome: outcome.to_owned(),
            metrics: self.gauges(),
        };
        // A log that cannot be written has been reported by now.
        let _ = host.append(entry::METRICS, &entry::write(&metrics));
    }
}
