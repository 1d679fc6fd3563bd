//! Where blocks stand: finding their spans in the transcript, and putting them in and out of the
//! plan.

use std::collections::BTreeSet;

use super::ledger::{Effect, Item, Saved, Strategy, rest};
use super::settle::plan_position;
use super::{Blocks, Position, Session};
use crate::engine::archive::Member;
use crate::engine::block::{self, Block, Extent, Placement, ProtectedOutput, Run, State};
use crate::engine::ids::BlockId;
use crate::engine::plan::{Aspect, Change, Inserted, Part};
use crate::engine::size::Size;
use crate::engine::transcript::{Boundary, Kind, ToolResult};

/// A half-open range of positions that a block stands for, and its final reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: Position,
    pub(super) to: Position,
    pub(super) reply: Option<Position>,
}

/// Why a block cannot stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// The host has cut its span away, or it is not there yet.
    Absent,
    /// A boundary is there more than once, or in the wrong order.
    Ambiguous,
    /// A result in its span is in no record.
    Unarchived,
    /// It would not be shorter than what it stands for.
    NotShorter,
}

/// What the frame of a message costs, in characters of the request: its role, its ids, its brackets.
/// A block does away with all frames of its span but one.
///
/// Source: the seed measures `JSON.stringify(messages).length`. A tool call or a result has 85
/// characters and more around its content there, the block's message 51.
const FRAME_CHARS: u64 = 80;

/// What is saved when one message stands in place of `messages`.
pub(super) fn frames(messages: usize) -> u64 {
    (messages as u64).saturating_sub(1) * FRAME_CHARS
}

/// A block's message, with the blocks that it quotes in place of their names and without.
struct BlockText {
    expanded: String,
    plain: String,
}

impl Blocks {
    /// What the blocks of the log stand for.
    pub(super) fn extents(&self) -> BTreeSet<Extent> {
        let mut extents = BTreeSet::new();
        for block in self.all.values() {
            extents.extend(block.extents.iter().copied());
        }
        extents
    }
}

impl Session {
    pub(super) fn is_covered(&self, at: Position) -> bool {
        let run = self.blocks.covered.range(..=at).next_back();
        run.is_some_and(|(_, to)| at < *to)
    }

    pub(super) fn is_in_placed_block(&self, id: Option<BlockId>) -> bool {
        let block = id.and_then(|id| self.blocks.all.get(&id));
        block.is_some_and(|block| matches!(block.state, State::Placed(_)))
    }

    /// Puts every block into the plan that fits.
    pub(super) fn place_all(&mut self) {
        let ids: Vec<BlockId> = self.blocks.unplaced.iter().copied().collect();
        for id in ids {
            self.place(id);
        }
    }

    /// Takes every block out of the plan.
    pub(super) fn unplace_all(&mut self) {
        let ids: Vec<BlockId> = self.blocks.all.keys().copied().collect();
        for id in ids {
            self.unplace(id);
        }
        self.blocks.covered.clear();
        self.blocks.by_run.clear();
        self.blocks.replies.clear();
    }

    /// Looks again at the blocks that wait for a boundary, now that a message is there.
    pub(super) fn place_blocks_at(&mut self, at: Position) {
        let Some(at_ms) = self.transcript.slot(at).map(|slot| slot.at_ms) else {
            return;
        };
        let ending = self.blocks.ends.get(&at_ms).cloned().unwrap_or_default();
        let mut waiting = ending;
        waiting.retain(|id| self.blocks.unplaced.contains(id));
        for id in waiting {
            self.place(id);
        }
    }

    /// Puts a block into the plan, if it fits. A block that does not fit is left alone.
    pub(super) fn place(&mut self, id: BlockId) -> bool {
        if !self.may_replace() {
            return false;
        }
        let placed = self
            .blocks
            .all
            .get(&id)
            .ok_or(Misfit::Absent)
            .and_then(|block| self.fit(block));
        match placed {
            Ok(placement) => {
                self.enter(id, placement);
                true
            }
            Err(Misfit::Absent | Misfit::NotShorter) => false,
            Err(misfit @ (Misfit::Ambiguous | Misfit::Unarchived)) => {
                let kind = match misfit {
                    Misfit::Ambiguous => "unresolved-range",
                    Misfit::Unarchived | Misfit::Absent | Misfit::NotShorter => "unarchived-range",
                };
                self.undiagnosed
                    .push((kind.to_owned(), format!("blockId={id}")));
                false
            }
        }
    }

