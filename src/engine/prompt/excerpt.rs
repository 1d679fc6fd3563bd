//! As much of a long tool output as a summarizer needs.

use crate::engine::map::Set;
use crate::engine::order::sort_by_key;
use std::borrow::Cow;

use super::super::cut;
use super::super::size::utf16_len;

/// Of the budget, the part for the beginning and the part for the end, in percent. What is left
/// goes to telling lines in between.
const HEAD_PERCENT: u64 = 25;
const TAIL_PERCENT: u64 = 35;

/// What a mark costs at most, with its line ends, in UTF-16 code units.
const MARK_CHARS: u64 = 40;

/// A telling line is shown whole up to this length, else around what tells, in UTF-16 code units.
const MAX_LINE_CHARS: u64 = 240;

/// The same as a part of the budget, in percent, so that a small budget holds one such line.
const LINE_PERCENT: u64 = 20;

/// Words that make a line telling, lower case, most telling first: a lower rank is kept first.
///
/// Source: design B9, field report E01.
const TELLING: [(u8, &str); 30] = [
    (0, "fatal"),
    (0, "panic"),
    (0, "segmentation fault"),
    (0, "out of memory"),
    (0, "no space left"),
    (0, "test result:"),
    (0, "traceback"),
    (1, "error"),
    (1, "exception"),
    (1, "failed"),
    (1, "failure"),
    (1, "exit code"),
    (1, "exit status"),
    (1, "exited with"),
    (1, " passed"),
    (1, "assertion"),
    (1, "aborted"),
    (1, "killed"),
    (2, "denied"),
    (2, "not found"),
    (2, "no such file"),
    (2, "cannot "),
    (2, "refused"),
    (2, "timed out"),
    (2, "undefined"),
    (2, "unexpected"),
    (2, "conflict"),
    (2, "✗"),
    (2, "fail"),
    (3, "warn"),
];

/// Cuts a text to `budget_utf16` UTF-16 code units: its beginning, its end and telling lines between.
///
/// Terminal escape sequences are dropped and runs of blank lines squeezed to one; a text that then
/// fits stays as it is. `[… N chars left out …]` stands on a line of its own where something is
/// missing. Takes time in proportion to the text.
#[must_use]
pub fn excerpt(text: &str, budget_utf16: u64) -> Cow<'_, str> {
    let clean = clean(text);
    if utf16_len(&clean) <= budget_utf16 {
        return clean;
    }
    Cow::Owned(cut_out(&clean, budget_utf16))
}

fn cut_out(text: &str, budget: u64) -> String {
    let share = |percent: u64| budget.saturating_mul(percent).checked_div(100).unwrap_or(0);
    let (head_chars, tail_chars) = (share(HEAD_PERCENT), share(TAIL_PERCENT));
    // One mark stands in any case.
    let left = share(100 - HEAD_PERCENT - TAIL_PERCENT).saturating_sub(MARK_CHARS);
    let middle = Middle {
        text,
        start: first_lines(cut::head_chars(text, head_chars)).len(),
        end: text
            .len()
            .saturating_sub(last_lines(cut::tail_chars(text, tail_chars)).len()),
        max_line_chars: share(LINE_PERCENT).min(MAX_LINE_CHARS),
    };
    let (telling, spare) = middle.telling(left);
    let spare = spare.checked_div(2).unwrap_or(0);
    let head = first_lines(cut::head_chars(text, head_chars.saturating_add(spare)));
    let tail = last_lines(cut::tail_chars(text, tail_chars.saturating_add(spare)));
    let tail_start = text.len().saturating_sub(tail.len());
    let mut out = head.to_owned();
    let mut at = head.len();
    for (start, end) in telling {
        let (start, end) = (start.max(at), end.min(tail_start));
        if start < end {
            push_gap(&mut out, text.get(at..start).unwrap_or_default());
            out.push_str(text.get(start..end).unwrap_or_default());
            at = end;
        }
    }
    push_gap(&mut out, text.get(at..tail_start).unwrap_or_default());
    out.push_str(tail);
    out
}

/// Cuts back to the end of the last whole line if that costs less than half.
fn first_lines(text: &str) -> &str {
    let end = text.rfind('\n').map_or(0, |at| at.saturating_add(1));
    if end.saturating_mul(2) < text.len() {
        return text;
    }
    text.get(..end).unwrap_or(text)
}

/// Cuts back to the beginning of the first whole line if that costs less than half.
fn last_lines(text: &str) -> &str {
    match text.split_once('\n') {
        Some((part, lines)) if part.len() < lines.len() => lines,
        _ => text,
    }
}

