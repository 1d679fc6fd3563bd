//! Which spans a flush compresses, and what stands in their place.
//!
//! Spans of three kinds can be compressed: closed chains that have left the rolling window; chains
//! that were interrupted by another prompt and have left it; and, if
//! `chainCompression.openChain.keepTurns` is set, finished turns of chains that no final reply has
//! closed.

use std::collections::{BTreeMap, BTreeSet};

use super::flush::{Fate, SpanWork, Trigger};
use super::{Position, Session};
use crate::engine::archive::Standing;
use crate::engine::block::Extent;
use crate::engine::host::Host;
use crate::engine::ids::{BlockId, Ref};
use crate::engine::order::sort_by_key;
use crate::engine::query;
use crate::engine::transcript::{Boundary, Chain, ChainEnd};

/// How much of a call's arguments an outline shows, in UTF-16 code units.
pub(super) const OUTLINE_CHARS: u64 = 40;

/// A span that may be compressed.
pub(super) struct Candidate {
    pub(super) extent: Extent,
    /// Positions of its turns' assistant messages.
    pub(super) turns: Vec<Position>,
    pub(super) from: Position,
    pub(super) to: Position,
}

/// What this flush makes of the results that it has taken up.
#[derive(Default)]
pub(super) struct Taken {
    named: BTreeMap<Position, Ref>,
    /// Which batch of the flush has summarized a result.
    pub(super) batch_of: BTreeMap<Position, usize>,
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
        self.plan_merge(now_ms);
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
        let anchor = chain.anchor.filter(|_| !chain.turns.is_empty())?;
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
    pub(super) fn open_candidates(&self, len: Position) -> Vec<Candidate> {
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

    pub(super) fn results_in(&self, candidate: &Candidate) -> Vec<Position> {
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
        let is_inside = |id: &BlockId| {
            let first = self
                .blocks
                .all
                .get(id)
                .and_then(|block| block.dropped().next());
            first.is_some_and(|first| (candidate.from..candidate.to).contains(&first))
        };
        let near = self.blocks_near(candidate.from, candidate.to);
        near.into_iter().filter(is_inside).collect()
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
}