    fn fit(&self, block: &Block) -> Result<(Placement, String), Misfit> {
        let mut spans = Vec::new();
        for extent in &block.extents {
            spans.push(self.span_of(*extent)?);
        }
        let first = spans.first().ok_or(Misfit::Absent)?;
        let behind = first.from.checked_sub(1).ok_or(Misfit::Absent)?;
        let mut dropped = Vec::new();
        let mut shown = Vec::new();
        for span in &spans {
            self.sort_span(block, *span, &mut dropped, &mut shown)?;
        }
        if dropped.is_empty() {
            // The host sends back what the model was shown: the block stands there already.
            return Err(Misfit::Absent);
        }
        if dropped.iter().any(|at| self.is_covered(*at)) {
            // In a transcript whose messages have changed places a span may reach into another.
            return Err(Misfit::Ambiguous);
        }
        dropped.sort_unstable();
        let mut text = self.block_text(block, &shown)?;
        // Measured on the transcript as it is, not on what else is pruned in it by now: a load must
        // come to the same end.
        let stands = dropped
            .iter()
            .filter(|at| !self.is_summary(**at))
            .filter_map(|at| self.transcript.slot(*at))
            .map(|slot| slot.size.chars)
            .sum::<u64>()
            + frames(dropped.len());
        let is_shorter = |text: &str| Size::of_text(text).chars < stands;
        if !is_shorter(&text.expanded) {
            // A quoted block must not cost this one its place: its name stays as it is.
            text.expanded = text.plain;
        }
        if !is_shorter(&text.expanded) {
            return Err(Misfit::NotShorter);
        }
        let placement = Placement {
            behind,
            runs: Run::join(&dropped),
            replies: spans.iter().filter_map(|span| span.reply).collect(),
        };
        Ok((placement, text.expanded))
    }

    /// The size of a message as the model sees it outside of any block; summaries are accounted for
    /// by batch.
    pub(super) fn rendered(&self, at: Position) -> Size {
        match self.transcript.slot(at) {
            Some(slot) if !self.is_summary(at) => {
                rest(slot.size, self.ledger.saved_by(Item::Message(at)))
            }
            Some(_) | None => Size::default(),
        }
    }

    pub(super) fn span_of(&self, extent: Extent) -> Result<Span, Misfit> {
        let only = |kind, at_ms| match self.transcript.boundary_at(kind, at_ms) {
            Some(at) => Ok(at),
            None if self.transcript.has_boundary_at(kind, at_ms) => Err(Misfit::Ambiguous),
            None => Err(Misfit::Absent),
        };
        match extent {
            Extent::Chain {
                anchor_at_ms,
                reply_at_ms,
            } => {
                let anchor = only(Boundary::Prompt, anchor_at_ms)?;
                let reply = only(Boundary::Reply, reply_at_ms)?;
                if anchor >= reply {
                    return Err(Misfit::Ambiguous);
                }
                Ok(Span {
                    from: anchor + 1,
                    to: reply,
                    reply: Some(reply),
                })
            }
            Extent::Turns {
                first_at_ms,
                last_at_ms,
            } => {
                let first = only(Boundary::Reply, first_at_ms)?;
                let last = only(Boundary::Reply, last_at_ms)?;
                if first > last {
                    return Err(Misfit::Ambiguous);
                }
                Ok(Span {
                    from: first,
                    to: self.transcript.turn_end(last),
                    reply: None,
                })
            }
        }
    }

    /// Sorts the messages of a span into what is dropped and which of that is shown in the block.
    /// Messages of others stay where they are.
    fn sort_span(
        &self,
        block: &Block,
        span: Span,
        dropped: &mut Vec<Position>,
        shown: &mut Vec<Position>,
    ) -> Result<(), Misfit> {
        for at in span.from..span.to {
            match self.transcript.slot(at).map(|slot| &slot.kind) {
                Some(Kind::Assistant(assistant)) => {
                    dropped.push(at);
                    for result in assistant.calls.iter().filter_map(|call| call.result) {
                        if !self.is_in_record(result)? {
                            let key = self.transcript.key_at(result);
                            let shows = key.is_some_and(|key| block.protects(&key));
                            if !shows && result >= span.to {
                                // It came when its turn was gone from the context.
                                continue;
                            }
                            if !shows {
                                return Err(Misfit::Unarchived);
                            }
                            shown.push(result);
                        }
                        dropped.push(result);
                    }
                }
                Some(Kind::Result(result)) => {
                    if result.site.is_none() {
                        dropped.push(at);
                    }
                }
                // A summary is left out for itself, wherever it stands.
                Some(
                    Kind::Summary { .. } | Kind::User | Kind::Prompt | Kind::Block | Kind::Other,
                )
                | None => {}
            }
        }
        Ok(())
    }

