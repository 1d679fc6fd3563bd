//! The log of a replay, a session file in pi's format 3 that grows with it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use decant_host::iso_from_ms;
use serde_json::{Map, Value, json};

use crate::formats::{Event, Step};

/// A log that is open for writing. Each line is written at once, so that a killed process leaves at
/// most its last line cut off.
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    leaf: Option<String>,
}

impl LogFile {
    /// Begins a log.
    ///
    /// # Errors
    ///
    /// When there is such a file already, or it cannot be written.
    pub(super) fn create(path: &Path, session_id: &str, at_ms: u64) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)?;
        let mut log = Self {
            path: path.to_path_buf(),
            file,
            leaf: None,
        };
        log.write(&json!({
            "type": "session",
            "version": 3,
            "id": session_id,
            "timestamp": iso_from_ms(at_ms),
            "cwd": "",
        }))?;
        Ok(log)
    }

    /// Goes on behind the entry `leaf`, or behind the header. What follows is taken away: the end of
    /// a line that was cut off, and what a hook had appended that did not come to its end.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or written.
    pub(super) fn go_on(path: &Path, leaf: Option<String>) -> io::Result<Self> {
        let text = std::fs::read(path)?;
        let mut end = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            end += line.len();
            let entry: Value = serde_json::from_slice(line).unwrap_or_default();
            if leaf.is_none() || entry["id"].as_str() == leaf.as_deref() {
                break;
            }
        }
        let file = OpenOptions::new().append(true).open(path)?;
        file.set_len(end as u64)?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            leaf,
        })
    }

    /// Appends an entry behind the last one. `fields` has its type and what belongs to it.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub(super) fn append(&mut self, id: &str, at_ms: u64, fields: Value) -> io::Result<()> {
        let mut entry = Map::new();
        if let Value::Object(fields) = fields {
            entry.extend(fields);
        }
        entry.insert("id".to_string(), json!(id));
        entry.insert("parentId".to_string(), json!(self.leaf));
        entry.insert("timestamp".to_string(), json!(iso_from_ms(at_ms)));
        self.write(&Value::Object(entry))?;
        self.leaf = Some(id.to_string());
        Ok(())
    }

    fn write(&mut self, line: &Value) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the blobs of this log are.
    pub(super) fn blob_folder(&self) -> PathBuf {
        blob_folder(&self.path)
    }
}

/// The folder of the blobs that belong to a log.
pub(super) fn blob_folder(log: &Path) -> PathBuf {
    let mut name = log.file_stem().unwrap_or_default().to_os_string();
    name.push("-blobs");
    log.with_file_name(name)
}

/// A step of a recording as the fields of a log entry; `None` for what a pruner wrote itself.
pub(super) fn fields_of(step: &Step) -> Option<Value> {
    Some(match &step.event {
        Event::Message(message) => message_fields(message),
        Event::Compaction {
            summary,
            first_kept,
        } => json!({
            "type": "compaction",
            "summary": summary.get("summary").or(summary.get("content")),
            "firstKeptEntryId": first_kept,
            "tokensBefore": summary.get("tokensBefore"),
        }),
        Event::ContextEdit { target, content } => json!({
            "type": "context_edit",
            "targetId": target,
            "replacement": content.as_ref().map(|content| json!({"content": content})),
        }),
        Event::ModelChange(model) => {
            let (provider, id) = model.split_once('/').unwrap_or(("", model));
            json!({"type": "model_change", "provider": provider, "modelId": id})
        }
        Event::PrunerEntry { .. } | Event::PrunerMessage(_) => return None,
    })
}

fn message_fields(message: &Value) -> Value {
    let entry_type = match message["role"].as_str() {
        Some("custom") => "custom_message",
        Some("branchSummary") => "branch_summary",
        _ => return json!({"type": "message", "message": message}),
    };
    let mut fields = message.as_object().cloned().unwrap_or_default();
    fields.shift_remove("role");
    fields.shift_remove("timestamp");
    fields.insert("type".to_string(), json!(entry_type));
    Value::Object(fields)
}
