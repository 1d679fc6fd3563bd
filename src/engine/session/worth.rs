//! Whether compressing a span is worth it, and whether it pays for a break of the prefix.

use std::collections::BTreeSet;

use super::Session;
use super::flush::{Fate, Flush, SpanWork, Trigger};
use crate::engine::block::{self, ProtectedOutput};
use crate::engine::size::utf16_len;

impl Session {
    /// Whether compressing spans is worth a break of the prefix. With `flushWhenSaves` it has to save
    /// that much, unless the user or the model has asked for it; without, any saving will do.
    pub(super) fn pays(&self, saved: u64) -> bool {
        let is_asked_for = match self.flush.as_ref().map(|flush| flush.trigger) {
            Some(Trigger::Manual | Trigger::Compact | Trigger::Tool) => true,
            Some(
                Trigger::Reply
                | Trigger::Interrupted
                | Trigger::Budget
                | Trigger::Delta
                | Trigger::Savings,
            )
            | None => false,
        };
        let least = self.config.flush_when_saves.unwrap_or(0);
        is_asked_for || saved >= least
    }

    /// An estimate of what compressing finished turns would save now, in characters.
    pub(super) fn spans_would_save(&self) -> u64 {
        self.open_candidates(self.transcript.len())
            .iter()
            .map(|candidate| {
                (candidate.from..candidate.to)
                    .map(|at| self.rendered(at).chars)
                    .sum::<u64>()
            })
            .sum::<u64>()
            / 2
    }

    /// What a span of the flush in progress saves, in characters, counted as it will stand once the
    /// flush is committed. Nothing: it is left alone (B2).
    pub(super) fn span_saves(&self, span: &SpanWork) -> u64 {
        let Some(flush) = &self.flush else {
            return 0;
        };
        let protected: Vec<ProtectedOutput<'_>> = span
            .protected
            .iter()
            .filter_map(|at| self.transcript.result(*at))
            .map(|result| ProtectedOutput {
                tool: &result.tool,
                text: result.text.as_deref().unwrap_or_default(),
            })
            .collect();
        let text = block::write(span.id, &span.refs, span.body.text(), &protected);
        self.replaced_chars(flush, span)
            .saturating_sub(utf16_len(&text))
    }

    /// What a block would replace: messages as they will be rendered, and the summaries whose place
    /// it takes, wherever they stand.
    fn replaced_chars(&self, flush: &Flush, span: &SpanWork) -> u64 {
        let mut chars = 0;
        let mut messages = 0;
        for at in span.from..span.to {
            let Some(turn) = self.transcript.assistant(at) else {
                continue;
            };
            chars += self.rendered(at).chars;
            messages += 1;
            for result in turn.calls.iter().filter_map(|call| call.result) {
                chars += self.rendered(result).chars;
                messages += 1;
            }
        }
        chars += super::fit::frames(messages);
        for batch in &flush.batches {
            if let Fate::Summarized { content } = &batch.fate {
                let named = || batch.calls.iter().filter_map(|call| call.name);
                if !named().all(|name| span.refs.contains(&name)) {
                    continue;
                }
                chars += utf16_len(content);
                chars = chars.saturating_sub(super::collect::stubs_save(batch, named()));
            }
        }
        let named = span.refs.iter();
        let mut batches = BTreeSet::new();
        batches.extend(named.filter_map(|name| self.batch_named(*name)));
        for batch in batches
            .iter()
            .filter_map(|index| self.archive.batch(*index))
        {
            let is_inside = batch.records.iter().all(|record| {
                let record = self.archive.record(*record);
                record.is_some_and(|record| span.refs.contains(&record.name))
            });
            if batch.active && is_inside {
                chars += batch.summary_size.chars;
            }
        }
        chars
    }
}
