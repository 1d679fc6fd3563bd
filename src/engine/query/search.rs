//! The lines of an original that match a pattern.

use regex_lite::{Regex, RegexBuilder};

use super::super::size::utf16_len;
use super::page;
use crate::engine::cut;

/// Matching lines shown unless the model asks for another number.
const DEFAULT_HITS: u32 = 200;

/// The most that an answer holds, in UTF-16 code units.
const MAX_CHARS: u64 = page::MAX_CHARS;

/// Longer lines are shown around their first match only, in UTF-16 code units.
const MAX_LINE_CHARS: u64 = 500;

/// How much of a longer line stands before its first match, in UTF-16 code units.
const CHARS_BEFORE_MATCH: u64 = 100;

/// Longer patterns are refused, in bytes.
const MAX_PATTERN_BYTES: usize = 1_000;

/// Heap size in bytes of a compiled pattern. Searching takes time in proportion to it.
const MAX_COMPILED_BYTES: usize = 1 << 16;

/// Which of the matching lines to show, and with how much around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Lines before and after each matching one.
    pub context_lines: u32,
    /// Matching lines to leave out at the beginning.
    pub offset: u32,
    /// Matching lines to show, 200 by default, at least one.
    pub limit: Option<u32>,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hits {
    /// One line each: its number, `:` for a match or `-` for context, the line; `--` between groups.
    ///
    /// Numbers are those of the page lines, counted from 1. No line end at the end.
    pub text: String,
    /// Matching lines in `text`.
    pub shown: u32,
    /// Matching lines in all.
    pub total: u32,
    /// The offset to go on with, if there is more.
    pub next_offset: Option<u32>,
    /// Whether there were matches only after upper and lower case were taken as the same.
    pub is_case_ignored: bool,
}

/// Finds the lines that match a regular expression.
///
/// If none does, upper and lower case are taken as the same. A match lies within one line.
///
/// # Errors
/// The pattern cannot be used; the text says why, in words for the model.
pub fn search(text: &str, pattern: &str, scope: Scope) -> Result<Hits, String> {
    let exact = find(text, &compiled(pattern, Case::Matters)?, scope);
    if exact.total > 0 {
        return Ok(exact);
    }
    let loose = find(text, &compiled(pattern, Case::Ignored)?, scope);
    Ok(Hits {
        is_case_ignored: loose.total > 0,
        ..loose
    })
}

/// Says how many lines matched and how to get the rest.
#[must_use]
pub fn note(hits: &Hits, pattern: &str, scope: Scope) -> String {
    let case = if hits.is_case_ignored {
        ", upper or lower case"
    } else {
        ""
    };
    let total = hits.total;
    let found = match total {
        0 => format!("no line matches {pattern}"),
        1 => format!("1 line matches {pattern}{case}"),
        _ => format!("{total} lines match {pattern}{case}"),
    };
    let shown = match hits.next_offset {
        _ if total == 0 => String::new(),
        _ if hits.shown == 0 => format!(", none behind offset {}", scope.offset),
        None if scope.offset == 0 => String::new(),
        None => format!(", these are the last {}", hits.shown),
        Some(offset) => format!(
            ", these are {}-{offset}. More: the same call with offset {offset}",
            scope.offset.saturating_add(1)
        ),
    };
    format!("[context_tree_query: {found}{shown}]")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Matters,
    Ignored,
}

fn compiled(pattern: &str, case: Case) -> Result<Regex, String> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(format!(
            "the pattern is longer than {MAX_PATTERN_BYTES} bytes"
        ));
    }
    RegexBuilder::new(pattern)
        .case_insensitive(case == Case::Ignored)
        .size_limit(MAX_COMPILED_BYTES)
        .build()
        .map_err(|err| {
            format!(
                "the pattern {pattern} is no regular expression that can be used here: {err}. \
                 Escape . * + ? ( ) [ ] {{ }} | ^ $ with a backslash to search for them"
            )
        })
}

fn find(text: &str, regex: &Regex, scope: Scope) -> Hits {
    let mut printer = Printer::new(scope);
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        if line.len() as u64 <= page::MAX_CHARS {
            match regex.find(content) {
                Some(found) => printer.hit(content, found.start()),
                None => printer.other(content),
            }
        } else {
            overlong(line, content, regex, &mut printer);
        }
    }
    printer.finish()
}

