//! The messages that wait for an epoch.

use super::View;
use crate::engine::basis::Basis;
use crate::engine::map::Set;
use crate::engine::query;
use crate::engine::transcript::{CallSite, Position};

/// What waits, so that an epoch looks at nothing else.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// Assistant messages with a failed call whose arguments are large.
    purge: Set<Position>,
    /// The same, as long as a result of it is in no record.
    purge_unarchived: Set<Position>,
    /// Outputs of `context_tree_query` that stand as they are.
    recovered: Set<Position>,
    /// The same, as long as they are in no record.
    recovered_unarchived: Set<Position>,
    /// Results that were archived after the model had seen them.
    unshown: Set<Position>,
    /// How many assistant messages have been looked at for their thinking.
    thinking_done: usize,
}

impl Due {
    /// Enters a result and its call.
    pub(super) fn note(&mut self, basis: &Basis, at: Position, site: CallSite) {
        let (Some(result), Some(call)) = (basis.transcript.result(at), basis.transcript.call(site))
        else {
            return;
        };
        let member = basis.member_at(at);
        if result.tool == query::TOOL_NAME {
            self.recovered.insert(at);
            if member.is_none() {
                self.recovered_unarchived.insert(at);
            }
        }
        let least = u64::from(basis.rules.config.purge_errors.min_arg_chars);
        if result.is_error && call.arguments_size.chars >= least {
            self.purge.insert(site.assistant);
            if member.is_none() {
                self.purge_unarchived.insert(site.assistant);
            }
        }
        if member.is_some_and(|member| !basis.is_shown(member)) {
            self.unshown.insert(at);
        }
    }

    /// A result is in a record now.
    pub(super) fn archived(&mut self, basis: &Basis, at: Position) {
        self.recovered_unarchived.remove(&at);
        let site = basis.transcript.result(at).and_then(|result| result.site);
        if let Some(site) = site
            && self.purge_unarchived.contains(&site.assistant)
            && basis.failed_calls(site.assistant).is_empty()
        {
            self.purge_unarchived.remove(&site.assistant);
        }
    }

    pub(super) fn await_epoch(&mut self, at: Position) {
        self.unshown.insert(at);
    }
}

impl View {
    /// An epoch: due edits may look at the whole transcript.
    pub fn advance_epoch(&mut self, basis: &Basis) {
        for at in std::mem::take(&mut self.due.unshown) {
            self.settle(basis, at);
        }
        self.settle_due(basis);
    }

    /// Settles the messages for which something has become due since the last epoch.
    fn settle_due(&mut self, basis: &Basis) {
        for at in self.take_due(basis) {
            self.settle(basis, at);
        }
    }

    /// The messages for which something has become due since this was asked last.
    pub(super) fn take_due(&mut self, basis: &Basis) -> Vec<Position> {
        let mut due = self.purge_due(basis);
        for at in &due {
            if basis.can_purge_all(*at) {
                self.due.purge.remove(at);
            }
        }
        for at in self.recovered_due(basis) {
            self.due.recovered.remove(&at);
            due.push(at);
        }
        while let Some(at) = self.next_thinking(basis) {
            self.due.thinking_done += 1;
            due.push(at);
        }
        due
    }

    fn purge_due(&self, basis: &Basis) -> Vec<Position> {
        let waiting = self.due.purge.iter().copied();
        waiting.take_while(|at| basis.is_purge_due(*at)).collect()
    }

    fn recovered_due(&self, basis: &Basis) -> Vec<Position> {
        let waiting = self.due.recovered.iter().copied();
        waiting
            .take_while(|at| !basis.is_in_grace(*at))
            .filter(|at| basis.member_at(*at).is_some())
            .collect()
    }

    fn next_thinking(&self, basis: &Basis) -> Option<Position> {
        let next = *basis.transcript.assistants().get(self.due.thinking_done)?;
        basis.strips_thinking(next).then_some(next)
    }

    /// Whether an epoch that ends where the basis says would change anything.
    #[must_use]
    pub fn has_due_edits(&self, basis: &Basis) -> bool {
        let mut purge = self.due.purge.iter();
        !self.due.unshown.is_empty()
            || purge
                .by_ref()
                .take_while(|at| basis.is_purge_due(**at))
                .any(|at| basis.can_purge_all(*at))
            || !self.recovered_due(basis).is_empty()
            || self.next_thinking(basis).is_some()
    }

    /// Outputs of `context_tree_query` in no record whose time is over.
    #[must_use]
    pub fn recovered_to_archive(&self, basis: &Basis) -> Vec<Position> {
        let waiting = self.due.recovered_unarchived.iter().copied();
        waiting
            .take_while(|at| !basis.is_recovered_fresh(*at))
            .collect()
    }

    /// Assistant messages with failed calls that have cooled down and are in no record yet.
    #[must_use]
    pub fn purges_to_archive(&self, basis: &Basis) -> Vec<Position> {
        let waiting = self.due.purge_unarchived.iter().copied();
        // What a block shows verbatim must not become a record: the block would lose it.
        waiting
            .take_while(|at| basis.has_cooled_down(*at))
            .filter(|at| !self.layout.is_covered(*at))
            .collect()
    }

    /// What cannot be archived is not asked for again.
    pub fn forget_unarchived(&mut self, at: Position) {
        self.due.recovered_unarchived.remove(&at);
        self.due.purge_unarchived.remove(&at);
    }

    /// Whether what the archiving of a result makes possible would change what was sent, at once: it
    /// should have been archived before the last epoch. A result that came late stands with its call.
    #[must_use]
    pub fn is_overdue(&self, basis: &Basis, at: Position) -> bool {
        let Some(site) = self.settling(basis).site_in_context(at) else {
            return false;
        };
        let sent = basis.epoch.end.min(basis.epoch.sent);
        let is_recovered = self.due.recovered.contains(&at);
        let may_be_purged = self.due.purge.contains(&site.assistant);
        !basis.rules.is_live()
            && ((may_be_purged && site.assistant < sent && basis.is_purge_due(site.assistant))
                || (is_recovered && at < sent && !basis.is_in_grace(at)))
    }
}
