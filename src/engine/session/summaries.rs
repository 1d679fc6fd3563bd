//! Where the summary of each batch stands: in the transcript, inserted by the plan, or nowhere.

use super::ledger::{Effect, Item, Saved, Strategy};
use super::settle::plan_position;
use super::settle::summary_number;
use super::{Position, Session};
use crate::engine::archive::Batch;
use crate::engine::entry;
use crate::engine::host::Host;
use crate::engine::plan::{Aspect, Change, Inserted};
use crate::engine::size::Size;

impl Session {
    /// Whether a summary message in the transcript stays.
    pub(super) fn shows_summary(&self, at: Position, details: &str) -> bool {
        let details = serde_json::from_str(details).unwrap_or_default();
        self.batch_of(&details)
            .filter(|index| self.account.summaries.get(index) == Some(&at))
            .and_then(|index| self.archive.batch(index))
            .is_some_and(|batch| batch.active && !self.is_in_placed_block(batch.block))
    }

    /// Settles where the summary of a batch stands and what it costs.
    pub(super) fn settle_summary(&mut self, index: usize) {
        let Some(batch) = self.archive.batch(index) else {
            return;
        };
        let size = batch.summary_size;
        let in_block = self.is_in_placed_block(batch.block);
        let stands = self.config.enabled && batch.active;
        let in_context = self.account.summaries.contains_key(&index)
            || self.account.inserted.contains_key(&index);
        let mut effects = Vec::new();
        if stands && in_context {
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
        self.ledger.set(Item::Summary(index), effects);
        if let Some(at) = self.account.summaries.get(&index).copied() {
            self.settle(at);
        }
        if in_block {
            self.account.unseen.remove(&index);
        }
        if !stands || in_block || self.account.summaries.contains_key(&index) {
            self.withdraw_summary(index);
        } else {
            self.account.to_place.insert(index);
        }
    }

    /// A result has come at a position: the summaries that are inserted before it have to follow it,
    /// as it may belong to the same turn.
    pub(super) fn follow_result(&mut self, at: Position) {
        if let Some(before) = at
            .checked_sub(1)
            .filter(|_| self.transcript.result(at).is_some())
        {
            let behind = self.plan.summaries_behind(plan_position(before));
            let batches = behind.map(|batch| batch as usize);
            self.account.to_place.extend(batches);
        }
    }

    /// Inserts the summaries that the host's transcript lacks.
    pub(super) fn place_unseen_summaries(&mut self, host: &mut dyn Host) {
        for index in std::mem::take(&mut self.account.to_place) {
            if self.account.summaries.contains_key(&index) {
                continue;
            }
            self.withdraw_summary(index);
            if let Some((behind, change)) = self.summary_insertion(index, host) {
                let aspect = Aspect::Insertion(Inserted::Summary(summary_number(index)));
                self.plan.set(behind, aspect, Some(change));
                self.account.unseen.remove(&index);
                self.account.inserted.insert(index, behind);
            }
            self.settle_summary(index);
            self.account.to_place.remove(&index);
        }
    }

    /// Where the summary of a batch has to be inserted: behind the last of the turns that it covers.
    fn summary_insertion(&self, index: usize, host: &mut dyn Host) -> Option<(u32, Change)> {
        let batch = self.archive.batch(index)?;
        if !self.config.enabled || !batch.active || self.is_in_placed_block(batch.block) {
            return None;
        }
        let last = self.positions_of_batch(index).into_iter().max()?;
        let turn = self.transcript.result(last)?.site?.assistant;
        let change = Change::InsertSummary {
            content: self.summary_text(index, host)?,
            details: entry::write(&self.summary_details(batch)),
            at_ms: batch.summary_at_ms,
        };
        let behind = self.transcript.row_end(turn) - 1;
        Some((plan_position(behind), change))
    }

    /// The text of a batch's summary, as it was appended.
    pub(super) fn summary_text(&self, index: usize, host: &mut dyn Host) -> Option<String> {
        if let Some(text) = self.account.unseen.get(&index) {
            return Some(text.clone());
        }
        let entry = self.archive.batch(index)?.summary.as_ref()?;
        let data = host.read(entry).ok()?;
        let message: entry::SummaryMessage = serde_json::from_str(&data).ok()?;
        Some(message.content)
    }

    fn withdraw_summary(&mut self, index: usize) {
        if let Some(behind) = self.account.inserted.remove(&index) {
            let aspect = Aspect::Insertion(Inserted::Summary(summary_number(index)));
            self.plan.set(behind, aspect, None);
        }
    }

    /// Details of the summary message of a batch.
    fn summary_details(&self, batch: &Batch) -> entry::SummaryDetails {
        let known = || {
            let records = batch.records.iter();
            records.filter_map(|index| self.archive.record(*index))
        };
        let last = known().next_back();
        entry::SummaryDetails {
            tool_call_refs: known()
                .map(|record| entry::SummaryRef {
                    short_id: record.name.to_string(),
                    tool_call_id: record.key.call_id.clone(),
                    result_timestamp: record.key.at_ms,
                })
                .collect(),
            tool_names: known().map(|record| record.tool.clone()).collect(),
            turn_index: last.map_or(0, |record| i64::from(record.turn_index)),
            timestamp: last.map_or(0, |record| record.turn_at_ms),
            flush: batch.flush,
        }
    }
}
