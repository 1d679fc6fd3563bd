//! Lone surrogates in JSON: programs whose strings are UTF-16 cut texts in the middle of a pair.

use std::borrow::Cow;

/// Replaces each escape of a lone surrogate by one of U+FFFD: `serde_json` refuses the whole line
/// otherwise, and a line must never be lost.
///
/// Source: field report K02.
#[must_use]
pub fn repair_surrogates(json: &str) -> Cow<'_, str> {
    let mut repaired: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    let bytes = json.as_bytes();
    while let Some(offset) = bytes[at..].iter().position(|byte| *byte == b'\\') {
        let escape = at + offset;
        match unit_at(bytes, escape) {
            Some(0xD800..=0xDBFF)
                if matches!(unit_at(bytes, escape + 6), Some(0xDC00..=0xDFFF)) =>
            {
                at = escape + 12;
            }
            Some(0xD800..=0xDFFF) => {
                let out = repaired.get_or_insert_with(|| String::with_capacity(json.len()));
                out.push_str(&json[copied..escape]);
                out.push_str("\\ufffd");
                at = escape + 6;
                copied = at;
            }
            // The character after the backslash is part of the escape, also if it is a backslash.
            _ => at = (escape + 2).min(bytes.len()),
        }
    }
    match repaired {
        Some(mut out) => {
            out.push_str(&json[copied..]);
            Cow::Owned(out)
        }
        None => Cow::Borrowed(json),
    }
}

/// The code unit of a `\uXXXX` escape that begins at `at`.
fn unit_at(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_repaired_and_pairs_are_kept() {
        let rows = [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\uD83D\uDE00""#, r#""\uD83D\uDE00""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\ud83d\ude00x""#, r#""\ufffd\ud83d\ude00x""#),
            (r#""a\\ud83d""#, r#""a\\ud83d""#),
            (r#""a\\\ud83d é""#, r#""a\\\ufffd é""#),
            (r#""\u00e9\n""#, r#""\u00e9\n""#),
            (r#""cut \ud8"#, r#""cut \ud8"#),
            ("\"cut \\", "\"cut \\"),
        ];
        for (before, after) in rows {
            assert_eq!(repair_surrogates(before), after, "{before}");
        }
    }
}
