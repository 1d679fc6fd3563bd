//! Transcripts of Claude Code.
//!
//! One answer of the model is spread over several lines, one per block, with the results of its
//! first calls in between: they become one assistant message with its results behind it, as the
//! host sends them. Sub-agents (side chains) have contexts of their own and are left out.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::{Value, json};

use super::array::{Assistant, Blocks, Calls};
use super::instant::epoch_ms;
use super::lines::Lines;
use super::{Event, Format, Recording, Step};

/// Reads a transcript.
///
/// # Errors
///
/// None at present: what cannot be understood is put aside and counted.
pub(super) fn read(lines: &Lines, name: &str) -> Result<Recording> {
    let mut recording = Recording::new(Format::ClaudeCode, name);
    if let Some(line) = lines.truncated {
        recording
            .notes
            .push(format!("line {line}: cut off in the middle, left out"));
    }
    let entries: Vec<&Value> = lines.entries().map(|(_, value)| value).collect();
    let branch = active_branch(&entries);
    let mut reader = Reader {
        recording,
        calls: Calls::default(),
        open: None,
        before_ms: 0,
    };
    for (index, entry) in entries.iter().enumerate() {
        if branch.contains(&index) {
            reader.entry(entry);
        } else {
            reader.recording.put_aside(&aside_kind(entry));
        }
    }
    if let Some(id) = entries.iter().find_map(|entry| text(entry, "sessionId")) {
        reader.recording.session_id = id.to_string();
    }
    Ok(reader.recording)
}

fn aside_kind(entry: &Value) -> String {
    if entry.get("isSidechain") == Some(&Value::Bool(true)) {
        return "side chain".to_string();
    }
    match is_chat(entry) {
        true => "abandoned branch".to_string(),
        false => text(entry, "type").unwrap_or("(no type)").to_string(),
    }
}

fn is_chat(entry: &Value) -> bool {
    matches!(text(entry, "type"), Some("user" | "assistant")) && entry.get("message").is_some()
}

fn is_compact_boundary(entry: &Value) -> bool {
    text(entry, "subtype") == Some("compact_boundary")
}

/// The entries on the path from the last one to the root, with what belongs to one of them although
/// it stands beside the path: further blocks of the same answer, and results of its calls.
fn active_branch(entries: &[&Value]) -> BTreeSet<usize> {
    let on_main = |entry: &Value| entry.get("isSidechain") != Some(&Value::Bool(true));
    let mut by_uuid = BTreeMap::new();
    let mut parents = Vec::with_capacity(entries.len());
    let mut before = None;
    for (index, entry) in entries.iter().enumerate() {
        let parent = text(entry, "parentUuid").or_else(|| text(entry, "logicalParentUuid"));
        // A parent that the file lacks was in an older file: the entry before stands in for it.
        parents.push(parent.and_then(|uuid| by_uuid.get(uuid).copied().or(before)));
        if let Some(uuid) = text(entry, "uuid").filter(|_| on_main(entry)) {
            by_uuid.insert(uuid, index);
            before = Some(index);
        }
    }
    let mut branch = BTreeSet::new();
    let mut next = before;
    while let Some(index) = next {
        branch.insert(index);
        next = parents[index];
    }
    add_siblings(entries, &mut branch);
    branch
}

fn add_siblings(entries: &[&Value], branch: &mut BTreeSet<usize>) {
    let answers: BTreeSet<String> = branch
        .iter()
        .filter_map(|index| answer_id(entries[*index]))
        .collect();
    for (index, entry) in entries.iter().enumerate() {
        if answer_id(entry).is_some_and(|id| answers.contains(&id)) {
            branch.insert(index);
        }
    }
    let calls: BTreeSet<&str> = branch
        .iter()
        .flat_map(|index| blocks(entries[*index]))
        .filter_map(|block| text(block, "id"))
        .collect();
    for (index, entry) in entries.iter().enumerate() {
        let answers_call =
            |block: &Value| text(block, "tool_use_id").is_some_and(|id| calls.contains(id));
        if blocks(entry).iter().any(answers_call) {
            branch.insert(index);
        }
    }
}

fn answer_id(entry: &Value) -> Option<String> {
    let id = entry.pointer("/message/id")?.as_str()?;
    (text(entry, "type") == Some("assistant")).then(|| id.to_string())
}

fn blocks(entry: &Value) -> &[Value] {
    entry
        .pointer("/message/content")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Turns entries into steps.
struct Reader {
    recording: Recording,
    calls: Calls,
    /// The id of the last answer, and the step that holds it.
    open: Option<(String, usize)>,
    before_ms: u64,
}

impl Reader {
    fn entry(&mut self, entry: &Value) {
        let at_ms = epoch_ms(entry.get("timestamp")).unwrap_or(self.before_ms);
        self.before_ms = at_ms;
        if !is_chat(entry) {
            if !is_compact_boundary(entry) {
                self.recording.put_aside(&aside_kind(entry));
            }
            return;
        }
        let message = &entry["message"];
        if text(entry, "type") == Some("assistant") {
            self.assistant(entry, message, at_ms);
        } else if entry.get("isCompactSummary") == Some(&Value::Bool(true)) {
            self.compaction(entry, message, at_ms);
        } else {
            for message in self.calls.user_messages(message, at_ms) {
                let is_result = message["role"] == "toolResult";
                if !is_result {
                    self.open = None;
                }
                self.push(entry, at_ms, Event::Message(message));
            }
        }
    }

    fn assistant(&mut self, entry: &Value, message: &Value, at_ms: u64) {
        let mut answer = Assistant::read(message, at_ms);
        self.calls.note(&answer.message);
        if entry.get("isApiErrorMessage") == Some(&Value::Bool(true)) {
            answer.message["stopReason"] = json!("error");
        }
        let id = text(message, "id").unwrap_or_default();
        if let Some((open, step)) = &self.open
            && !id.is_empty()
            && open == id
            && let Event::Message(earlier) = &mut self.recording.steps[*step].event
        {
            answer.continue_in(earlier);
            return;
        }
        self.open = Some((id.to_string(), self.recording.steps.len()));
        self.push(entry, at_ms, Event::Message(answer.message));
    }

    fn compaction(&mut self, entry: &Value, message: &Value, at_ms: u64) {
        self.open = None;
        let summary = json!({
            "role": "user",
            "content": Blocks::read(&message["content"]).blocks,
            "timestamp": at_ms,
        });
        let event = Event::Compaction {
            summary,
            first_kept: None,
        };
        self.push(entry, at_ms, event);
    }

    fn push(&mut self, entry: &Value, at_ms: u64, event: Event) {
        let steps = &mut self.recording.steps;
        let step = format!("step-{}", steps.len() + 1);
        let uuid = text(entry, "uuid").unwrap_or(&step);
        // One line with several results makes several steps.
        let id = match steps
            .iter()
            .rev()
            .take_while(|step| step.id.starts_with(uuid))
            .count()
        {
            0 => uuid.to_string(),
            n => format!("{uuid}#{n}"),
        };
        steps.push(Step { id, at_ms, event });
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}