    fn is_in_record(&self, at: Position) -> Result<bool, Misfit> {
        let result = self.transcript.result(at).ok_or(Misfit::Unarchived)?;
        if result.ambiguous {
            return Err(Misfit::Unarchived);
        }
        Ok(self.member_at(at).is_some())
    }

    fn block_text(&self, block: &Block, shown: &[Position]) -> Result<BlockText, Misfit> {
        let mut protected = Vec::new();
        for at in shown {
            let result = self.transcript.result(*at).ok_or(Misfit::Unarchived)?;
            protected.push(ProtectedOutput {
                tool: &result.tool,
                text: result.text.as_deref().ok_or(Misfit::Unarchived)?,
            });
        }
        let body_of = |id: BlockId| {
            let other = self.blocks.all.get(&id)?;
            Some(other.body.clone())
        };
        let body = block::expand(block.id, &block.body, &body_of);
        let write = |body: &str| block::write(block.id, &block.refs, body, &protected);
        Ok(BlockText {
            expanded: write(&body),
            plain: write(&block.body),
        })
    }

    fn enter(&mut self, id: BlockId, (placement, text): (Placement, String)) {
        let dropped: Vec<Position> = placement
            .runs
            .iter()
            .flat_map(|run| run.positions())
            .collect();
        let stood: Size = dropped
            .iter()
            .filter(|at| !self.is_summary(**at))
            .map(|at| self.rendered(*at))
            .sum();
        for run in &placement.runs {
            self.blocks.covered.insert(run.from, run.to);
            self.blocks.by_run.insert(run.from, id);
            let count = u32::try_from(run.to - run.from).unwrap_or(u32::MAX);
            let change = Change::Drop(count);
            self.plan
                .set(plan_position(run.from), Aspect::Run, Some(change));
        }
        for at in &dropped {
            // What a block shows it shows for good: it is neither captured nor archived any more.
            self.account.untried.remove(*at);
            self.plan.clear(plan_position(*at));
            self.account.untried.remove(*at);
            self.note_share(*at, true);
        }
        self.ledger.set(
            Item::Block(id),
            vec![Effect {
                strategy: Strategy::Chain,
                saved: Saved::between(stood, Size::of_text(&text)),
                counts: true,
            }],
        );
        self.insert_block(id, &placement, text);
        for reply in &placement.replies {
            self.blocks.replies.insert(*reply, id);
            self.settle(*reply);
        }
        for late in self.late_results(&placement) {
            self.account.untried.remove(late);
            self.note_result(late);
            self.settle(late);
        }
        self.blocks.unplaced.remove(&id);
        if let Some(block) = self.blocks.all.get_mut(&id) {
            block.state = State::Placed(placement);
        }
        self.settle_block_summaries(id);
        self.forget_candidates(id);
    }

    fn is_summary(&self, at: Position) -> bool {
        let kind = self.transcript.slot(at).map(|slot| &slot.kind);
        matches!(kind, Some(Kind::Summary { .. }))
    }

    fn insert_block(&mut self, id: BlockId, placement: &Placement, text: String) {
        let Some(block) = self.blocks.all.get(&id) else {
            return;
        };
        let mut parts = vec![Part::Text(text)];
        for at in placement.runs.iter().flat_map(|run| run.positions()) {
            let has_other_parts = |result: &ToolResult| !result.other_parts.is_empty();
            if self.transcript.result(at).is_some_and(has_other_parts)
                && self.is_shown_in(block, at)
            {
                parts.push(Part::Attachments(plan_position(at)));
            }
        }
        let change = Change::InsertUser {
            parts,
            at_ms: block.compressed_at_ms,
        };
        let aspect = Aspect::Insertion(Inserted::Block(id.0));
        self.plan
            .set(plan_position(placement.behind), aspect, Some(change));
    }

    /// Takes a block out of the plan; what it covered stands again.
    pub(super) fn unplace(&mut self, id: BlockId) {
        let Some(block) = self.blocks.all.get_mut(&id) else {
            return;
        };
        let State::Placed(placement) = block.state.clone() else {
            return;
        };
        block.state = State::Unplaced;
        self.blocks.unplaced.insert(id);
        let late = self.late_results(&placement);
        let aspect = Aspect::Insertion(Inserted::Block(id.0));
        self.plan.set(plan_position(placement.behind), aspect, None);
        for run in &placement.runs {
            self.blocks.covered.remove(&run.from);
            self.blocks.by_run.remove(&run.from);
            self.plan.set(plan_position(run.from), Aspect::Run, None);
        }
        self.ledger.set(Item::Block(id), Vec::new());
        for reply in &placement.replies {
            self.blocks.replies.remove(reply);
            self.settle(*reply);
        }
        for at in placement.runs.iter().flat_map(|run| run.positions()) {
            self.note_result(at);
            self.settle(at);
        }
        for at in late {
            self.account.orphans.remove(&at);
            self.note_result(at);
            self.settle(at);
        }
        self.settle_block_summaries(id);
    }

