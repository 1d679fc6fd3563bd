//! Summarizers: what a replay answers the pruner's requests with.

mod batch;
mod extract;
mod filler;
mod model;

use std::str::FromStr;

use decant_host::{Outcome, Summary};

pub(crate) use model::{Model, ModelError};

use crate::price::utf16_len;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// The summary of one batch of tool calls.
    Batch,
    /// One account of the summaries of a span.
    Range,
}

/// Writes summaries.
pub(crate) trait Summarizer: Send + Sync {
    /// Answers a prompt, or says why it cannot. An answer without usage is counted by its text.
    fn summarize(&self, task: Task, prompt: &str) -> Outcome;
}

/// The summarizers that come with the harness and need no network. What they answer depends on nothing
/// but the task and the prompt, so that two replays agree.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Builtin {
    /// Takes the lines that matter out of the prompt.
    #[default]
    Extractive,
    /// Stands in for a model whose answer has this many times the characters of its prompt.
    Ratio(f64),
}

/// Any summarizer that has a name.
#[derive(Clone, Debug)]
pub(crate) enum Named {
    Builtin(Builtin),
    Model(Model),
}

/// Why a summarizer's name cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NameError {
    #[error(
        "no such summarizer: `{0}`; there are `extractive`, `ratio:R` with R above 0, such as \
         `ratio:0.1`, and models, such as `anthropic/claude-haiku-4-5`"
    )]
    Unknown(String),
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl FromStr for Named {
    type Err = NameError;

    /// Keys are read from the environment, so that they are in no shell history.
    fn from_str(name: &str) -> Result<Self, NameError> {
        if name.contains('/') {
            let model = Model::named(name, &|variable| std::env::var(variable).ok())?;
            return Ok(Self::Model(model));
        }
        name.parse().map(Self::Builtin)
    }
}

impl Summarizer for Named {
    fn summarize(&self, task: Task, prompt: &str) -> Outcome {
        match self {
            Self::Builtin(builtin) => builtin.summarize(task, prompt),
            Self::Model(model) => model.summarize(task, prompt),
        }
    }
}

impl FromStr for Builtin {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        let unknown = || NameError::Unknown(name.to_string());
        if name == "extractive" {
            return Ok(Self::Extractive);
        }
        let ratio = name.strip_prefix("ratio:").ok_or_else(unknown)?;
        let ratio: f64 = ratio.parse().map_err(|_| unknown())?;
        match ratio.is_finite() && ratio > 0.0 {
            true => Ok(Self::Ratio(ratio)),
            false => Err(unknown()),
        }
    }
}

impl Builtin {
    /// The summary that the prompt asks for; never empty.
    #[must_use]
    pub(crate) fn summary(&self, task: Task, prompt: &str) -> String {
        match (self, task) {
            (Self::Ratio(ratio), _) => filler::text(scaled(utf16_len(prompt), *ratio)),
            (Self::Extractive, Task::Batch) => batch::summarize(prompt),
            (Self::Extractive, Task::Range) => extract::fuse(prompt),
        }
    }
}

impl Summarizer for Builtin {
    fn summarize(&self, task: Task, prompt: &str) -> Outcome {
        Outcome::Answered(Summary {
            text: self.summary(task, prompt),
            truncated: false,
            usage: None,
        })
    }
}

/// A length times a ratio, rounded, at least 1.
fn scaled(chars: u64, ratio: f64) -> usize {
    ((chars as f64 * ratio).round() as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        let rows = [
            ("extractive", Some(Builtin::Extractive)),
            ("ratio:0.1", Some(Builtin::Ratio(0.1))),
            ("ratio:2", Some(Builtin::Ratio(2.0))),
            ("ratio:0", None),
            ("ratio:-1", None),
            ("ratio:NaN", None),
            ("ratio", None),
            ("gpt", None),
        ];
        for (name, expected) in rows {
            assert_eq!(name.parse::<Builtin>().ok(), expected, "{name}");
        }
    }

    #[test]
    fn a_ratio_is_kept_to_the_character() {
        for (prompt, ratio, chars) in [("abcdefghij", 0.1, 1), ("😀😀", 2.0, 8), ("abc", 0.1, 1)]
        {
            let answer = Builtin::Ratio(ratio).summary(Task::Batch, prompt);
            assert_eq!(utf16_len(&answer), chars, "{prompt}");
            assert_eq!(answer.trim(), answer);
        }
        let long = Builtin::Ratio(0.1).summary(Task::Range, &"x".repeat(12_340));
        assert_eq!(long.len(), 1_234);
    }
}
