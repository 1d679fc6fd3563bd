//! What of a message crosses to the pruner: its text and arguments, of the rest only the size.

use std::collections::HashSet;

use serde_json::Value;

use crate::bindings::decant::pruner::messages as wit;
use crate::message::block_type;
use crate::{Message, Occurrence};

/// The custom kind whose details the pruner reads back: its own summaries.
const SUMMARY_KIND: &str = "context-prune-summary";

/// Converts a message to the contract's form.
#[must_use]
pub fn to_wit(message: &Message) -> wit::Message {
    let at = message.at_ms();
    let content = content(message);
    match message.role() {
        "user" => wit::Message::User(wit::UserMessage { content, at }),
        "assistant" => wit::Message::Assistant(wit::AssistantMessage {
            stop: stop_reason(message, &content),
            content,
            at,
        }),
        "toolResult" => tool_result(message, content),
        "custom" => wit::Message::Custom(wit::CustomMessage {
            kind: message.text_field("customType").to_owned(),
            content,
            details: details(message),
            at,
        }),
        role => wit::Message::Other(wit::OtherMessage {
            role: role.to_owned(),
            content,
            at,
        }),
    }
}

/// Shorter texts of results always cross: they may be stubs. In UTF-16 code units.
const LEAST_WITHHELD: u64 = 1_000;

/// The results whose text the log holds: at a load their texts need not cross.
#[derive(Debug, Default)]
pub(crate) struct Known(HashSet<(String, u64)>);

impl Known {
    pub(crate) fn new(occurrences: Vec<Occurrence>) -> Self {
        let dated = occurrences.into_iter();
        Self(dated.filter_map(|o| Some((o.call_id, o.at?))).collect())
    }

    pub(crate) fn forget(&mut self) {
        self.0 = HashSet::new();
    }

    /// As [`to_wit`], but without the text that the log holds. Of results that share a key the first
    /// is meant.
    pub(crate) fn wit_of(&mut self, message: &Message) -> wit::Message {
        if self.0.is_empty() || !message.is_tool_result() {
            return to_wit(message);
        }
        let key = (message.text_field("toolCallId").to_owned(), message.at_ms());
        let withheld = self.0.remove(&key).then(|| withheld(message)).flatten();
        withheld.map_or_else(|| to_wit(message), |content| tool_result(message, content))
    }
}

/// The content of a result with sizes in place of its texts; `None` if they are too short for that.
fn withheld(message: &Message) -> Option<Vec<wit::Part>> {
    let parts: Vec<wit::Part> = match message.as_json().get("content")? {
        Value::String(text) => vec![wit::Part::Withheld(text_size(text))],
        Value::Array(blocks) => blocks.iter().map(part_or_size).collect(),
        _ => return None,
    };
    let chars = parts.iter().map(|part| match part {
        wit::Part::Withheld(size) => u64::from(size.chars),
        _ => 0,
    });
    (chars.sum::<u64>() >= LEAST_WITHHELD).then_some(parts)
}

fn part_or_size(block: &Value) -> wit::Part {
    match block_type(block) {
        "text" => {
            let text = block.get("text").and_then(Value::as_str).unwrap_or("");
            wit::Part::Withheld(text_size(text))
        }
        _ => part(block),
    }
}

fn text_size(text: &str) -> wit::TextSize {
    let chars = utf16_len(text);
    // In ASCII a code unit is a byte.
    let ascii = match chars as usize == text.len() {
        true => chars,
        false => {
            let ascii = text.bytes().filter(u8::is_ascii).count();
            u32::try_from(ascii).unwrap_or(u32::MAX)
        }
    };
    wit::TextSize { chars, ascii }
}

/// About how much crosses with a message.
pub(crate) fn size_bytes(message: &wit::Message) -> usize {
    let content = match message {
        wit::Message::User(message) => &message.content,
        wit::Message::Assistant(message) => &message.content,
        wit::Message::ToolResult(message) => &message.content,
        wit::Message::Custom(message) => &message.content,
        wit::Message::Other(message) => &message.content,
    };
    let size = |part: &wit::Part| match part {
        wit::Part::Text(text) => text.len(),
        wit::Part::ToolCall(call) => call.arguments.len(),
        wit::Part::Thinking(_) | wit::Part::Opaque(_) | wit::Part::Withheld(_) => 0,
    };
    64 + content.iter().map(size).sum::<usize>()
}

