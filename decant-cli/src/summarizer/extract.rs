//! The lines that matter in a text.

use std::collections::BTreeSet;

use crate::price::utf16_len;

/// The most of one line, in characters.
const LINE_CHARS: usize = 140;

/// What a fused account may have of the characters of its summaries, as a divisor.
const FUSED_PART: u64 = 3;

/// A fused account of this many characters is never too long.
const FUSED_LEAST: u64 = 400;

/// Words that make a line worth keeping, lower case, with their weight.
const TELLING: [(&str, u32); 30] = [
    ("fatal", 9),
    ("panic", 9),
    ("traceback", 8),
    ("test result:", 8),
    ("error", 7),
    ("exception", 7),
    ("failed", 7),
    ("failure", 6),
    ("exit code", 6),
    ("exited with", 6),
    ("assert", 5),
    ("passed", 5),
    ("denied", 5),
    ("not found", 5),
    ("no such file", 5),
    ("cannot ", 5),
    ("timed out", 5),
    ("undefined", 4),
    ("unexpected", 4),
    ("conflict", 4),
    ("fail", 4),
    ("success", 4),
    ("warn", 3),
    ("total", 3),
    ("created", 3),
    ("changed", 3),
    ("deleted", 3),
    ("found", 2),
    ("todo", 2),
    ("return", 1),
];

/// How much a line tells. Rules, brackets and marks of things left out tell nothing.
pub(super) fn weight(line: &str) -> u32 {
    let letters = line.chars().filter(|c| c.is_alphanumeric()).count();
    if letters < 3 || line.contains("left out …]") {
        return 0;
    }
    let lower = line.to_lowercase();
    let told = TELLING.iter().filter(|(word, _)| lower.contains(word));
    let words = told.map(|(_, weight)| *weight).max().unwrap_or(0);
    let has_count = line.split_whitespace().any(|word| {
        let digits = word.trim_matches(|c: char| !c.is_ascii_digit());
        !digits.is_empty() && digits.len() == word.trim_end_matches([',', '.', ':', ';']).len()
    });
    1 + words + 2 * u32::from(has_path(line)) + 2 * u32::from(has_count)
}

fn has_path(line: &str) -> bool {
    let is_path = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '.');
        let names = word.split('/').filter(|name| !name.is_empty());
        word.contains('/') && !word.contains("//") && names.count() > 1
    };
    line.split_whitespace().any(is_path)
}

/// A line without white space around it, cut to what a summary may show of it.
pub(super) fn shown(line: &str) -> String {
    cut(line.trim(), LINE_CHARS)
}

/// The beginning of a text, with a mark if something is missing.
pub(super) fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        None => text.to_string(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// The most telling lines that fit, in their order. Each costs its length and `between`; of equal
/// ones the first is kept, and of equally telling ones the earlier is preferred.
pub(super) fn telling<'a>(
    lines: &[&'a str],
    bonus: impl Fn(usize) -> u32,
    budget: u64,
    between: u64,
) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    let mut ranked: Vec<(u32, usize)> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let weight = weight(line);
        if weight > 0 && seen.insert(line.trim()) {
            ranked.push((weight + bonus(index), index));
        }
    }
    ranked.sort_by_key(|(weight, index)| (std::cmp::Reverse(*weight), *index));
    let mut left = budget;
    let mut kept = BTreeSet::new();
    for (_, index) in ranked {
        let cost = utf16_len(&shown(lines[index])) + between;
        if cost <= left {
            left -= cost;
            kept.insert(index);
        }
    }
    kept.into_iter().map(|index| lines[index]).collect()
}

/// Fuses the summaries of a span: their most telling lines, a third of them at most.
pub(super) fn fuse(prompt: &str) -> String {
    let body = inside(prompt, "step-summaries").unwrap_or(prompt);
    let lines: Vec<&str> = body
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let budget = (utf16_len(body) / FUSED_PART).max(FUSED_LEAST);
    let kept = telling(&lines, |_| 0, budget, 1);
    let fused: Vec<String> = kept.into_iter().map(shown).collect();
    match fused.is_empty() {
        true => "- nothing of note".to_string(),
        false => fused.join("\n"),
    }
}

/// What stands between the first opening and the last closing tag of this name.
pub(super) fn inside<'a>(prompt: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = prompt.split_once(&format!("<{tag}>"))?;
    rest.rsplit_once(&format!("</{tag}>")).map(|(body, _)| body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_counts_and_paths_outweigh_the_rest() {
        let rows = [
            ("error[E0308]: mismatched types", "fn main() {"),
            ("test result: ok. 12 passed", "running tests"),
            ("src/engine/chain.rs changed", "something changed"),
            ("12 files", "files"),
            ("a word", "-----"),
            ("a word", "[… 120 chars left out …]"),
        ];
        for (more, less) in rows {
            assert!(weight(more) > weight(less), "{more} / {less}");
        }
    }

    #[test]
    fn fusing_keeps_what_tells_and_says_it_once() {
        let steps = "- `t1` ran\n- `t2` error: disk full\n- `t2` error: disk full\n".to_string()
            + &"- `t3` looked around\n".repeat(60);
        let fused = fuse(&format!(
            "Do it.\n<step-summaries>\n{steps}</step-summaries>"
        ));
        assert_eq!(
            fused,
            "- `t1` ran\n- `t2` error: disk full\n- `t3` looked around"
        );
        assert_eq!(
            fuse("<step-summaries>\n\n</step-summaries>"),
            "- nothing of note"
        );
    }
}
