//! Which spans a flush compresses, and what stands in their place.
//!
//! Spans of three kinds can be compressed: closed chains that have left the rolling window; chains
//! that were interrupted by another prompt and have left it; and, if
//! `chainCompression.openChain.keepTurns` is set, finished turns of chains that no final reply has
//! closed.

use std::collections::{BTreeMap, BTreeSet};

use super::flush::{Ask, Body, Fate, Flush, SpanWork, Trigger};
use super::{Position, Session};
use crate::engine::archive::Standing;
use crate::engine::block::{self, Extent, Outline, ProtectedOutput, State};
use crate::engine::cut::head_chars;
use crate::engine::host::Host;
use crate::engine::ids::{BlockId, Ref};
use crate::engine::order::sort_by_key;
use crate::engine::prompt::range_prompt;
use crate::engine::query;
use crate::engine::size::utf16_len;
use crate::engine::summary;
use crate::engine::transcript::{Boundary, Chain, ChainEnd};

/// How much of a call's arguments an outline shows, in UTF-16 code units.
const OUTLINE_CHARS: u64 = 40;

/// A span that may be compressed.
pub(super) struct Candidate {
    pub(super) extent: Extent,
    /// Positions of its turns' assistant messages.
    turns: Vec<Position>,
    from: Position,
    to: Position,
}

/// What this flush makes of the results that it has taken up.
#[derive(Default)]
struct Taken {
    named: BTreeMap<Position, Ref>,
    /// Which batch of the flush has summarized a result.
    batch_of: BTreeMap<Position, usize>,
    waiting: BTreeSet<Position>,
}

/// What has become of one result of a span.
enum Held {
    /// It is in a record, or will be by this flush.
    Named(Ref),
    Backfill,
    Protected,
    /// The span has to wait for it.
    Waiting,
}

impl Session {
    /// Whether any span would be compressed, as far as can be told without an answer.
    pub(super) fn has_span_to_compress(&self) -> bool {
        let taken = Taken::default();
        let mut at_most = 0;
        let mut any = false;
        for candidate in self.candidates() {
            if self.is_compressible(&candidate, &taken) {
                any = true;
                at_most += (candidate.from..candidate.to)
                    .map(|at| self.rendered(at).chars)
                    .sum::<u64>();
            }
        }
        any && self.pays(at_most)
    }