fn push_gap(out: &mut String, gap: &str) {
    if gap.trim().is_empty() {
        out.push_str(gap);
        return;
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&format!("[… {} chars left out …]\n", utf16_len(gap)));
}

/// The part of a text between its beginning and its end, as a byte range.
struct Middle<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    max_line_chars: u64,
}

impl Middle<'_> {
    /// Byte ranges of telling lines worth `budget`, marks included, in order and apart; and what is
    /// left of the budget.
    ///
    /// Of lines that are the same the first is kept.
    fn telling(&self, budget: u64) -> (Vec<(usize, usize)>, u64) {
        let mut left = budget;
        let mut seen = Set::new();
        let mut kept = Set::new();
        for (_, at) in self.words() {
            let (start, end) = self.around(at);
            let shown = self.text.get(start..end).unwrap_or_default();
            let cost = utf16_len(shown).saturating_add(MARK_CHARS);
            if cost <= left && seen.insert(shown.trim()) {
                left = left.saturating_sub(cost);
                kept.insert((start, end));
            }
            if left <= MARK_CHARS {
                break;
            }
        }
        (apart(kept), left)
    }

    /// Where telling words stand, with their ranks, the most telling and then the first of them first.
    fn words(&self) -> Vec<(u8, usize)> {
        let lower = self
            .text
            .get(self.start..self.end)
            .unwrap_or_default()
            .to_ascii_lowercase();
        let mut words: Vec<(u8, usize)> = TELLING
            .iter()
            .flat_map(|&(rank, word)| {
                lower
                    .match_indices(word)
                    .map(move |(at, _)| (rank, self.start.saturating_add(at)))
            })
            .collect();
        sort_by_key(&mut words, |word| *word);
        words
    }

    /// The line around a place, end included, or a part of it if it is long: a quarter before the
    /// place, the rest behind.
    fn around(&self, at: usize) -> (usize, usize) {
        let max = self.max_line_chars;
        let before = self.text.get(self.start..at).unwrap_or_default();
        let behind = self.text.get(at..self.end).unwrap_or_default();
        let mut start = tail_in_line(cut::tail_chars(before, max));
        let end = head_in_line(cut::head_chars(behind, max));
        if utf16_len(start).saturating_add(utf16_len(end)) > max {
            start = cut::tail_chars(start, max.checked_div(4).unwrap_or(0));
        }
        let end = cut::head_chars(end, max.saturating_sub(utf16_len(start)));
        (at.saturating_sub(start.len()), at.saturating_add(end.len()))
    }
}

fn tail_in_line(text: &str) -> &str {
    text.rsplit_once('\n').map_or(text, |(_, line)| line)
}

/// Line end included.
fn head_in_line(text: &str) -> &str {
    text.split_inclusive('\n').next().unwrap_or_default()
}

/// Joins ranges that overlap.
fn apart(ranges: Set<(usize, usize)>) -> Vec<(usize, usize)> {
    let mut apart: Vec<(usize, usize)> = Vec::new();
    for (start, end) in ranges {
        match apart.last_mut() {
            Some((_, last_end)) if start <= *last_end => *last_end = end.max(*last_end),
            _ => apart.push((start, end)),
        }
    }
    apart
}

/// Drops terminal escape sequences and squeezes runs of blank lines.
fn clean(text: &str) -> Cow<'_, str> {
    match without_escapes(text) {
        Cow::Borrowed(text) => squeezed(text),
        Cow::Owned(text) => Cow::Owned(squeezed(&text).into_owned()),
    }
}

/// Drops what ECMA-48 introduces with ESC: control sequences (`ESC [`), strings such as window
/// titles and links (`ESC ]`, up to BEL or ESC `\`), and two-character sequences.
fn without_escapes(text: &str) -> Cow<'_, str> {
    const ESC: char = '\u{1b}';
    if !text.contains(ESC) {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split(ESC);
    let mut out = parts.next().unwrap_or_default().to_owned();
    let mut is_in_string = false;
    for part in parts {
        let rest = if let Some(behind) = part.strip_prefix('[') {
            behind
                .find(|c: char| !matches!(c, ' '..='?'))
                .and_then(|at| behind.get(at..))
                .map_or("", without_final)
        } else if let Some(behind) = part.strip_prefix(']') {
            is_in_string = !behind.contains('\u{7}');
            behind.split_once('\u{7}').map_or("", |(_, rest)| rest)
        } else if is_in_string {
            is_in_string = !part.starts_with('\\');
            part.strip_prefix('\\').unwrap_or_default()
        } else {
            without_final(part.trim_start_matches(|c: char| matches!(c, ' '..='/')))
        };
        out.push_str(rest);
    }
    Cow::Owned(out)
}

