//! The view: everything that follows from the [`Basis`] and is kept because asking anew would cost
//! the whole session.
//!
//! [`View::renew`] makes it anew from the basis alone; between two renewals each message and each
//! fact that comes is entered by what it changes. Both lead to the same view.

mod candidates;
mod due;
pub mod ledger;
mod place;
mod placement;
mod settle;
mod shares;
mod summaries;
mod untried;

pub use place::frames;
pub use placement::{Placed, Placement, Placements, Run};
pub use settle::{Layout, Settled, Settling, plan_position};
pub use untried::{Sums, Untried};

use super::basis::Basis;
use super::block::Extent;
use super::facts::{BatchId, Changes, Member, Standing};
use super::plan::Plan;
use super::query;
use super::size::Size;
use super::stub::quotes_marker;
use super::transcript::{CallSite, Kind, Position};
use crate::engine::map::{Map, Set};
use candidates::Candidates;
use due::Due;
use ledger::{Item, Ledger, rest};
use shares::Shares;

/// What follows from the basis.
#[derive(Default)]
pub struct View {
    pub plan: Plan,
    pub ledger: Ledger,
    layout: Layout,
    shares: Shares,
    due: Due,
    candidates: Candidates,
    /// Results that are answered, unprotected and untried.
    untried: Untried,
    /// Untried results that have not been looked at for their size.
    fresh: Vec<Position>,
    /// Results without a call that are not archived yet.
    orphans: Set<Position>,
    /// Batches whose summary may have to be inserted by the plan.
    to_place: Set<BatchId>,
    /// Behind which position the plan inserts the summary of a batch.
    inserted: Map<BatchId, u32>,
    /// Batches whose summaries have found their place.
    placed_summaries: Vec<BatchId>,
    /// Results whose text nobody needs any more, with their calls.
    unneeded: Vec<(Position, Option<CallSite>)>,
    /// Oddities that were found, by kind and detail.
    oddities: Vec<(&'static str, String)>,
    /// Spans that were found not to be worth a block under the present rules.
    unworthy: Set<Extent>,
}

impl View {
    /// Which blocks, summaries and batches stand.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    #[must_use]
    pub fn untried(&self) -> &Untried {
        &self.untried
    }

    /// UTF-16 code units of the largest chain, as the model sees it.
    #[must_use]
    pub fn largest_chain(&self) -> u64 {
        self.shares.largest()
    }

    #[must_use]
    pub fn settling<'a>(&'a self, basis: &'a Basis) -> Settling<'a> {
        Settling {
            basis,
            layout: &self.layout,
        }
    }

    /// Makes everything anew. The plan keeps its revisions, so that the host gets a difference.
    pub fn renew(&mut self, basis: &Basis) {
        let mut plan = std::mem::take(&mut self.plan);
        plan.begin_anew();
        *self = Self {
            plan,
            oddities: std::mem::take(&mut self.oddities),
            ..Self::default()
        };
        for at in 0..basis.transcript.len() {
            if let Some(Kind::Summary { details }) =
                basis.transcript.slot(at).map(|slot| &slot.kind)
                && let Some(batch) = basis.facts.batch_of_details(details)
            {
                self.layout.summaries.insert_new(batch, at);
            }
        }
        for (batch, _) in basis.facts.archive().batches() {
            if self.settling(basis).is_worth_it(batch) {
                self.layout.active.insert(batch);
            }
        }
        self.candidates.renew(basis);
        // What a block takes the place of is looked at once, for the block's account.
        for at in 0..basis.transcript.len() {
            self.note(basis, at);
            let settled = self.settling(basis).message(at);
            self.ledger.set(Item::Message(at), settled.effects);
        }
        for block in basis.facts.blocks().all() {
            self.await_block(basis, block.id);
        }
        self.place_waiting(basis);
        for at in 0..basis.transcript.len() {
            if !self.layout.is_covered(at) {
                self.settle(basis, at);
            }
        }
        for (batch, _) in basis.facts.archive().batches() {
            self.settle_summary(basis, batch);
        }
        // What is due has just been settled with everything else.
        self.take_due(basis);
        self.plan.finish_anew();
    }

