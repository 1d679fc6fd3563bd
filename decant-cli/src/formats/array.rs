//! Message arrays in the style of OpenAI's and Anthropic's interfaces.
//!
//! System messages and tool declarations are left out: a pruner never sees them. The files have no
//! times, so the messages are a second apart.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use decant_host::repair_surrogates;
use serde_json::{Map, Value, json};

use super::instant::epoch_ms;
use super::lines::{Lines, json_error};
use super::{Event, Format, Recording, Step, shape};

/// The time of the first message of a file that has no times: 2025-01-01, UTC.
const START_MS: u64 = 1_735_689_600_000;
const BETWEEN_MS: u64 = 1_000;

/// Reads a whole file that is one JSON document: an array, or an object with `messages`.
///
/// # Errors
///
/// When it is no JSON or holds no messages: it names the line.
pub(super) fn from_document(text: &str, name: &str) -> Result<Recording> {
    let document: Value = match serde_json::from_str(&repair_surrogates(text)) {
        Ok(document) => document,
        Err(error) => bail!(
            "line {}: not a message array: {}",
            error.line(),
            json_error(&error)
        ),
    };
    from_messages(document.get("messages").unwrap_or(&document), name)
}

/// Reads an array of messages.
///
/// # Errors
///
/// When one of them is no message: it names the message.
pub(super) fn from_messages(messages: &Value, name: &str) -> Result<Recording> {
    let messages = messages
        .as_array()
        .with_context(|| format!("line 1: not a message array: {}", shape(messages)))?;
    let mut reader = Reader::new(name);
    for (index, message) in messages.iter().enumerate() {
        reader
            .message(message)
            .with_context(|| format!("message {index} of the array"))?;
    }
    Ok(reader.recording)
}

/// Reads a file with one message per line.
///
/// # Errors
///
/// When a line is no message: it names the line.
pub(super) fn from_lines(lines: &Lines, name: &str) -> Result<Recording> {
    let mut reader = Reader::new(name);
    for (line, message) in lines.entries() {
        reader
            .message(message)
            .with_context(|| format!("line {line}"))?;
    }
    if let Some(line) = lines.truncated {
        let note = format!("line {line}: cut off in the middle, left out");
        reader.recording.notes.push(note);
    }
    Ok(reader.recording)
}

struct Reader {
    recording: Recording,
    calls: Calls,
    at_ms: u64,
}

impl Reader {
    fn new(name: &str) -> Self {
        Self {
            recording: Recording::new(Format::Messages, name),
            calls: Calls::default(),
            at_ms: START_MS,
        }
    }

    fn message(&mut self, message: &Value) -> Result<()> {
        let Some(role) = message.get("role").and_then(Value::as_str) else {
            bail!("not a message: {}", shape(message));
        };
        let at_ms = epoch_ms(message.get("timestamp")).unwrap_or(self.at_ms);
        self.at_ms = at_ms.max(self.at_ms) + BETWEEN_MS;
        match role {
            "system" | "developer" => self.recording.put_aside("message of the role system"),
            "assistant" => {
                let answer = Assistant::read(message, at_ms);
                self.calls.note(&answer.message);
                self.push(at_ms, answer.message);
            }
            "user" => {
                for message in self.calls.user_messages(message, at_ms) {
                    self.push(at_ms, message);
                }
            }
            "tool" => {
                let result = self.calls.result(
                    message.get("tool_call_id").unwrap_or(&Value::Null),
                    &message["content"],
                    false,
                    at_ms,
                );
                self.push(at_ms, result);
            }
            other => self
                .recording
                .put_aside(&format!("message of the role {other}")),
        }
        Ok(())
    }

    fn push(&mut self, at_ms: u64, message: Value) {
        let id = format!("{:08x}", self.recording.steps.len() + 1);
        let event = Event::Message(message);
        self.recording.steps.push(Step { id, at_ms, event });
    }
}

/// The names of the tools that were called, by call id: results do not repeat them.
#[derive(Default)]
pub(super) struct Calls {
    tools: BTreeMap<String, String>,
}

impl Calls {
    /// Takes note of the calls of an assistant message in pi's shape.
    pub(super) fn note(&mut self, assistant: &Value) {
        for block in assistant["content"].as_array().into_iter().flatten() {
            if let (Some(id), Some(name)) = (block["id"].as_str(), block["name"].as_str()) {
                self.tools.insert(id.to_string(), name.to_string());
            }
        }
    }

    /// The messages that a user message stands for: each of its tool results, then the rest.
    pub(super) fn user_messages(&self, message: &Value, at_ms: u64) -> Vec<Value> {
        let content = &message["content"];
        let mut messages = Vec::new();
        for block in content.as_array().into_iter().flatten() {
            if block["type"] == "tool_result" {
                let is_error = block["is_error"] == true;
                messages.push(self.result(
                    &block["tool_use_id"],
                    &block["content"],
                    is_error,
                    at_ms,
                ));
            }
        }
        let rest = Blocks::read(content);
        if !rest.blocks.is_empty() || messages.is_empty() {
            messages.push(json!({"role": "user", "content": rest.blocks, "timestamp": at_ms}));
        }
        messages
    }

    fn result(&self, id: &Value, content: &Value, is_error: bool, at_ms: u64) -> Value {
        let id = id.as_str().unwrap_or_default();
        json!({
            "role": "toolResult",
            "toolCallId": id,
            "toolName": self.tools.get(id).map_or("unknown", String::as_str),
            "content": Blocks::read(content).blocks,
            "isError": is_error,
            "timestamp": at_ms,
        })
    }
}

