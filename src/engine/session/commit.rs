//! The end of a flush: everything into the log, and only then into memory.
//!
//! Summaries, records, aliases and blocks carry the flush's number and count for nothing until the
//! frontier or the epoch that names this number is written. So a crash between any two entries
//! leaves the state before the flush, and a failing log changes nothing.

use super::flush::{Body, Fate, Flush, Original, Skip, SpanWork};
use super::upkeep::Draft;
use super::{Position, Session};
use crate::engine::archive::Standing;
use crate::engine::block::{Block, Extent};
use crate::engine::config::FlushMode;
use crate::engine::entry;
use crate::engine::host::{Host, HostError, Notice};
use crate::engine::ids::{BlockId, EntryId, OccurrenceKey};
use crate::engine::order::sort_by_key;
use crate::engine::transcript::Chain;

/// What has been written of a flush, in the order of its batches, duplicates and spans.
#[derive(Default)]
pub(super) struct Written {
    pub(super) batches: Vec<(usize, EntryId, EntryId)>,
    pub(super) aliases: Vec<(Position, Original, EntryId, entry::Alias)>,
    pub(super) spans: Vec<WrittenSpan>,
    /// Whether a name that this flush gave out is in the log.
    has_names: bool,
}

/// What has been written of a span.
pub(super) struct WrittenSpan {
    /// Which of the flush's spans it is.
    pub(super) index: usize,
    pub(super) body: String,
    /// The entry of what was archived without a summary.
    pub(super) backfill: Option<EntryId>,
    pub(super) entry: EntryId,
    /// The results that it takes out of the context, as `id@ms`.
    pub(super) dropped: Vec<String>,
}

/// What a flush came to.
pub(super) struct Tally {
    pub(super) frontier: Option<entry::Frontier>,
    pub(super) outcome: &'static str,
    /// Whether it changes what was sent.
    is_epoch: bool,
}

impl Session {
    /// Whether a flush may be committed now: the host holds the next model call for it, or no model
    /// call has begun since the last hook.
    pub(super) fn may_commit_at_once(&self) -> bool {
        let waits = self.flush.as_ref().is_some_and(Flush::is_manual);
        waits || self.config.flush_mode == FlushMode::Blocking || self.is_at_boundary
    }

    /// Commits the flush in progress.
    pub(super) fn commit(&mut self, now_ms: u64, host: &mut dyn Host) {
        let Some(mut flush) = self.flush.take() else {
            return;
        };
        self.drop_overtaken(&mut flush);
        let result = self.sum_up(&flush);
        self.last_flush = flush.number;
        let mut written = Written::default();
        let outcome = match self.write(&flush, &result, host, &mut written) {
            Ok(()) => {
                let is_epoch = result.is_epoch;
                let named = self.apply_written(&flush, written, is_epoch, now_ms, host);
                self.report_flush(&flush, &result, &named, host);
                result.outcome
            }
            Err(err) => {
                if !written.has_names {
                    self.take_back_names(&flush);
                }
                host.notify(&Notice::error(format!(
                    "pruner: the session log cannot be written ({err}); nothing was pruned, and \
                     the next flush tries again"
                )));
                "error"
            }
        };
        self.write_stats(&flush, host);
        self.write_metrics(&flush, outcome, now_ms, host);
    }

    /// What was archived for another reason while the summaries were written has another name and
    /// perhaps no text any more: its batch and its span are dropped, and wait for the next flush.
    fn drop_overtaken(&self, flush: &mut Flush) {
        let mut is_overtaken = false;
        for batch in &mut flush.batches {
            let is_gone = |call: &super::flush::Captured| {
                let result = self.transcript.result(call.at);
                result.is_none_or(|result| result.text.is_none())
            };
            let is_summarized = matches!(batch.fate, Fate::Summarized { .. });
            if is_summarized && batch.calls.iter().any(is_gone) {
                batch.fate = Fate::Skipped(Skip::Deduped);
                is_overtaken = true;
            }
        }
        flush.spans.retain(|span| {
            let is_archived = |(at, _): &(Position, _)| self.member_at(*at).is_some();
            !is_overtaken && !span.backfill.iter().any(is_archived)
        });
    }

