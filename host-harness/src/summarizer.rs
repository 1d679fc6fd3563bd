//! Summarizers that need no network: what a replay answers the pruner's requests with.

mod batch;
mod extract;
mod filler;

use std::str::FromStr;

use crate::price::utf16_len;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// The summary of one batch of tool calls.
    Batch,
    /// One account of the summaries of a span.
    Range,
}

/// Writes summaries.
///
/// An answer depends on nothing but the task and the prompt, so that two replays agree.
pub trait Summarizer: Send + Sync {
    /// The summary that the prompt asks for; never empty.
    fn summarize(&self, task: Task, prompt: &str) -> String;
}

/// The summarizers that come with the harness.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Builtin {
    /// Takes the lines that matter out of the prompt.
    #[default]
    Extractive,
    /// Stands in for a model whose answer has this many times the characters of its prompt.
    Ratio(f64),
}

/// Why a summarizer's name cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no such summarizer: `{0}`; there are `extractive` and `ratio:R` with R above 0, such as `ratio:0.1`"
)]
pub struct UnknownSummarizer(String);

impl FromStr for Builtin {
    type Err = UnknownSummarizer;

    fn from_str(name: &str) -> Result<Self, UnknownSummarizer> {
        let unknown = || UnknownSummarizer(name.to_string());
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

impl Summarizer for Builtin {
    fn summarize(&self, task: Task, prompt: &str) -> String {
        match (self, task) {
            (Self::Ratio(ratio), _) => filler::text(scaled(utf16_len(prompt), *ratio)),
            (Self::Extractive, Task::Batch) => batch::summarize(prompt),
            (Self::Extractive, Task::Range) => extract::fuse(prompt),
        }
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
            let answer = Builtin::Ratio(ratio).summarize(Task::Batch, prompt);
            assert_eq!(utf16_len(&answer), chars, "{prompt}");
            assert_eq!(answer.trim(), answer);
        }
        let long = Builtin::Ratio(0.1).summarize(Task::Range, &"x".repeat(12_340));
        assert_eq!(long.len(), 1_234);
    }
}
