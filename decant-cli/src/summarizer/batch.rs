//! The summary of a batch: a bullet per call, with what it was called with, how it ended, and the
//! lines of its output that matter.

use serde_json::Value;

use super::extract::{cut, inside, shown, telling};
use crate::price::utf16_len;

/// A summary has at most this part of the characters of its batch, as a divisor, so that with its
/// footer it stays below a tenth.
const PART: u64 = 11;

/// What a bullet may have at least, in characters: a small batch is not worth less.
const LEAST_PER_CALL: u64 = 120;

/// The most of what a call was called with, in characters.
const ARGUMENT_CHARS: usize = 80;

const BETWEEN: &str = " | ";

/// Arguments that say what a call is about, most telling first.
const MAIN_ARGUMENTS: [&str; 10] = [
    "command",
    "path",
    "file_path",
    "filePath",
    "pattern",
    "query",
    "url",
    "description",
    "prompt",
    "name",
];

/// One call, as the prompt shows it.
struct Call<'a> {
    /// With its brackets.
    label: &'a str,
    arguments: &'a str,
    status: &'a str,
    lines: Vec<&'a str>,
}

/// Summarizes the batch in a prompt. What does not look like one is summarized as plain text.
pub(super) fn summarize(prompt: &str) -> String {
    let body = inside(prompt, "tool-call-batch").unwrap_or(prompt);
    let budget = utf16_len(body) / PART;
    let calls = calls(body);
    if calls.is_empty() {
        let lines: Vec<&str> = body.lines().collect();
        let kept = telling(&lines, |_| 0, budget.max(LEAST_PER_CALL), 3);
        let kept: Vec<String> = kept
            .into_iter()
            .map(|line| format!("- {}", shown(line)))
            .collect();
        return match kept.is_empty() {
            true => "- nothing of note".to_string(),
            false => kept.join("\n"),
        };
    }
    let bullets: Vec<String> = calls
        .iter()
        .map(|call| call.bullet(share(call, &calls, budget)))
        .collect();
    bullets.join("\n")
}

/// A call's part of the budget: by the length of its output, and never too little for a bullet.
fn share(call: &Call<'_>, calls: &[Call<'_>], budget: u64) -> u64 {
    let chars = |call: &Call<'_>| {
        call.lines
            .iter()
            .map(|line| utf16_len(line) + 1)
            .sum::<u64>()
    };
    let all: u64 = calls.iter().map(chars).sum();
    let fair = budget * chars(call) / all.max(1);
    fair.max(LEAST_PER_CALL)
}

/// The calls of a batch. One begins with its label at the beginning of a line; labels count up
/// from 1, so that nothing in an output can pass for one.
fn calls(body: &str) -> Vec<Call<'_>> {
    let mut calls: Vec<Call<'_>> = Vec::new();
    for line in body.lines() {
        if let Some((label, arguments)) = label(line, calls.len() + 1) {
            calls.push(Call {
                label,
                arguments: arguments.trim(),
                status: "",
                lines: Vec::new(),
            });
        } else if let Some(call) = calls.last_mut() {
            match line {
                "OK:" | "ERROR:" if call.status.is_empty() => {
                    call.status = line.trim_end_matches(':');
                }
                _ => call.lines.push(line),
            }
        }
    }
    calls
}

fn label(line: &str, number: usize) -> Option<(&str, &str)> {
    let rest = line.strip_prefix(&format!("[[{number}:"))?;
    let end = line.len() - rest.len() + rest.find("]]")? + 2;
    Some(line.split_at(end))
}

impl Call<'_> {
    fn bullet(&self, budget: u64) -> String {
        let mut bullet = format!("- {}", self.label);
        let subject = subject(self.arguments);
        if !subject.is_empty() {
            bullet.push_str(&format!(" {subject}"));
        }
        bullet.push_str(if self.status == "ERROR" {
            ": ERROR"
        } else {
            ": ok"
        });
        let filled = self
            .lines
            .iter()
            .filter(|line| !line.trim().is_empty())
            .count();
        if filled > 1 {
            bullet.push_str(&format!(", {filled} lines"));
        }
        let left = budget.saturating_sub(utf16_len(&bullet));
        for line in self.telling(left) {
            bullet.push_str(BETWEEN);
            bullet.push_str(&shown(line));
        }
        bullet
    }

    fn telling(&self, budget: u64) -> Vec<&str> {
        let is_filled = |line: &&str| !line.trim().is_empty();
        let first = self.lines.iter().position(is_filled);
        let last = self.lines.iter().rposition(is_filled);
        let bonus = |index: usize| {
            let (is_first, is_last) = (Some(index) == first, Some(index) == last);
            u32::from(is_first) * 2 + u32::from(is_last) * 4
        };
        telling(&self.lines, bonus, budget, BETWEEN.len() as u64)
    }
}

/// What a call was called with, in one short line.
fn subject(arguments: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str(arguments) else {
        return cut(&one_line(arguments), ARGUMENT_CHARS);
    };
    let main = MAIN_ARGUMENTS
        .iter()
        .find_map(|key| fields.get(*key)?.as_str());
    let main = main.or_else(|| fields.values().find_map(Value::as_str));
    match main {
        Some(text) => format!(
            "`{}`",
            cut(&one_line(text).replace('`', "'"), ARGUMENT_CHARS)
        ),
        None if fields.is_empty() => String::new(),
        None => cut(&one_line(arguments), ARGUMENT_CHARS),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(body: &str) -> String {
        format!("Sum up, like [[1:bash]].\n\n<tool-call-batch>\n{body}</tool-call-batch>")
    }

    #[test]
    fn each_call_gets_a_bullet_with_its_label() {
        let body = "Agent: I look.\n[[1:bash]] {\"command\":\"cargo test\"}\nERROR:\nrunning 2 tests\n\
                    error: no space\n[[7:x]] no label\ntest result: FAILED. 1 passed\n\
                    [[2:read]] {\"path\":\"src/a.rs\",\"limit\":3}\nOK:\nfn main() {}\n\
                    [[3:now]] {}\nOK:\n";
        let expected = "- [[1:bash]] `cargo test`: ERROR, 4 lines | running 2 tests | error: no space | \
                        test result: FAILED. 1 passed\n\
                        - [[2:read]] `src/a.rs`: ok | fn main() {}\n\
                        - [[3:now]]: ok";
        assert_eq!(summarize(&prompt(body)), expected);
    }

    #[test]
    fn a_large_batch_shrinks_below_a_tenth() {
        let output: String = (0..2_000)
            .map(|n| format!("src/file{n}.rs:{n}: warning: unused\n"))
            .collect();
        let body = format!("[[1:bash]] {{\"command\":\"cargo check\"}}\nOK:\n{output}");
        let summary = summarize(&prompt(&body));
        assert!(utf16_len(&summary) * 10 < utf16_len(&body));
        assert!(
            utf16_len(&summary) * 15 > utf16_len(&body),
            "the budget is used"
        );
    }

    #[test]
    fn other_prompts_are_summarized_as_plain_text() {
        let rows = [
            ("error: disk full\n---\n", "- error: disk full"),
            ("", "- nothing of note"),
            ("<tool-call-batch>\n</tool-call-batch>", "- nothing of note"),
        ];
        for (prompt, summary) in rows {
            assert_eq!(summarize(prompt), summary, "{prompt}");
        }
    }
}
