//! The second half of a commit: what is in the log comes to be in memory.

use super::Session;
use super::commit::drafts_of;
use super::commit::{Written, WrittenSpan};
use super::flush::{Fate, Flush, Original, Skip, SpanWork};
use crate::engine::archive::{Batch, Member};
use crate::engine::block::{self, Block, Extent, State};
use crate::engine::host::Host;
use crate::engine::ids::{BlockId, EntryId};
use crate::engine::size::Size;

impl Session {
    /// Makes in memory what is in the log. Returns the blocks that were made.
    pub(super) fn apply_written(
        &mut self,
        flush: &Flush,
        written: Written,
        is_epoch: bool,
        now_ms: u64,
        host: &mut dyn Host,
    ) -> Vec<BlockId> {
        let mut batches = Vec::new();
        for (index, message, entry) in written.batches {
            if let Some(batch) = flush.batches.get(index)
                && let Fate::Summarized { content } = &batch.fate
            {
                batches.push(self.apply_summary(
                    batch,
                    flush.number,
                    content,
                    message,
                    &entry,
                    now_ms,
                ));
            }
        }
        let mut aliased = Vec::new();
        for (at, of, entry, alias) in written.aliases {
            let original = match of {
                Original::Record(record) => Some(record),
                Original::Within { batch, call } => flush
                    .batches
                    .get(batch)
                    .and_then(|batch| batch.calls.get(call))
                    .and_then(|first| match self.archive.member(&first.key)? {
                        Member::Record(record) => Some(record),
                        Member::Alias(_) => None,
                    }),
            };
            if let Some(original) = original {
                self.admit_alias(at, original, entry, &alias, now_ms);
                aliased.push(at);
            }
        }
        self.apply_skips(flush);
        let mut made = Vec::new();
        for written in written.spans {
            if let Some(span) = flush.spans.get(written.index) {
                self.apply_span(span, written, now_ms);
                made.push(span.id);
            }
        }
        for batch in batches {
            self.settle_batch(batch);
        }
        for at in aliased {
            self.settle(at);
        }
        for id in &made {
            self.place(*id);
            self.renew_quoting(*id);
        }
        if is_epoch {
            self.advance_epoch();
        }
        self.write_diagnostics(host);
        made
    }

    fn apply_summary(
        &mut self,
        batch: &super::flush::Batch,
        flush: u32,
        content: &str,
        message: EntryId,
        entry: &EntryId,
        now_ms: u64,
    ) -> usize {
        let index = self.archive.batches().len();
        let drafts = drafts_of(batch, index);
        let turn_index = batch
            .calls
            .last()
            .map_or(0, |call| self.turn_index_at(call.at));
        let records = self.admit(entry, drafts, now_ms);
        self.account.unseen.insert(index, content.to_owned());
        self.archive.insert_batch(Batch {
            records,
            summary: Some(message),
            summary_size: Size::of_text(content),
            summary_at_ms: now_ms,
            flush: Some(flush),
            turn_index,
            undone: false,
            active: false,
            block: None,
        })
    }

    fn apply_skips(&mut self, flush: &Flush) {
        for batch in &flush.batches {
            if let Fate::Skipped(Skip::Trivial | Skip::Oversized) = batch.fate {
                for call in &batch.calls {
                    self.account.skipped.insert(call.key.clone());
                    self.account.untried.remove(call.at);
                }
            }
        }
    }

    fn apply_span(&mut self, span: &SpanWork, written: WrittenSpan, now_ms: u64) {
        if let Some(backfill) = written.backfill {
            let drafts = self.backfill_drafts(span);
            self.admit(&backfill, drafts, now_ms);
        }
        for superseded in &span.supersedes {
            self.supersede(*superseded);
        }
        self.add_block(Block {
            id: span.id,
            entry: written.entry,
            extents: span.extents.clone(),
            refs: span.refs.clone(),
            protected: span
                .protected
                .iter()
                .filter_map(|at| self.transcript.key_at(*at))
                .collect(),
            body: written.body,
            compressed_at_ms: now_ms,
            state: State::Unplaced,
        });
        self.claim_batches(span.id, Some(&written.dropped));
        if !span.is_merge() {
            let stats = &mut self.summarizer.stats;
            stats.chains_compressed = stats.chains_compressed.saturating_add(1);
        }
    }

    /// Adds a block and notes which others it quotes.
    pub(super) fn add_block(&mut self, block: Block) {
        for quoted in block::mentions(&block.body) {
            self.blocks
                .quoted_by
                .entry(quoted)
                .or_default()
                .push(block.id);
        }
        self.blocks.decided.extend(block.extents.iter().copied());
        for extent in &block.extents {
            let end_at_ms = match extent {
                Extent::Chain { reply_at_ms, .. } => *reply_at_ms,
                Extent::Turns { last_at_ms, .. } => *last_at_ms,
            };
            self.blocks
                .ends
                .entry(end_at_ms)
                .or_default()
                .push(block.id);
        }
        self.blocks.unplaced.insert(block.id);
        self.blocks.all.insert(block.id, block);
    }
}
