//! Requests out, answers in, and from stage to stage.

use super::{Ask, Body, Flush, Models, Row, Scene, Stage};
use crate::engine::basis::Rules;
use crate::engine::hook::Hook;
use crate::engine::host::{Host, HostError, JobKind, ModelChoice, Notice, Outcome, Request};
use crate::engine::ids::JobId;
use crate::engine::size::utf16_len;
use crate::engine::summary;

/// What a flush does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It waits for answers, or for its requests to be sent.
    Waits,
    /// It has new requests to send, perhaps none.
    Asks,
    /// It can be committed.
    IsReady,
}

impl Flush {
    /// Chooses a model for each request, in order.
    pub fn choose_models(&mut self, models: &mut Models, rules: &Rules, now_ms: u64) {
        for batch in &mut self.batches {
            let model = models.choose(rules, now_ms);
            if let super::Fate::Asked { ask, .. } = &mut batch.fate {
                *ask = Ask::Queued { model };
            }
        }
    }

    /// The next request to send, unless as many are running as may.
    #[must_use]
    pub fn next_request(&self, rules: &Rules) -> Option<(Row, Request)> {
        let config = &rules.config;
        let (row, model) = self.next_queued()?;
        let limit = config
            .summarizer_concurrency
            .map_or(usize::MAX, |limit| limit as usize);
        if self.running().len() >= limit {
            return None;
        }
        let (kind, index) = match row {
            Row::Batch(index) => (JobKind::Batch, index),
            Row::Span(index) => (JobKind::Range, index),
        };
        let request = Request {
            kind,
            index: u32::try_from(index).unwrap_or(u32::MAX),
            prompt: self.prompt(row)?.to_owned(),
            model,
            model_name: match model {
                ModelChoice::Configured => config.summarizer_model.clone(),
                ModelChoice::Session => String::new(),
            },
            thinking: config.summarizer_thinking.clone(),
            idle_timeout_ms: config.summarizer_idle_timeout_ms,
            total_timeout_ms: config.summarizer_max_timeout_ms,
        };
        Some((row, request))
    }

    /// A request has been sent, or could not be.
    pub fn submitted(&mut self, row: Row, request: &Request, job: Result<JobId, HostError>) {
        let answer = match job {
            Ok(job) => Ask::Running {
                job,
                model: request.model,
                chars: 0,
            },
            Err(err) => Ask::Failed(err.to_string()),
        };
        self.set(row, answer);
    }

    /// A job has ended. Says whether it was one of this flush.
    pub fn answer(
        &mut self,
        job: JobId,
        outcome: Outcome,
        models: &mut Models,
        now_ms: u64,
    ) -> bool {
        let Some((row, model)) = self.row_of(job) else {
            return false;
        };
        self.requests += 1;
        let ask = match (row, models.judge(outcome, model, now_ms)) {
            // A fused summary has no calls of its own: labels in it are wrong.
            (Row::Span(_), Ask::Answered(text)) => Ask::Answered(summary::label_refs(&text, &[])),
            (_, ask) => ask,
        };
        self.set(row, ask);
        true
    }

    fn set(&mut self, row: Row, answer: Ask) {
        if let Some(ask) = self.ask_mut(row) {
            *ask = answer;
        }
    }

    /// Goes to the next stage if all requests of this one have ended.
    pub fn advance(&mut self, scene: Scene<'_>, models: &mut Models, hook: &mut Hook<'_>) -> Step {
        if self.unfinished_jobs() > 0 {
            return Step::Waits;
        }
        match self.stage {
            Stage::Summarizing => {
                self.judge_batches(scene.basis, hook.host);
                self.plan_spans(scene, models, hook);
                self.stage = Stage::Fusing;
                Step::Asks
            }
            Stage::Fusing => {
                let fused = self.settle_bodies(hook.host);
                let used = &mut models.unwritten;
                used.ranges_summarized = used.ranges_summarized.saturating_add(fused);
                self.stage = Stage::Ready;
                Step::IsReady
            }
            Stage::Ready => Step::IsReady,
        }
    }

    /// A fused summary that failed, or is too long, leaves the summaries as they stand. Returns how
    /// many were fused.
    fn settle_bodies(&mut self, host: &mut dyn Host) -> u32 {
        let mut fused = 0;
        for span in &mut self.spans {
            let Body::Fused { ask, fallback, .. } = &span.body else {
                continue;
            };
            let why = match ask {
                Ask::Answered(text) if utf16_len(text) > utf16_len(fallback) => {
                    "the fused summary is longer than its parts".to_owned()
                }
                Ask::Failed(why) => why.clone(),
                Ask::Answered(_) => {
                    fused += 1;
                    continue;
                }
                Ask::Queued { .. } | Ask::Running { .. } => continue,
            };
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
            host.notify(&Notice::warning(format!(
                "pruner: summaries could not be fused ({why}); the block has them one by one"
            )));
        }
        fused
    }
}
