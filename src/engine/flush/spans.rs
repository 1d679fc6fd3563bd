//! Which spans a flush compresses, and what stands in their place.
//!
//! Spans of three kinds can be compressed: closed chains that have left the rolling window; chains
//! that were interrupted by another prompt and have left it; and, if
//! `chainCompression.openChain.keepTurns` is set, finished turns of chains that no final reply has
//! closed.

use super::{Fate, Flush, Models, Original, Scene, SpanWork, Trigger};
use crate::engine::block::Extent;
use crate::engine::facts::Standing;
use crate::engine::hook::Hook;
use crate::engine::ids::{BlockId, Ref};
use crate::engine::map::{Map, Set};
use crate::engine::order::sort_by_key;
use crate::engine::query;
use crate::engine::transcript::{Boundary, Chain, ChainEnd, ChainId, Position};

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
    named: Map<Position, Ref>,
    /// Which batch of the flush has summarized a result.
    pub(super) batch_of: Map<Position, usize>,
    waiting: Set<Position>,
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

impl Scene<'_> {
    /// Whether any span would be compressed, as far as can be told without an answer.
    pub fn has_span_to_compress(self) -> bool {
        let taken = Taken::default();
        let mut at_most = 0;
        let mut any = false;
        for candidate in self.candidates() {
            if self.is_compressible(&candidate, &taken) {
                any = true;
                at_most += (candidate.from..candidate.to)
                    .map(|at| self.view.rendered(self.basis, at).chars)
                    .sum::<u64>();
            }
        }
        any && self.pays(at_most)
    }

    pub(super) fn is_all_protected(self, candidate: &Candidate) -> bool {
        let taken = Taken::default();
        let results = self.results_in(candidate);
        let is_protected = |at: &Position| matches!(self.hold(*at, &taken), Held::Protected);
        results.iter().all(is_protected)
    }

    fn is_compressible(self, candidate: &Candidate, taken: &Taken) -> bool {
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

    /// Spans that may be compressed, oldest first.
    fn candidates(self) -> Vec<Candidate> {
        if !self.basis.rules.config.chain_compression.enabled || !self.basis.rules.may_replace() {
            return Vec::new();
        }
        let mut candidates = self.closed_candidates();
        candidates.extend(self.open_candidates(self.basis.transcript.len()));
        candidates.retain(|candidate| !self.view.is_decided(self.basis, &candidate.extent));
        sort_by_key(&mut candidates, |candidate| candidate.from);
        candidates
    }

    fn closed_candidates(self) -> Vec<Candidate> {
        let due = self.closed_due();
        due.into_iter()
            .filter_map(|id| self.closed_candidate(self.basis.transcript.chain(id)?))
            .collect()
    }

    /// Closed chains that have left the rolling window.
    fn closed_due(self) -> Vec<ChainId> {
        let Some(last) = self.last_due() else {
            return Vec::new();
        };
        let closing = self.closing_chain();
        let due = self.view.closed_candidates(last);
        due.chain(closing.filter(|closing| *closing <= last))
            .collect()
    }

    /// The last chain that has left the rolling window: the last `keep` chains that are over stay,
    /// compressed or not.
    fn last_due(self) -> Option<ChainId> {
        let keep = match self.trigger {
            Some(Trigger::Compact) => 0,
            Some(_) | None => self.basis.rules.config.chain_compression.rolling_window as usize,
        };
        let finished = self.basis.transcript.finished_chains();
        let older = |keep: usize| finished.iter().rev().nth(keep).copied();
        match (self.closing_chain(), keep.checked_sub(1)) {
            (None, _) => older(keep),
            (Some(closing), None) => Some(closing),
            (Some(_), Some(keep)) => older(keep),
        }
    }

    /// The open chain that the reply which is not in the mirror yet closes.
    fn closing_chain(self) -> Option<ChainId> {
        self.closing_at_ms?;
        let (id, last) = self.basis.transcript.last_chain()?;
        (last.end == ChainEnd::Open && !last.turns.is_empty()).then_some(id)
    }

    pub(super) fn closed_candidate(self, chain: &Chain) -> Option<Candidate> {
        let anchor = chain.anchor.filter(|_| !chain.turns.is_empty())?;
        let anchor_at_ms = self.basis.transcript.slot(anchor)?.at_ms;
        let (to, reply_at_ms) = match chain.end {
            ChainEnd::Closed(reply) => (reply, self.basis.transcript.slot(reply)?.at_ms),
            ChainEnd::Open => (self.basis.transcript.len(), self.closing_at_ms?),
            ChainEnd::Interrupted(_) => return None,
        };
        let is_unique = self
            .basis
            .transcript
            .boundary_at(Boundary::Prompt, anchor_at_ms)
            == Some(anchor)
            && match chain.end {
                ChainEnd::Closed(reply) => {
                    self.basis
                        .transcript
                        .boundary_at(Boundary::Reply, reply_at_ms)
                        == Some(reply)
                }
                ChainEnd::Open | ChainEnd::Interrupted(_) => !self
                    .basis
                    .transcript
                    .has_boundary_at(Boundary::Reply, reply_at_ms),
            };
        let is_free = !self.basis.facts.blocks().is_undone(anchor_at_ms);
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
    fn due_before(self, id: ChainId) -> Option<Position> {
        let chain = self.basis.transcript.chain(id)?;
        let is_over = matches!(chain.end, ChainEnd::Interrupted(_));
        if is_over && self.last_due().is_some_and(|last| id <= last) {
            return Some(self.basis.transcript.len());
        }
        let keep = match self.trigger {
            Some(Trigger::Tool) => 0,
            Some(_) | None => {
                self.basis
                    .rules
                    .config
                    .chain_compression
                    .open_chain
                    .keep_turns? as usize
            }
        };
        Some(self.kept_from(keep))
    }

    /// Runs of finished turns, old enough, of chains that are not closed.
    pub(super) fn open_candidates(self, len: Position) -> Vec<Candidate> {
        let closing = self.closing_chain();
        // Closed chains in the window hold turns that are older than the ones to be kept, too.
        let windowed = self.view.closed_candidates_behind(self.last_due());
        let open = self.view.unclosed_candidates().chain(windowed);
        open.filter(|id| Some(*id) != closing)
            .filter_map(|id| {
                let chain = self.basis.transcript.chain(id)?;
                self.open_candidate(chain, self.due_before(id)?, len)
            })
            .collect()
    }

    /// Where the last `keep` tool-using turns begin.
    pub(super) fn kept_from(self, keep: usize) -> Position {
        let Some(back) = keep.checked_sub(1) else {
            return self.basis.transcript.len();
        };
        let turns = self
            .basis
            .transcript
            .chains()
            .rev()
            .flat_map(|(_, chain)| chain.turns.iter().rev());
        turns.copied().nth(back).unwrap_or(0)
    }

    /// The last turns of a chain that are old enough and that no block stands for.
    pub(super) fn open_candidate(
        self,
        chain: &Chain,
        kept_from: Position,
        len: Position,
    ) -> Option<Candidate> {
        let aged = chain.turns.partition_point(|turn| *turn < kept_from);
        let aged = chain.turns.get(..aged)?.iter().rev().copied();
        let free: Vec<Position> = aged
            .take_while(|turn| !self.view.layout().is_covered(*turn))
            .collect();
        let (last, first) = (*free.first()?, *free.last()?);
        let to = self.basis.transcript.turn_end(last);
        let has_open_call = self
            .basis
            .transcript
            .assistant(last)?
            .calls
            .iter()
            .any(|call| call.result.is_none() && to == len);
        let at_ms = |at: Position| {
            let at_ms = self.basis.transcript.slot(at)?.at_ms;
            (self.basis.transcript.boundary_at(Boundary::Reply, at_ms) == Some(at)).then_some(at_ms)
        };
        let (first_at_ms, last_at_ms) = (at_ms(first)?, at_ms(last)?);
        let is_free = !self.basis.facts.blocks().is_undone(first_at_ms) && first > 0;
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

    pub(super) fn results_in(self, candidate: &Candidate) -> Vec<Position> {
        candidate
            .turns
            .iter()
            .filter_map(|turn| self.basis.transcript.assistant(*turn))
            .flat_map(|turn| turn.calls.iter().filter_map(|call| call.result))
            .collect()
    }

    fn hold(self, at: Position, taken: &Taken) -> Held {
        if let Some(name) = taken.named.get(&at).copied() {
            return Held::Named(name);
        }
        if taken.waiting.contains(&at) {
            return Held::Waiting;
        }
        let Some(result) = self.basis.transcript.result(at) else {
            return Held::Waiting;
        };
        let path = result
            .site
            .and_then(|site| self.basis.transcript.call(site)?.path.as_deref());
        if let Some(name) = self.basis.name_at(at) {
            if self.waits_as_recovered(at) {
                return Held::Waiting;
            }
            return Held::Named(name);
        }
        if result.ambiguous {
            return Held::Waiting;
        }
        if result.tool == query::TOOL_NAME {
            return if self.basis.is_recovered_fresh(at) {
                Held::Waiting
            } else {
                Held::Backfill
            };
        }
        if self.basis.rules.protection.covers(&result.tool, path) {
            return Held::Protected;
        }
        if result.text.is_none() {
            return Held::Waiting;
        }
        Held::Backfill
    }

    /// A recovered output holds its span as long as it stands verbatim.
    fn waits_as_recovered(self, at: Position) -> bool {
        let member = self.basis.member_at(at);
        let record = member.and_then(|member| self.basis.facts.archive().original(member));
        let standing = record.map(|record| &record.standing);
        matches!(standing, Some(Standing::Recovered { .. })) && self.basis.is_recovered_fresh(at)
    }

    /// Placed blocks that stand inside a span.
    fn blocks_inside(self, candidate: &Candidate) -> Vec<BlockId> {
        let blocks = &self.view.layout().blocks;
        let range = candidate.from..candidate.to;
        let mut inside = blocks.beginning_in(candidate.from, candidate.to);
        inside.retain(|id| {
            let first = blocks.dropped(*id).next();
            first.is_some_and(|first| range.contains(&first))
        });
        inside
    }

    /// Chains for which nothing will change any more: those whose boundaries are not to be found,
    /// that have been decided on, or whose outputs are all protected.
    pub fn hopeless(self) -> Vec<ChainId> {
        if !self.basis.rules.config.chain_compression.enabled {
            return Vec::new();
        }
        let closed = self.closed_due().into_iter().filter(|id| {
            let chain = self.basis.transcript.chain(*id);
            let candidate = chain.and_then(|chain| self.closed_candidate(chain));
            self.is_hopeless(candidate.as_ref())
        });
        let unclosed = self.view.unclosed_candidates().filter(|id| {
            let (Some(chain), Some(before)) =
                (self.basis.transcript.chain(*id), self.due_before(*id))
            else {
                return false;
            };
            let is_over = matches!(chain.end, ChainEnd::Interrupted(_))
                && chain.turns.last().is_none_or(|last| *last < before);
            let len = self.basis.transcript.len();
            let candidate = self.open_candidate(chain, before, len);
            is_over && self.is_hopeless(candidate.as_ref())
        });
        closed.chain(unclosed).collect()
    }

    fn is_hopeless(self, candidate: Option<&Candidate>) -> bool {
        candidate.is_none_or(|candidate| {
            self.view.is_decided(self.basis, &candidate.extent) || self.is_all_protected(candidate)
        })
    }
}

impl Flush {
    /// Plans the blocks.
    pub(super) fn plan_spans(
        &mut self,
        scene: Scene<'_>,
        models: &mut Models,
        hook: &mut Hook<'_>,
    ) {
        self.catch_up(scene.basis);
        let taken = self.taken(scene);
        let (first_name, first_block) = (self.last_name, self.last_block);
        let mut saved = 0;
        for candidate in scene.candidates() {
            if !scene.is_compressible(&candidate, &taken) {
                continue;
            }
            let last_name = self.last_name;
            let Some(span) = self.plan_span(scene, &candidate, &taken, models, hook) else {
                continue;
            };
            let saves = self.span_saves(scene, &span);
            if saves > 0 {
                saved += saves;
                self.last_block = span.id;
                self.spans.push(span);
            } else {
                self.last_name = last_name;
                self.unworthy.push(candidate.extent);
            }
        }
        if !scene.pays(saved) {
            (self.last_name, self.last_block) = (first_name, first_block);
            self.spans.clear();
        }
        self.plan_merge(scene, models, hook.now_ms);
    }

    fn taken(&self, scene: Scene<'_>) -> Taken {
        let mut taken = Taken::default();
        for (index, batch) in self.batches.iter().enumerate() {
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
        let duplicates = self.batches.iter().flat_map(|batch| &batch.duplicates);
        for duplicate in duplicates {
            let at = duplicate.call.at;
            match self.name_of_original(scene, duplicate.of) {
                Some(name) => {
                    taken.named.insert(at, name);
                }
                // What was not summarized leaves its duplicates to a flush of their own.
                None => {
                    taken.waiting.insert(at);
                }
            }
        }
        taken
    }

    fn name_of_original(&self, scene: Scene<'_>, of: Original) -> Option<Ref> {
        match of {
            Original::Record(id) => {
                let record = scene.basis.facts.archive().record(id);
                record.map(|record| record.name)
            }
            Original::Within { batch, call } => {
                let batch = self.batches.get(batch)?;
                match batch.fate {
                    Fate::Summarized { .. } => batch.calls.get(call)?.name,
                    Fate::Skipped(_) | Fate::Asked { .. } => None,
                }
            }
        }
    }

    fn plan_span(
        &mut self,
        scene: Scene<'_>,
        candidate: &Candidate,
        taken: &Taken,
        models: &mut Models,
        hook: &mut Hook<'_>,
    ) -> Option<SpanWork> {
        let mut refs: Vec<Ref> = Vec::new();
        let mut backfill = Vec::new();
        let mut protected = Vec::new();
        for at in scene.results_in(candidate) {
            let name = match scene.hold(at, taken) {
                Held::Named(name) => name,
                Held::Backfill => {
                    self.last_name = Ref(self.last_name.0 + 1);
                    backfill.push((at, self.last_name));
                    self.last_name
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
        let supersedes = scene.blocks_inside(candidate);
        let body = self.body_for(scene, candidate, taken, &supersedes, models, hook);
        Some(SpanWork {
            id: BlockId(self.last_block.0 + 1),
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
}
