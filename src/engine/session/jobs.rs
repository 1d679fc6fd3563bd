//! The summarizer: requests out, outcomes in, and which model is asked.

use super::flush::{Ask, Body, Fate, Flush, Row, Stage};
use super::{JobUsage, Session};
use crate::engine::entry;
use crate::engine::host::{FailureKind, Host, JobKind, ModelChoice, Notice, Outcome, Request};
use crate::engine::ids::JobId;
use crate::engine::size::utf16_len;
use crate::engine::summary;

/// How long the session's model serves before the configured one is tried again.
///
/// Source: design B12.
const PROBE_AFTER_MS: u64 = 600_000;

/// The value of `summarizerModel` that means the session's own model.
pub(super) const SESSION_MODEL: &str = "default";

/// What is known of the summarizer.
#[derive(Debug, Default)]
pub(super) struct Summarizer {
    pub(super) stats: entry::Stats,
    /// When the configured model failed last; `None` while it is well.
    failed_at_ms: Option<u64>,
}

impl Summarizer {
    fn count(&mut self, usage: Option<JobUsage>) {
        // Any of these may come from a damaged log or a careless host.
        let stats = &mut self.stats;
        stats.call_count = stats.call_count.saturating_add(1);
        if let Some(usage) = usage {
            let (input, output) = (usage.input_tokens, usage.output_tokens);
            stats.total_input_tokens = stats.total_input_tokens.saturating_add(input);
            stats.total_output_tokens = stats.total_output_tokens.saturating_add(output);
            stats.total_cost += usage.cost.unwrap_or(0.0);
        }
    }
}

impl Session {
    /// Which model the next request goes to. The configured one, once it has failed, is tried with
    /// one request every ten minutes.
    pub(super) fn choose_model(&mut self, now_ms: u64) -> ModelChoice {
        if self.config.summarizer_model == SESSION_MODEL {
            return ModelChoice::Session;
        }
        match self.summarizer.failed_at_ms {
            Some(failed) if now_ms < failed.saturating_add(PROBE_AFTER_MS) => ModelChoice::Session,
            Some(_) => {
                self.summarizer.failed_at_ms = Some(now_ms);
                ModelChoice::Configured
            }
            None => ModelChoice::Configured,
        }
    }

    /// Sends queued requests, as many as may run at a time.
    pub(super) fn pump(&mut self, host: &mut dyn Host) {
        let limit = self
            .config
            .summarizer_concurrency
            .map_or(usize::MAX, |limit| limit as usize);
        loop {
            let Some(flush) = &self.flush else {
                return;
            };
            let Some((row, model)) = flush.next_queued() else {
                return;
            };
            if flush.running().len() >= limit {
                return;
            }
            let Some(request) = self.request(row, model) else {
                return;
            };
            let ask = match host.submit(&request) {
                Ok(job) => Ask::Running {
                    job,
                    model,
                    chars: 0,
                },
                Err(err) => Ask::Failed(err.to_string()),
            };
            self.answer(row, ask);
        }
    }

    fn request(&self, row: Row, model: ModelChoice) -> Option<Request> {
        let prompt = self.flush.as_ref()?.prompt(row)?.to_owned();
        let (kind, index) = match row {
            Row::Batch(index) => (JobKind::Batch, index),
            Row::Span(index) => (JobKind::Range, index),
        };
        Some(Request {
            kind,
            index: u32::try_from(index).unwrap_or(u32::MAX),
            prompt,
            model,
            model_name: match model {
                ModelChoice::Configured => self.config.summarizer_model.clone(),
                ModelChoice::Session => String::new(),
            },
            thinking: self.config.summarizer_thinking.clone(),
            idle_timeout_ms: self.config.summarizer_idle_timeout_ms,
            total_timeout_ms: self.config.summarizer_max_timeout_ms,
        })
    }

    fn answer(&mut self, row: Row, answer: Ask) {
        if let Some(ask) = self.flush.as_mut().and_then(|flush| flush.ask_mut(row)) {
            *ask = answer;
        }
    }

    pub(super) fn job_ended(
        &mut self,
        job: JobId,
        outcome: Outcome,
        now_ms: u64,
        host: &mut dyn Host,
    ) {
        let Some((row, model)) = self.flush.as_ref().and_then(|flush| flush.row_of(job)) else {
            return;
        };
        if let Some(flush) = &mut self.flush {
            flush.requests += 1;
        }
        let ask = match (row, self.judge(outcome, model, now_ms)) {
            // A fused summary has no calls of its own: labels in it are wrong.
            (Row::Span(_), Ask::Answered(text)) => Ask::Answered(summary::label_refs(&text, &[])),
            (_, ask) => ask,
        };
        self.answer(row, ask);
        self.pump(host);
        self.advance_flush(now_ms, host);
    }