    fn sum_up(&self, flush: &Flush) -> Tally {
        let mut frontier = entry::Frontier {
            flush: Some(flush.number),
            ..entry::Frontier::default()
        };
        let mut skipped: Vec<String> = Vec::new();
        let mut skips: Vec<Skip> = Vec::new();
        let mut is_summarized = false;
        let mut is_failed = false;
        let named = self.duplicates_named(flush);
        for batch in &flush.batches {
            if batch.is_failed() {
                is_failed = true;
                continue;
            }
            let aliased = batch
                .duplicates
                .iter()
                .filter(|duplicate| named.contains(&duplicate.call.at));
            let tried: Vec<_> = batch.calls.iter().chain(aliased.map(|d| &d.call)).collect();
            let Some(last) = tried.iter().max_by_key(|call| call.site) else {
                continue;
            };
            frontier.attempted_batch_count += 1;
            frontier.attempted_tool_call_count += u32::try_from(tried.len()).unwrap_or(u32::MAX);
            frontier.raw_char_count += tried.iter().map(|call| call.chars).sum::<u64>();
            frontier.last_attempted_tool_call_id = last.key.call_id.clone();
            let turn = self.transcript.slot(last.site.assistant);
            frontier.last_attempted_timestamp = turn.map_or(0, |slot| slot.at_ms);
            if let Some(call) = self.transcript.call(last.site) {
                frontier.last_attempted_tool_name = call.tool.clone();
            }
            frontier.last_attempted_turn_index = i64::from(self.turn_index_at(last.at));
            frontier.summary_char_count += batch.summary_chars;
            match &batch.fate {
                Fate::Summarized { .. } => is_summarized = true,
                Fate::Skipped(skip) => {
                    skips.push(*skip);
                    if *skip != Skip::Deduped {
                        skipped.extend(batch.calls.iter().map(|call| call.key.to_string()));
                    }
                }
                Fate::Asked { .. } => {}
            }
        }
        let outcome = if is_summarized {
            "summarized"
        } else {
            match skips.iter().max() {
                Some(Skip::Oversized) => "skipped-oversized",
                Some(Skip::Trivial) => "skipped-trivial",
                Some(Skip::Deduped) => "skipped-deduped",
                None if is_failed => "error",
                None => "empty",
            }
        };
        // A flush that prunes nothing breaks no prefix: what is due goes on waiting.
        let is_epoch = is_summarized || !named.is_empty() || !flush.spans.is_empty();
        frontier.epoch_end = is_epoch.then(|| self.end_mark());
        frontier.outcome = outcome.to_owned();
        frontier.skipped = Some(skipped);
        let has_tried = frontier.attempted_batch_count > 0;
        Tally {
            frontier: has_tried.then_some(frontier),
            outcome,
            is_epoch,
        }
    }

    /// Duplicates of the flush whose original is in a record, or is one from now on.
    fn duplicates_named(&self, flush: &Flush) -> Vec<Position> {
        flush
            .batches
            .iter()
            .flat_map(|batch| &batch.duplicates)
            .filter(|duplicate| self.member_at(duplicate.call.at).is_none())
            .filter(|duplicate| match duplicate.of {
                Original::Record(_) => true,
                Original::Within { batch, .. } => flush
                    .batches
                    .get(batch)
                    .is_some_and(|batch| matches!(batch.fate, Fate::Summarized { .. })),
            })
            .map(|duplicate| duplicate.call.at)
            .collect()
    }

    fn write(
        &mut self,
        flush: &Flush,
        result: &Tally,
        host: &mut dyn Host,
        written: &mut Written,
    ) -> Result<(), HostError> {
        for (index, batch) in flush.batches.iter().enumerate() {
            if let Fate::Summarized { content } = &batch.fate {
                let drafts = drafts_of(batch, usize::MAX);
                let details = self.details_of(batch, flush.number);
                let mut entry = self.index_entry(&drafts);
                entry.flush = Some(flush.number);
                let message = host
                    .append_message(entry::SUMMARY, content, &entry::write(&details))?
                    .entry;
                written.has_names = true;
                let index_entry = host.append(entry::INDEX, &entry::write(&entry))?.entry;
                written.batches.push((index, message, index_entry));
            }
        }
        self.write_aliases(flush, host, written)?;
        for (index, span) in flush.spans.iter().enumerate() {
            let backfill = self.write_backfill(span, flush.number, host)?;
            written.has_names |= backfill.is_some();
            let chain = self.chain_entry(flush, span, host);
            let body = chain
                .range_summary_text
                .clone()
                .or_else(|| chain.body.clone())
                .unwrap_or_else(|| span.body.text().to_owned());
            let entry = host.append(entry::CHAIN, &entry::write(&chain))?.entry;
            written.has_names = true;
            written.spans.push(WrittenSpan {
                index,
                body,
                backfill,
                entry,
                dropped: chain.dropped_occurrence_keys.unwrap_or_default(),
            });
        }
        // The commit. Everything above counts from here on.
        match &result.frontier {
            Some(frontier) => {
                host.append(entry::FRONTIER, &entry::write(frontier))?;
            }
            None if !result.is_epoch => {}
            None => {
                let epoch = entry::Epoch {
                    epoch_end: self.end_mark(),
                    flush: Some(flush.number),
                };
                host.append(entry::EPOCH, &entry::write(&epoch))?;
            }
        }
        Ok(())
    }

