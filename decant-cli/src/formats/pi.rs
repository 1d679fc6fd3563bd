//! pi's session files, versions 1 to 3.
//!
//! Version 1 is a plain list without ids; version 2 has a tree and calls custom messages
//! `hookMessage`; version 3 is what pi writes today. Only the active branch is read: the path from
//! the last entry to the root.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::instant::epoch_ms;
use super::lines::Lines;
use super::{Event, Format, PRUNER_PREFIX, Recording, Step};

/// Roles that pi keeps in a session and sends, in its own words where the role is not a provider's.
const ROLES: [&str; 7] = [
    "user",
    "assistant",
    "toolResult",
    "custom",
    "bashExecution",
    "branchSummary",
    "compactionSummary",
];

/// One line of the file.
struct Entry<'a> {
    line: usize,
    id: String,
    parent: Parent<'a>,
    value: &'a Value,
}

enum Parent<'a> {
    /// The entry before, as in version 1.
    Before,
    Named(&'a str),
    None,
}

/// Reads a session.
///
/// # Errors
///
/// None at present: what cannot be understood is put aside and counted.
pub(super) fn read(lines: &Lines, name: &str) -> Result<Recording> {
    let mut recording = Recording::new(Format::Pi, name);
    let mut version = 1;
    let mut entries = Vec::new();
    // In version 1 a compaction names its first kept entry by its place in the file.
    let mut by_place = Vec::new();
    for (line, value) in lines.entries() {
        if text(value, "type") == Some("session") {
            version = value.get("version").and_then(Value::as_u64).unwrap_or(1);
            if let Some(id) = text(value, "id") {
                recording.session_id = id.to_string();
            }
            by_place.push(None);
            continue;
        }
        let entry = entry(line, value, version);
        by_place.push(Some(entry.id.clone()));
        entries.push(entry);
    }
    if let Some(line) = lines.truncated {
        recording
            .notes
            .push(format!("line {line}: cut off in the middle, left out"));
    }
    let ids = unique_ids(&entries);
    let path = active_branch(&entries, &mut recording.notes);
    let mut before = 0;
    // Ids of entries that are no steps: a compaction may name one of them for the step behind it.
    let mut aside = Vec::new();
    let mut step_of = BTreeMap::new();
    for index in path {
        let entry = &entries[index];
        let at_ms = epoch_ms(entry.value.get("timestamp")).unwrap_or(before);
        match event(entry.value, at_ms, &by_place) {
            Ok((at_ms, mut event)) => {
                before = at_ms;
                let id = ids[index].clone();
                step_of.extend(aside.drain(..).map(|other| (other, id.clone())));
                if let Event::Compaction {
                    first_kept: Some(kept),
                    ..
                } = &mut event
                    && let Some(step) = step_of.get(kept)
                {
                    kept.clone_from(step);
                }
                recording.steps.push(Step { id, at_ms, event });
            }
            Err(kind) => {
                aside.push(ids[index].clone());
                recording.put_aside(&kind);
            }
        }
    }
    Ok(recording)
}

fn entry(line: usize, value: &Value, version: u64) -> Entry<'_> {
    let id = text(value, "id").map_or_else(|| format!("line-{line}"), str::to_string);
    let parent = match value.get("parentId") {
        _ if version < 2 => Parent::Before,
        None => Parent::Before,
        Some(Value::String(parent)) => Parent::Named(parent),
        Some(_) => Parent::None,
    };
    Entry {
        line,
        id,
        parent,
        value,
    }
}

/// The entries' ids; one that repeats gets the number of its line.
fn unique_ids(entries: &[Entry<'_>]) -> Vec<String> {
    let mut seen = BTreeMap::new();
    let unique = |entry: &Entry<'_>| match seen.insert(entry.id.clone(), ()) {
        None => entry.id.clone(),
        Some(()) => format!("{}#{}", entry.id, entry.line),
    };
    entries.iter().map(unique).collect()
}

/// The path from the root to the last entry. A parent is the nearest earlier entry of that id.
fn active_branch(entries: &[Entry<'_>], notes: &mut Vec<String>) -> Vec<usize> {
    let mut latest = BTreeMap::new();
    let mut parents = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        parents.push(match entry.parent {
            Parent::Before => index.checked_sub(1),
            Parent::Named(id) => latest.get(id).copied(),
            Parent::None => None,
        });
        latest.insert(entry.id.as_str(), index);
    }
    let mut path = Vec::new();
    let mut next = entries.len().checked_sub(1);
    while let Some(index) = next {
        path.push(index);
        next = parents[index];
        if let (None, Parent::Named(id)) = (next, &entries[index].parent) {
            let line = entries[index].line;
            notes.push(format!(
                "line {line}: its parent `{id}` does not come before it, so the branch begins here"
            ));
        }
    }
    path.reverse();
    path
}

