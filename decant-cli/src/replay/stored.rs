//! A session as its log holds it, without going on with it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use decant_host::{Decant, LogEntry, Message, Session, SessionOptions};
use serde_json::{Map, Value, json};

use super::conversation::{Conversation, Line};
use super::host::{ReplayHost, message_data};
use super::log::blob_folder;
use crate::formats::{self, Event, Recording, Step};

/// A session that was loaded from its log. Nothing that is asked of it is written anywhere.
pub(crate) struct Stored {
    /// The session, with the transcript of the active branch.
    pub session: Session,
    /// When the last thing in the log happened.
    pub at_ms: u64,
}

impl Stored {
    /// Loads a session from a log that a replay or pi wrote.
    ///
    /// # Errors
    ///
    /// When the file is no session, or the settings are bad.
    pub(crate) fn open(decant: &Decant, path: &Path, config: &Map<String, Value>) -> Result<Self> {
        let recording = formats::read(path)?;
        let folders = [
            blob_folder(path),
            pi_blob_folder(path, &recording.session_id),
        ];
        let mut host = ReplayHost::default().with_blob_folders(folders);
        let mut conversation = Conversation::default();
        for (number, step) in recording.steps.iter().enumerate() {
            adopt(step, number, &recording, &mut conversation, &mut host);
        }
        let mut session = decant
            .open(session_options(&recording.session_id, config), host)
            .with_context(|| format!("{}: cannot open the session", path.display()))?;
        session.replace_all(conversation.live_messages());
        let at_ms = recording.steps.iter().map(|step| step.at_ms).max();
        Ok(Self {
            session,
            at_ms: at_ms.unwrap_or(0),
        })
    }
}

/// Where pi-condense keeps the blobs of a session.
fn pi_blob_folder(path: &Path, session_id: &str) -> PathBuf {
    path.with_file_name(format!("{session_id}-blobs"))
}

/// How replays open a session: the log is the transcript, as in pi.
pub(super) fn session_options(id: &str, config: &Map<String, Value>) -> SessionOptions {
    let mut options = SessionOptions::new(id, Value::Object(config.clone()));
    options.summaries_in_transcript = true;
    options
}

/// Takes over a step that is in the log already.
pub(super) fn adopt(
    step: &Step,
    number: usize,
    recording: &Recording,
    conversation: &mut Conversation,
    host: &mut ReplayHost,
) {
    match &step.event {
        Event::PrunerEntry { kind, data } => host.adopt(LogEntry {
            id: step.id.clone(),
            kind: kind.clone(),
            data: data.to_string(),
            at: step.at_ms,
        }),
        Event::PrunerMessage(message) => {
            if let Ok(message) = Message::from_json(as_blocks(message)) {
                host.adopt(pruner_entry(step, &message));
                let id = step.id.clone();
                conversation.push_pruners(Line { id, message });
            }
        }
        _ => happen(step, number, recording, conversation),
    }
}

/// The message with a string as its content turned into a text block, as it was when it was new.
fn as_blocks(message: &Value) -> Value {
    let mut message = message.clone();
    if let Value::String(text) = &message["content"] {
        message["content"] = json!([{"type": "text", "text": text}]);
    }
    message
}

fn pruner_entry(step: &Step, message: &Message) -> LogEntry {
    let json = message.as_json();
    LogEntry {
        id: step.id.clone(),
        kind: json["customType"].as_str().unwrap_or_default().to_string(),
        data: message_data(&message.text(), &json["details"]),
        at: step.at_ms,
    }
}

/// Lets a recorded step happen to the conversation. What a pruner wrote does nothing.
pub(super) fn happen(
    step: &Step,
    number: usize,
    recording: &Recording,
    conversation: &mut Conversation,
) {
    match &step.event {
        Event::Message(value) => {
            if let Ok(message) = Message::from_json(value.clone()) {
                let id = step.id.clone();
                conversation.push(Line { id, message }, number);
            }
        }
        Event::Compaction {
            summary,
            first_kept,
        } => {
            let of_id = |id: &String| recording.steps[..number].iter().rposition(|s| s.id == *id);
            let first_kept = first_kept.as_ref().and_then(of_id);
            if let Ok(message) = Message::from_json(summary.clone()) {
                let id = step.id.clone();
                conversation.compact(&Line { id, message }, first_kept);
            }
        }
        Event::ContextEdit { target, content } => conversation.edit(target, content.as_ref()),
        Event::ModelChange(_) | Event::PrunerEntry { .. } | Event::PrunerMessage(_) => {}
    }
}
