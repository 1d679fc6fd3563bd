//! What older programs and compactions of the host leave to be found out.

use super::{Position, Session};
use crate::engine::archive::Member;
use crate::engine::ids::OccurrenceKey;
use crate::engine::transcript::{Boundary, Transcript};

impl Session {
    /// Old records have no timestamp: each is bound to the one result that it can mean, which is
    /// not newer than the record's entry.
    pub(super) fn bind_legacy(&mut self, at: Position) {
        let Some(slot) = self.transcript.slot(at) else {
            return;
        };
        let Some(result) = slot.as_result() else {
            return;
        };
        if self.archive.member(&result.key(slot.at_ms)).is_some() {
            return;
        }
        let bare = OccurrenceKey {
            call_id: result.call_id.clone(),
            at_ms: None,
        };
        let Some(member) = self.archive.member(&bare) else {
            return;
        };
        let turn_at_ms = result
            .site
            .and_then(|site| self.transcript.slot(site.assistant))
            .map(|turn| turn.at_ms);
        let (written_at_ms, of_turn_ms) = match member {
            Member::Record(index) => match self.archive.record(index) {
                Some(record) => (record.archived_at_ms, record.turn_at_ms),
                None => return,
            },
            Member::Alias(index) => match self.archive.alias(index) {
                Some(alias) => (alias.archived_at_ms, 0),
                None => return,
            },
        };
        let is_exact = turn_at_ms == Some(of_turn_ms);
        let is_bound = self.account.legacy_positions.get(&member).copied();
        if slot.at_ms > written_at_ms || (is_bound.is_some() && !is_exact) {
            return;
        }
        if let Some(before) = is_bound {
            self.account.legacy.remove(&before);
        }
        self.account.legacy.insert(at, member);
        self.account.legacy_positions.insert(member, at);
    }

    /// What an older program's frontier says: every result up to its last attempted call was tried.
    pub(super) fn apply_legacy_frontier(&mut self) {
        let Some((call_id, turn_at_ms)) = self.load.frontier.take() else {
            return;
        };
        let anchor = self
            .transcript
            .results_of(&call_id)
            .filter(|at| {
                let turn = self
                    .transcript
                    .result(*at)
                    .and_then(|result| self.transcript.slot(result.site?.assistant));
                turn.is_some_and(|turn| turn.at_ms <= turn_at_ms)
            })
            .max();
        let Some(anchor) = anchor else {
            return;
        };
        for at in 0..=anchor {
            if self.member_at(at).is_none()
                && let Some(key) = self.transcript.key_at(at)
            {
                self.account.skipped.insert(key);
            }
        }
    }

    /// Where the session's turns go on counting after the host has cut its beginning away: found from
    /// the transcript before the cut, or else from the first result that the archive knows.
    pub(super) fn find_turn_base(&mut self) {
        if let Some(before) = self.load.before.take() {
            let base = self.turn_base_after(&before);
            self.transcript.set_turn_base(base);
        }
        for at in 0..self.transcript.len() {
            let Some(member) = self.member_at(at) else {
                continue;
            };
            let known = match member {
                Member::Record(index) => self.archive.record(index).map(|record| record.turn_index),
                Member::Alias(index) => self.archive.alias(index).map(|alias| alias.turn_index),
            };
            let here = self.turn_index_at(at);
            if let Some(missing) = known.and_then(|known| known.checked_sub(here)) {
                let base = self.transcript.turn_base() + missing;
                self.transcript.set_turn_base(base);
            }
            return;
        }
    }

    /// From the first assistant message that both transcripts have. Without one the host has cut
    /// everything away, and all of them come before.
    fn turn_base_after(&self, before: &Transcript) -> u32 {
        for (here, at) in (0..).zip(self.transcript.assistants()) {
            let at_ms = self.transcript.slot(*at).map(|slot| slot.at_ms);
            let known = at_ms.and_then(|at_ms| before.boundary_at(Boundary::Reply, at_ms));
            if let Some(known) = known.and_then(|at| before.assistant(at)) {
                return known.turn_index.saturating_sub(here);
            }
        }
        before.turn_count()
    }
}