    /// Counts what a request used, and says what its outcome means.
    fn judge(&mut self, outcome: Outcome, model: ModelChoice, now_ms: u64) -> Ask {
        match outcome {
            Outcome::Answered {
                text,
                truncated,
                usage,
            } => {
                self.summarizer.count(usage);
                if model == ModelChoice::Configured {
                    self.summarizer.failed_at_ms = None;
                }
                match summary::check(&text, truncated) {
                    Ok(summary) => Ask::Answered(summary.to_owned()),
                    Err(unusable) => Ask::Failed(unusable.to_string()),
                }
            }
            Outcome::Failed {
                kind,
                message,
                usage,
            } => {
                if usage.is_some() {
                    self.summarizer.count(usage);
                }
                let is_passing = match kind {
                    FailureKind::Transient | FailureKind::Timeout => true,
                    FailureKind::Aborted | FailureKind::Permanent => false,
                };
                if is_passing && model == ModelChoice::Configured {
                    self.summarizer.failed_at_ms = Some(now_ms);
                    return Ask::Queued {
                        model: ModelChoice::Session,
                    };
                }
                Ask::Failed(message)
            }
        }
    }

    /// Takes the flush to its next stage when all requests of this one have ended.
    pub(super) fn advance_flush(&mut self, now_ms: u64, host: &mut dyn Host) {
        loop {
            let Some(flush) = &self.flush else {
                return;
            };
            if flush.unfinished_jobs() > 0 {
                return;
            }
            match flush.stage {
                Stage::Summarizing => {
                    self.judge_batches(host);
                    self.plan_spans(now_ms, host);
                    self.set_stage(Stage::Fusing);
                    self.pump(host);
                }
                Stage::Fusing => {
                    self.settle_bodies(host);
                    self.set_stage(Stage::Ready);
                }
                Stage::Ready => {
                    if self.may_commit_at_once() {
                        self.commit(now_ms, host);
                    }
                    return;
                }
            }
        }
    }

    fn set_stage(&mut self, stage: Stage) {
        if let Some(flush) = &mut self.flush {
            flush.stage = stage;
        }
    }

    /// Commits a flush that has waited for a boundary: here is one.
    pub(super) fn commit_if_ready(&mut self, now_ms: u64, host: &mut dyn Host) {
        let is_ready = |flush: &Flush| flush.stage == Stage::Ready;
        if self.flush.as_ref().is_some_and(is_ready) {
            self.commit(now_ms, host);
        }
    }

    /// Names the failures of a stage, once each.
    pub(super) fn report_failures(&self, failures: &[String], host: &mut dyn Host) {
        let mut named: Vec<&String> = Vec::new();
        for failure in failures {
            if !named.contains(&failure) {
                named.push(failure);
                host.notify(&Notice::error(format!(
                    "pruner: summarization failed: {failure}; nothing is lost, the next flush \
                     tries again"
                )));
            }
        }
    }

    /// A fused summary that failed leaves the summaries as they stand.
    fn settle_bodies(&mut self, host: &mut dyn Host) {
        let mut failures = Vec::new();
        let mut fused = 0;
        for span in self.flush.iter_mut().flat_map(|flush| &mut flush.spans) {
            if let Body::Fused { ask, fallback, .. } = &span.body {
                match ask {
                    Ask::Answered(text) if utf16_len(text) > utf16_len(fallback) => {
                        failures.push("the fused summary is longer than its parts".to_owned());
                        let text = fallback.clone();
                        span.body = if span.supersedes.is_empty() {
                            Body::Summaries(text)
                        } else {
                            // No summaries of the log make this text.
                            Body::Own {
                                text,
                                deterministic: false,
                            }
                        };
                    }
                    Ask::Answered(_) => fused += 1,
                    Ask::Failed(why) => {
                        failures.push(why.clone());
                        let text = fallback.clone();
                        span.body = if span.supersedes.is_empty() {
                            Body::Summaries(text)
                        } else {
                            // No summaries of the log make this text.
                            Body::Own {
                                text,
                                deterministic: false,
                            }
                        };
                    }
                    Ask::Queued { .. } | Ask::Running { .. } => {}
                }
            }
        }
        let stats = &mut self.summarizer.stats;
        stats.ranges_summarized = stats.ranges_summarized.saturating_add(fused);
        for why in failures {
            host.notify(&Notice::warning(format!(
                "pruner: summaries could not be fused ({why}); the block has them one by one"
            )));
        }
    }

    /// Gives the flush in progress up; its batches wait for the next one.
    pub(super) fn abandon_flush(&mut self, host: &mut dyn Host) {
        self.give_up_flush();
        for job in std::mem::take(&mut self.orphaned_jobs) {
            host.cancel(job);
        }
    }

    /// The same where no host is at hand: its jobs are cancelled by the next hook.
    pub(super) fn give_up_flush(&mut self) {
        if let Some(flush) = self.flush.take() {
            self.orphaned_jobs.extend(flush.running());
            self.take_back_names(&flush);
        }
    }

    /// Takes back what a flush has named and not written.
    pub(super) fn take_back_names(&mut self, flush: &Flush) {
        self.archive.take_back(flush.last_name);
        self.blocks.last_id = flush.last_block;
    }

    /// Batches with an answer, oldest first.
    pub(super) fn answers(&self) -> Vec<(usize, String)> {
        let batches = self.flush.iter().flat_map(|flush| &flush.batches);
        batches
            .enumerate()
            .filter_map(|(index, batch)| match &batch.fate {
                Fate::Asked {
                    ask: Ask::Answered(text),
                    ..
                } => Some((index, text.clone())),
                Fate::Asked { .. } | Fate::Skipped(_) | Fate::Summarized { .. } => None,
            })
            .collect()
    }
}
