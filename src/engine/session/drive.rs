//! Drives the flush in progress: sends its requests, hands it the answers, writes what it comes to.

use super::Session;
use crate::engine::config::{FlushMode, PruneOn};
use crate::engine::entry::{self, FlushOutcome};
use crate::engine::facts::{Changes, Fact};
use crate::engine::flush::{Entries, Flush, Scene, SpanWork, Step, Trigger};
use crate::engine::hook::Hook;
use crate::engine::host::{Cost, Host, HostError, Notice, Outcome};
use crate::engine::ids::JobId;

impl Session {
    /// The agent's final reply: flushes, or, on demand, does not.
    pub(super) fn flush_at_reply(&mut self, closing_at_ms: Option<u64>, hook: &mut Hook<'_>) {
        if self.basis.rules.config.prune_on == PruneOn::AgentMessage {
            self.start_flush(Trigger::Reply, closing_at_ms, hook);
        }
    }

    /// Begins a flush, unless one is in progress or there is nothing to do. Says whether it began.
    pub(super) fn start_flush(
        &mut self,
        trigger: Trigger,
        closing_at_ms: Option<u64>,
        hook: &mut Hook<'_>,
    ) -> bool {
        if self.flush.is_some() || !self.basis.rules.may_replace() {
            return false;
        }
        let scene = Scene {
            trigger: Some(trigger),
            closing_at_ms,
            ..self.scene()
        };
        let hopeless = scene.hopeless();
        let begun = Flush::begin(scene, trigger);
        for chain in hopeless {
            self.view.forget_candidate(chain);
        }
        let Some(mut flush) = begun else {
            return false;
        };
        flush.choose_models(&mut self.models, &self.basis.rules, hook.now_ms);
        self.flush = Some(flush);
        self.advance_flush(hook);
        true
    }

    pub(super) fn job_ended(&mut self, job: JobId, outcome: Outcome, hook: &mut Hook<'_>) {
        let is_ours = self
            .flush
            .as_mut()
            .is_some_and(|flush| flush.answer(job, outcome, &mut self.models, hook.now_ms));
        if is_ours {
            self.advance_flush(hook);
        }
    }

    /// Takes the flush as far as it goes without an answer.
    fn advance_flush(&mut self, hook: &mut Hook<'_>) {
        while let Some(flush) = &mut self.flush {
            while let Some((row, request)) = flush.next_request(&self.basis.rules) {
                flush.submitted(row, &request, hook.host.submit(&request));
            }
            let scene = flush.scene(&self.basis, &self.view);
            match flush.advance(scene, &mut self.models, hook) {
                Step::Asks => {}
                Step::Waits => return,
                Step::IsReady => {
                    if self.may_commit_at_once() {
                        self.commit(hook);
                    }
                    return;
                }
            }
        }
    }

    /// Whether a flush may be committed now: the host holds the next model call for it, or no model
    /// call has begun since the last hook.
    fn may_commit_at_once(&self) -> bool {
        let is_awaited = self.flush.as_ref().is_some_and(Flush::is_manual);
        let is_blocking = self.basis.rules.config.flush_mode == FlushMode::Blocking;
        is_awaited || is_blocking || self.is_at_boundary
    }

    /// Commits a flush that has waited for a boundary: here is one.
    pub(super) fn commit_if_ready(&mut self, hook: &mut Hook<'_>) {
        if self.flush.as_ref().is_some_and(Flush::is_ready) {
            self.commit(hook);
        }
    }

    /// Writes what the flush comes to, and applies what is in the log. If the log fails half-way,
    /// what it has got counts for nothing, here as after a load.
    fn commit(&mut self, hook: &mut Hook<'_>) {
        let Some(mut flush) = self.flush.take() else {
            return;
        };
        // No two flushes write under one number, not even if the log had failed for the first.
        self.last_flush = self.basis.facts.next_flush().max(self.last_flush + 1);
        let scene = flush.scene(&self.basis, &self.view);
        let Entries { facts, tally } = flush.entries(self.last_flush, scene, hook);
        for extent in flush.unworthy() {
            self.view.note_unworthy(*extent);
        }
        let (changes, written) = self.write_all(facts, hook);
        self.follow(&changes);
        let outcome = match written {
            Ok(()) => {
                self.write_oddities(hook.host);
                let compressed = flush.spans.iter().filter(|span| !SpanWork::is_merge(span));
                let count = u32::try_from(compressed.count()).unwrap_or(u32::MAX);
                let used = &mut self.models.unwritten;
                used.chains_compressed = used.chains_compressed.saturating_add(count);
                flush.report(&tally, &changes.blocks, &self.basis.rules, hook.host);
                tally.outcome
            }
            Err(err) => {
                hook.host.notify(&Notice::error(format!(
                    "pruner: the session log cannot be written ({err}); nothing was pruned, and \
                     the next flush tries again"
                )));
                FlushOutcome::Error
            }
        };
        if flush.has_used() {
            self.write_stats(hook.host);
        }
        let metrics = flush.metrics(outcome, self.gauges(), hook.now_ms);
        // A log that cannot be written has been reported by now.
        let _ = hook.host.append(entry::METRICS, &entry::write(&metrics));
    }

    /// Appends entries, then applies those that are in the log.
    fn write_all(
        &mut self,
        facts: Vec<Fact>,
        hook: &mut Hook<'_>,
    ) -> (Changes, Result<(), HostError>) {
        let mut written = Vec::with_capacity(facts.len());
        let mut outcome = Ok(());
        for fact in facts {
            match fact.append(hook.host) {
                Ok(stamp) => written.push((stamp, fact)),
                Err(err) => {
                    outcome = Err(err);
                    break;
                }
            }
        }
        let mut changes = Changes::default();
        for (stamp, fact) in written {
            changes.extend(self.basis.facts.apply(stamp, fact));
        }
        (changes, outcome)
    }

    fn write_stats(&mut self, host: &mut dyn Host) {
        let stats = self.stats();
        match self.write(Fact::Stats(stats), host) {
            Ok(()) => self.models.unwritten = entry::Stats::default(),
            Err(err) => host.notify(&Notice::warning(format!(
                "pruner: statistics could not be written ({err}); the next flush writes them"
            ))),
        }
        host.cost(&Cost {
            input_tokens: stats.total_input_tokens,
            output_tokens: stats.total_output_tokens,
            total: stats.total_cost,
        });
    }

    /// Gives the flush in progress up; its batches wait for the next one.
    pub(super) fn abandon_flush(&mut self, host: &mut dyn Host) {
        self.give_up_flush();
        for job in std::mem::take(&mut self.orphaned_jobs) {
            host.cancel(job);
        }
        if self.models.unwritten != entry::Stats::default() {
            self.write_stats(host);
        }
    }

    /// The same where no host is at hand: its jobs are cancelled by the next hook.
    pub(super) fn give_up_flush(&mut self) {
        if let Some(flush) = self.flush.take() {
            self.orphaned_jobs.extend(flush.running());
        }
    }
}