    /// Whether compressing spans is worth a break of the prefix. With `flushWhenSaves` it has to save
    /// that much, unless the user or the model has asked for it; without, any saving will do.
    fn pays(&self, saved: u64) -> bool {
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

    pub(super) fn is_all_protected(&self, candidate: &Candidate) -> bool {
        let taken = Taken::default();
        let results = self.results_in(candidate);
        let is_protected = |at: &Position| matches!(self.hold(*at, &taken), Held::Protected);
        results.iter().all(is_protected)
    }

    fn is_compressible(&self, candidate: &Candidate, taken: &Taken) -> bool {
        let held: Option<Vec<Held>> = self
            .results_in(candidate)
            .into_iter()
            .map(|at| match self.hold(at, taken) {
                Held::Waiting => None,
                held @ (Held::Named(_) | Held::Backfill | Held::Protected) => Some(held),
            })
            .collect();
        held.is_some_and(|held| !held.iter().all(|held| matches!(held, Held::Protected)))
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

    /// Plans the blocks of the flush in progress.
    pub(super) fn plan_spans(&mut self, now_ms: u64, host: &mut dyn Host) {
        let taken = self.taken();
        let first_name = self.archive.last_name();
        let mut saved = 0;
        for candidate in self.candidates() {
            if !self.is_compressible(&candidate, &taken) {
                continue;
            }
            let last_name = self.archive.last_name();
            let Some(span) = self.plan_span(&candidate, &taken, now_ms, host) else {
                continue;
            };
            let saves = self.span_saves(&span);
            if saves > 0 {
                saved += saves;
                self.blocks.last_id = span.id.0;
                self.flush
                    .iter_mut()
                    .for_each(|flush| flush.spans.push(span.clone()));
            } else {
                self.archive.take_back(last_name);
                self.blocks.decided.insert(candidate.extent);
            }
        }
        if !self.pays(saved) {
            self.archive.take_back(first_name);
            if let Some(flush) = &mut self.flush {
                flush.spans.clear();
                self.blocks.last_id = flush.last_block;
            }
        }
        self.plan_merge(now_ms, host);
    }

    fn taken(&self) -> Taken {
        let mut taken = Taken::default();
        let batches = self.flush.iter().flat_map(|flush| &flush.batches);
        for (index, batch) in batches.enumerate() {
            for call in &batch.calls {
                match (&batch.fate, call.name) {
                    (Fate::Summarized { .. }, Some(name)) => {
                        taken.named.insert(call.at, name);
                        taken.batch_of.insert(call.at, index);
                    }
                    (Fate::Skipped(_), _) => {}
                    (Fate::Asked { .. } | Fate::Summarized { .. }, _) => {
                        taken.waiting.insert(call.at);
                    }
                }
            }
        }
        for (at, name) in self.duplicates_by_name() {
            match name {
                Some(name) => {
                    taken.named.insert(at, name);
                }
                None => {
                    taken.waiting.insert(at);
                }
            }
        }
        taken
    }

    /// Duplicates of the flush, with the name of what each repeats; `None` if that was not
    /// summarized, so that the duplicate has to wait for a flush of its own.
    pub(super) fn duplicates_by_name(&self) -> Vec<(Position, Option<Ref>)> {
        let Some(flush) = &self.flush else {
            return Vec::new();
        };
        let name = |of| match of {
            super::flush::Original::Record(index) => {
                self.archive.record(index).map(|record| record.name)
            }
            super::flush::Original::Within { batch, call } => {
                let batch = flush.batches.get(batch)?;
                match batch.fate {
                    Fate::Summarized { .. } => batch.calls.get(call)?.name,
                    Fate::Skipped(_) | Fate::Asked { .. } => None,
                }
            }
        };
        flush
            .batches
            .iter()
            .flat_map(|batch| &batch.duplicates)
            .map(|duplicate| (duplicate.call.at, name(duplicate.of)))
            .collect()
    }

    /// Spans that may be compressed, oldest first.
    fn candidates(&self) -> Vec<Candidate> {
        if !self.config.chain_compression.enabled || !self.may_replace() {
            return Vec::new();
        }
        let mut candidates = self.closed_candidates();
        candidates.extend(self.open_candidates(self.transcript.len()));
        candidates.retain(|candidate| !self.blocks.decided.contains(&candidate.extent));
        sort_by_key(&mut candidates, |candidate| candidate.from);
        candidates
    }

    fn closed_candidates(&self) -> Vec<Candidate> {
        let chains = self.transcript.chains();
        let due = self.closed_due();
        due.into_iter()
            .filter_map(|index| self.closed_candidate(chains.get(index)?))
            .collect()
    }

    /// Closed chains, by index, that have left the rolling window.
    pub(super) fn closed_due(&self) -> Vec<usize> {
        let Some(last) = self.last_due() else {
            return Vec::new();
        };
        let closing = self.closing_chain();
        let due = self.blocks.candidates.range(..=last).copied();
        due.chain(closing.filter(|closing| *closing <= last))
            .collect()
    }

    /// The last chain that has left the rolling window: the last `keep` chains that are over stay,
    /// compressed or not.
    fn last_due(&self) -> Option<usize> {
        let keep = match self.flush.as_ref().map(|flush| flush.trigger) {
            Some(Trigger::Compact) => 0,
            Some(_) | None => self.config.chain_compression.rolling_window as usize,
        };
        let finished = self.transcript.finished_chains();
        let older = |keep: usize| finished.iter().rev().nth(keep).copied();
        match (self.closing_chain(), keep.checked_sub(1)) {
            (None, _) => older(keep),
            (Some(closing), None) => Some(closing),
            (Some(_), Some(keep)) => older(keep),
        }
    }

    /// The open chain that the reply which is not in the mirror yet closes.
    fn closing_chain(&self) -> Option<usize> {
        self.flush.as_ref()?.closing_at_ms?;
        let chains = self.transcript.chains();
        let last = chains.last()?;
        (last.end == ChainEnd::Open && !last.turns.is_empty()).then(|| chains.len() - 1)
    }

    pub(super) fn closed_candidate(&self, chain: &Chain) -> Option<Candidate> {
        let anchor = chain.anchor?;
        let anchor_at_ms = self.transcript.slot(anchor)?.at_ms;
        let (to, reply_at_ms) = match chain.end {
            ChainEnd::Closed(reply) => (reply, self.transcript.slot(reply)?.at_ms),
            ChainEnd::Open => (self.transcript.len(), self.flush.as_ref()?.closing_at_ms?),
            ChainEnd::Interrupted(_) => return None,
        };
        let is_unique = self.transcript.boundary_at(Boundary::Prompt, anchor_at_ms) == Some(anchor)
            && match chain.end {
                ChainEnd::Closed(reply) => {
                    self.transcript.boundary_at(Boundary::Reply, reply_at_ms) == Some(reply)
                }
                ChainEnd::Open | ChainEnd::Interrupted(_) => !self
                    .transcript
                    .has_boundary_at(Boundary::Reply, reply_at_ms),
            };
        let is_free = !self.blocks.undone.contains(&anchor_at_ms);
        (is_unique && is_free).then(|| Candidate {
            extent: Extent::Chain {
                anchor_at_ms,
                reply_at_ms,
            },
            turns: chain.turns.clone(),
            from: anchor + 1,
            to,
        })
    }

    /// Before which position the turns of an unclosed chain are due; `None` if all of them stay.
    ///
    /// A chain that another prompt has interrupted will get no reply any more: it is due as a whole
    /// once it has left the rolling window like a closed one.
    pub(super) fn due_before(&self, index: usize) -> Option<Position> {
        let chain = self.transcript.chains().get(index)?;
        let is_over = matches!(chain.end, ChainEnd::Interrupted(_));
        if is_over && self.last_due().is_some_and(|last| index <= last) {
            return Some(self.transcript.len());
        }
        let keep = match self.flush.as_ref().map(|flush| flush.trigger) {
            Some(Trigger::Tool) => 0,
            Some(_) | None => self.config.chain_compression.open_chain.keep_turns? as usize,
        };
        Some(self.kept_from(keep))
    }

    /// Runs of finished turns, old enough, of chains that are not closed.
    fn open_candidates(&self, len: Position) -> Vec<Candidate> {
        let closing = self.closing_chain();
        // Closed chains in the window hold turns that are older than the ones to be kept, too.
        let first = self.last_due().map_or(0, |last| last + 1);
        let windowed = self.blocks.candidates.range(first..);
        let open = self.blocks.unclosed.iter().chain(windowed);
        open.filter(|index| Some(**index) != closing)
            .filter_map(|index| {
                let chain = self.transcript.chains().get(*index)?;
                self.open_candidate(chain, self.due_before(*index)?, len)
            })
            .collect()
    }

    /// Where the last `keep` tool-using turns begin.
    pub(super) fn kept_from(&self, keep: usize) -> Position {
        let Some(back) = keep.checked_sub(1) else {
            return self.transcript.len();
        };
        let turns = self
            .transcript
            .chains()
            .iter()
            .rev()
            .flat_map(|chain| chain.turns.iter().rev());
        turns.copied().nth(back).unwrap_or(0)
    }

    /// The last turns of a chain that are old enough and that no block stands for.
    pub(super) fn open_candidate(
        &self,
        chain: &Chain,
        kept_from: Position,
        len: Position,
    ) -> Option<Candidate> {
        let aged = chain.turns.partition_point(|turn| *turn < kept_from);
        let aged = chain.turns.get(..aged)?.iter().rev().copied();
        let free: Vec<Position> = aged.take_while(|turn| !self.is_covered(*turn)).collect();
        let (last, first) = (*free.first()?, *free.last()?);
        let to = self.transcript.turn_end(last);
        let has_open_call = self
            .transcript
            .assistant(last)?
            .calls
            .iter()
            .any(|call| call.result.is_none() && to == len);
        let at_ms = |at: Position| {
            let at_ms = self.transcript.slot(at)?.at_ms;
            (self.transcript.boundary_at(Boundary::Reply, at_ms) == Some(at)).then_some(at_ms)
        };
        let (first_at_ms, last_at_ms) = (at_ms(first)?, at_ms(last)?);
        let is_free = !self.blocks.undone.contains(&first_at_ms) && first > 0;
        (!has_open_call && is_free).then(|| Candidate {
            extent: Extent::Turns {
                first_at_ms,
                last_at_ms,
            },
            turns: free.iter().rev().copied().collect(),
            from: first,
            to,
        })
    }

    fn results_in(&self, candidate: &Candidate) -> Vec<Position> {
        candidate
            .turns
            .iter()
            .filter_map(|turn| self.transcript.assistant(*turn))
            .flat_map(|turn| turn.calls.iter().filter_map(|call| call.result))
            .collect()
    }

    fn hold(&self, at: Position, taken: &Taken) -> Held {
        if let Some(name) = taken.named.get(&at).copied() {
            return Held::Named(name);
        }
        if taken.waiting.contains(&at) {
            return Held::Waiting;
        }
        let Some(result) = self.transcript.result(at) else {
            return Held::Waiting;
        };
        let path = result
            .site
            .and_then(|site| self.transcript.call(site)?.path.as_deref());
        if let Some(name) = self.name_at(at) {
            if self.waits_as_recovered(at) {
                return Held::Waiting;
            }
            return Held::Named(name);
        }
        if result.ambiguous {
            return Held::Waiting;
        }
        if result.tool == query::TOOL_NAME {
            return if self.is_recovered_fresh(at) {
                Held::Waiting
            } else {
                Held::Backfill
            };
        }
        if self.protection.covers(&result.tool, path) {
            return Held::Protected;
        }
        if result.text.is_none() {
            return Held::Waiting;
        }
        Held::Backfill
    }

    /// A recovered output holds its span as long as it stands verbatim.
    fn waits_as_recovered(&self, at: Position) -> bool {
        let standing = self
            .member_at(at)
            .and_then(|member| self.archive.original(member))
            .map(|record| &record.standing);
        matches!(standing, Some(Standing::Recovered { .. })) && self.is_recovered_fresh(at)
    }

    fn is_recovered_fresh(&self, at: Position) -> bool {
        self.is_in_grace_until(at, self.transcript.len(), self.is_user_turn_over())
    }

    fn plan_span(
        &mut self,
        candidate: &Candidate,
        taken: &Taken,
        now_ms: u64,
        host: &mut dyn Host,
    ) -> Option<SpanWork> {
        let mut refs: Vec<Ref> = Vec::new();
        let mut backfill = Vec::new();
        let mut protected = Vec::new();
        for at in self.results_in(candidate) {
            let name = match self.hold(at, taken) {
                Held::Named(name) => name,
                Held::Backfill => {
                    let name = self.archive.next_name();
                    backfill.push((at, name));
                    name
                }
                Held::Protected => {
                    protected.push(at);
                    continue;
                }
                Held::Waiting => return None,
            };
            if !refs.contains(&name) {
                refs.push(name);
            }
        }
        let supersedes = self.blocks_inside(candidate);
        let body = self.body_for(candidate, taken, &supersedes, now_ms, host);
        Some(SpanWork {
            id: BlockId(self.blocks.last_id + 1),
            extents: vec![candidate.extent],
            from: candidate.from,
            to: candidate.to,
            refs,
            backfill,
            protected,
            supersedes,
            body,
        })
    }

    /// Placed blocks that stand inside a span.
    fn blocks_inside(&self, candidate: &Candidate) -> Vec<BlockId> {
        let inside = |state: &State| match state {
            State::Placed(placement) => placement
                .runs
                .first()
                .is_some_and(|run| (candidate.from..candidate.to).contains(&run.from)),
            State::Unplaced | State::Superseded | State::Undone => false,
        };
        self.blocks_near(candidate.from, candidate.to)
            .into_iter()
            .filter(|id| {
                self.blocks
                    .all
                    .get(id)
                    .is_some_and(|block| inside(&block.state))
            })
            .collect()
    }

    /// The blocks whose runs begin in a range.
    fn blocks_near(&self, from: Position, to: Position) -> Vec<BlockId> {
        let mut ids: Vec<BlockId> = Vec::new();
        for (at, _) in self.blocks.covered.range(from..to) {
            if let Some(id) = self.blocks.by_run.get(at)
                && !ids.contains(id)
            {
                ids.push(*id);
            }
        }
        ids
    }

    fn body_for(
        &mut self,
        candidate: &Candidate,
        taken: &Taken,
        supersedes: &[BlockId],
        now_ms: u64,
        host: &mut dyn Host,
    ) -> Body {
        let parts = self.parts_of(candidate, taken, supersedes, host);
        let is_open = matches!(candidate.extent, Extent::Turns { .. });
        match parts.as_slice() {
            [] => Body::Own {
                text: self.outline(candidate).write(),
                deterministic: true,
            },
            [only] if supersedes.is_empty() && !is_open => Body::Summaries(only.clone()),
            _ if is_open || !supersedes.is_empty() => {
                // No footers: the block's own list of refs says the same.
                let bodies: Vec<&str> = parts.iter().map(|part| summary::body_of(part)).collect();
                Body::Own {
                    text: bodies.join("\n"),
                    deterministic: false,
                }
            }
            _ => {
                let fallback = parts.join("\n\n");
                if !self.config.chain_compression.fuse_range_summary {
                    return Body::Summaries(fallback);
                }
                let bodies: Vec<&str> = parts.iter().map(|part| summary::body_of(part)).collect();
                let prompt = range_prompt(&bodies);
                let model = self.choose_model(now_ms);
                Body::Fused {
                    prompt,
                    ask: Ask::Queued { model },
                    fallback,
                }
            }
        }
    }

    /// The texts that a block is made of, oldest first: bodies of the blocks that it supersedes and
    /// the summaries of the batches that none of them covers.
    fn parts_of(
        &self,
        candidate: &Candidate,
        taken: &Taken,
        supersedes: &[BlockId],
        host: &mut dyn Host,
    ) -> Vec<String> {
        let mut parts: Vec<(Position, String)> = Vec::new();
        for id in supersedes {
            if let Some(block) = self.blocks.all.get(id)
                && let State::Placed(placement) = &block.state
                && let Some(run) = placement.runs.first()
            {
                parts.push((run.from, block.body.clone()));
            }
        }
        let mut archived: Vec<usize> = Vec::new();
        let mut fresh: Vec<usize> = Vec::new();
        for at in self.results_in(candidate) {
            if self.is_covered(at) {
                continue;
            }
            if let Some(batch) = taken.batch_of.get(&at)
                && !fresh.contains(batch)
            {
                fresh.push(*batch);
                if let Some(content) = self.fresh_summary(*batch) {
                    parts.push((at, content));
                }
            }
            let batch =
                self.record_at(at)
                    .and_then(|index| match self.archive.record(index)?.standing {
                        Standing::Summarized { batch } => Some(batch),
                        Standing::Spilled { .. }
                        | Standing::Recovered { .. }
                        | Standing::Archived => None,
                    });
            if let Some(batch) = batch
                && !archived.contains(&batch)
            {
                archived.push(batch);
                if let Some(content) = self.summary_text(batch, host) {
                    parts.push((at, content));
                }
            }
        }
        sort_by_key(&mut parts, |(at, _)| *at);
        parts.into_iter().map(|(_, text)| text).collect()
    }

    fn fresh_summary(&self, batch: usize) -> Option<String> {
        match &self.flush.as_ref()?.batches.get(batch)?.fate {
            Fate::Summarized { content } => Some(content.clone()),
            Fate::Skipped(_) | Fate::Asked { .. } => None,
        }
    }

    fn outline<'a>(&'a self, candidate: &Candidate) -> Outline<'a> {
        let calls: Vec<(&str, String, bool)> = candidate
            .turns
            .iter()
            .filter_map(|turn| self.transcript.assistant(*turn))
            .flat_map(|turn| &turn.calls)
            .map(|call| {
                let arguments = call.arguments.as_deref().unwrap_or_default();
                let result = call.result.and_then(|at| self.transcript.result(at));
                (
                    call.tool.as_str(),
                    format!("{} {}", call.tool, head_chars(arguments, OUTLINE_CHARS)),
                    result.is_some_and(|result| result.is_error),
                )
            })
            .collect();
        let mut tools: Vec<(&str, usize)> = Vec::new();
        for (tool, _, _) in &calls {
            match tools.iter_mut().find(|(known, _)| known == tool) {
                Some((_, n)) => *n += 1,
                None => tools.push((tool, 1)),
            }
        }
        let at_ms = |turn: Option<&Position>| {
            turn.and_then(|at| self.transcript.slot(*at))
                .map_or(0, |slot| slot.at_ms)
        };
        let named = |call: Option<&(&str, String, bool)>| {
            let head = call.map(|(_, head, _)| head.replace('\n', " "));
            crate::engine::delimiter::disarm(&head.unwrap_or_default()).into_owned()
        };
        Outline {
            turns: candidate.turns.len(),
            errors: calls.iter().filter(|(_, _, failed)| *failed).count(),
            tools,
            from_ms: at_ms(candidate.turns.first()),
            to_ms: at_ms(candidate.turns.last()),
            first: named(calls.first()),
            last: named(calls.last()),
        }
    }