/// Drops the byte that ends an escape sequence. Anything else did not belong to one.
fn without_final(text: &str) -> &str {
    text.strip_prefix(|c: char| matches!(c, '0'..='~'))
        .unwrap_or(text)
}

fn squeezed(text: &str) -> Cow<'_, str> {
    let is_blank = |line: &str| line.trim().is_empty();
    let mut is_after_blank = false;
    let has_runs = text.split_inclusive('\n').any(|line| {
        let is_run = is_after_blank && is_blank(line);
        is_after_blank = is_blank(line);
        is_run
    });
    if !has_runs {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    is_after_blank = false;
    for line in text.split_inclusive('\n') {
        if !(is_after_blank && is_blank(line)) {
            out.push_str(line);
        }
        is_after_blank = is_blank(line);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    fn log(n_lines: usize) -> String {
        (0..n_lines)
            .map(|number| format!("{number:05} compiling a crate of some name\n"))
            .collect()
    }

    #[test]
    fn a_text_that_fits_stays_as_it_is() {
        for text in ["", "a", "a\n\nb\n", "  indented\r\n"] {
            assert!(matches!(excerpt(text, 100), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn escapes_and_runs_of_blank_lines_are_dropped() {
        let rows = [
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}text", "text"),
            (
                "\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\ end",
                "link end",
            ),
            ("a\u{1b}(Bb\u{1b}=c", "abc"),
            ("[1;31m stays", "[1;31m stays"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("\u{1b}[é", "é"),
            ("a\n\n\n \n\nb", "a\n\nb"),
        ];
        for (text, expected) in rows {
            assert_eq!(excerpt(text, 100), expected, "{text:?}");
        }
    }

    #[test]
    fn a_fatal_line_is_kept_wherever_it_stands() {
        let line = "FATAL: disk full";
        let log = log(1_000);
        let middle = log.len() / 2;
        let places = [
            format!("{log}{line}"),
            format!("{line}\n{log}"),
            format!("{}\n{line}\n{}", &log[..middle], &log[middle..]),
            format!("{}{line}{}", "x".repeat(20_000), "é".repeat(20_000)),
            format!(
                "{log}{}{line}\n{}{log}",
                "error: one of many\n".repeat(500),
                "ERROR another\n".repeat(500)
            ),
        ];
        for text in places {
            for budget in [400, 4_000] {
                let short = excerpt(&text, budget);
                assert!(short.contains(line), "{short}");
                assert!(utf16_len(&short) <= budget, "{}", utf16_len(&short));
            }
        }
    }

    #[test]
    fn head_tail_and_telling_lines_stand_in_order() {
        let text = format!(
            "$ make\n{}cc: warning: unused x\n{}12 passed, 3 failed\n{}make: *** Error 2\n",
            log(50),
            log(50),
            log(50)
        );
        expect![[r#"
            $ make
            00000 compiling a crate of some name
            00001 compiling a crate of some name
            00002 compiling a crate of some name
            [… 1739 chars left out …]
            cc: warning: unused x
            [… 1850 chars left out …]
            12 passed, 3 failed
            [… 1702 chars left out …]
            00046 compiling a crate of some name
            00047 compiling a crate of some name
            00048 compiling a crate of some name
            00049 compiling a crate of some name
            make: *** Error 2
        "#]]
        .assert_eq(&excerpt(&text, 500));
    }

    proptest! {
        #[test]
        fn no_place_hides_a_fatal_line(line_no in 0_usize..200, budget in 400_u64..4_000) {
            let log = log(200);
            let mut lines: Vec<&str> = log.lines().collect();
            lines.insert(line_no, "FATAL: disk full");
            let text = lines.join("\n");
            prop_assert!(excerpt(&text, budget).contains("FATAL: disk full"));
        }

        #[test]
        fn an_excerpt_is_never_longer_than_its_budget(
            parts in prop::collection::vec(("([a-z😀é ]{0,30}(error|FATAL|warn|\u{1b}\\[)?\r?\n?){0,3}", 0_usize..60), 0..8),
            budget in 400_u64..3_000,
        ) {
            let text: String = parts.iter().map(|(part, times)| part.repeat(*times)).collect();
            let short = excerpt(&text, budget);
            prop_assert!(utf16_len(&short) <= budget);
        }
    }
}
