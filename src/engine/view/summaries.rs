//! Where the summary of each batch stands: in the transcript, inserted by the plan, or nowhere.

use super::ledger::{Effect, Item, Saved, Strategy};
use super::{View, plan_position};
use crate::engine::basis::Basis;
use crate::engine::entry;
use crate::engine::facts::{Batch, BatchId, Member};
use crate::engine::host::Host;
use crate::engine::plan::{Aspect, Change, Inserted};
use crate::engine::size::Size;
use crate::engine::transcript::{Kind, Position};

impl View {
    /// Notes a summary that has turned up in the transcript.
    pub(super) fn note_summary(&mut self, basis: &Basis, at: Position) {
        let Some(Kind::Summary { details }) = basis.transcript.slot(at).map(|slot| &slot.kind)
        else {
            return;
        };
        if let Some(batch) = basis.facts.batch_of_details(details)
            && !self.layout.summaries.contains_key(&batch)
        {
            self.layout.summaries.insert(batch, at);
            self.settle_summary(basis, batch);
        }
    }

    /// Settles where the summary of a batch stands and what it costs.
    pub(super) fn settle_summary(&mut self, basis: &Basis, id: BatchId) {
        let Some(batch) = basis.facts.archive().batch(id) else {
            return;
        };
        let size = batch.summary_size;
        let in_block = self.layout.is_in_placed_block(batch);
        let stands = basis.rules.config.enabled && self.layout.active.contains(&id);
        let at = self.layout.summaries.get(&id).copied();
        // A block takes the place of a summary that stands in the transcript; one that the plan would
        // insert is not inserted then.
        let is_there = at.is_some() || (self.inserted.contains_key(&id) && !in_block);
        let mut effects = Vec::new();
        if stands && is_there {
            effects.push(Effect {
                strategy: Strategy::Stub,
                saved: Saved::between(Size::default(), size),
                counts: false,
            });
            if in_block {
                effects.push(Effect {
                    strategy: Strategy::Chain,
                    saved: Saved::between(size, Size::default()),
                    counts: false,
                });
            }
        }
        self.ledger.set(Item::Summary(id), effects);
        if let Some(at) = at {
            self.settle(basis, at);
        }
        if in_block || at.is_some() {
            self.placed_summaries.push(id);
        }
        if !stands || in_block || at.is_some() {
            self.withdraw_summary(id);
        } else {
            self.to_place.insert(id);
        }
    }

    /// A result has come at a position: the summaries that are inserted before it have to follow it,
    /// as it may belong to the same turn.
    pub(super) fn follow_result(&mut self, basis: &Basis, at: Position) {
        if let Some(before) = at
            .checked_sub(1)
            .filter(|_| basis.transcript.result(at).is_some())
        {
            let behind = self.plan.summaries_behind(plan_position(before));
            self.to_place.extend(behind.map(BatchId::numbered));
        }
    }

    /// Inserts the summaries that the host's transcript lacks.
    pub fn place_unseen_summaries(&mut self, basis: &Basis, host: &mut dyn Host) {
        for id in std::mem::take(&mut self.to_place) {
            if self.layout.summaries.contains_key(&id) {
                continue;
            }
            self.withdraw_summary(id);
            if let Some((behind, change)) = self.summary_insertion(basis, id, host) {
                let aspect = Aspect::Insertion(Inserted::Summary(id.number()));
                self.plan.set(behind, aspect, Some(change));
                self.placed_summaries.push(id);
                self.inserted.insert(id, behind);
            }
            self.settle_summary(basis, id);
            self.to_place.remove(&id);
        }
    }

    /// Where the summary of a batch has to be inserted: behind the last of the turns that it covers.
    fn summary_insertion(
        &self,
        basis: &Basis,
        id: BatchId,
        host: &mut dyn Host,
    ) -> Option<(u32, Change)> {
        let batch = basis.facts.archive().batch(id)?;
        let stands = basis.rules.config.enabled && self.layout.active.contains(&id);
        if !stands || self.layout.is_in_placed_block(batch) {
            return None;
        }
        let last = positions_of(basis, batch).max()?;
        let turn = basis.transcript.result(last)?.site?.assistant;
        let change = Change::InsertSummary {
            content: basis.summary_text(id, host)?,
            details: entry::write(&details_of(basis, id, batch)),
            at_ms: batch.summary_at_ms,
        };
        let behind = basis.transcript.row_end(turn) - 1;
        Some((plan_position(behind), change))
    }

    fn withdraw_summary(&mut self, id: BatchId) {
        if let Some(behind) = self.inserted.remove(&id) {
            let aspect = Aspect::Insertion(Inserted::Summary(id.number()));
            self.plan.set(behind, aspect, None);
        }
    }

    /// The batches whose summaries have found their place, so that nobody needs their texts.
    pub fn take_placed_summaries(&mut self) -> Vec<BatchId> {
        std::mem::take(&mut self.placed_summaries)
    }
}

/// Where the results of a batch stand, as far as they are in the transcript.
fn positions_of(basis: &Basis, batch: &Batch) -> impl Iterator<Item = Position> {
    let records = batch.records.iter();
    records.filter_map(|record| basis.position_of(Member::Record(*record)))
}

/// Details of the summary message of a batch.
fn details_of(basis: &Basis, id: BatchId, batch: &Batch) -> entry::SummaryDetails {
    let mut details = entry::SummaryDetails {
        flush: batch.flush,
        ..entry::SummaryDetails::default()
    };
    for record in basis.facts.archive().records_of(id) {
        details.tool_call_refs.push(entry::SummaryRef {
            short_id: record.name.to_string(),
            tool_call_id: record.key.call_id.clone(),
            result_timestamp: record.key.at_ms,
        });
        details.tool_names.push(record.tool.clone());
        details.turn_index = i64::from(record.turn_index);
        details.timestamp = record.turn_at_ms;
    }
    details
}