    fn write_aliases(
        &mut self,
        flush: &Flush,
        host: &mut dyn Host,
        written: &mut Written,
    ) -> Result<(), HostError> {
        let named = self.duplicates_named(flush);
        let duplicates = flush.batches.iter().flat_map(|batch| &batch.duplicates);
        for duplicate in duplicates.filter(|duplicate| named.contains(&duplicate.call.at)) {
            let at = duplicate.call.at;
            let Some(hash) = &duplicate.call.hash else {
                continue;
            };
            let alias = match duplicate.of {
                Original::Record(record) => self.alias_entry(at, record, hash),
                Original::Within { batch, call } => flush
                    .batches
                    .get(batch)
                    .and_then(|batch| batch.calls.get(call))
                    .and_then(|first| {
                        let shares_bytes = first
                            .hash
                            .as_ref()
                            .is_some_and(|known| known.raw == hash.raw);
                        let key = &duplicate.call.key;
                        self.alias_of(at, key, &first.key, first.name?, shares_bytes, hash)
                    }),
            };
            let Some(mut alias) = alias else {
                continue;
            };
            alias.flush = Some(flush.number);
            let entry = host.append(entry::ALIAS, &entry::write(&alias))?.entry;
            written.aliases.push((at, duplicate.of, entry, alias));
        }
        Ok(())
    }

    fn details_of(&self, batch: &super::flush::Batch, flush: u32) -> entry::SummaryDetails {
        let last = batch.calls.last();
        let turn = last.and_then(|call| self.transcript.slot(call.site.assistant));
        entry::SummaryDetails {
            tool_call_refs: batch
                .calls
                .iter()
                .filter_map(|call| {
                    Some(entry::SummaryRef {
                        short_id: call.name?.to_string(),
                        tool_call_id: call.key.call_id.clone(),
                        result_timestamp: call.key.at_ms,
                    })
                })
                .collect(),
            tool_names: batch
                .calls
                .iter()
                .filter_map(|call| self.transcript.call(call.site))
                .map(|call| call.tool.clone())
                .collect(),
            turn_index: last.map_or(0, |call| i64::from(self.turn_index_at(call.at))),
            timestamp: turn.map_or(0, |slot| slot.at_ms),
            flush: Some(flush),
        }
    }

    fn write_backfill(
        &mut self,
        span: &SpanWork,
        number: u32,
        host: &mut dyn Host,
    ) -> Result<Option<EntryId>, HostError> {
        if span.backfill.is_empty() {
            return Ok(None);
        }
        let drafts = self.backfill_drafts(span);
        let index = self.backfill_entry(&drafts, Some(number));
        let stamp = host.append(entry::INDEX, &entry::write(&index))?;
        Ok(Some(stamp.entry))
    }

    pub(super) fn backfill_drafts(&self, span: &SpanWork) -> Vec<Draft> {
        span.backfill
            .iter()
            .map(|(at, name)| Draft {
                at: *at,
                name: *name,
                hash: self.hash_at(*at),
                standing: Standing::Archived,
                blob: None,
                is_late: false,
            })
            .collect()
    }

    /// The results that a span takes out of the context.
    fn dropped_results(&self, span: &SpanWork) -> Vec<OccurrenceKey> {
        let blocks = span
            .supersedes
            .iter()
            .filter_map(|id| self.blocks.all.get(id));
        // The blocks inside of a span are part of its range; a merge has no range of its own.
        blocks
            .filter(|_| span.is_merge())
            .flat_map(Block::dropped)
            .chain(span.from..span.to)
            .filter_map(|at| self.transcript.assistant(at))
            .flat_map(|turn| turn.calls.iter().filter_map(|call| call.result))
            .filter_map(|at| self.transcript.key_at(at))
            .collect()
    }

