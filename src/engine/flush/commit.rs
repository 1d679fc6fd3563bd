//! The end of a flush: what has to be written into the log.
//!
//! Summaries, records, aliases and blocks carry the flush's number and count for nothing until the
//! frontier or the epoch that names this number is applied. So a crash between any two entries
//! leaves the state before the flush, and a failing log changes nothing.

use super::{Ask, Batch, Body, Captured, Fate, Flush, Original, Scene, Skip, SpanWork};
use crate::engine::basis::Basis;
use crate::engine::block::Extent;
use crate::engine::draft::Draft;
use crate::engine::entry::{self, FlushOutcome};
use crate::engine::facts::Fact;
use crate::engine::hook::Hook;
use crate::engine::host::Host;
use crate::engine::ids::{BlockId, OccurrenceKey};
use crate::engine::order::sort_by_key;
use crate::engine::transcript::{Chain, Position};

/// What a flush comes to.
pub struct Entries {
    /// To be appended in this order; the last one commits those before it.
    pub facts: Vec<Fact>,
    pub tally: Tally,
}

/// What a flush has tried, and how that ended.
pub struct Tally {
    pub frontier: Option<entry::Frontier>,
    pub outcome: FlushOutcome,
    /// Whether it changes what was sent.
    pub is_epoch: bool,
}

impl Flush {
    /// The entries that this flush has to write under a number, and what it comes to.
    pub fn entries(&mut self, number: u32, scene: Scene<'_>, hook: &mut Hook<'_>) -> Entries {
        self.number = number;
        self.drop_overtaken(scene.basis);
        let tally = self.sum_up(scene.basis);
        let mut facts = Vec::new();
        for batch in &self.batches {
            self.add_batch(batch, scene.basis, &mut facts);
        }
        self.add_aliases(scene.basis, &mut facts);
        for span in &self.spans {
            if !span.backfill.is_empty() {
                let drafts = backfill_drafts(span, scene.basis);
                let index = scene.basis.backfill_entry(&drafts, Some(self.number));
                facts.push(Fact::Index(index));
            }
            facts.push(Fact::Chain(self.chain_entry(scene, span, hook)));
        }
        // The commit. Everything above counts from here on.
        match &tally.frontier {
            Some(frontier) => facts.push(Fact::Frontier(frontier.clone())),
            None if !tally.is_epoch => {}
            None => facts.push(Fact::Epoch(entry::Epoch {
                epoch_end: scene.basis.end_mark(),
                flush: Some(self.number),
            })),
        }
        Entries { facts, tally }
    }

    fn add_batch(&self, batch: &Batch, basis: &Basis, facts: &mut Vec<Fact>) {
        let Fate::Summarized { content } = &batch.fate else {
            return;
        };
        let named = batch.calls.iter();
        let drafts: Vec<Draft> = named
            .filter_map(|call| Some(Draft::new(call.at, call.name?, call.hash)))
            .collect();
        let mut index = basis.index_entry(&drafts);
        index.flush = Some(self.number);
        facts.push(Fact::Summary(entry::SummaryMessage {
            content: content.clone(),
            details: self.details_of(batch, basis),
        }));
        facts.push(Fact::Index(index));
    }

    fn add_aliases(&self, basis: &Basis, facts: &mut Vec<Fact>) {
        let named = self.duplicates_named(basis);
        let duplicates = self.batches.iter().flat_map(|batch| &batch.duplicates);
        for duplicate in duplicates.filter(|duplicate| named.contains(&duplicate.call.at)) {
            let at = duplicate.call.at;
            let Some(hash) = &duplicate.call.hash else {
                continue;
            };
            let alias = match duplicate.of {
                Original::Record(record) => basis.alias_entry(at, record, hash),
                Original::Within { batch, call } => self
                    .batches
                    .get(batch)
                    .and_then(|batch| batch.calls.get(call))
                    .and_then(|first| {
                        let known = first.hash.as_ref();
                        let shares_bytes = known.is_some_and(|known| known.raw == hash.raw);
                        let key = &duplicate.call.key;
                        basis.alias_of(at, key, &first.key, first.name?, shares_bytes, hash)
                    }),
            };
            if let Some(mut alias) = alias {
                alias.flush = Some(self.number);
                facts.push(Fact::Alias(alias));
            }
        }
    }

    /// What was archived for another reason while the summaries were written has another name and
    /// perhaps no text any more: its batch and its span are dropped, and wait for the next flush.
    fn drop_overtaken(&mut self, basis: &Basis) {
        let mut is_overtaken = false;
        for batch in &mut self.batches {
            let is_gone = |call: &Captured| {
                let result = basis.transcript.result(call.at);
                result.is_none_or(|result| result.text.is_none())
            };
            let is_summarized = matches!(batch.fate, Fate::Summarized { .. });
            if is_summarized && batch.calls.iter().any(is_gone) {
                batch.fate = Fate::Skipped(Skip::Deduped);
                is_overtaken = true;
            }
        }
        self.spans.retain(|span| {
            let is_archived = |(at, _): &(Position, _)| basis.member_at(*at).is_some();
            !is_overtaken && !span.backfill.iter().any(is_archived)
        });
    }

