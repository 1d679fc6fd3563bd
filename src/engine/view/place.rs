//! Blocks, put in and out of the plan: whether one can stand, what it says, and what it covers.

use super::ledger::{Effect, Item, Saved, Strategy};
use super::placement::{Placed, Placement, Run};
use super::{View, plan_position};
use crate::engine::basis::{Basis, Misfit, Span};
use crate::engine::block::{self, Block, ProtectedOutput, Validity};
use crate::engine::facts::Member;
use crate::engine::ids::BlockId;
use crate::engine::plan::{Aspect, Change, Inserted, InsertedPart};
use crate::engine::size::Size;
use crate::engine::transcript::{Kind, Position, ToolResult};

/// What the frame of a message costs, in characters of the request: its role, its ids, its brackets.
/// A block does away with all frames of its span but one.
///
/// Source: the seed measures `JSON.stringify(messages).length`. A tool call or a result has 85
/// characters and more around its content there, the block's message 51.
const FRAME_CHARS: u64 = 80;

/// What is saved when one message stands in place of `messages`.
#[must_use]
pub fn frames(messages: usize) -> u64 {
    (messages as u64).saturating_sub(1) * FRAME_CHARS
}

/// A block's message, with the blocks that it quotes in place of their names and without.
struct BlockText {
    expanded: String,
    plain: String,
}

impl View {
    /// A block is in force from here on.
    pub(super) fn await_block(&mut self, basis: &Basis, id: BlockId) {
        let block = basis.facts.blocks().get(id);
        if let Some(block) = block.filter(|block| block.validity == Validity::InForce) {
            self.layout.blocks.await_span(block);
        }
    }

    /// Puts every block into the plan that fits.
    pub(super) fn place_waiting(&mut self, basis: &Basis) {
        let ids: Vec<BlockId> = self.layout.blocks.unplaced().collect();
        for id in ids {
            self.place(basis, id);
        }
    }

    /// Looks again at the blocks that wait for a boundary, now that a message is there.
    pub(super) fn place_blocks_at(&mut self, basis: &Basis, at: Position) {
        let Some(at_ms) = basis.transcript.slot(at).map(|slot| slot.at_ms) else {
            return;
        };
        for id in basis.facts.blocks().ending_at(at_ms) {
            if self.layout.blocks.is_waiting(*id) {
                self.place(basis, *id);
            }
        }
    }

    /// Puts a block into the plan, if it fits. A block that does not fit is left alone.
    pub(super) fn place(&mut self, basis: &Basis, id: BlockId) {
        if !basis.rules.may_replace() {
            return;
        }
        let block = basis.facts.blocks().get(id);
        let Some(block) = block.filter(|block| block.validity == Validity::InForce) else {
            return;
        };
        let kind = match self.fit(basis, block) {
            Ok((placement, text)) => {
                self.enter(basis, block, placement, text);
                return;
            }
            Err(Misfit::Absent | Misfit::NotShorter) => return,
            Err(Misfit::Ambiguous) => "unresolved-range",
            Err(Misfit::Unarchived) => "unarchived-range",
        };
        self.oddities.push((kind, format!("blockId={id}")));
    }

    fn enter(&mut self, basis: &Basis, block: &Block, placement: Placement, text: String) {
        let id = block.id;
        let dropped: Vec<Position> = placement.dropped().collect();
        let stood = dropped.iter().map(|at| self.rendered(basis, *at)).sum();
        for run in &placement.runs {
            let count = u32::try_from(run.to - run.from).unwrap_or(u32::MAX);
            let position = plan_position(run.from);
            self.plan
                .set(position, Aspect::Run, Some(Change::Drop(count)));
        }
        let size = Size::of_text(&text);
        self.insert_block(basis, block, &placement, text);
        let replies = placement.replies.clone();
        self.layout.blocks.enter(
            id,
            Placed {
                placement,
                stood,
                size,
            },
        );
        self.account_block(id);
        for at in dropped {
            // What a block shows it shows for good: it is neither captured nor archived any more.
            self.untried.remove(at);
            self.plan.clear(plan_position(at));
            self.note_share(basis, at);
        }
        for reply in replies {
            self.settle(basis, reply);
        }
        for late in self.late_results(basis, id) {
            self.untried.remove(late);
            self.note_result(basis, late);
            self.settle(basis, late);
        }
        self.settle_block_summaries(basis, id);
        self.forget_candidates(basis, id);
    }

