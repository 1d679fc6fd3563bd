//! What of a message crosses to the pruner: its text and arguments, of the rest only the size.

use serde_json::Value;

use crate::Message;
use crate::bindings::decant::pruner::messages as wit;
use crate::message::block_type;

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
        "toolResult" => wit::Message::ToolResult(wit::ToolResult {
            call_id: message.text_field("toolCallId").to_owned(),
            tool: message.text_field("toolName").to_owned(),
            content,
            is_error: message.as_json().get("isError") == Some(&Value::Bool(true)),
            at,
        }),
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

/// About how much crosses with a message.
pub(crate) fn size_bytes(message: &wit::Message) -> usize {
    let content = match message {
        wit::Message::User(message) => &message.content,
        wit::Message::Assistant(message) => &message.content,
        wit::Message::ToolResult(message) => &message.content,
        wit::Message::Custom(message) => &message.content,
        wit::Message::Other(message) => &message.content,
    };
    let size = |block: &wit::Block| match block {
        wit::Block::Text(text) => text.len(),
        wit::Block::ToolCall(call) => call.arguments.len(),
        wit::Block::Thinking(_) | wit::Block::Opaque(_) => 0,
    };
    64 + content.iter().map(size).sum::<usize>()
}

fn content(message: &Message) -> Vec<wit::Block> {
    match message.as_json().get("content") {
        Some(Value::String(text)) => vec![wit::Block::Text(text.clone())],
        Some(Value::Array(blocks)) => blocks.iter().map(block).collect(),
        _ => outside_content(message).collect(),
    }
}

/// The text of the roles that keep it elsewhere, as far as the model gets it.
fn outside_content(message: &Message) -> impl Iterator<Item = wit::Block> {
    let hidden = message.as_json().get("excludeFromContext") == Some(&Value::Bool(true));
    let fields: &[&str] = match message.role() {
        "bashExecution" if !hidden => &["command", "output"],
        "branchSummary" | "compactionSummary" => &["summary"],
        _ => &[],
    };
    let texts = fields.iter().map(|field| message.text_field(field));
    texts.map(|text| wit::Block::Text(text.to_owned()))
}

fn block(block: &Value) -> wit::Block {
    let field = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or("");
    match block_type(block) {
        "text" => wit::Block::Text(field("text").to_owned()),
        // An encrypted state: the next request has to repeat it.
        "thinking" if field("thinking").trim().is_empty() => wit::Block::Opaque(wit::Opaque {
            kind: "reasoning".to_owned(),
            chars: utf16_len(field("thinkingSignature")),
        }),
        "thinking" => wit::Block::Thinking(
            utf16_len(field("thinking")).saturating_add(utf16_len(field("thinkingSignature"))),
        ),
        "toolCall" => wit::Block::ToolCall(wit::ToolCall {
            id: field("id").to_owned(),
            name: field("name").to_owned(),
            arguments: block
                .get("arguments")
                .map(Value::to_string)
                .unwrap_or_default(),
        }),
        kind => wit::Block::Opaque(wit::Opaque {
            kind: kind.to_owned(),
            chars: match block.get("data") {
                Some(Value::String(data)) => utf16_len(data),
                _ => utf16_len(&block.to_string()),
            },
        }),
    }
}

/// Recordings of other agents lack the reason; there a tool call tells.
fn stop_reason(message: &Message, content: &[wit::Block]) -> wit::StopReason {
    let calls = |block: &wit::Block| matches!(block, wit::Block::ToolCall(_));
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
            wit::Block::ToolCall(wit::ToolCall {
                id: id.to_owned(),
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            })
        };
        let expected = wit::Message::Assistant(wit::AssistantMessage {
            content: vec![
                wit::Block::Thinking(11),
                wit::Block::Opaque(wit::Opaque {
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
                content: vec![wit::Block::Text("text".to_owned())],
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
        for (value, n_blocks) in rows {
            let wit::Message::Other(other) = wit_of(value.clone()) else {
                panic!("{value}");
            };
            assert_eq!(other.content.len(), n_blocks, "{value}");
        }
    }
}
