//! Labels such as `[[2:read]]`: how a summarizer says which call it speaks of.

use std::borrow::Cow;

/// Longer names are no labels, in bytes.
const MAX_NAME: usize = 80;

/// The label of a call, counted from 1 in its batch.
#[must_use]
pub fn label(number: usize, tool: &str) -> String {
    format!("[[{number}:{}]]", name(tool))
}

/// A tool's name as it stands in a label: nothing in it can end the label, and it has a letter.
fn name(tool: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "_-./:".contains(c);
    let name: String = tool
        .chars()
        .take(MAX_NAME)
        .map(|c| if is_kept(c) { c } else { '_' })
        .collect();
    if is_name(&name) {
        name
    } else {
        "tool".to_owned()
    }
}

/// Two numbers with a colon in brackets are a slice in some languages, not a label.
fn is_name(text: &str) -> bool {
    let is_possible = |c: char| !c.is_whitespace() && !"[]".contains(c);
    text.len() <= MAX_NAME
        && text.chars().all(is_possible)
        && text.contains(|c: char| c.is_alphabetic() || c == '_')
}

/// A label in a text, or what looks like one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// The text before it, back to the label before.
    pub before: &'a str,
    /// The whole label.
    pub label: &'a str,
    /// The text behind it, to the end.
    pub behind: &'a str,
}

impl Found<'_> {
    /// Whether it is the label of this call.
    #[must_use]
    pub fn is_of(&self, number: usize, tool: &str) -> bool {
        self.label == label(number, tool)
    }

    /// The number in it; 0 if it is out of all range.
    #[must_use]
    pub fn number(&self) -> usize {
        let digits = self.label.trim_start_matches('[').split(':').next();
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}

/// Finds the first label in a text.
#[must_use]
pub fn find(text: &str) -> Option<Found<'_>> {
    text.match_indices('[').find_map(|(at, _)| {
        let (before, from) = text.split_at_checked(at)?;
        let inside = from.strip_prefix("[[")?;
        let name_on = inside.trim_start_matches(|c: char| c.is_ascii_digit());
        let n_digits = inside.len().saturating_sub(name_on.len());
        let name_on = name_on.strip_prefix(':').filter(|_| n_digits > 0)?;
        // No label is longer, so a search for its end need not go further.
        let reach = name_on.floor_char_boundary(MAX_NAME.saturating_add(2));
        let (name, _) = name_on.get(..reach)?.split_once("]]")?;
        let len = n_digits.saturating_add(name.len()).saturating_add(5);
        let (label, behind) = from.split_at_checked(len)?;
        is_name(name).then_some(Found {
            before,
            label,
            behind,
        })
    })
}

/// Puts a blank into everything that looks like a label, so that nothing does.
#[must_use]
pub fn disarm(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(found) = find(rest) {
        out.push_str(found.before);
        out.push_str("[ ");
        rest = rest
            .get(found.before.len().saturating_add(1)..)
            .unwrap_or_default();
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_found_again() {
        for tool in ["bash", "mcp__x__y", "a b", "[[1:x]]", "é", "", "7", "a:b"] {
            let text = format!("- {} ran", label(12, tool));
            let found = find(&text).unwrap();
            assert!(found.is_of(12, tool), "{tool}");
            assert_eq!(
                (found.before, found.number(), found.behind),
                ("- ", 12, " ran")
            );
        }
    }

    #[test]
    fn other_brackets_are_no_labels() {
        let rows = [
            "",
            "[[",
            "[[1:bash",
            "[[1]]",
            "[[:bash]]",
            "[[ -f x ]]",
            "a[[1:3]]",
            "[[1:two words]]",
            "[1:bash]",
            "[[1: ]]",
        ];
        for text in rows {
            assert_eq!(find(text), None, "{text}");
        }
    }

    #[test]
    fn look_alikes_are_disarmed() {
        let rows = [
            ("[[2:read]] x", "[ [2:read]] x"),
            ("[[[2:read]]]", "[[ [2:read]]]"),
            (
                "a [[1:x]][[99999999999999999999:y]]",
                "a [ [1:x]][ [99999999999999999999:y]]",
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(disarm(text), expected);
            assert_eq!(find(expected), None);
        }
    }

    #[test]
    fn many_brackets_take_linear_time() {
        let text = "[[1:".repeat(200_000);
        assert_eq!(disarm(&text), text);
        let text = "[[1:a]]".repeat(50_000);
        assert_eq!(disarm(&text).len(), text.len() + 50_000);
    }
}
