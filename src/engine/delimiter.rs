//! Keeps foreign text from closing or opening the elements that it is put into.
//!
//! A tag of such an element gets a backslash behind its `<`: `</compressed-chain>` becomes
//! `<\/compressed-chain>`. One that has backslashes there already gets one more. So whoever reads
//! such an element gets the original by taking one backslash from behind each `<` of a tag.
//!
//! A tag is `<`, its name in any letter case, and between them nothing but white space and one
//! slash.

use std::borrow::Cow;

/// The elements that hold text from elsewhere.
pub const ELEMENTS: [&str; 2] = ["compressed-chain", "protected-output"];

/// Disarms the tags of [`ELEMENTS`]. The result contains none of them.
#[must_use]
pub fn disarm(text: &str) -> Cow<'_, str> {
    disarm_tags(text, &ELEMENTS)
}

/// Undoes [`disarm`].
#[must_use]
pub fn rearm(text: &str) -> Cow<'_, str> {
    rearm_tags(text, &ELEMENTS)
}

/// Disarms the tags of the elements of these names (lower case, ASCII).
#[must_use]
pub fn disarm_tags<'a>(text: &'a str, names: &[&str]) -> Cow<'a, str> {
    rewrite(text, names, |inside| Some(("\\", inside)))
}

/// Undoes [`disarm_tags`] with the same names.
#[must_use]
pub fn rearm_tags<'a>(text: &'a str, names: &[&str]) -> Cow<'a, str> {
    rewrite(text, names, |inside| Some(("", inside.strip_prefix('\\')?)))
}

/// Lets `change` put something else between the `<` of each tag and what follows.
fn rewrite<'a>(
    text: &'a str,
    names: &[&str],
    change: impl Fn(&'a str) -> Option<(&'static str, &'a str)>,
) -> Cow<'a, str> {
    let mut changed = String::new();
    let mut done = text;
    for (_, inside) in text
        .match_indices('<')
        .filter_map(|(at, _)| split_behind(text, at))
    {
        if !is_tag(inside, names) {
            continue;
        }
        if let Some((inserted, rest)) = change(inside) {
            let before = done.len().saturating_sub(inside.len());
            changed.push_str(done.get(..before).unwrap_or_default());
            changed.push_str(inserted);
            done = rest;
        }
    }
    if done.len() == text.len() {
        return Cow::Borrowed(text);
    }
    changed.push_str(done);
    Cow::Owned(changed)
}

fn split_behind(text: &str, at: usize) -> Option<(&str, &str)> {
    text.split_at_checked(at.saturating_add(1))
}

/// Whether what stands behind a `<` makes it a tag, disarmed or not.
fn is_tag(inside: &str, names: &[&str]) -> bool {
    let inside = inside.trim_start_matches('\\').trim_start();
    let inside = inside.strip_prefix('/').unwrap_or(inside).trim_start();
    names.iter().any(|name| {
        let found = inside.as_bytes().get(..name.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tags_get_a_backslash() {
        let rows = [
            (
                "a <compressed-chain id=\"b1\">",
                "a <\\compressed-chain id=\"b1\">",
            ),
            ("</compressed-chain>", "<\\/compressed-chain>"),
            ("</ Protected-OUTPUT >", "<\\/ Protected-OUTPUT >"),
            ("<\n\tprotected-output", "<\\\n\tprotected-output"),
            ("< / protected-output", "<\\ / protected-output"),
            ("<\\/compressed-chain>", "<\\\\/compressed-chain>"),
            (
                "<<compressed-chain>é</compressed-chain>",
                "<<\\compressed-chain>é<\\/compressed-chain>",
            ),
        ];
        for (text, disarmed) in rows {
            assert_eq!(disarm(text), disarmed, "{text}");
            assert_eq!(rearm(disarmed), text, "{disarmed}");
        }
    }

    #[test]
    fn other_text_is_not_copied() {
        let rows = [
            "",
            "<",
            "a < b",
            "compressed-chain>",
            "<div>",
            "<compressed chain>",
            "<//compressed-chain>",
            "< \\/compressed-chain>",
            "&lt;compressed-chain>",
            "<compressed-chai😀",
        ];
        for text in rows {
            assert!(
                matches!(disarm(text), Cow::Borrowed(same) if same == text),
                "{text}"
            );
            assert!(
                matches!(rearm(text), Cow::Borrowed(same) if same == text),
                "{text}"
            );
        }
    }

    #[test]
    fn a_live_tag_is_left_alone_when_undoing() {
        assert_eq!(
            rearm("<compressed-chain><\\protected-output"),
            "<compressed-chain><protected-output"
        );
    }

    #[test]
    fn other_names_can_be_disarmed() {
        let names = ["tool-call-batch"];
        let disarmed = disarm_tags("</tool-call-batch><compressed-chain>", &names);
        assert_eq!(disarmed, "<\\/tool-call-batch><compressed-chain>");
        assert_eq!(
            rearm_tags(&disarmed, &names),
            "</tool-call-batch><compressed-chain>"
        );
    }

    fn is_live(text: &str) -> bool {
        text.match_indices('<').any(|(at, _)| {
            let inside = &text[at + 1..];
            !inside.starts_with('\\') && is_tag(inside, &ELEMENTS)
        })
    }

    proptest! {
        #[test]
        fn undoing_gives_the_same_text(
            parts in prop::collection::vec(
                prop_oneof![
                    Just("<"), Just("\\"), Just("/"), Just(" "), Just("compressed-chain"),
                    Just("Protected-Output"), Just("é"), Just(">"), Just("\u{3000}"),
                ],
                0..20,
            ),
        ) {
            let text = parts.concat();
            let disarmed = disarm(&text);
            prop_assert!(!is_live(&disarmed));
            prop_assert_eq!(rearm(&disarmed), text.as_str());
        }

        #[test]
        fn undoing_gives_any_text(text in any::<String>()) {
            let disarmed = disarm(&text);
            prop_assert_eq!(rearm(&disarmed), text.as_str());
        }
    }
}
