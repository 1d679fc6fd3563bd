//! What differs between two texts, for people.

use std::fmt::Write;

/// Lines shown before the first difference, and from it on.
const BEFORE: usize = 12;
const SHOWN: usize = 14;

/// Shows both texts from a little before the first line in which they differ.
#[must_use]
pub(crate) fn describe(wanted: &str, got: &str) -> String {
    let lines = wanted.lines().zip(got.lines());
    let same = lines.take_while(|(wanted, got)| wanted == got).count();
    let from = same.saturating_sub(BEFORE);
    let mut text = format!("differs from line {}\n", same + 1);
    for line in wanted.lines().skip(from).take(same - from) {
        let _ = writeln!(text, "  {line}");
    }
    for line in wanted.lines().skip(same).take(SHOWN) {
        let _ = writeln!(text, "- {line}");
    }
    for line in got.lines().skip(same).take(SHOWN) {
        let _ = writeln!(text, "+ {line}");
    }
    text
}
