//! Entries of the log without the texts of results, which the pruner does not need at a load.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memmem};

/// Within a JSON string a quote is escaped, so that these bytes can only be a member's key.
const TEXT: &[u8] = br#""resultText":""#;

/// The kinds of entries that hold texts, and the member that a call needs to do without.
const HASHES: [(&str, &[u8]); 2] = [
    ("context-prune-index", br#""contentHash":""#),
    ("context-prune-dedup-alias", br#""rawHash":""#),
];

/// An entry's data without the texts of its results. It is the data as it is if the pruner needs
/// them to make their hashes, or if it is in doubt.
#[must_use]
pub fn lean<'a>(kind: &str, data: &'a str) -> Cow<'a, str> {
    let Some((_, hash)) = HASHES.iter().find(|(known, _)| *known == kind) else {
        return Cow::Borrowed(data);
    };
    let Some(texts) = texts(data.as_bytes()) else {
        return Cow::Borrowed(data);
    };
    if texts.is_empty() {
        return Cow::Borrowed(data);
    }
    let n_texts = texts.len();
    let left_out: usize = texts.iter().map(ExactSizeIterator::len).sum();
    let mut lean = String::with_capacity(data.len() - left_out);
    let mut from = 0;
    for text in texts {
        lean.push_str(&data[from..text.start]);
        from = text.end;
    }
    lean.push_str(&data[from..]);
    // No key stands within a text.
    if n_texts > members(lean.as_bytes(), hash).count() {
        return Cow::Borrowed(data);
    }
    Cow::Owned(lean)
}

/// Where the texts of results stand that are not empty; `None` if one has no end.
fn texts(data: &[u8]) -> Option<Vec<Range<usize>>> {
    let mut texts = Vec::new();
    let mut from = 0;
    while let Some(start) = members(&data[from..], TEXT).next() {
        let start = from + start;
        let end = start + string_len(&data[start..])?;
        if end > start {
            texts.push(start..end);
        }
        from = end;
    }
    Some(texts)
}

/// Where the values of these members begin, behind their quote.
fn members<'a>(data: &'a [u8], key: &'static [u8]) -> impl Iterator<Item = usize> + 'a {
    memmem::find_iter(data, key)
        // A key that ends with an escaped quote and this name is another key.
        .filter(|at| !data[..*at].ends_with(b"\\"))
        .map(|at| at + key.len())
}

/// The length of a string, up to the quote that ends it.
fn string_len(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let quote = from + memchr(b'"', &text[from..])?;
        let before = text[from..quote].iter().rev();
        let is_escaped = before.take_while(|byte| **byte == b'\\').count() % 2 == 1;
        if !is_escaped {
            return Some(quote);
        }
        from = quote + 1;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn stripped(data: &Value) -> Value {
        let lean = lean("context-prune-index", &data.to_string()).into_owned();
        serde_json::from_str(&lean).expect("it is JSON still")
    }

    #[test]
    fn texts_go_whatever_is_in_them() {
        for text in [
            "plain",
            r#"a "quoted" word"#,
            r"ends with a backslash \",
            r"with two \\",
            r#"\"#,
            r#"\\" and \""#,
            r#"","contentHash":"x","resultText":"y"#,
            "é🙂\u{0}\n",
        ] {
            let entry = |kept: &str| {
                let args = json!({ "command": text });
                let call = json!({ "resultText": kept, "args": args, "contentHash": "h" });
                json!({ "toolCalls": [call, call], "turnIndex": 1 })
            };
            assert_eq!(stripped(&entry(text)), entry(""), "{text}");
        }
    }

    #[test]
    fn a_result_without_a_hash_keeps_its_text() {
        let entry = json!({ "toolCalls": [
            { "resultText": "a", "contentHash": "h" },
            { "resultText": "b" },
        ] });
        assert_eq!(stripped(&entry), entry);
        let spilled = json!({ "toolCalls": [{ "resultText": "", "resultPreview": "head" }] });
        assert_eq!(stripped(&spilled), spilled);
    }

    #[test]
    fn other_keys_with_this_name_in_them_are_left_alone() {
        let entry = json!({ "toolCalls": [{
            "args": { "a\"resultText": "kept", "\\\"contentHash": "kept", "xresultText": "kept" },
            "contentHash": "h",
        }] });
        assert_eq!(stripped(&entry), entry);
    }

    #[test]
    fn arguments_with_such_a_key_leave_the_entry_whole() {
        let entry = json!({ "toolCalls": [{
            "args": { "resultText": "an argument" }, "resultText": "b", "contentHash": "h",
        }] });
        assert_eq!(stripped(&entry), entry);
    }

    #[test]
    fn damaged_data_and_other_kinds_stay_as_they_are() {
        for data in [
            r#"{"contentHash":"h","resultText":"no end"#,
            r#"{"contentHash":"h","resultText":"no end\""#,
            r#""resultText":"a""#,
            "",
        ] {
            assert_eq!(lean("context-prune-index", data), data);
        }
        let data = r#"{"contentHash":"h","resultText":"a"}"#;
        assert_eq!(lean("context-prune-chain", data), data);
        assert_eq!(lean("context-prune-dedup-alias", data), data);
        let alias = |text: &str| format!(r#"{{"own":{{"rawHash":"h","resultText":"{text}"}}}}"#);
        assert_eq!(lean("context-prune-dedup-alias", &alias("a")), alias(""));
    }
}
