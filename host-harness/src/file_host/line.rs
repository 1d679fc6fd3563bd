//! The lines of a session log: what every line has, and the entries among them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::LogEntry;
use crate::surrogates::repair_surrogates;
use crate::time::{iso_from_ms, ms_from_iso};

/// What a line says about its place in the session.
#[derive(Debug, Deserialize)]
pub(super) struct Head {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) id: Option<String>,
    #[serde(rename = "parentId")]
    pub(super) parent: Option<String>,
    /// Of a `session` line: from 2 on the entries form a tree.
    pub(super) version: Option<u32>,
}

impl Head {
    /// Reads a line; `None` if it is none of a session log.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_str(&repaired(line)).ok()
    }

    /// Whether the pruner may have written it.
    pub(super) fn is_custom(&self) -> bool {
        matches!(self.kind.as_str(), "custom" | "custom_message")
    }

    pub(super) fn is_header(&self) -> bool {
        self.kind == "session"
    }
}

/// The ids from the last entry up to the root.
pub(super) fn active_branch<'a>(heads: impl Iterator<Item = &'a Head>) -> HashSet<&'a str> {
    let mut parents = HashMap::new();
    let mut leaf = None;
    for head in heads.filter(|head| !head.is_header()) {
        if let Some(id) = head.id.as_deref() {
            parents.insert(id, head.parent.as_deref());
            leaf = Some(id);
        }
    }
    let mut branch = HashSet::new();
    // A loop in a damaged file ends where it closes.
    while let Some(id) = leaf.filter(|id| branch.insert(*id)) {
        leaf = parents.get(id).copied().flatten();
    }
    branch
}

/// A `custom` or `custom_message` entry, with pi's names for the fields.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line {
    #[serde(rename = "type")]
    kind: String,
    custom_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    display: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Box<RawValue>>,
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_id: Option<String>,
    timestamp: String,
}

impl Line {
    /// An entry that the model does not see; it has no id yet.
    pub(super) fn entry(kind: &str, data: &str, at_ms: u64) -> io::Result<Self> {
        Ok(Self {
            data: Some(one_line(data)?),
            ..Self::empty("custom", kind, at_ms)
        })
    }

    /// A message; it has no id yet.
    pub(super) fn message(
        kind: &str,
        content: &str,
        details: &str,
        at_ms: u64,
    ) -> io::Result<Self> {
        Ok(Self {
            content: Some(Value::from(content)),
            display: Some(false),
            details: Some(one_line(details)?),
            ..Self::empty("custom_message", kind, at_ms)
        })
    }

    fn empty(kind: &str, custom_type: &str, at_ms: u64) -> Self {
        Self {
            kind: kind.to_owned(),
            custom_type: custom_type.to_owned(),
            data: None,
            content: None,
            display: None,
            details: None,
            id: String::new(),
            parent_id: None,
            timestamp: iso_from_ms(at_ms),
        }
    }

    pub(super) fn parse(line: &[u8]) -> io::Result<Self> {
        Ok(serde_json::from_str(&repaired(line))?)
    }

    /// When it was written, as a load reads it.
    pub(super) fn at_ms(&self) -> u64 {
        ms_from_iso(&self.timestamp).unwrap_or(0)
    }

    /// The entry as the pruner gets it back.
    pub(super) fn into_log_entry(self) -> LogEntry {
        let at = self.at_ms();
        let data = match self.content {
            Some(content) => {
                let content = Value::from(text_of(&content)).to_string();
                let details = self.details.as_deref().map_or("null", RawValue::get);
                format!(r#"{{"content":{content},"details":{details}}}"#)
            }
            None => self
                .data
                .as_deref()
                .map_or("null", RawValue::get)
                .to_owned(),
        };
        LogEntry {
            at,
            id: self.id,
            kind: self.custom_type,
            data,
        }
    }
}

/// The text of a message's content: a string, or blocks.
fn text_of(content: &Value) -> String {
    match content {
        Value::Array(blocks) => {
            let texts = blocks
                .iter()
                .filter_map(|block| block.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        content => content.as_str().unwrap_or_default().to_owned(),
    }
}

/// JSON without line ends between its tokens.
fn one_line(json: &str) -> io::Result<Box<RawValue>> {
    if json.contains(['\n', '\r']) {
        let value: Value = serde_json::from_str(json)?;
        return Ok(RawValue::from_string(value.to_string())?);
    }
    Ok(RawValue::from_string(json.to_owned())?)
}

/// The line's text, with what JSON does not allow put right.
fn repaired(line: &[u8]) -> Cow<'_, str> {
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    match String::from_utf8_lossy(line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)) {
        Cow::Borrowed(text) => repair_surrogates(text),
        Cow::Owned(text) => Cow::Owned(repair_surrogates(&text).into_owned()),
    }
}