fn tool_result(message: &Message, content: Vec<wit::Part>) -> wit::Message {
    wit::Message::ToolResult(wit::ToolResult {
        call_id: message.text_field("toolCallId").to_owned(),
        tool: message.text_field("toolName").to_owned(),
        content,
        is_error: message.as_json().get("isError") == Some(&Value::Bool(true)),
        at: message.at_ms(),
    })
}

fn content(message: &Message) -> Vec<wit::Part> {
    match message.as_json().get("content") {
        Some(Value::String(text)) => vec![wit::Part::Text(text.clone())],
        Some(Value::Array(blocks)) => blocks.iter().map(part).collect(),
        _ => outside_content(message).collect(),
    }
}

/// The text of the roles that keep it elsewhere, as far as the model gets it.
fn outside_content(message: &Message) -> impl Iterator<Item = wit::Part> {
    let hidden = message.as_json().get("excludeFromContext") == Some(&Value::Bool(true));
    let fields: &[&str] = match message.role() {
        "bashExecution" if !hidden => &["command", "output"],
        "branchSummary" | "compactionSummary" => &["summary"],
        _ => &[],
    };
    let texts = fields.iter().map(|field| message.text_field(field));
    texts.map(|text| wit::Part::Text(text.to_owned()))
}

fn part(block: &Value) -> wit::Part {
    let field = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or("");
    match block_type(block) {
        "text" => wit::Part::Text(field("text").to_owned()),
        // An encrypted state: the next request has to repeat it.
        "thinking" if field("thinking").trim().is_empty() => wit::Part::Opaque(wit::Opaque {
            kind: "reasoning".to_owned(),
            chars: utf16_len(field("thinkingSignature")),
        }),
        "thinking" => wit::Part::Thinking(
            utf16_len(field("thinking")).saturating_add(utf16_len(field("thinkingSignature"))),
        ),
        "toolCall" => wit::Part::ToolCall(wit::ToolCall {
            id: field("id").to_owned(),
            name: field("name").to_owned(),
            arguments: block
                .get("arguments")
                .map(Value::to_string)
                .unwrap_or_default(),
        }),
        kind => wit::Part::Opaque(wit::Opaque {
            kind: kind.to_owned(),
            chars: match block.get("data") {
                Some(Value::String(data)) => utf16_len(data),
                _ => utf16_len(&block.to_string()),
            },
        }),
    }
}

/// Recordings of other agents lack the reason; there a tool call tells.
fn stop_reason(message: &Message, content: &[wit::Part]) -> wit::StopReason {
    let calls = |part: &wit::Part| matches!(part, wit::Part::ToolCall(_));
    match message.text_field("stopReason") {
        "stop" => wit::StopReason::Stop,
        "toolUse" => wit::StopReason::ToolUse,
        "length" => wit::StopReason::Length,
        "error" => wit::StopReason::Error,
        "aborted" => wit::StopReason::Aborted,
        "" if content.iter().any(calls) => wit::StopReason::ToolUse,
        "" => wit::StopReason::Stop,
        _ => wit::StopReason::Other,
    }
}

fn details(message: &Message) -> String {
    match message.as_json().get("details") {
        Some(details) if message.text_field("customType") == SUMMARY_KIND => details.to_string(),
        _ => String::new(),
    }
}

