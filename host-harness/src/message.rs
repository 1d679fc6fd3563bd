//! The host's messages, whole: with image data, thinking text and provider fields.

use std::sync::Arc;

use serde_json::{Value, json};

/// A JSON value that is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message is a JSON object with a `role`")]
pub struct NotAMessage;

/// One message of the transcript, in the shape of pi's `AgentMessage`. Cheap to clone.
///
/// Roles are `user`, `assistant`, `toolResult`, `custom`, `bashExecution`, `branchSummary` and
/// `compactionSummary`; others are passed on untouched. `content` is a list of blocks or a string,
/// which is one text block.
///
/// Source: pi session format v3.
#[derive(Clone, Debug)]
pub struct Message(Arc<Value>);

impl Message {
    /// Takes a message in pi's shape.
    ///
    /// # Errors
    /// The value is no object or has no `role`.
    pub fn from_json(value: Value) -> Result<Self, NotAMessage> {
        match value.get("role") {
            Some(Value::String(_)) => Ok(Self(Arc::new(value))),
            _ => Err(NotAMessage),
        }
    }

    /// What the user wrote.
    #[must_use]
    pub fn user(text: &str, at_ms: u64) -> Self {
        Self::built(json!({ "role": "user", "content": [text_block(text)], "timestamp": at_ms }))
    }

    /// A final reply without a tool call.
    #[must_use]
    pub fn reply(text: &str, at_ms: u64) -> Self {
        Self::built(json!({
            "role": "assistant", "content": [text_block(text)], "stopReason": "stop",
            "timestamp": at_ms,
        }))
    }

    /// An assistant message that runs one tool. `arguments` is a JSON object.
    #[must_use]
    pub fn tool_call(id: &str, tool: &str, arguments: &Value, at_ms: u64) -> Self {
        Self::built(json!({
            "role": "assistant",
            "content": [{ "type": "toolCall", "id": id, "name": tool, "arguments": arguments }],
            "stopReason": "toolUse", "timestamp": at_ms,
        }))
    }

    /// What a tool returned.
    #[must_use]
    pub fn tool_result(call_id: &str, tool: &str, text: &str, at_ms: u64) -> Self {
        Self::built(json!({
            "role": "toolResult", "toolCallId": call_id, "toolName": tool,
            "content": [text_block(text)], "isError": false, "timestamp": at_ms,
        }))
    }

    pub(crate) fn built(value: Value) -> Self {
        Self(Arc::new(value))
    }

    /// The message in pi's shape.
    #[must_use]
    pub fn as_json(&self) -> &Value {
        &self.0
    }

    /// The message in pi's shape, copied only if it is shared.
    #[must_use]
    pub fn into_json(self) -> Value {
        Arc::unwrap_or_clone(self.0)
    }

    #[must_use]
    pub fn role(&self) -> &str {
        self.text_field("role")
    }

    /// Its `timestamp` in Unix milliseconds; 0 where it has none.
    #[must_use]
    pub fn at_ms(&self) -> u64 {
        let at = self.0.get("timestamp");
        at.and_then(|at| at.as_u64().or_else(|| at.as_f64().map(|f| f as u64)))
            .unwrap_or(0)
    }

    /// All text of the message, its blocks joined with line ends.
    #[must_use]
    pub fn text(&self) -> String {
        match self.0.get("content") {
            Some(Value::String(text)) => text.clone(),
            _ => {
                let texts: Vec<&str> = self.blocks().iter().filter_map(block_text).collect();
                texts.join("\n")
            }
        }
    }

    /// The blocks of its content; none where the content is a string.
    #[must_use]
    pub fn blocks(&self) -> &[Value] {
        self.0
            .get("content")
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    pub(crate) fn text_field(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or("")
    }

    pub(crate) fn is_tool_result(&self) -> bool {
        self.role() == "toolResult"
    }
}

/// By value; the same message is equal at once.
impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

pub(crate) fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

pub(crate) fn block_type(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or("")
}

fn block_text(block: &Value) -> Option<&str> {
    (block_type(block) == "text").then(|| block.get("text")?.as_str())?
}