    /// Fuses adjacent compressed chains to one block, if there are enough of them.
    fn plan_merge(&mut self, now_ms: u64, _host: &mut dyn Host) {
        let Some(after) = self.config.chain_compression.merge_after else {
            return;
        };
        let row = self.adjacent_blocks();
        if row.len() < after as usize {
            return;
        }
        let blocks: Vec<_> = row
            .iter()
            .filter_map(|id| self.blocks.all.get(id))
            .collect();
        let bodies: Vec<&str> = blocks
            .iter()
            .map(|block| summary::body_of(&block.body))
            .collect();
        let mut seen = BTreeSet::new();
        let refs: Vec<Ref> = blocks
            .iter()
            .flat_map(|block| block.refs.iter().copied())
            .filter(|name| seen.insert(*name))
            .collect();
        let extents: Vec<Extent> = blocks
            .iter()
            .flat_map(|block| block.extents.iter().copied())
            .collect();
        let protected = blocks
            .iter()
            .flat_map(|block| self.shown_in(block))
            .collect();
        let prompt = range_prompt(&bodies);
        let fallback = bodies.join("\n\n");
        let model = self.choose_model(now_ms);
        self.blocks.last_id += 1;
        let span = SpanWork {
            id: BlockId(self.blocks.last_id),
            extents,
            from: 0,
            to: 0,
            refs,
            backfill: Vec::new(),
            protected,
            supersedes: row,
            body: Body::Fused {
                prompt,
                ask: Ask::Queued { model },
                fallback,
            },
        };
        if let Some(flush) = &mut self.flush {
            flush.spans.push(span);
        }
    }