    fn chain_entry(&self, flush: &Flush, span: &SpanWork, host: &mut dyn Host) -> entry::Chain {
        let dropped = self.dropped_results(span);
        let protected: Vec<OccurrenceKey> = span
            .protected
            .iter()
            .filter_map(|at| self.transcript.key_at(*at))
            .collect();
        let chain = |extent: &Extent| match extent {
            Extent::Chain {
                anchor_at_ms,
                reply_at_ms,
            } => (*anchor_at_ms, *reply_at_ms, None),
            Extent::Turns {
                first_at_ms,
                last_at_ms,
            } => (
                self.anchor_at_ms(span.from),
                *last_at_ms,
                Some(*first_at_ms),
            ),
        };
        let (start, end, first_turn) = span.extents.first().map_or((0, 0, None), chain);
        let merged: Vec<entry::MergedChain> = span
            .extents
            .iter()
            .map(chain)
            .map(|(start, end, _)| entry::MergedChain {
                start_user_timestamp: start,
                final_assistant_timestamp: end,
            })
            .collect();
        let (fused, own, deterministic) = match &span.body {
            Body::Summaries(text) => (None, Some(text.clone()), false),
            Body::Own {
                text,
                deterministic,
            } => (None, Some(text.clone()), *deterministic),
            Body::Fused {
                ask: super::flush::Ask::Answered(text),
                ..
            } => (Some(text.clone()), None, false),
            Body::Fused { fallback, .. } => (None, Some(fallback.clone()), false),
        };
        entry::Chain {
            block_id: span.id.to_string(),
            start_user_timestamp: start,
            final_assistant_timestamp: end,
            tool_refs: span.refs.iter().map(ToString::to_string).collect(),
            compressed_at: self.now_ms,
            range_summary_text: fused,
            dropped_occurrence_keys: Some(dropped.iter().map(ToString::to_string).collect()),
            dropped_tool_call_ids: dropped.into_iter().map(|key| key.call_id).collect(),
            protected_occurrence_keys: (!protected.is_empty())
                .then(|| protected.iter().map(ToString::to_string).collect()),
            protected_tool_call_ids: protected.into_iter().map(|key| key.call_id).collect(),
            body_source: deterministic.then(|| "deterministic".to_owned()),
            body: own,
            first_turn_timestamp: first_turn,
            merged: if merged.len() > 1 { merged } else { Vec::new() },
            supersedes: span.supersedes.iter().map(ToString::to_string).collect(),
            dropped_texts: self.dropped_texts(span, host),
            flush: Some(flush.number),
        }
    }

    /// When the chain began that a position belongs to.
    fn anchor_at_ms(&self, at: Position) -> u64 {
        let index = self.transcript.chain_at(at);
        let chain = index.and_then(|index| self.transcript.chains().get(index));
        let start = chain.map_or(at, Chain::start);
        self.transcript.slot(start).map_or(0, |slot| slot.at_ms)
    }

    /// What the assistant said in a span: what superseded blocks hold, and what the mirror has.
    fn dropped_texts(&self, span: &SpanWork, host: &mut dyn Host) -> Vec<entry::DroppedText> {
        let mut texts: Vec<entry::DroppedText> = Vec::new();
        for id in &span.supersedes {
            texts.extend(self.texts_of_block(*id, host));
        }
        for at in span.from..span.to {
            let Some(assistant) = self.transcript.assistant(at) else {
                continue;
            };
            if self.is_covered(at) {
                continue;
            }
            // Records hold the arguments of their calls; calls without a record have them here.
            let bare = assistant.calls.iter().filter_map(|call| {
                let has_record = call.result.is_some_and(|at| !span.protected.contains(&at));
                let arguments = call.arguments.as_ref().filter(|it| !it.is_empty())?;
                (!has_record).then(|| format!("{}({arguments})", call.tool))
            });
            let said = std::iter::once(assistant.text.clone()).filter(|text| !text.is_empty());
            texts.extend(said.chain(bare).map(|text| entry::DroppedText {
                turn_index: assistant.turn_index,
                text,
            }));
        }
        sort_by_key(&mut texts, |text| text.turn_index);
        texts
    }

    /// What the assistant said in the span of a block, from the block's entry.
    pub(super) fn texts_of_block(
        &self,
        id: BlockId,
        host: &mut dyn Host,
    ) -> Vec<entry::DroppedText> {
        let Some(block) = self.blocks.all.get(&id) else {
            return Vec::new();
        };
        let data = host.read(&block.entry).unwrap_or_default();
        let chain: entry::Chain = serde_json::from_str(&data).unwrap_or_default();
        chain.dropped_texts
    }
}

pub(super) fn drafts_of(batch: &super::flush::Batch, index: usize) -> Vec<Draft> {
    batch
        .calls
        .iter()
        .filter_map(|call| {
            Some(Draft {
                at: call.at,
                name: call.name?,
                hash: call.hash,
                standing: Standing::Summarized { batch: index },
                blob: None,
                is_late: false,
            })
        })
        .collect()
}

pub(super) fn counted(n: u32, what: &str) -> String {
    match (n, what) {
        (1, _) => format!("1 {what}"),
        (_, "batch") => format!("{n} batches"),
        _ => format!("{n} {what}s"),
    }
}
