//! What comes into the mirror, and what goes out of it.

use super::Session;
use crate::engine::entry;
use crate::engine::message::{Message, Role};
use crate::engine::transcript::Position;

impl Session {
    /// The messages from a position on are gone.
    pub(super) fn cut_back(&mut self, at: Position) {
        if self.flush.as_ref().is_some_and(|flush| flush.reaches(at)) {
            self.give_up_flush();
        }
        self.basis.cut_back(at);
        self.is_stale = true;
    }

    /// A message has come.
    pub(super) fn append(&mut self, message: Message) {
        let at = self.basis.transcript.len();
        self.basis.epoch.is_closing &= is_summary(&message);
        if self.is_stale {
            self.basis.transcript.push(message);
            self.basis.note_epoch(at);
            return;
        }
        let transcript = &mut self.basis.transcript;
        let before = transcript
            .last_chain()
            .map(|(id, chain)| (id, chain.start()));
        transcript.push(message);
        if let Some((id, start)) = before
            && transcript
                .chain(id)
                .is_none_or(|chain| chain.start() != start)
        {
            self.view.forget_chain(id);
        }
        self.view.append(&self.basis, at);
        self.let_go();
    }
}

/// Whether a message is a summary of ours.
fn is_summary(message: &Message) -> bool {
    matches!(&message.role, Role::Custom { kind, .. } if kind == entry::SUMMARY)
}
