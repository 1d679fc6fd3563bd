//! What comes into the mirror, and what goes out of it.

use std::collections::btree_map::Entry;

use super::restore::EpochMark;
use super::{Position, Session};
use crate::engine::entry;
use crate::engine::message::{Message, Role};
use crate::engine::stub::quotes_marker;
use crate::engine::transcript::Kind;

impl Session {
    /// The messages from a position on are gone.
    pub(super) fn cut_back(&mut self, at: Position) {
        if self.flush.as_ref().is_some_and(|flush| flush.reaches(at)) {
            self.give_up_flush();
        }
        if at > 0 {
            self.transcript.truncate(at);
        } else {
            let before = std::mem::take(&mut self.transcript);
            // What is replaced before any hook has looked at it says nothing of the session.
            self.load.before.get_or_insert(before);
        }
        self.plan.truncate(u32::try_from(at).unwrap_or(u32::MAX));
        self.ledger.truncate(at);
        self.account
            .inserted
            .retain(|_, behind| (*behind as Position) < at);
        if at < self.epoch.end {
            // The messages that come back belong to the epoch as they did before, as after a load.
            self.load.epoch = Some(EpochMark::read(self.epoch.mark.clone()));
            self.epoch.end = at;
        }
        self.epoch.sent = self.epoch.sent.min(at);
        self.is_stale = true;
    }

    /// A message has come.
    pub(super) fn append(&mut self, message: Message) {
        let at = self.transcript.len();
        self.is_closing &= is_summary(&message);
        let last_chain = self.last_chain();
        self.transcript.push(message);
        if self.is_stale {
            self.note_load_epoch(at);
            return;
        }
        self.note_last_chain(last_chain);
        self.note(at);
        self.follow_result(at);
        self.note_candidate();
        self.settle(at);
        self.place_blocks_at(at);
    }

    /// Enters a message into the accounts that the passes work through.
    pub(super) fn note(&mut self, at: Position) {
        let Some(slot) = self.transcript.slot(at) else {
            return;
        };
        match &slot.kind {
            Kind::Assistant(assistant) => {
                for call in &assistant.calls {
                    let arguments = call.arguments.as_deref().unwrap_or_default();
                    if let Some(marker) = quotes_marker(arguments) {
                        let detail = format!("call={} tool={} marker={marker}", call.id, call.tool);
                        self.undiagnosed
                            .push(("marker-in-arguments".to_owned(), detail));
                    }
                }
            }
            Kind::Result(_) => self.note_result(at),
            Kind::Summary { details } => {
                let details = serde_json::from_str(details).unwrap_or_default();
                self.note_summary(at, &details);
            }
            Kind::User | Kind::Prompt | Kind::Block | Kind::Other => {}
        }
    }

    fn note_summary(&mut self, at: Position, details: &entry::SummaryDetails) {
        if let Some(batch) = self.batch_of(details) {
            self.account.unseen.remove(&batch);
            if let Entry::Vacant(vacant) = self.account.summaries.entry(batch) {
                vacant.insert(at);
                self.settle_summary(batch);
            }
        }
    }
}

/// Whether a message is a summary of ours.
fn is_summary(message: &Message) -> bool {
    matches!(&message.role, Role::Custom { kind, .. } if kind == entry::SUMMARY)
}
