//! The scripted summarizer.

use decant_host::{
    Failure, FailureKind, JobKind, JobUsage, ModelChoice, Outcome, Request, Summary,
};

use super::file::{Fail, Rule, RuleKind, RuleModel, RuleUsage};

/// Answers requests by the rules of a scenario.
#[derive(Clone, Debug)]
pub(super) struct Summarizer {
    rules: Vec<Rule>,
}

/// What becomes of a request.
#[derive(Clone, Debug)]
pub(super) struct Response {
    /// `None`: the request waits for ever.
    pub(super) outcome: Option<Outcome>,
    /// How long it took, in milliseconds.
    pub(super) took_ms: u64,
    /// After how many further steps of the scenario it comes.
    pub(super) delay_steps: u32,
}

impl Summarizer {
    pub(super) fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    pub(super) fn respond(&mut self, request: &Request) -> Response {
        let rule = self.rules.iter_mut().find(|rule| rule.fits(request));
        let Some(rule) = rule else {
            let text = default_answer(request);
            return Response::at_once(answered(text, false, None));
        };
        if let Some(times) = &mut rule.times {
            *times -= 1;
        }
        let usage = rule.usage.map(JobUsage::from);
        let delay_steps = rule.delay_steps;
        let text = || rule.text.clone().unwrap_or_else(|| default_answer(request));
        let response = match rule.fail {
            None => Response::at_once(answered(text(), false, usage)),
            Some(Fail::Empty) => Response::at_once(answered(String::new(), false, usage)),
            Some(Fail::Truncated) => Response::at_once(answered(text(), true, usage)),
            Some(Fail::Error) => Response::at_once(failed(FailureKind::Transient, "error", usage)),
            Some(Fail::Permanent) => {
                Response::at_once(failed(FailureKind::Permanent, "permanent error", usage))
            }
            Some(Fail::Abort) => Response::at_once(failed(FailureKind::Aborted, "aborted", usage)),
            Some(Fail::Timeout) => Response::after_limits(request, usage),
        };
        Response {
            delay_steps,
            ..response
        }
    }
}

impl Response {
    fn at_once(outcome: Outcome) -> Self {
        Self {
            outcome: Some(outcome),
            took_ms: 0,
            delay_steps: 0,
        }
    }

    /// Nothing arrives at all, so the first limit that is set ends the request.
    fn after_limits(request: &Request, usage: Option<JobUsage>) -> Self {
        let limits = [request.idle_timeout_ms, request.total_timeout_ms];
        let first = limits.into_iter().filter(|limit| *limit > 0).min();
        Self {
            outcome: first.map(|_| failed(FailureKind::Timeout, "timeout", usage)),
            took_ms: first.map_or(0, u64::from),
            delay_steps: 0,
        }
    }
}

impl Rule {
    fn fits(&self, request: &Request) -> bool {
        let kind = match request.kind {
            JobKind::Batch => RuleKind::Batch,
            JobKind::Range => RuleKind::Range,
        };
        let model = match request.model {
            ModelChoice::Configured => RuleModel::Configured,
            ModelChoice::Session => RuleModel::Session,
        };
        self.kind == kind
            && self.model.is_none_or(|wanted| wanted == model)
            && self.times != Some(0)
            && request.prompt.contains(&self.matching)
    }
}

impl From<RuleUsage> for JobUsage {
    fn from(usage: RuleUsage) -> Self {
        Self {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cost: usage.cost,
        }
    }
}

fn answered(text: String, truncated: bool, usage: Option<JobUsage>) -> Outcome {
    Outcome::Answered(Summary {
        text,
        truncated,
        usage,
    })
}

fn failed(kind: FailureKind, message: &str, usage: Option<JobUsage>) -> Outcome {
    Outcome::Failed(Failure {
        kind,
        message: message.to_owned(),
        usage,
    })
}

/// The answer that no rule gives: `- summary of N calls` for N tool calls.
fn default_answer(request: &Request) -> String {
    match request.kind {
        JobKind::Range => "- fused summary".to_owned(),
        JobKind::Batch => format!("- summary of {} calls", calls_in(&request.prompt)),
    }
}

/// How many tool calls a prompt of the pruner shows: each begins a line with its label, and nothing
/// else can.
fn calls_in(prompt: &str) -> usize {
    let is_label = |line: &&str| {
        let number = line.strip_prefix("[[");
        number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
    };
    prompt.lines().filter(is_label).count()
}