/// What an entry stands for, and when it happened; else the kind to count it under.
fn event(
    entry: &Value,
    at_ms: u64,
    by_place: &[Option<String>],
) -> std::result::Result<(u64, Event), String> {
    let kind = text(entry, "type").unwrap_or("(no type)");
    let owned = |key: &str| text(entry, key).unwrap_or_default().to_string();
    let event = match kind {
        "message" => return message(entry.get("message"), at_ms),
        "custom_message" => custom_message(entry, at_ms),
        "branch_summary" => Event::Message(json!({
            "role": "branchSummary",
            "summary": owned("summary"),
            "fromId": owned("fromId"),
            "timestamp": at_ms,
        })),
        "compaction" => Event::Compaction {
            summary: json!({
                "role": "compactionSummary",
                "summary": owned("summary"),
                "tokensBefore": entry.get("tokensBefore").cloned().unwrap_or_default(),
                "timestamp": at_ms,
            }),
            first_kept: first_kept(entry, by_place),
        },
        "context_edit" => Event::ContextEdit {
            target: owned("targetId"),
            content: entry.pointer("/replacement/content").cloned(),
        },
        "model_change" => Event::ModelChange(format!("{}/{}", owned("provider"), owned("modelId"))),
        "custom" => match text(entry, "customType") {
            Some(custom) if custom.starts_with(PRUNER_PREFIX) => Event::PrunerEntry {
                kind: custom.to_string(),
                data: entry.get("data").cloned().unwrap_or_default(),
            },
            Some(custom) => return Err(format!("custom {custom}")),
            None => return Err("custom".to_string()),
        },
        other => return Err(other.to_string()),
    };
    Ok((at_ms, event))
}

fn message(message: Option<&Value>, entry_at_ms: u64) -> std::result::Result<(u64, Event), String> {
    let Some(Value::Object(fields)) = message else {
        return Err("message without a body".to_string());
    };
    let mut fields = fields.clone();
    let mut role = match fields.get("role") {
        Some(Value::String(role)) => role.clone(),
        _ => return Err("message without a role".to_string()),
    };
    if role == "hookMessage" {
        role = "custom".to_string();
        fields.insert("role".to_string(), json!(role));
    }
    if !ROLES.contains(&role.as_str()) {
        return Err(format!("message of the role {role}"));
    }
    let at_ms = epoch_ms(fields.get("timestamp")).unwrap_or(entry_at_ms);
    fields.insert("timestamp".to_string(), json!(at_ms));
    let is_pruners = is_pruner_message(&fields);
    let message = Value::Object(fields);
    let event = match is_pruners {
        true => Event::PrunerMessage(message),
        false => Event::Message(message),
    };
    Ok((at_ms, event))
}

fn is_pruner_message(fields: &Map<String, Value>) -> bool {
    fields.get("role").and_then(Value::as_str) == Some("custom")
        && fields
            .get("customType")
            .and_then(Value::as_str)
            .is_some_and(|kind| kind.starts_with(PRUNER_PREFIX))
}

fn custom_message(entry: &Value, at_ms: u64) -> Event {
    let mut fields = Map::new();
    fields.insert("role".to_string(), json!("custom"));
    for key in ["customType", "content", "display", "details"] {
        if let Some(value) = entry.get(key) {
            fields.insert(key.to_string(), value.clone());
        }
    }
    fields.insert("timestamp".to_string(), json!(at_ms));
    match is_pruner_message(&fields) {
        true => Event::PrunerMessage(Value::Object(fields)),
        false => Event::Message(Value::Object(fields)),
    }
}

fn first_kept(entry: &Value, by_place: &[Option<String>]) -> Option<String> {
    if let Some(id) = text(entry, "firstKeptEntryId") {
        return Some(id.to_string());
    }
    let place = entry.get("firstKeptEntryIndex").and_then(Value::as_u64)?;
    by_place.get(usize::try_from(place).ok()?)?.clone()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}