    /// The newest row of compressed chains without another closed chain between them, oldest first.
    /// Costs what the row has of blocks, however many chains these stand for.
    fn adjacent_blocks(&self) -> Vec<BlockId> {
        let mut row: Vec<BlockId> = Vec::new();
        let finished = self.transcript.finished_chains();
        let newest = self.blocks.replies.keys().next_back().copied();
        let mut next = newest.and_then(|reply| self.transcript.chain_at(reply));
        while let Some(index) = next {
            let chain = self.transcript.chains().get(index);
            let Some(ChainEnd::Closed(reply)) = chain.map(|chain| chain.end) else {
                break;
            };
            let Some(id) = self.blocks.replies.get(&reply).copied() else {
                break;
            };
            let chains = self.chains_of(id);
            if chains.len() > 1 {
                // What was merged once is left alone: a flush must not cost what came before it.
                break;
            }
            row.push(id);
            let first = chains.into_iter().min().unwrap_or(index);
            let older = finished.partition_point(|other| *other < first.min(index));
            next = older
                .checked_sub(1)
                .and_then(|at| finished.get(at))
                .copied();
        }
        row.reverse();
        row
    }

    /// Positions of the outputs that a block shows verbatim.
    pub(super) fn shown_in(&self, block: &crate::engine::block::Block) -> Vec<Position> {
        let State::Placed(placement) = &block.state else {
            return Vec::new();
        };
        placement
            .runs
            .iter()
            .flat_map(|run| run.positions())
            .filter(|at| {
                self.transcript.result(*at).is_some_and(|result| {
                    block.protected.contains(&result.call_id) && self.member_at(*at).is_none()
                })
            })
            .collect()
    }

    /// What a span of the flush in progress saves, in characters, counted as it will stand once the
    /// flush is committed. Nothing: it is left alone (B2).
    fn span_saves(&self, span: &SpanWork) -> u64 {
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
        chars += super::blocks::frames(messages);
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
