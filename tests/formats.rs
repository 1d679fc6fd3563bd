//! The readers of recorded sessions: each file of `tests/sessions/odd` against what must be read from
//! it, in the file of the same name with `.read` behind it. `UPDATE_EXPECT=1` writes these anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use decant_cli::formats::{self, Event, Recording, Step};
use expect_test::expect_file;
use serde_json::Value;

fn sessions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("folder of sessions");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("entry").path()).collect();
    files.sort();
    files
}

#[test]
fn odd_files_are_read_as_they_should_be() {
    let is_input = |path: &PathBuf| path.extension().is_some_and(|ext| ext != "read");
    let inputs: Vec<PathBuf> = files(&sessions().join("odd"))
        .into_iter()
        .filter(is_input)
        .collect();
    assert!(inputs.len() > 15, "fixtures are missing");
    for input in inputs {
        let bytes = std::fs::read(&input).expect("fixture");
        let outline = match formats::parse(&bytes, "file-name") {
            Ok(recording) => outline(&recording),
            Err(error) => format!("error: {error:#}\n"),
        };
        let name = input.file_name().expect("name").to_string_lossy();
        expect_file![input.with_file_name(format!("{name}.read"))].assert_eq(&outline);
    }
}

#[test]
fn an_error_names_the_file_and_the_line() {
    let rows = [
        ("odd/not-json.txt", "line 1: not a session entry"),
        (
            "odd/broken-in-the-middle.jsonl",
            "line 2: not a session entry",
        ),
        ("nowhere.jsonl", "cannot read"),
    ];
    for (file, words) in rows {
        let error = formats::read(&sessions().join(file)).expect_err(file);
        let error = format!("{error:#}");
        assert!(error.contains(file) && error.contains(words), "{error}");
    }
}

#[test]
fn real_sessions_are_read_whole() {
    let rows = [
        ("pi-large-session.jsonl", 914),
        ("swe-marshmallow-fc.jsonl", 27),
        ("cc-viewer-medium.jsonl", 25),
        ("claude-code-small.jsonl", 21),
    ];
    for (file, n_messages) in rows {
        let recording = formats::read(&sessions().join(file)).expect(file);
        assert_eq!(recording.messages().count(), n_messages, "{file}");
        assert!(recording.notes.is_empty(), "{file}: {:?}", recording.notes);
    }
}

fn outline(recording: &Recording) -> String {
    let mut out = format!(
        "{}, session {}\n",
        recording.format.name(),
        recording.session_id
    );
    for note in &recording.notes {
        writeln!(out, "note: {note}").unwrap();
    }
    for (kind, n) in &recording.aside {
        writeln!(out, "aside: {kind} {n}").unwrap();
    }
    for step in &recording.steps {
        writeln!(out, "{}", step_line(step)).unwrap();
    }
    out
}

fn step_line(step: &Step) -> String {
    let at = format!("{} @{}", step.id, step.at_ms);
    match &step.event {
        Event::Message(message) => format!("{at} {}", message_line(message)),
        Event::PrunerMessage(message) => format!("{at} pruner's {}", message_line(message)),
        Event::PrunerEntry { kind, data } => format!("{at} pruner's entry {kind} {data}"),
        Event::ModelChange(model) => format!("{at} model {model}"),
        Event::ContextEdit { target, content } => match content {
            Some(content) => format!("{at} edit of {target}: {content}"),
            None => format!("{at} edit of {target}: left out"),
        },
        Event::Compaction {
            summary,
            first_kept,
        } => format!(
            "{at} compaction, kept from {}: {}",
            first_kept.as_deref().unwrap_or("(nothing)"),
            message_line(summary)
        ),
    }
}

/// The message without what the line says already.
fn message_line(message: &Value) -> String {
    let mut fields = message.as_object().expect("an object").clone();
    let role = fields.shift_remove("role").expect("a role");
    let at = fields.shift_remove("timestamp").expect("a timestamp");
    assert!(at.is_u64(), "{message}");
    let rest = Value::Object(fields);
    format!("{} {rest}", role.as_str().expect("a string"))
}
