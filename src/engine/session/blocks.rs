//! Blocks, put in and out of the plan.

use std::collections::BTreeSet;

use super::fit::Misfit;
use super::ledger::{Effect, Item, Saved, Strategy, rest};
use super::settle::plan_position;
use super::{Blocks, Position, Session};
use crate::engine::archive::Member;
use crate::engine::block::{Extent, Placement, State};
use crate::engine::ids::{BlockId, OccurrenceKey};
use crate::engine::plan::{Aspect, Change, Inserted, InsertedPart};
use crate::engine::size::Size;
use crate::engine::transcript::{Kind, ToolResult};

/// The results that a block takes out of the context, as its entry has them.
pub(super) struct Dropped<'a>(Option<BTreeSet<&'a str>>);

impl<'a> Dropped<'a> {
    /// `keys` are `id@ms`; old logs have none, and there any result that the block names counts.
    pub(super) fn of(keys: Option<&'a [String]>) -> Self {
        Self(keys.map(|keys| {
            let mut set = BTreeSet::new();
            set.extend(keys.iter().map(String::as_str));
            set
        }))
    }

    pub(super) fn has(&self, result: &OccurrenceKey) -> bool {
        let Some(keys) = &self.0 else {
            return true;
        };
        keys.contains(result.to_string().as_str())
    }
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

    pub(super) fn is_summary(&self, at: Position) -> bool {
        let kind = self.transcript.slot(at).map(|slot| &slot.kind);
        matches!(kind, Some(Kind::Summary { .. }))
    }

    fn insert_block(&mut self, id: BlockId, placement: &Placement, text: String) {
        let Some(block) = self.blocks.all.get(&id) else {
            return;
        };
        let mut parts = vec![InsertedPart::Text(text)];
        for at in placement.dropped() {
            let has_other_parts = |result: &ToolResult| !result.other_parts.is_empty();
            if self.transcript.result(at).is_some_and(has_other_parts)
                && self.is_shown_in(block, at)
            {
                parts.push(InsertedPart::Attachments(plan_position(at)));
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
        for at in placement.dropped() {
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
        placement
            .dropped()
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
        let dropped = Dropped::of(dropped);
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
                record.is_some_and(|record| refs.contains(&record.name) && dropped.has(&record.key))
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