    /// A message has come at the end of the transcript.
    pub fn append(&mut self, basis: &Basis, at: Position) {
        self.note(basis, at);
        self.note_summary(basis, at);
        self.follow_result(basis, at);
        self.candidates.note(basis);
        self.settle(basis, at);
        self.place_blocks_at(basis, at);
    }

    /// A chain that never came to use a tool has made room for another one.
    pub fn forget_chain(&mut self, chain: super::transcript::ChainId) {
        self.shares.forget(chain);
    }

    /// What the log has been given changes the view.
    pub fn apply(&mut self, basis: &Basis, changes: &Changes) {
        for id in &changes.retired {
            self.retire(basis, *id);
        }
        for key in &changes.skipped {
            if let Some(at) = basis.transcript.position_of(key) {
                self.untried.remove(at);
            }
        }
        for id in &changes.records {
            self.admit(basis, Member::Record(*id));
        }
        for id in &changes.aliases {
            self.admit(basis, Member::Alias(*id));
        }
        for id in &changes.blocks {
            self.await_block(basis, *id);
        }
        for batch in changes.batches.iter().chain(&changes.reopened) {
            self.settle_batch(basis, *batch);
        }
        for id in &changes.records {
            self.settle_member(basis, Member::Record(*id));
        }
        for id in &changes.aliases {
            self.settle_member(basis, Member::Alias(*id));
        }
        for id in &changes.blocks {
            self.place(basis, *id);
            self.renew_quoting(basis, *id);
            // Whether it stands or waits, it has taken batches over from those that it supersedes.
            self.settle_block_summaries(basis, *id);
        }
        if changes.is_epoch {
            self.advance_epoch(basis);
        }
    }

    /// Decides on one message.
    pub fn settle(&mut self, basis: &Basis, at: Position) {
        let settled = self.settling(basis).message(at);
        let position = plan_position(at);
        let Some(block) = self.layout.blocks.covering(at) else {
            self.ledger.set(Item::Message(at), settled.effects);
            self.note_share(basis, at);
            for aspect in self.settling(basis).aspects(at) {
                let change = settled
                    .edits
                    .iter()
                    .find(|(wanted, _)| *wanted == aspect)
                    .map(|(_, change)| change.clone());
                self.plan.set(position, aspect, change);
            }
            return;
        };
        // What it would be without the block is the block's account.
        let before = self.rendered(basis, at);
        self.ledger.set(Item::Message(at), settled.effects);
        let after = self.rendered(basis, at);
        self.plan.clear(position);
        if before != after {
            self.restate_block(block, before, after);
        }
    }

    /// Settles a batch: whether its summary and stubs are shorter than what they replace, and with
    /// it all of its results, and what repeats them.
    fn settle_batch(&mut self, basis: &Basis, batch: BatchId) {
        if self.settling(basis).is_worth_it(batch) {
            self.layout.active.insert(batch);
        } else {
            self.layout.active.remove(&batch);
        }
        let Some(known) = basis.facts.archive().batch(batch) else {
            return;
        };
        for record in &known.records {
            self.settle_member(basis, Member::Record(*record));
            for alias in basis.facts.archive().aliases_of(*record) {
                self.settle_member(basis, Member::Alias(*alias));
            }
        }
        self.settle_summary(basis, batch);
    }

    /// Settles a result, and the call whose arguments it has held up.
    fn settle_member(&mut self, basis: &Basis, member: Member) {
        let Some(at) = basis.position_of(member) else {
            return;
        };
        self.settle(basis, at);
        if let Some(site) = self.settling(basis).site_in_context(at) {
            self.settle(basis, site.assistant);
        }
    }

    /// A result is in the archive: it need not be tried any more, and may be let go.
    fn admit(&mut self, basis: &Basis, member: Member) {
        let Some(at) = basis.position_of(member) else {
            return;
        };
        self.orphans.remove(&at);
        self.due.archived(basis, at);
        if !basis.is_shown(member) {
            self.due.await_epoch(at);
        }
        let is_only_archived = basis.standing_at(at) == Some(&Standing::Archived);
        if is_only_archived && self.untried.contains(at) {
            return;
        }
        self.untried.remove(at);
        self.let_go(basis, at);
    }

