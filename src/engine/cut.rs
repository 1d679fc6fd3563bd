//! Cuts text to a length without cutting a character.

/// The longest beginning of at most so many bytes.
#[must_use]
pub fn head_bytes(text: &str, max_bytes: usize) -> &str {
    let end = text.floor_char_boundary(max_bytes);
    text.get(..end).unwrap_or_default()
}

/// The longest beginning of at most so many UTF-16 code units.
#[must_use]
pub fn head_chars(text: &str, max_utf16: u64) -> &str {
    let end = fitting_bytes(text.chars(), max_utf16);
    text.get(..end).unwrap_or_default()
}

/// The longest end of at most so many UTF-16 code units.
#[must_use]
pub fn tail_chars(text: &str, max_utf16: u64) -> &str {
    let len = fitting_bytes(text.chars().rev(), max_utf16);
    let start = text.len().saturating_sub(len);
    text.get(start..).unwrap_or_default()
}

/// How many bytes the first characters take that fit into so many UTF-16 code units.
fn fitting_bytes(chars: impl Iterator<Item = char>, max_utf16: u64) -> usize {
    let mut left = max_utf16;
    let mut bytes: usize = 0;
    for c in chars {
        let Some(after) = left.checked_sub(c.len_utf16() as u64) else {
            break;
        };
        left = after;
        bytes = bytes.saturating_add(c.len_utf8());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::size::utf16_len;

    #[test]
    fn bytes_end_before_a_character_that_does_not_fit() {
        let rows = [
            (0, ""),
            (1, "a"),
            (2, "a"),
            (3, "aé"),
            (4, "aé"),
            (6, "aé"),
            (7, "aé😀"),
            (8, "aé😀b"),
            (usize::MAX, "aé😀b"),
        ];
        for (max, head) in rows {
            assert_eq!(head_bytes("aé😀b", max), head, "{max}");
        }
    }

    #[test]
    fn chars_never_split_a_surrogate_pair() {
        let rows = [
            (0, "", ""),
            (1, "a", "b"),
            (2, "a", "b"),
            (3, "a😀", "😀b"),
            (4, "a😀b", "a😀b"),
            (u64::MAX, "a😀b", "a😀b"),
        ];
        for (max, head, tail) in rows {
            assert_eq!(head_chars("a😀b", max), head, "{max}");
            assert_eq!(tail_chars("a😀b", max), tail, "{max}");
        }
    }

    proptest! {
        #[test]
        fn cuts_are_as_long_as_they_can_be(text in any::<String>(), max in 0..40_u64) {
            let (head, tail) = (head_chars(&text, max), tail_chars(&text, max));
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            for cut in [head, tail] {
                let len = utf16_len(cut);
                prop_assert!(len <= max && (cut.len() == text.len() || len + 1 >= max));
            }
        }
    }
}