    /// Results that came when the block stood for their turns already.
    fn late_results(&self, placement: &Placement) -> Vec<Position> {
        let dropped = placement.runs.iter().flat_map(|run| run.positions());
        dropped
            .filter_map(|at| self.transcript.assistant(at))
            .flat_map(|assistant| &assistant.calls)
            .filter_map(|call| call.result)
            .filter(|result| !self.is_covered(*result))
            .collect()
    }

    fn settle_block_summaries(&mut self, id: BlockId) {
        for batch in self.batches_in(id) {
            self.settle_summary(batch);
        }
    }

    /// The batches whose place a block takes.
    pub(super) fn batches_in(&self, id: BlockId) -> Vec<usize> {
        let Some(block) = self.blocks.all.get(&id) else {
            return Vec::new();
        };
        let mut batches: Vec<usize> = Vec::new();
        for batch in block.refs.iter().filter_map(|name| self.batch_named(*name)) {
            let own = self
                .archive
                .batch(batch)
                .is_some_and(|batch| batch.block == Some(id));
            if own && !batches.contains(&batch) {
                batches.push(batch);
            }
        }
        batches
    }

    /// Hands the batches to a block all of whose results it takes out of the context. `dropped` says
    /// which these are, as `id@ms`; old logs do not, and there the refs have to do.
    ///
    /// A ref may be there for a duplicate only: its original, and its summary, stand elsewhere.
    pub(super) fn claim_batches(&mut self, id: BlockId, dropped: Option<&[String]>) {
        let Some(block) = self.blocks.all.get(&id) else {
            return;
        };
        let mut keys = BTreeSet::new();
        keys.extend(dropped.into_iter().flatten());
        let mut refs = BTreeSet::new();
        refs.extend(block.refs.iter().copied());
        let mut batches = BTreeSet::new();
        batches.extend(refs.iter().filter_map(|name| self.batch_named(*name)));
        for index in batches {
            let Some(batch) = self.archive.batch(index) else {
                continue;
            };
            let all = batch.records.iter().all(|record| {
                let record = self.archive.record(*record);
                record.is_some_and(|record| {
                    refs.contains(&record.name)
                        && (dropped.is_none() || keys.contains(&record.key.to_string()))
                })
            });
            if all && let Some(batch) = self.archive.batch_mut(index) {
                batch.block = Some(id);
            }
        }
    }

    /// Withdraws a block for good, at the user's word.
    pub(super) fn mark_undone(&mut self, id: BlockId) {
        self.unplace(id);
        for batch in self.batches_in(id) {
            if let Some(batch) = self.archive.batch_mut(batch) {
                batch.block = None;
            }
            self.settle_summary(batch);
        }
        self.blocks.unplaced.remove(&id);
        if let Some(block) = self.blocks.all.get_mut(&id) {
            block.state = State::Undone;
            for extent in &block.extents {
                self.blocks.undone.insert(match extent {
                    Extent::Chain { anchor_at_ms, .. } => *anchor_at_ms,
                    Extent::Turns { first_at_ms, .. } => *first_at_ms,
                });
            }
        }
    }

    /// Puts a block out of the way of the one that takes its place.
    pub(super) fn supersede(&mut self, id: BlockId) {
        self.unplace(id);
        self.blocks.unplaced.remove(&id);
        if let Some(block) = self.blocks.all.get_mut(&id) {
            block.state = State::Superseded;
        }
    }

    /// Writes the blocks anew that quote a block which has just been made.
    pub(super) fn renew_quoting(&mut self, quoted: BlockId) {
        let quoting = self.blocks.quoted_by.get(&quoted).cloned();
        for id in quoting.unwrap_or_default() {
            if id == quoted || !self.is_in_placed_block(Some(id)) {
                continue;
            }
            self.unplace(id);
            self.place(id);
        }
    }

    /// What the archive holds for a position, in words of its ref; an alias has its original's.
    pub(super) fn name_at(&self, at: Position) -> Option<crate::engine::ids::Ref> {
        let member = self.member_at(at)?;
        self.archive.original(member).map(|record| record.name)
    }

    /// The record of a position, if it has one of its own.
    pub(super) fn record_at(&self, at: Position) -> Option<usize> {
        match self.member_at(at)? {
            Member::Record(index) => Some(index),
            Member::Alias(_) => None,
        }
    }
}