    fn let_go(&mut self, basis: &Basis, at: Position) {
        let site = basis.transcript.result(at).and_then(|result| result.site);
        self.unneeded.push((at, site));
    }

    /// The results whose text may go, with the calls whose arguments may go with it.
    pub fn take_unneeded(&mut self) -> Vec<(Position, Option<CallSite>)> {
        std::mem::take(&mut self.unneeded)
    }

    /// Oddities that were found since this was asked last.
    pub fn take_oddities(&mut self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.oddities)
    }

    /// Untried results that came since this was asked last.
    pub fn take_fresh(&mut self) -> Vec<Position> {
        std::mem::take(&mut self.fresh)
    }

    /// The first result without a call that is not archived yet.
    #[must_use]
    pub fn first_orphan(&self) -> Option<Position> {
        self.orphans.first().copied()
    }

    /// A result without a call cannot be archived.
    pub fn forget_orphan(&mut self, at: Position) {
        self.orphans.remove(&at);
    }

    /// Enters a message into the accounts that the passes work through.
    fn note(&mut self, basis: &Basis, at: Position) {
        match basis.transcript.slot(at).map(|slot| &slot.kind) {
            Some(Kind::Assistant(assistant)) => {
                for call in &assistant.calls {
                    let arguments = call.arguments.as_deref().unwrap_or_default();
                    if let Some(marker) = quotes_marker(arguments) {
                        let detail = format!("call={} tool={} marker={marker}", call.id, call.tool);
                        self.oddities.push(("marker-in-arguments", detail));
                    }
                }
            }
            Some(Kind::Result(_)) => self.note_result(basis, at),
            Some(Kind::Summary { .. } | Kind::User | Kind::Prompt | Kind::Block | Kind::Other)
            | None => {}
        }
    }

    /// Enters a tool result into the accounts.
    fn note_result(&mut self, basis: &Basis, at: Position) {
        let Some(result) = basis.transcript.result(at) else {
            return;
        };
        let detail = || {
            let key = basis.transcript.key_at(at)?;
            Some(format!("occurrence={key}"))
        };
        if result.ambiguous {
            self.oddities
                .extend(detail().map(|detail| ("ambiguous-result", detail)));
            return;
        }
        let member = basis.member_at(at);
        let Some(site) = self.settling(basis).site_in_context(at) else {
            self.oddities
                .extend(detail().map(|detail| ("orphan-result", detail)));
            if member.is_none() && result.text_size.chars > 0 {
                self.orphans.insert(at);
            }
            return;
        };
        let is_recovered = result.tool == query::TOOL_NAME;
        let is_archived_only = || basis.standing_at(at) == Some(&Standing::Archived);
        let is_open = member.is_none() || is_archived_only();
        let is_protected = basis.is_protected(at);
        self.due.note(basis, at, site);
        if is_open && !is_recovered && !is_protected && !basis.is_skipped(at) {
            self.untried.insert(at, site.assistant, result.text_size);
            self.fresh.push(at);
        } else if member.is_some() && !is_protected {
            self.unneeded.push((at, Some(site)));
        }
    }

    /// The size of a message as the model sees it outside of any block; summaries are accounted for
    /// by batch.
    #[must_use]
    pub fn rendered(&self, basis: &Basis, at: Position) -> Size {
        match basis.transcript.slot(at) {
            Some(slot) if !matches!(slot.kind, Kind::Summary { .. }) => {
                rest(slot.size, self.ledger.saved_by(Item::Message(at)))
            }
            Some(_) | None => Size::default(),
        }
    }

    /// Notes what the model sees of a message that has been decided on.
    fn note_share(&mut self, basis: &Basis, at: Position) {
        let chars = if self.layout.is_covered(at) {
            0
        } else {
            self.rendered(basis, at).chars
        };
        self.shares.set(at, basis.transcript.chain_at(at), chars);
    }

    /// Whether a span has been decided on: a block has been made for it, or it is not worth one.
    #[must_use]
    pub fn is_decided(&self, basis: &Basis, extent: &Extent) -> bool {
        basis.facts.blocks().has_made(extent) || self.unworthy.contains(extent)
    }

    /// A span is not worth a block under the present rules.
    pub fn note_unworthy(&mut self, extent: Extent) {
        self.unworthy.insert(extent);
    }
}
