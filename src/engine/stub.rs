//! The short texts that stand where something was taken out of the context.

use super::ids::Ref;
use super::json::Json;

const STUB_START: &str = "[Summarized in pruner summary, ref `";
const STUB_END: &str = "`. Use context_tree_query to retrieve full output.]";
const SPILL_START: &str = "[Spilled: ";
const SPILL_PREVIEW: &str = " bytes). Head preview:";
const RECOVERED_START: &str = "[Recovered output put away again. Originals: ";
const PURGED_TAG: &str = "<purged-errored-args";
const CHAIN_TAG: &str = "<compressed-chain";

/// What stands in place of a summarized tool result.
///
/// Source: the seed document, "Stub-replace instead of delete".
#[must_use]
pub fn stub(reference: Ref) -> String {
    format!("{STUB_START}{reference}{STUB_END}")
}

/// The ref of a text that is nothing but the stub of a summarized result.
#[must_use]
pub fn ref_of_stub(text: &str) -> Option<Ref> {
    let reference = text.strip_prefix(STUB_START)?.strip_suffix(STUB_END)?;
    Ref::parse(reference)
}

/// What stands in place of a recovered output whose grace is over.
///
/// `refs` are the names it had recovered, in its order. Nothing is archived for it: the originals
/// are where they were.
#[must_use]
pub fn recovered_stub(refs: &[String]) -> String {
    let refs: Vec<String> = refs.iter().map(|name| format!("`{name}`")).collect();
    format!(
        "{RECOVERED_START}{}, with context_tree_query.]",
        refs.join(", ")
    )
}

/// What stands in place of a result that went into a blob of its own.
///
/// `location` is the host's words for where the blob is, `reference` a ref.
///
/// Source: the seed document, "Eager single-result spill".
#[must_use]
pub fn spill_stub(tool: &str, bytes: u64, preview: &str, location: &str, reference: Ref) -> String {
    format!(
        "{SPILL_START}{tool} ({bytes}{SPILL_PREVIEW}\n{preview}\n\
         Full output: {location}. Use context_tree_query({reference}) to retrieve.]"
    )
}

/// The arguments, a JSON text, that stand in place of those of a failed call.
///
/// `size` is the length of the purged arguments in UTF-16 code units.
///
/// Source: the seed document, "Error Purge".
#[must_use]
pub fn purged_arguments(size: u64) -> String {
    format!(r#"{{"_purged":"{PURGED_TAG} size=\"{size}\"/>"}}"#)
}

/// Whether arguments, a JSON text, are what [`purged_arguments`] writes: they are not purged again.
#[must_use]
pub fn are_purged(arguments: &str) -> bool {
    if !arguments.contains("_purged") {
        return false;
    }
    match Json::parse(arguments) {
        Ok(Json::Object(fields)) => {
            let marker = fields.get("_purged").and_then(Json::as_text);
            fields.len() == 1 && marker.is_some_and(|marker| marker.starts_with(PURGED_TAG))
        }
        _ => false,
    }
}

/// Finds one of our markers in a text that the model wrote, and names it.
///
/// A model that copies a marker into a new call believes that it is content. JSON texts may spell
/// `<` as an escape.
///
/// Source: field report E09.
#[must_use]
pub fn quotes_marker(text: &str) -> Option<&'static str> {
    // What all of them begin with, and most texts are without.
    if !text.contains(['<', '[', '\\']) {
        return None;
    }
    let has_tag = |tag: &str| {
        let name = tag.trim_start_matches('<');
        text.contains(tag)
            || text.contains(&format!("\\u003c{name}"))
            || text.contains(&format!("\\u003C{name}"))
    };
    if has_tag(PURGED_TAG) {
        Some("purged arguments")
    } else if has_tag(CHAIN_TAG) {
        Some("compressed chain")
    } else if text.contains(STUB_START) {
        Some("stub")
    } else if text.contains(RECOVERED_START) {
        Some("stub of a recovered output")
    } else if text.contains(SPILL_START) && text.contains(SPILL_PREVIEW) {
        Some("spill stub")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_have_the_seeds_form() {
        assert_eq!(
            stub(Ref(7)),
            "[Summarized in pruner summary, ref `t7`. Use context_tree_query to retrieve full output.]"
        );
        assert_eq!(
            spill_stub("bash", 70_000, "line\nhalf", "/s/x-blobs/c1.txt", Ref(2)),
            "[Spilled: bash (70000 bytes). Head preview:\nline\nhalf\n\
             Full output: /s/x-blobs/c1.txt. Use context_tree_query(t2) to retrieve.]"
        );
        assert_eq!(
            purged_arguments(512),
            r#"{"_purged":"<purged-errored-args size=\"512\"/>"}"#
        );
    }

    #[test]
    fn stubs_and_markers_are_known_again() {
        assert_eq!(ref_of_stub(&stub(Ref(12))), Some(Ref(12)));
        assert_eq!(ref_of_stub(&format!("{} ", stub(Ref(12)))), None);
        for (arguments, expected) in [
            (purged_arguments(7).as_str(), true),
            (
                r#"{ "_purged" : "\u003cpurged-errored-args size=\"7\"/>" }"#,
                true,
            ),
            (r#"{"_purged":"yes"}"#, false),
            (r#"{"content":"<purged-errored-args"}"#, false),
            ("", false),
        ] {
            assert_eq!(are_purged(arguments), expected, "{arguments}");
        }
    }

    #[test]
    fn a_recovered_output_points_at_what_it_had_recovered() {
        assert_eq!(
            recovered_stub(&["t1".to_owned(), "call_9".to_owned()]),
            "[Recovered output put away again. Originals: `t1`, `call_9`, with context_tree_query.]"
        );
    }

    #[test]
    fn markers_are_recognized_in_arguments() {
        let in_json = |text: &str| serde_json::json!({ "content": text }).to_string();
        let rows = [
            (purged_arguments(9), Some("purged arguments")),
            (in_json(&purged_arguments(9)), Some("purged arguments")),
            (
                r#"{"a":"\u003cpurged-errored-args size"}"#.to_owned(),
                Some("purged arguments"),
            ),
            (
                in_json("<compressed-chain id=\"b1\" tools=\"t1\">"),
                Some("compressed chain"),
            ),
            (in_json(&stub(Ref(3))), Some("stub")),
            (
                in_json(&recovered_stub(&["t1".to_owned()])),
                Some("stub of a recovered output"),
            ),
            (
                in_json(&spill_stub("read", 1, "p", "f", Ref(1))),
                Some("spill stub"),
            ),
            (in_json("[Summarized in the minutes]"), None),
            (in_json("[Spilled: milk]"), None),
            (String::new(), None),
        ];
        for (text, expected) in rows {
            assert_eq!(quotes_marker(&text), expected, "{text}");
        }
    }
}