    /// What a covered message would be has changed.
    pub(super) fn restate_block(&mut self, id: BlockId, before: Size, after: Size) {
        self.layout.blocks.restate(id, before, after);
        self.account_block(id);
    }

    fn account_block(&mut self, id: BlockId) {
        let placed = self.layout.blocks.get(id);
        let effects = placed.map(|placed| Effect {
            strategy: Strategy::Chain,
            saved: Saved::between(placed.stood, placed.size),
            counts: true,
        });
        self.ledger
            .set(Item::Block(id), effects.into_iter().collect());
    }

    fn insert_block(&mut self, basis: &Basis, block: &Block, placement: &Placement, text: String) {
        let mut parts = vec![InsertedPart::Text(text)];
        for at in placement.dropped() {
            let has_other_parts = |result: &ToolResult| !result.other_parts.is_empty();
            if basis.transcript.result(at).is_some_and(has_other_parts)
                && is_shown_in(basis, block, at)
            {
                parts.push(InsertedPart::Attachments(plan_position(at)));
            }
        }
        let change = Change::InsertUser {
            parts,
            at_ms: block.compressed_at_ms,
        };
        let aspect = Aspect::Insertion(Inserted::Block(block.id.0));
        self.plan
            .set(plan_position(placement.behind), aspect, Some(change));
    }

    /// A block is not in force any more: it is taken out of the plan for good.
    pub(super) fn retire(&mut self, basis: &Basis, id: BlockId) {
        self.unplace(basis, id);
        self.layout.blocks.forget(id);
    }

    /// Takes a block out of the plan; what it covered stands again.
    fn unplace(&mut self, basis: &Basis, id: BlockId) {
        let late = self.late_results(basis, id);
        let Some(placed) = self.layout.blocks.leave(id) else {
            return;
        };
        let placement = placed.placement;
        let aspect = Aspect::Insertion(Inserted::Block(id.0));
        self.plan.set(plan_position(placement.behind), aspect, None);
        for run in &placement.runs {
            self.plan.set(plan_position(run.from), Aspect::Run, None);
        }
        self.account_block(id);
        for reply in &placement.replies {
            self.settle(basis, *reply);
        }
        for at in placement.dropped() {
            self.note_result(basis, at);
            self.settle(basis, at);
        }
        for at in late {
            self.orphans.remove(&at);
            self.note_result(basis, at);
            self.settle(basis, at);
        }
        self.settle_block_summaries(basis, id);
    }

    /// Results that came when the block stood for their turns already.
    fn late_results(&self, basis: &Basis, id: BlockId) -> Vec<Position> {
        self.layout
            .blocks
            .dropped(id)
            .filter_map(|at| basis.transcript.assistant(at))
            .flat_map(|assistant| &assistant.calls)
            .filter_map(|call| call.result)
            .filter(|result| !self.layout.is_covered(*result))
            .collect()
    }

    pub(super) fn settle_block_summaries(&mut self, basis: &Basis, id: BlockId) {
        for batch in basis.facts.batches_in(id) {
            self.settle_summary(basis, batch);
        }
    }

    /// Writes the blocks anew that quote a block which has just been made.
    pub(super) fn renew_quoting(&mut self, basis: &Basis, quoted: BlockId) {
        for id in basis.facts.blocks().quoting(quoted) {
            if *id != quoted && self.layout.blocks.is_placed(*id) {
                self.unplace(basis, *id);
                self.place(basis, *id);
            }
        }
    }

    /// Positions of the outputs that a block shows verbatim.
    #[must_use]
    pub fn shown_in(&self, basis: &Basis, block: &Block) -> Vec<Position> {
        let dropped = self.layout.blocks.dropped(block.id);
        dropped
            .filter(|at| is_shown_in(basis, block, *at))
            .collect()
    }