/// Takes the pieces of an overlong line one by one; each counts as a match if one begins in it.
fn overlong<'a>(line: &'a str, content: &'a str, regex: &Regex, printer: &mut Printer<'a>) {
    let mut starts = regex.find_iter(content).map(|found| found.start());
    let mut next = starts.next();
    let mut piece_start = 0_usize;
    for piece in page::pieces(line) {
        let piece_end = piece_start.saturating_add(piece.len());
        let shown = piece.trim_end_matches(['\n', '\r']);
        match next {
            Some(start) if start < piece_end => {
                printer.hit(shown, start.saturating_sub(piece_start));
                next = starts.find(|&start| start >= piece_end);
            }
            _ => printer.other(shown),
        }
        piece_start = piece_end;
    }
}

/// Prints matching lines with what is around them while the lines go by.
struct Printer<'a> {
    scope: Scope,
    limit: u32,
    /// The last lines that were not printed, oldest first.
    before: std::collections::VecDeque<&'a str>,
    /// How many more lines to print after a match.
    after: u32,
    line_no: u32,
    last_printed: u32,
    is_full: bool,
    chars: u64,
    out: String,
    shown: u32,
    total: u32,
}

impl<'a> Printer<'a> {
    fn new(scope: Scope) -> Self {
        Self {
            scope,
            limit: scope.limit.unwrap_or(DEFAULT_HITS).max(1),
            before: std::collections::VecDeque::new(),
            after: 0,
            line_no: 0,
            last_printed: 0,
            is_full: false,
            chars: 0,
            out: String::new(),
            shown: 0,
            total: 0,
        }
    }

    fn hit(&mut self, line: &'a str, at: usize) {
        self.line_no = self.line_no.saturating_add(1);
        self.total = self.total.saturating_add(1);
        if self.total <= self.scope.offset {
            self.keep(line);
            return;
        }
        self.is_full |= self.shown >= self.limit || self.chars >= MAX_CHARS;
        if self.is_full {
            self.after = 0;
            return;
        }
        let n_before = u32::try_from(self.before.len()).unwrap_or(u32::MAX);
        let mut number = self.line_no.saturating_sub(n_before);
        for line in std::mem::take(&mut self.before) {
            self.print(number, '-', line, 0);
            number = number.saturating_add(1);
        }
        self.print(self.line_no, ':', line, at);
        self.shown = self.shown.saturating_add(1);
        self.after = self.scope.context_lines;
    }

    fn other(&mut self, line: &'a str) {
        self.line_no = self.line_no.saturating_add(1);
        if self.after > 0 {
            self.after = self.after.saturating_sub(1);
            self.print(self.line_no, '-', line, 0);
        } else if !self.is_full {
            self.keep(line);
        }
    }

    fn keep(&mut self, line: &'a str) {
        self.before.push_back(line);
        if self.before.len() as u64 > u64::from(self.scope.context_lines) {
            self.before.pop_front();
        }
    }

    fn print(&mut self, number: u32, mark: char, line: &str, at: usize) {
        let is_new_group = number > self.last_printed.saturating_add(1);
        if is_new_group && self.last_printed > 0 {
            self.out.push_str("--\n");
        }
        self.last_printed = number;
        let printed = format!("{number}{mark}{}\n", around(line, at));
        self.chars = self.chars.saturating_add(utf16_len(&printed));
        self.out.push_str(&printed);
    }

    fn finish(mut self) -> Hits {
        if self.out.ends_with('\n') {
            self.out.pop();
        }
        let next = self.scope.offset.saturating_add(self.shown);
        Hits {
            text: self.out,
            shown: self.shown,
            total: self.total,
            next_offset: (self.shown > 0 && next < self.total).then_some(next),
            is_case_ignored: false,
        }
    }
}

