//! Messages of a scenario.

use decant_host::Message;
use serde_json::{Map, Value, json};

use super::error::ScenarioError;

/// Gives a message what a host would have given it: content as a list of blocks, and a timestamp.
pub(super) fn completed(
    mut message: Map<String, Value>,
    at_ms: u64,
) -> Result<Message, ScenarioError> {
    if let Some(Value::String(text)) = message.get("content") {
        let block = json!([{ "type": "text", "text": text }]);
        message.insert("content".to_owned(), block);
    }
    message.entry("timestamp").or_insert(Value::from(at_ms));
    let message = Message::from_json(Value::Object(message));
    message.map_err(|error| ScenarioError::Malformed(error.to_string()))
}

/// Whether the message is an assistant message that stopped by itself and calls no tool, which is
/// when the host fires `reply-end`.
///
/// Only such a message closes a chain (design B17), and while `reply-end` runs the pruner cannot
/// see the message yet: so it is the host that looks at the stop reason.
pub(super) fn is_final_reply(message: &Message) -> bool {
    let calls = |block: &Value| block["type"] == "toolCall";
    let stopped = matches!(
        message.as_json()["stopReason"].as_str(),
        None | Some("stop")
    );
    message.role() == "assistant" && stopped && !message.blocks().iter().any(calls)
}

/// A summary of the pruner as it stands in the transcript.
pub(super) fn summary(kind: &str, content: &str, details: &Value, at_ms: u64) -> Message {
    let message = Message::from_json(json!({
        "role": "custom",
        "customType": kind,
        "content": [{ "type": "text", "text": content }],
        "display": true,
        "details": details,
        "timestamp": at_ms,
    }));
    message.expect("it has a role")
}
