//! Originals, read back through the tool that the model has for it.

use decant_host::{Message, Session};
use serde_json::json;
use sha1::{Digest as _, Sha1};

/// One tool result of a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Occurrence {
    pub(super) call_id: String,
    pub(super) at_ms: u64,
}

impl Occurrence {
    pub(super) fn of(result: &Message) -> Self {
        let id = result.as_json()["toolCallId"].as_str();
        Self {
            call_id: id.unwrap_or_default().to_string(),
            at_ms: result.at_ms(),
        }
    }

    /// The name that the tool takes for it.
    fn name(&self) -> String {
        format!("{}@{}", self.call_id, self.at_ms)
    }
}

/// Reads an original back, page by page, and compares it byte for byte. A text that stands inside
/// another message of the context, as the output of a protected tool does, is not lost either.
///
/// # Errors
///
/// What was to be found, and what was found.
pub(super) fn read_back(
    session: &mut Session,
    occurrence: &Occurrence,
    original: &Message,
    context: &[Message],
    now_ms: u64,
) -> Result<(), String> {
    let text = original.text();
    if text.is_empty() {
        return Ok(());
    }
    let found = pages(session, &occurrence.name(), &text, now_ms);
    if found
        .as_deref()
        .is_ok_and(|found| digest(found) == digest(&text))
    {
        return Ok(());
    }
    let is_protected = |message: &Message| {
        message.role() == "user"
            && message.text().contains("<protected-output")
            && message.text().contains(&text)
    };
    if context.iter().any(is_protected) {
        return Ok(());
    }
    let found = found.unwrap_or_else(|answer| answer);
    Err(format!(
        "the result of `{}` ({} bytes, sha1 {}) is not returned as it was: {}",
        occurrence.call_id,
        text.len(),
        digest(&text),
        super::short(&found)
    ))
}

fn digest(text: &str) -> String {
    let digest = Sha1::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text that the pages make, or the answer that is no page.
fn pages(session: &mut Session, name: &str, expected: &str, now_ms: u64) -> Result<String, String> {
    let mut text = String::new();
    let mut offset = Some(0);
    while let Some(from) = offset {
        let arguments = match from {
            0 => json!({"toolCallIds": [name]}),
            _ => json!({"toolCallIds": [name], "offset": from}),
        };
        let reply = session.answer("context_tree_query", &arguments.to_string(), now_ms);
        let page = body(&reply.text).ok_or_else(|| reply.text.clone())?;
        // A whole original has nothing behind it, though it may end as a page does.
        if from == 0 && page == expected {
            return Ok(page.to_string());
        }
        let (page, next) = without_note(page);
        text.push_str(page);
        offset = next.filter(|next| *next > from);
    }
    Ok(text)
}

/// What follows the head of an answer.
fn body(answer: &str) -> Option<&str> {
    let at = answer.find("\nStatus: ")?;
    let mut rest = answer[at + 1..].split_once("\nTurn: ")?.1;
    loop {
        let (_, behind) = rest.split_once('\n')?;
        if let Some(text) = behind.strip_prefix('\n') {
            return Some(text);
        }
        rest = behind;
    }
}

/// A page without the line that says which it is, and the offset of the next one.
fn without_note(page: &str) -> (&str, Option<u64>) {
    let Some(at) = page.rfind("\n\n[context_tree_query: lines ") else {
        return (page, None);
    };
    let next = page[at..].rsplit_once("the same call with offset ");
    let digits = next.map(|(_, rest)| {
        rest.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
    });
    (&page[..at], digits.and_then(|digits| digits.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_answer_is_found() {
        let head = "## toolRef: t1\nTool: ls\nArgs: {\n  \"a\": 1\n}\nStatus: OK\nTurn: 3\n";
        let rows = [
            (format!("{head}\na\nb\n"), Some("a\nb\n")),
            (format!("{head}Note: 1 image\n\n\na"), Some("\na")),
            (format!("{head}\n"), Some("")),
            ("## toolRef: t9\n(not found)".to_string(), None),
        ];
        for (answer, text) in rows {
            assert_eq!(body(&answer), text, "{answer}");
        }
        let note =
            "[context_tree_query: lines 1-2 of 9. More: the same call with offset 2, or a pattern]";
        assert_eq!(
            without_note(&format!("a\nb\n\n\n{note}")),
            ("a\nb\n", Some(2))
        );
        let note = "[context_tree_query: lines 3-9 of 9. This is the end]";
        assert_eq!(without_note(&format!("c\n\n{note}")), ("c", None));
        assert_eq!(without_note("c"), ("c", None));
    }
}