/// As much of a line as is shown, so that the byte `at` is.
fn around(line: &str, at: usize) -> String {
    if utf16_len(line) <= MAX_LINE_CHARS {
        return line.to_owned();
    }
    let (before, behind) = line.split_at_checked(at).unwrap_or(("", line));
    let start = cut::tail_chars(before, CHARS_BEFORE_MATCH);
    let end = cut::head_chars(behind, MAX_LINE_CHARS.saturating_sub(utf16_len(start)));
    let mark = |is_cut: bool| if is_cut { "…" } else { "" };
    format!(
        "{}{start}{end}{}",
        mark(start.len() < before.len()),
        mark(end.len() < behind.len())
    )
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const SCOPE: Scope = Scope {
        context_lines: 2,
        offset: 0,
        limit: None,
    };

    fn check(text: &str, pattern: &str, scope: Scope, expected: &Expect) {
        let hits = search(text, pattern, scope).unwrap();
        expected.assert_eq(&format!("{}\n{}\n", hits.text, note(&hits, pattern, scope)));
    }

    fn log() -> String {
        (1..=20)
            .map(|number| format!("line {number}\r\n"))
            .collect()
    }

    #[test]
    fn matches_stand_in_groups_with_context() {
        check(
            &log(),
            "line (3|5|12)$",
            SCOPE,
            &expect![[r#"
                1-line 1
                2-line 2
                3:line 3
                4-line 4
                5:line 5
                6-line 6
                7-line 7
                --
                10-line 10
                11-line 11
                12:line 12
                13-line 13
                14-line 14
                [context_tree_query: 3 lines match line (3|5|12)$]
            "#]],
        );
    }

    #[test]
    fn the_offset_goes_on_over_matches() {
        let scope = Scope {
            context_lines: 0,
            offset: 1,
            limit: Some(1),
        };
        check(
            &log(),
            "1",
            scope,
            &expect![[r#"
                10:line 10
                [context_tree_query: 11 lines match 1, these are 2-2. More: the same call with offset 2]
            "#]],
        );
        let scope = Scope {
            context_lines: 0,
            offset: 10,
            limit: None,
        };
        check(
            &log(),
            "1",
            scope,
            &expect![[r#"
                19:line 19
                [context_tree_query: 11 lines match 1, these are the last 1]
            "#]],
        );
    }

    #[test]
    fn case_is_ignored_only_if_nothing_matches_otherwise() {
        let text = "Error: a\nerror: b";
        let scope = Scope {
            context_lines: 0,
            ..SCOPE
        };
        check(
            text,
            "Error",
            scope,
            &expect![[r#"
                1:Error: a
                [context_tree_query: 1 line matches Error]
            "#]],
        );
        check(
            text,
            "ERROR",
            scope,
            &expect![[r#"
                1:Error: a
                2:error: b
                [context_tree_query: 2 lines match ERROR, upper or lower case]
            "#]],
        );
        check(
            text,
            "warn",
            scope,
            &expect![[r#"

                [context_tree_query: no line matches warn]
            "#]],
        );
    }

    #[test]
    fn long_lines_are_shown_around_the_match() {
        let text = format!("{}needle{}", "é".repeat(120_000), "😀".repeat(1_000));
        let hits = search(&text, "needle", SCOPE).unwrap();
        assert_eq!((hits.shown, hits.total), (1, 1));
        assert!(
            hits.text.contains("3:…"),
            "the third piece of the line: {}",
            hits.text
        );
        assert!(hits.text.contains("éneedle😀"));
        assert!(utf16_len(&hits.text) < 2_000);
    }

    #[test]
    fn each_piece_of_an_overlong_line_is_at_most_one_match() {
        let hits = search(&"ab".repeat(100_000), "a", SCOPE).unwrap();
        assert_eq!((hits.shown, hits.total), (4, 4));
    }

    #[test]
    fn answers_are_bounded() {
        let text = format!("{}\n", "x".repeat(400)).repeat(3_000);
        let scope = Scope {
            limit: Some(100_000),
            ..SCOPE
        };
        let hits = search(&text, "x", scope).unwrap();
        assert!(utf16_len(&hits.text) < MAX_CHARS + 3_000);
        assert_eq!(hits.next_offset, Some(hits.shown));
    }

    #[test]
    fn a_bad_pattern_is_named() {
        for pattern in ["a(", "[", "(?<=x)y", "(((a{900}){900}){900})"] {
            let err = search("a", pattern, SCOPE).unwrap_err();
            assert!(err.contains(pattern), "{err}");
        }
        assert!(search("a", &"x".repeat(5_000), SCOPE).is_err());
    }
}