/// Content blocks in pi's shape.
#[derive(Default)]
pub(super) struct Blocks {
    pub(super) blocks: Vec<Value>,
}

impl Blocks {
    /// Reads a string or an array of blocks of either style; tool results are left out.
    pub(super) fn read(content: &Value) -> Self {
        let mut blocks = Self::default();
        match content {
            Value::String(text) => blocks.text(text),
            Value::Array(parts) => parts.iter().for_each(|part| blocks.part(part)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
        blocks
    }

    fn text(&mut self, text: &str) {
        self.blocks.push(json!({"type": "text", "text": text}));
    }

    fn part(&mut self, part: &Value) {
        let own = |key: &str| part.get(key).cloned().unwrap_or_default();
        let block = match part["type"].as_str().unwrap_or_default() {
            "text" | "input_text" | "output_text" => json!({"type": "text", "text": own("text")}),
            "thinking" => json!({
                "type": "thinking",
                "thinking": own("thinking"),
                "thinkingSignature": own("signature"),
            }),
            "redacted_thinking" => json!({
                "type": "thinking",
                "thinking": "",
                "thinkingSignature": own("data"),
                "redacted": true,
            }),
            "tool_use" => json!({
                "type": "toolCall",
                "id": own("id"),
                "name": own("name"),
                "arguments": own("input"),
            }),
            "image" => json!({
                "type": "image",
                "data": part.pointer("/source/data").or(part.pointer("/source/url")),
                "mimeType": part.pointer("/source/media_type"),
            }),
            "image_url" | "input_image" => json!({
                "type": "image",
                "data": part.pointer("/image_url/url").or(part.get("image_url")),
            }),
            "tool_result" => return,
            _ if part.is_string() => json!({"type": "text", "text": part}),
            _ => part.clone(),
        };
        self.blocks.push(block);
    }
}

/// An answer of the model in pi's shape.
pub(super) struct Assistant {
    pub(super) message: Value,
}

impl Assistant {
    /// Reads an answer of either style.
    pub(super) fn read(message: &Value, at_ms: u64) -> Self {
        let mut content = Blocks::default();
        if let Some(thinking) = message.get("reasoning_content").and_then(Value::as_str) {
            let block = json!({"type": "thinking", "thinking": thinking});
            content.blocks.push(block);
        }
        let written = Blocks::read(&message["content"]).blocks;
        content
            .blocks
            .extend(written.into_iter().filter(|block| block["text"] != ""));
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            content.blocks.push(json!({
                "type": "toolCall",
                "id": call["id"],
                "name": call["function"]["name"],
                "arguments": arguments(&call["function"]["arguments"]),
            }));
        }
        let stop = stop_reason(message, &content.blocks);
        let mut fields = Map::new();
        fields.insert("role".to_string(), json!("assistant"));
        fields.insert("content".to_string(), json!(content.blocks));
        if let Some(model) = message.get("model").filter(|model| model.is_string()) {
            fields.insert("model".to_string(), model.clone());
        }
        if let Some(usage) = message.get("usage").and_then(usage) {
            fields.insert("usage".to_string(), usage);
        }
        fields.insert("stopReason".to_string(), json!(stop));
        fields.insert("timestamp".to_string(), json!(at_ms));
        Self {
            message: Value::Object(fields),
        }
    }

    /// Adds this answer's blocks to an earlier part of the same answer.
    pub(super) fn continue_in(self, earlier: &mut Value) {
        let Value::Object(mut later) = self.message else {
            return;
        };
        if let (Some(Value::Array(more)), Some(blocks)) =
            (later.remove("content"), earlier["content"].as_array_mut())
        {
            blocks.extend(more);
        }
        if let Some(usage) = later.remove("usage") {
            earlier["usage"] = usage;
        }
        let is_open = earlier["stopReason"] == "toolUse" && later["stopReason"] == "stop";
        if !is_open {
            earlier["stopReason"] = later.remove("stopReason").unwrap_or_default();
        }
    }
}

/// Arguments are JSON in a string in OpenAI's style; what is no JSON stays a string.
fn arguments(value: &Value) -> Value {
    let parsed = value.as_str().map(serde_json::from_str::<Value>);
    parsed.and_then(Result::ok).unwrap_or_else(|| value.clone())
}

fn stop_reason(message: &Value, blocks: &[Value]) -> &'static str {
    let named = message["stop_reason"]
        .as_str()
        .or(message["finish_reason"].as_str());
    match named {
        Some("max_tokens" | "length") => "length",
        _ if blocks.iter().any(|block| block["type"] == "toolCall") => "toolUse",
        // The first lines of an answer say that tools follow.
        Some("tool_use") => "toolUse",
        _ => "stop",
    }
}

/// Usage in pi's shape; `None` where all of it is 0 or missing.
fn usage(usage: &Value) -> Option<Value> {
    let count = |keys: [&str; 2]| {
        let mut counts = keys.iter().filter_map(|key| usage.get(key)?.as_u64());
        counts.next().unwrap_or(0)
    };
    let input = count(["input_tokens", "prompt_tokens"]);
    let output = count(["output_tokens", "completion_tokens"]);
    let read = count(["cache_read_input_tokens", ""]);
    let write = count(["cache_creation_input_tokens", ""]);
    let total = input + output + read + write;
    (total > 0).then(|| {
        json!({
            "input": input,
            "output": output,
            "cacheRead": read,
            "cacheWrite": write,
            "totalTokens": total,
        })
    })
}
