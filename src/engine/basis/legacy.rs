//! What older programs and compactions of the host leave to be found out.

use super::Basis;
use crate::engine::facts::{Facts, Member};
use crate::engine::ids::OccurrenceKey;
use crate::engine::map::{Map, Set};
use crate::engine::transcript::{Boundary, Position, Transcript};

/// Where old records, which name no time, are found, and what an old frontier covers.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    members: Map<Position, Member>,
    positions: Map<Member, Position>,
    tried: Set<Position>,
}

impl Bindings {
    /// Costs a pass over the transcript, and nothing else where the log has no such records.
    pub(super) fn of(facts: &Facts, transcript: &Transcript) -> Self {
        let mut bindings = Self::default();
        if facts.archive().has_bare_keys() {
            for at in 0..transcript.len() {
                bindings.bind(at, facts, transcript);
            }
        }
        bindings.find_tried(facts, transcript);
        bindings
    }

    pub(super) fn member_at(&self, at: Position) -> Option<Member> {
        self.members.get(&at).copied()
    }

    pub(super) fn position_of(&self, member: Member) -> Option<Position> {
        self.positions.get(&member).copied()
    }

    pub(super) fn was_tried(&self, at: Position) -> bool {
        self.tried.contains(&at)
    }

    /// Each old record is bound to the one result that it can mean, which is not newer than the
    /// record's entry.
    fn bind(&mut self, at: Position, facts: &Facts, transcript: &Transcript) {
        let Some(slot) = transcript.slot(at) else {
            return;
        };
        let Some(result) = slot.as_result() else {
            return;
        };
        let archive = facts.archive();
        if archive.member(&result.key(slot.at_ms)).is_some() {
            return;
        }
        let bare = OccurrenceKey {
            call_id: result.call_id.clone(),
            at_ms: None,
        };
        let Some(member) = archive.member(&bare) else {
            return;
        };
        let turn_at_ms = result
            .site
            .and_then(|site| transcript.slot(site.assistant))
            .map(|turn| turn.at_ms);
        let known = match member {
            Member::Record(id) => archive
                .record(id)
                .map(|record| (record.archived_at_ms, record.turn_at_ms)),
            Member::Alias(id) => archive.alias(id).map(|alias| (alias.archived_at_ms, 0)),
        };
        let Some((written_at_ms, of_turn_ms)) = known else {
            return;
        };
        let is_exact = turn_at_ms == Some(of_turn_ms);
        let is_bound = self.positions.get(&member).copied();
        if slot.at_ms > written_at_ms || (is_bound.is_some() && !is_exact) {
            return;
        }
        if let Some(before) = is_bound {
            self.members.remove(&before);
        }
        self.members.insert(at, member);
        self.positions.insert(member, at);
    }

    /// What an older program's frontier says: every result up to its last attempted call was tried.
    fn find_tried(&mut self, facts: &Facts, transcript: &Transcript) {
        let Some((call_id, turn_at_ms)) = facts.tried_up_to() else {
            return;
        };
        let is_old = |at: &Position| {
            let turn = transcript
                .result(*at)
                .and_then(|result| transcript.slot(result.site?.assistant));
            turn.is_some_and(|turn| turn.at_ms <= turn_at_ms)
        };
        if let Some(last) = transcript.results_of(call_id).filter(is_old).max() {
            let is_open = |at: &Position| {
                let key = transcript.key_at(*at);
                key.is_some_and(|key| facts.archive().member(&key).is_none())
                    && !self.members.contains_key(at)
            };
            let open: Vec<Position> = (0..=last).filter(is_open).collect();
            self.tried.extend(open);
        }
    }
}

impl Basis {
    /// Where the session's turns go on counting after the host has cut its beginning away: found from
    /// the transcript before the cut, or else from the first result that the archive knows.
    pub(super) fn find_turn_base(&mut self) {
        if let Some(before) = self.replaced.take() {
            let base = self.turn_base_after(&before);
            self.transcript.set_turn_base(base);
        }
        for at in 0..self.transcript.len() {
            let Some(member) = self.member_at(at) else {
                continue;
            };
            let here = self.turn_index_at(at);
            let known = self.facts.archive().turn_index(member);
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
