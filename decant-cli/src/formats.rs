//! Readers of recorded sessions: every format becomes one neutral [`Recording`].
//!
//! What is not here: judging the conversation. A reader repairs what a file's encoding broke and
//! leaves odd conversations (unanswered calls, reused ids, aborted turns) as they are.

mod array;
mod claude_code;
mod instant;
mod lines;
mod pi;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use lines::Lines;

/// The file formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pi's session file, versions 1 to 3.
    Pi,
    /// A transcript of Claude Code.
    ClaudeCode,
    /// A JSON array of OpenAI-style or Anthropic-style messages, or an object that holds one in
    /// `messages`, or one such message per line.
    Messages,
}

impl Format {
    /// The name for reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pi => "pi",
            Self::ClaudeCode => "claude-code",
            Self::Messages => "messages",
        }
    }
}

/// A recorded session: what a live host saw on the active branch, in order.
#[derive(Clone, Debug)]
pub struct Recording {
    pub format: Format,
    /// The session's own id, or one made of the file's name.
    pub session_id: String,
    pub steps: Vec<Step>,
    /// What the reader had to tolerate, one sentence each, for the user.
    pub notes: Vec<String>,
    /// Kinds of entries that are no part of the conversation, and how many of each there are.
    pub aside: BTreeMap<String, usize>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Names the step within the recording: unique, the entry's own id where it has one.
    pub id: String,
    /// When it happened, in Unix milliseconds, as recorded: not always rising.
    pub at_ms: u64,
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A message, in the shape of pi's `AgentMessage`, with a numeric `timestamp`.
    Message(Value),
    /// The host replaced what came before: the transcript is now `summary`, the messages from the
    /// step `first_kept` on (none of them if it is `None`), and what follows.
    Compaction {
        summary: Value,
        first_kept: Option<String>,
    },
    /// The host replaced the content of the message of the step `target`, or left it out.
    ContextEdit {
        target: String,
        content: Option<Value>,
    },
    /// The session runs on another model from here on; carries `provider/model`.
    ModelChange(String),
    /// An entry that a pruner wrote into the session's log, of the kind `context-prune-…`.
    PrunerEntry { kind: String, data: Value },
    /// A summary that a pruner put into the transcript: a `custom` message.
    PrunerMessage(Value),
}

/// Kinds of log entries and custom messages that belong to a pruner begin so.
pub const PRUNER_PREFIX: &str = "context-prune-";

/// Reads a recorded session.
///
/// # Errors
///
/// When the file cannot be read, or is no session: the error names the file, the line and what is
/// wrong with it.
pub fn read(path: &Path) -> Result<Recording> {
    let bytes = std::fs::read(path).with_context(|| format!("{}: cannot read", path.display()))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    parse(&bytes, &stem).with_context(|| path.display().to_string())
}

/// Reads a recorded session from the bytes of its file. `name` becomes the session's id where the
/// file has none.
///
/// # Errors
///
/// When it is no session: the error names the line and what is wrong with it.
pub fn parse(bytes: &[u8], name: &str) -> Result<Recording> {
    let text = lines::decode(bytes);
    if text.trim().is_empty() {
        bail!("line 1: not a session: the file is empty");
    }
    if text.trim_start().starts_with('[') {
        return array::from_document(&text, name);
    }
    let lines = match Lines::parse(&text) {
        Ok(lines) => lines,
        // An object that spans lines is not JSONL, but may be one document.
        Err(error) => return array::from_document(&text, name).map_err(|_| error),
    };
    read_lines(&lines, name)
}

fn read_lines(lines: &Lines, name: &str) -> Result<Recording> {
    let (number, first) = lines.first().context("line 1: not a session entry")?;
    if let Some(messages) = first.get("messages").filter(|_| lines.len() == 1) {
        return array::from_messages(messages, name);
    }
    match lines.entries().find_map(|(_, entry)| sniff(entry)) {
        Some(Format::Pi) => pi::read(lines, name),
        Some(Format::ClaudeCode) => claude_code::read(lines, name),
        Some(Format::Messages) => array::from_lines(lines, name),
        None => bail!(
            "line {number}: not a session entry: {}; known are sessions of pi and Claude Code, and \
             arrays of OpenAI-style or Anthropic-style messages",
            shape(first)
        ),
    }
}

/// Tells the format by one entry; `None` if the entry could stand in several.
fn sniff(entry: &Value) -> Option<Format> {
    let kind = entry.get("type").and_then(Value::as_str);
    let has = |key: &str| entry.get(key).is_some();
    match kind {
        Some("session") => Some(Format::Pi),
        Some("message") if has("message") => Some(Format::Pi),
        Some("user" | "assistant") if has("message") => Some(Format::ClaudeCode),
        Some("summary") if has("leafUuid") => Some(Format::ClaudeCode),
        None if has("role") => Some(Format::Messages),
        _ => None,
    }
}

/// What a JSON value that was not expected looks like, for an error.
fn shape(value: &Value) -> String {
    match value {
        Value::Object(fields) => match fields.get("type").and_then(Value::as_str) {
            Some(kind) => format!("an object of the unknown type `{kind}`"),
            None if fields.is_empty() => "an empty object".to_string(),
            None => {
                let keys: Vec<&str> = fields.keys().take(4).map(String::as_str).collect();
                format!("an object with the keys {}", keys.join(", "))
            }
        },
        Value::Array(_) => "an array".to_string(),
        Value::String(_) => "a string".to_string(),
        Value::Number(_) => "a number".to_string(),
        Value::Bool(_) => "a boolean".to_string(),
        Value::Null => "null".to_string(),
    }
}

impl Recording {
    /// An empty recording, to be filled.
    fn new(format: Format, name: &str) -> Self {
        Self {
            format,
            session_id: name.to_string(),
            steps: Vec::new(),
            notes: Vec::new(),
            aside: BTreeMap::new(),
        }
    }

    fn put_aside(&mut self, kind: &str) {
        *self.aside.entry(kind.to_string()).or_default() += 1;
    }

    /// The messages of all steps, in order, whatever the host did to them later.
    pub fn messages(&self) -> impl Iterator<Item = &Value> {
        self.steps.iter().filter_map(|step| match &step.event {
            Event::Message(message) => Some(message),
            Event::Compaction { .. }
            | Event::ContextEdit { .. }
            | Event::ModelChange(_)
            | Event::PrunerEntry { .. }
            | Event::PrunerMessage(_) => None,
        })
    }
}