fn utf16_len(text: &str) -> u32 {
    let units = if text.is_ascii() {
        text.len()
    } else {
        text.encode_utf16().count()
    };
    u32::try_from(units).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wit_of(value: Value) -> wit::Message {
        to_wit(&Message::from_json(value).expect("a message"))
    }

    #[test]
    fn thinking_and_images_cross_as_sizes() {
        let message = wit_of(json!({
            "role": "assistant", "timestamp": 7, "stopReason": "toolUse",
            "content": [
                { "type": "thinking", "thinking": "naïve 🙂", "thinkingSignature": "abc" },
                { "type": "image", "data": "AAAA", "mimeType": "image/png" },
                { "type": "toolCall", "id": "c1", "name": "bash", "arguments": { "b": 1, "a": "x" } },
                { "type": "toolCall", "id": "c2", "name": "now" },
            ],
        }));
        let call = |id: &str, name: &str, arguments: &str| {
            wit::Part::ToolCall(wit::ToolCall {
                id: id.to_owned(),
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            })
        };
        let expected = wit::Message::Assistant(wit::AssistantMessage {
            content: vec![
                wit::Part::Thinking(11),
                wit::Part::Opaque(wit::Opaque {
                    kind: "image".to_owned(),
                    chars: 4,
                }),
                call("c1", "bash", r#"{"b":1,"a":"x"}"#),
                call("c2", "now", ""),
            ],
            stop: wit::StopReason::ToolUse,
            at: 7,
        });
        assert_eq!(message, expected);
    }

    #[test]
    fn details_cross_for_summaries_only() {
        for (kind, details) in [(SUMMARY_KIND, r#"{"x":1}"#), ("other", "")] {
            let message = wit_of(json!({
                "role": "custom", "customType": kind, "content": "text", "details": { "x": 1 },
                "timestamp": 1.0,
            }));
            let expected = wit::Message::Custom(wit::CustomMessage {
                kind: kind.to_owned(),
                content: vec![wit::Part::Text("text".to_owned())],
                details: details.to_owned(),
                at: 1,
            });
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn commands_of_the_user_cross_as_other_roles() {
        let rows = [
            (
                json!({ "role": "bashExecution", "command": "ls", "output": "a" }),
                2,
            ),
            (
                json!({ "role": "bashExecution", "command": "ls", "excludeFromContext": true }),
                0,
            ),
            (json!({ "role": "compactionSummary", "summary": "s" }), 1),
            (json!({ "role": "unheard-of", "x": 1 }), 0),
        ];
        for (value, n_parts) in rows {
            let wit::Message::Other(other) = wit_of(value.clone()) else {
                panic!("{value}");
            };
            assert_eq!(other.content.len(), n_parts, "{value}");
        }
    }

    fn result(id: &str, texts: &[&str], at: u64) -> Message {
        let mut content: Vec<Value> = texts
            .iter()
            .map(|text| json!({ "type": "text", "text": text }))
            .collect();
        content.push(json!({ "type": "image", "data": "AAAA" }));
        let message = json!({
            "role": "toolResult", "toolCallId": id, "toolName": "bash", "content": content,
            "timestamp": at,
        });
        Message::from_json(message).expect("a message")
    }

    fn known(keys: &[(&str, u64)]) -> Known {
        let occurrences = keys.iter().map(|(call_id, at)| Occurrence {
            call_id: (*call_id).to_owned(),
            at: Some(*at),
        });
        Known::new(occurrences.collect())
    }

    #[test]
    fn of_a_known_result_the_sizes_cross_and_what_is_no_text() {
        let long = "é".repeat(600) + &"🙂".repeat(250);
        let message = result("c1", &[&long, "plain"], 7);
        let wit::Message::ToolResult(crossed) = known(&[("c1", 7)]).wit_of(&message) else {
            panic!("it is a result");
        };
        let size = |chars, ascii| wit::Part::Withheld(wit::TextSize { chars, ascii });
        let image = wit::Part::Opaque(wit::Opaque {
            kind: "image".to_owned(),
            chars: 4,
        });
        assert_eq!(crossed.content, [size(1_100, 0), size(5, 5), image]);
    }

    #[test]
    fn what_is_short_or_unknown_or_comes_again_crosses_whole() {
        let long = "x".repeat(1_000);
        let mut known = known(&[("c1", 7), ("c2", 8)]);
        for (message, is_withheld) in [
            (result("c1", &[&long], 8), false),
            (result("c2", &[&long[1..]], 8), false),
            (result("c1", &[&long], 7), true),
            (result("c1", &[&long], 7), false),
        ] {
            let crossed = known.wit_of(&message);
            assert_eq!(crossed != to_wit(&message), is_withheld, "{crossed:?}");
        }
    }
}
