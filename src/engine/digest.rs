//! By what a tool's output is known again.

use std::borrow::Cow;

use sha1::{Digest, Sha1};

/// A SHA-1 hash.
pub type Hash = [u8; 20];

/// Identity of a tool's output.
///
/// Two outputs with the same `normalized` differ in line ends and trailing blanks at most. They are
/// the same byte for byte if, and only if, `raw` is the same too.
///
/// Source: the seed document, "Content-hash dedup".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash {
    /// Of the tool's name, a NUL and the normalized text.
    pub normalized: Hash,
    /// Of the text as it is, unless that is its normal form.
    pub raw: Option<Hash>,
}

impl ContentHash {
    #[must_use]
    pub fn of(tool: &str, text: &str) -> Self {
        let normal = normalize(text);
        let normalized = Sha1::new()
            .chain_update(tool)
            .chain_update([0])
            .chain_update(normal.as_bytes());
        // Normalizing only ever takes away.
        let is_normal = normal.len() == text.len();
        Self {
            normalized: normalized.finalize().into(),
            raw: (!is_normal).then(|| Sha1::digest(text).into()),
        }
    }
}

/// The text with line ends of one kind, no blanks and tabs before them, and no white space around
/// it.
///
/// Source: the seed document, "Content-hash dedup"; which characters count is that of JavaScript's
/// `trim` and reference note 43.
#[must_use]
pub fn normalize(text: &str) -> Cow<'_, str> {
    let has_untidy_line = ["\r\n", " \n", "\t\n"]
        .into_iter()
        .any(|end| text.contains(end));
    if !has_untidy_line {
        return Cow::Borrowed(text.trim_matches(is_trimmed));
    }
    let mut tidy = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.strip_suffix('\n') {
            Some(line) => {
                let line = line.strip_suffix('\r').unwrap_or(line);
                tidy.push_str(line.trim_end_matches([' ', '\t']));
                tidy.push('\n');
            }
            None => tidy.push_str(line),
        }
    }
    let trimmed = tidy.trim_matches(is_trimmed);
    if trimmed.len() < tidy.len() {
        tidy = trimmed.to_owned();
    }
    Cow::Owned(tidy)
}

/// JavaScript's white space: Unicode's, with the byte order mark and without NEL.
fn is_trimmed(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

/// 40 lower-case hexadecimal digits.
#[must_use]
pub fn hex(hash: &Hash) -> String {
    hash.iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

/// Reads what [`hex`] writes, in any letter case.
#[must_use]
pub fn parse_hex(written: &str) -> Option<Hash> {
    if written.len() != 40 || !written.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut digits = written.chars().filter_map(|digit| digit.to_digit(16));
    let mut hash = Hash::default();
    for byte in &mut hash {
        *byte = u8::try_from(digits.next()? << 4 | digits.next()?).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn line_ends_and_trailing_blanks_do_not_matter() {
        let rows = [
            ("", ""),
            ("a", "a"),
            ("a\r\nb", "a\nb"),
            ("a \t\nb", "a\nb"),
            ("a \t\r\nb", "a\nb"),
            ("\n\n  a\n\n", "a"),
            ("a\n \t \nb", "a\n\nb"),
            (" \n\t\n", ""),
            ("\u{feff}a\u{a0}\u{2028}", "a"),
        ];
        for (text, normal) in rows {
            assert_eq!(normalize(text), normal, "{text:?}");
        }
    }

    #[test]
    fn everything_else_matters() {
        let rows = [
            "a  b",
            "a\tb",
            "A",
            "a\n  b",
            "a\u{a0}\nb",
            "a\u{c}\nb",
            "a\rb",
            "a\u{85}",
            "a\n\n\nb",
            "a\u{200b}",
        ];
        for text in rows {
            assert!(
                matches!(normalize(text), Cow::Borrowed(same) if same == text),
                "{text:?}"
            );
        }
        assert_eq!(normalize("a \rb\r\r\nc"), "a \rb\r\nc");
    }

    #[test]
    fn the_hash_is_that_of_the_seed() {
        let hash = ContentHash::of("bash", "hello");
        // printf 'bash\0hello' | sha1sum
        assert_eq!(
            hex(&hash.normalized),
            "2d2bb282d761497b2f7939be40b0f7c236c48bab"
        );
        assert_eq!(hash.raw, None);
        let loose = ContentHash::of("bash", "hello \n");
        assert_eq!(loose.normalized, hash.normalized);
        // printf 'hello \n' | sha1sum
        assert_eq!(
            loose.raw.map(|raw| hex(&raw)).as_deref(),
            Some("2beec0d1b3eeee6c25b1eacc1063338047d588e3")
        );
        assert_ne!(ContentHash::of("read", "hello").normalized, hash.normalized);
    }

    #[test]
    fn only_forty_digits_are_a_hash() {
        let long = "a".repeat(41);
        let astral = "😀".repeat(10);
        for written in ["", "ab", &long, &astral, &"+1".repeat(20), &" a".repeat(20)] {
            assert_eq!(parse_hex(written), None, "{written:?}");
        }
        assert_eq!(parse_hex(&"Af".repeat(20)), Some([0xaf; 20]));
    }

    proptest! {
        #[test]
        fn hashes_read_back(hash: Hash) {
            prop_assert_eq!(parse_hex(&hex(&hash)), Some(hash));
        }

        #[test]
        fn equal_hashes_mean_equal_bytes(a in "[a \r\n]{0,6}", b in "[a \r\n]{0,6}") {
            let (hash_a, hash_b) = (ContentHash::of("t", &a), ContentHash::of("t", &b));
            prop_assert_eq!(hash_a == hash_b, a == b);
            prop_assert_eq!(hash_a.normalized == hash_b.normalized, normalize(&a) == normalize(&b));
        }
    }
}
