//! Which model is asked, and what its answer means.

use super::Ask;
use crate::engine::basis::Rules;
use crate::engine::entry::Stats;
use crate::engine::host::{FailureKind, JobUsage, ModelChoice, Outcome};
use crate::engine::summary;

/// How long the session's model serves before the configured one is tried again.
///
/// Source: design B12.
const PROBE_AFTER_MS: u64 = 600_000;

/// The value of `summarizerModel` that means the session's own model.
const SESSION_MODEL: &str = "default";

/// What is known of the models that summarize.
#[derive(Debug, Default)]
pub struct Models {
    /// What they have used that is not in the log yet.
    pub unwritten: Stats,
    /// When the configured model failed last; `None` while it is well.
    failed_at_ms: Option<u64>,
}

impl Models {
    /// Which model the next request goes to. The configured one, once it has failed, is tried with
    /// one request every ten minutes.
    pub fn choose(&mut self, rules: &Rules, now_ms: u64) -> ModelChoice {
        if rules.config.summarizer_model == SESSION_MODEL {
            return ModelChoice::Session;
        }
        match self.failed_at_ms {
            Some(failed) if now_ms < failed.saturating_add(PROBE_AFTER_MS) => ModelChoice::Session,
            Some(_) => {
                self.failed_at_ms = Some(now_ms);
                ModelChoice::Configured
            }
            None => ModelChoice::Configured,
        }
    }

    /// Counts what a request used, and says what its outcome means.
    pub fn judge(&mut self, outcome: Outcome, model: ModelChoice, now_ms: u64) -> Ask {
        match outcome {
            Outcome::Answered {
                text,
                truncated,
                usage,
            } => {
                self.count(usage);
                if model == ModelChoice::Configured {
                    self.failed_at_ms = None;
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
                    self.count(usage);
                }
                let is_passing = match kind {
                    FailureKind::Transient | FailureKind::Timeout => true,
                    FailureKind::Aborted | FailureKind::Permanent => false,
                };
                if is_passing && model == ModelChoice::Configured {
                    self.failed_at_ms = Some(now_ms);
                    return Ask::Queued {
                        model: ModelChoice::Session,
                    };
                }
                Ask::Failed(message)
            }
        }
    }

    fn count(&mut self, usage: Option<JobUsage>) {
        let used = &mut self.unwritten;
        used.call_count = used.call_count.saturating_add(1);
        if let Some(usage) = usage {
            used.total_input_tokens = used.total_input_tokens.saturating_add(usage.input_tokens);
            used.total_output_tokens = used.total_output_tokens.saturating_add(usage.output_tokens);
            used.total_cost += usage.cost.unwrap_or(0.0);
        }
    }
}
