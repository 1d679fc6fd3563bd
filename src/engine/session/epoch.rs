//! Epochs: when due edits may look at more of the transcript, and settling everything anew.

use super::restore::CLOSED;
use super::{Position, Session};
use crate::engine::config::CachePolicy;
use crate::engine::entry;
use crate::engine::host::{Host, Notice};
use crate::engine::transcript::Kind;

impl Session {
    /// Before a model call: an epoch, if what was sent need not stay as it was.
    pub(super) fn meet_epoch(&mut self, now_ms: u64, host: &mut dyn Host) {
        let is_live = self.config.cache_policy == CachePolicy::Live;
        if !is_live && !self.is_cold(now_ms) {
            return;
        }
        // Before the epoch is in the log, so that a load shows it from there on as well.
        self.archive_due(now_ms, host);
        if is_live || self.log_cold_epoch(host) {
            self.advance_epoch();
        }
    }

    /// An epoch: due edits may look at the whole transcript.
    pub(super) fn advance_epoch(&mut self) {
        self.epoch.end = self.transcript.len();
        self.epoch.is_closed = self.is_user_turn_over();
        self.epoch.mark = Some(self.end_mark());
        for at in std::mem::take(&mut self.epoch.unshown) {
            if let Some(member) = self.member_at(at) {
                self.archive.show(member);
            }
            self.settle(at);
        }
        self.settle_due();
    }

    /// Settles the messages for which something has become due since the last epoch.
    fn settle_due(&mut self) {
        let due: Vec<Position> = self
            .epoch
            .purge_waiting
            .iter()
            .copied()
            .take_while(|at| self.is_purge_due(*at))
            .collect();
        for at in due {
            if self.can_purge_all(at) {
                self.epoch.purge_waiting.remove(&at);
            }
            self.settle(at);
        }
        let due: Vec<Position> = self
            .epoch
            .recovered_waiting
            .iter()
            .copied()
            .take_while(|at| !self.is_in_grace(*at))
            .filter(|at| self.member_at(*at).is_some())
            .collect();
        for at in due {
            self.epoch.recovered_waiting.remove(&at);
            self.settle(at);
        }
        while let Some(at) = self.next_thinking() {
            self.epoch.thinking_done += 1;
            self.settle(at);
        }
    }

    fn next_thinking(&self) -> Option<Position> {
        let next = *self.transcript.assistants().get(self.epoch.thinking_done)?;
        self.strips_thinking(next).then_some(next)
    }

    /// Whether an epoch would change anything.
    fn has_due_edits(&mut self) -> bool {
        let end = std::mem::replace(&mut self.epoch.end, self.transcript.len());
        let is_over = self.is_user_turn_over();
        let is_closed = std::mem::replace(&mut self.epoch.is_closed, is_over);
        let purge = self
            .epoch
            .purge_waiting
            .iter()
            .take_while(|at| self.is_purge_due(**at))
            .any(|at| self.can_purge_all(*at));
        let recovered = self
            .epoch
            .recovered_waiting
            .first()
            .is_some_and(|at| !self.is_in_grace(*at) && self.member_at(*at).is_some());
        let due =
            purge || recovered || !self.epoch.unshown.is_empty() || self.next_thinking().is_some();
        self.epoch.end = end;
        self.epoch.is_closed = is_closed;
        due
    }

    /// Whether the provider's cache has gone cold: long after the last model call, or on another
    /// model.
    fn is_cold(&self, now_ms: u64) -> bool {
        let last = self
            .transcript
            .last_reply_at_ms()
            .unwrap_or(0)
            .max(self.epoch.last_call_ms);
        let idle = self.config.idle_cold_ms;
        self.epoch.is_cold || (idle > 0 && now_ms >= last.saturating_add(idle))
    }

    /// Writes the epoch of a cold cache into the log, so that a load finds it; only if there is
    /// something to do.
    fn log_cold_epoch(&mut self, host: &mut dyn Host) -> bool {
        if !self.has_due_edits() {
            return false;
        }
        let data = entry::Epoch {
            epoch_end: self.end_mark(),
            flush: None,
        };
        match host.append(entry::EPOCH, &entry::write(&data)) {
            Ok(_) => true,
            Err(err) => {
                host.notify(&Notice::warning(format!(
                    "pruner: the session log cannot be written ({err}); due edits wait"
                )));
                false
            }
        }
    }

    /// What stands in the log for an epoch at the present end of the transcript.
    ///
    /// It names the last message that every context has: the plan may leave out a summary, and a
    /// result without a call.
    pub(super) fn end_mark(&self) -> String {
        let last = (0..self.transcript.len())
            .rev()
            .find(|at| self.may_mark(*at));
        let mut mark = last.map_or_else(String::new, |last| self.transcript.mark(last));
        if self.is_user_turn_over() {
            mark.push_str(CLOSED);
        }
        mark
    }

    fn may_mark(&self, at: Position) -> bool {
        match self.transcript.slot(at).map(|slot| &slot.kind) {
            Some(Kind::Summary { .. }) => false,
            Some(Kind::Result(result)) => result.site.is_some(),
            Some(_) | None => true,
        }
    }

    /// Whether the agent has given its final reply since the last prompt, or is about to.
    pub(super) fn is_user_turn_over(&self) -> bool {
        self.is_closing || self.transcript.is_replied()
    }

    /// While a session is loaded: the epoch covers the messages up to the one it was taken at. Where
    /// that one is gone, the ones that are not newer stand for it.
    pub(super) fn note_load_epoch(&mut self, at: Position) {
        let Some(load) = &self.load.epoch else {
            return;
        };
        let at_ms = self.transcript.slot(at).map_or(u64::MAX, |slot| slot.at_ms);
        let is_last = at_ms == load.at_ms && self.transcript.mark(at) == load.mark;
        let is_old = at_ms <= load.at_ms;
        if is_last || (is_old && !load.is_found) {
            self.epoch.end = at + 1;
        }
        if let Some(load) = &mut self.load.epoch {
            load.is_found |= is_last;
        }
    }

    /// Settles everything anew, if a load, a cut or a setting has made it necessary.
    pub(super) fn refresh(&mut self) {
        self.finish_restore();
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        if self.config.cache_policy == CachePolicy::Live {
            self.epoch.end = self.transcript.len();
            self.epoch.is_closed = self.is_user_turn_over();
        }
        self.load.epoch = None;
        self.find_turn_base();
        self.unplace_all();
        self.renew_accounts();
        for batch in 0..self.archive.batches().len() {
            let worth = self.is_worth_it(batch);
            if let Some(batch) = self.archive.batch_mut(batch) {
                batch.active = worth;
            }
        }
        self.shares.clear();
        for at in 0..self.transcript.len() {
            self.settle(at);
        }
        self.place_all();
        for batch in 0..self.archive.batches().len() {
            self.settle_summary(batch);
        }
        self.epoch.thinking_done = 0;
        self.settle_due();
    }

    /// Enters the whole transcript into the accounts anew.
    fn renew_accounts(&mut self) {
        self.account.untried.clear();
        self.account.orphans.clear();
        self.account.legacy.clear();
        self.account.legacy_positions.clear();
        self.account.summaries.clear();
        self.epoch.purge_waiting.clear();
        self.epoch.purge_unarchived.clear();
        self.epoch.recovered_waiting.clear();
        self.epoch.recovered_unarchived.clear();
        self.epoch.unshown.clear();
        for at in 0..self.transcript.len() {
            self.bind_legacy(at);
        }
        self.apply_legacy_frontier();
        for at in 0..self.transcript.len() {
            self.note(at);
        }
        self.renew_candidates();
    }
}