    /// Where a block stands and what it says, if it can.
    fn fit(&self, basis: &Basis, block: &Block) -> Result<(Placement, String), Misfit> {
        let mut spans = Vec::new();
        for extent in &block.extents {
            spans.push(basis.span_of(*extent)?);
        }
        let first = spans.first().ok_or(Misfit::Absent)?;
        let behind = first.from.checked_sub(1).ok_or(Misfit::Absent)?;
        let mut dropped = Vec::new();
        let mut shown = Vec::new();
        for span in &spans {
            self.sort_span(basis, block, *span, &mut dropped, &mut shown)?;
        }
        if dropped.is_empty() {
            // The host sends back what the model was shown: the block stands there already.
            return Err(Misfit::Absent);
        }
        if dropped.iter().any(|at| self.layout.is_covered(*at)) {
            // In a transcript whose messages have changed places a span may reach into another.
            return Err(Misfit::Ambiguous);
        }
        dropped.sort_unstable();
        let mut text = Self::block_text(basis, block, &shown)?;
        // Measured on the transcript as it is, not on what else is pruned in it by now: a load must
        // come to the same end.
        let stands = dropped
            .iter()
            .filter(|at| !is_summary(basis, **at))
            .filter_map(|at| basis.transcript.slot(*at))
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

    /// Sorts the messages of a span into what is dropped and which of that is shown in the block.
    /// Messages of others stay where they are.
    fn sort_span(
        &self,
        basis: &Basis,
        block: &Block,
        span: Span,
        dropped: &mut Vec<Position>,
        shown: &mut Vec<Position>,
    ) -> Result<(), Misfit> {
        for at in span.from..span.to {
            match basis.transcript.slot(at).map(|slot| &slot.kind) {
                Some(Kind::Assistant(assistant)) => {
                    dropped.push(at);
                    for result in assistant.calls.iter().filter_map(|call| call.result) {
                        let member = member_in(basis, result)?;
                        let shows = protects(basis, block, result);
                        let is_own = shows || member.is_some_and(|member| block.drops(member));
                        if !is_own && result >= span.to {
                            // It came when its turn was gone from the context.
                            continue;
                        }
                        if member.is_none() {
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

    fn block_text(basis: &Basis, block: &Block, shown: &[Position]) -> Result<BlockText, Misfit> {
        let mut protected = Vec::new();
        for at in shown {
            let result = basis.transcript.result(*at).ok_or(Misfit::Unarchived)?;
            protected.push(ProtectedOutput {
                tool: &result.tool,
                text: result.text.as_deref().ok_or(Misfit::Unarchived)?,
            });
        }
        let body_of = |id: BlockId| {
            let other = basis.facts.blocks().get(id)?;
            Some(other.body.clone())
        };
        let body = block::expand(block.id, &block.body, &body_of);
        let write = |body: &str| block::write(block.id, &block.refs, body, &protected);
        Ok(BlockText {
            expanded: write(&body),
            plain: write(&block.body),
        })
    }
}

/// What the archive holds for a result in the span of a block.
fn member_in(basis: &Basis, at: Position) -> Result<Option<Member>, Misfit> {
    let result = basis.transcript.result(at).ok_or(Misfit::Unarchived)?;
    if result.ambiguous {
        return Err(Misfit::Unarchived);
    }
    Ok(basis.member_at(at))
}

/// Whether a block shows the result at a position, which it covers.
fn is_shown_in(basis: &Basis, block: &Block, at: Position) -> bool {
    protects(basis, block, at) && basis.member_at(at).is_none()
}

fn protects(basis: &Basis, block: &Block, at: Position) -> bool {
    // Most blocks show nothing: no key need be made for it.
    let key = (!block.protected.is_empty()).then(|| basis.transcript.key_at(at));
    key.flatten().is_some_and(|key| block.protects(&key))
}

fn is_summary(basis: &Basis, at: Position) -> bool {
    let kind = basis.transcript.slot(at).map(|slot| &slot.kind);
    matches!(kind, Some(Kind::Summary { .. }))
}