    fn sum_up(&self, basis: &Basis) -> Tally {
        let mut frontier = entry::Frontier {
            flush: Some(self.number),
            ..entry::Frontier::default()
        };
        let mut skipped: Vec<String> = Vec::new();
        let mut skips: Vec<Skip> = Vec::new();
        let mut is_summarized = false;
        let mut is_failed = false;
        let named = self.duplicates_named(basis);
        for batch in &self.batches {
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
            let turn = basis.transcript.slot(last.site.assistant);
            frontier.last_attempted_timestamp = turn.map_or(0, |slot| slot.at_ms);
            if let Some(call) = basis.transcript.call(last.site) {
                frontier.last_attempted_tool_name = call.tool.clone();
            }
            frontier.last_attempted_turn_index = i64::from(basis.turn_index_at(last.at));
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
            FlushOutcome::Summarized
        } else {
            match skips.iter().max() {
                Some(Skip::Oversized) => FlushOutcome::SkippedOversized,
                Some(Skip::Trivial) => FlushOutcome::SkippedTrivial,
                Some(Skip::Deduped) => FlushOutcome::SkippedDeduped,
                None if is_failed => FlushOutcome::Error,
                None => FlushOutcome::Empty,
            }
        };
        // A flush that prunes nothing breaks no prefix: what is due goes on waiting.
        let is_epoch = is_summarized || !named.is_empty() || !self.spans.is_empty();
        frontier.epoch_end = is_epoch.then(|| basis.end_mark());
        frontier.outcome = outcome;
        frontier.skipped = Some(skipped);
        let has_tried = frontier.attempted_batch_count > 0;
        Tally {
            frontier: has_tried.then_some(frontier),
            outcome,
            is_epoch,
        }
    }

    /// Duplicates of the flush whose original is in a record, or is one from now on.
    fn duplicates_named(&self, basis: &Basis) -> Vec<Position> {
        self.batches
            .iter()
            .flat_map(|batch| &batch.duplicates)
            .filter(|duplicate| basis.member_at(duplicate.call.at).is_none())
            .filter(|duplicate| match duplicate.of {
                Original::Record(_) => true,
                Original::Within { batch, .. } => self
                    .batches
                    .get(batch)
                    .is_some_and(|batch| matches!(batch.fate, Fate::Summarized { .. })),
            })
            .map(|duplicate| duplicate.call.at)
            .collect()
    }

    fn details_of(&self, batch: &Batch, basis: &Basis) -> entry::SummaryDetails {
        let last = batch.calls.last();
        let turn = last.and_then(|call| basis.transcript.slot(call.site.assistant));
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
                .filter_map(|call| basis.transcript.call(call.site))
                .map(|call| call.tool.clone())
                .collect(),
            turn_index: last.map_or(0, |call| i64::from(basis.turn_index_at(call.at))),
            timestamp: turn.map_or(0, |slot| slot.at_ms),
            flush: Some(self.number),
        }
    }

    fn chain_entry(&self, scene: Scene<'_>, span: &SpanWork, hook: &mut Hook<'_>) -> entry::Chain {
        let basis = scene.basis;
        let dropped = dropped_results(scene, span);
        let protected: Vec<OccurrenceKey> = span
            .protected
            .iter()
            .filter_map(|at| basis.transcript.key_at(*at))
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
                anchor_at_ms(basis, span.from),
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
                ask: Ask::Answered(text),
                ..
            } => (Some(text.clone()), None, false),
            Body::Fused { fallback, .. } => (None, Some(fallback.clone()), false),
        };
        entry::Chain {
            block_id: span.id.to_string(),
            start_user_timestamp: start,
            final_assistant_timestamp: end,
            tool_refs: span.refs.iter().map(ToString::to_string).collect(),
            compressed_at: hook.now_ms,
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
            dropped_texts: dropped_texts(scene, span, hook.host),
            flush: Some(self.number),
        }
    }
}

/// The results that a span takes out of the context.
fn dropped_results(scene: Scene<'_>, span: &SpanWork) -> Vec<OccurrenceKey> {
    // The blocks inside of a span are part of its range; a merge has no range of its own.
    let merged = span.supersedes.iter().filter(|_| span.is_merge());
    merged
        .flat_map(|id| scene.view.layout().blocks.dropped(*id))
        .chain(span.from..span.to)
        .filter_map(|at| scene.basis.transcript.assistant(at))
        .flat_map(|turn| turn.calls.iter().filter_map(|call| call.result))
        .filter_map(|at| scene.basis.transcript.key_at(at))
        .collect()
}

/// When the chain began that a position belongs to.
fn anchor_at_ms(basis: &Basis, at: Position) -> u64 {
    let id = basis.transcript.chain_at(at);
    let chain = id.and_then(|id| basis.transcript.chain(id));
    let start = chain.map_or(at, Chain::start);
    basis.transcript.slot(start).map_or(0, |slot| slot.at_ms)
}

/// What the assistant said in a span: what superseded blocks hold, and what the mirror has.
fn dropped_texts(
    scene: Scene<'_>,
    span: &SpanWork,
    host: &mut dyn Host,
) -> Vec<entry::DroppedText> {
    let mut texts: Vec<entry::DroppedText> = Vec::new();
    for id in &span.supersedes {
        texts.extend(texts_of_block(scene.basis, *id, host));
    }
    for at in span.from..span.to {
        let Some(assistant) = scene.basis.transcript.assistant(at) else {
            continue;
        };
        if scene.view.layout().is_covered(at) {
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
pub fn texts_of_block(basis: &Basis, id: BlockId, host: &mut dyn Host) -> Vec<entry::DroppedText> {
    let Some(block) = basis.facts.blocks().get(id) else {
        return Vec::new();
    };
    let data = host.read(&block.entry).unwrap_or_default();
    let chain: entry::Chain = serde_json::from_str(&data).unwrap_or_default();
    chain.dropped_texts
}

fn backfill_drafts(span: &SpanWork, basis: &Basis) -> Vec<Draft> {
    let backfill = span.backfill.iter();
    backfill
        .map(|(at, name)| Draft::new(*at, *name, basis.hash_at(*at)))
        .collect()
}
