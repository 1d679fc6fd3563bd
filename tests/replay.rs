//! `decant replay` and its kin, as a user runs them. `UPDATE_EXPECT=1` writes the expected reports
//! anew.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use decant_cli::cli::{self, Exit};
use expect_test::expect_file;
use serde_json::Value;

fn sessions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions")
}

fn session(name: &str) -> String {
    sessions().join(name).display().to_string()
}

/// An empty folder for one test.
fn scratch(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an old folder");
    }
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Runs the command; returns how it ended, and what it printed to either stream.
fn decant(arguments: &[&str]) -> (Exit, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = ["decant"].iter().chain(arguments).map(OsString::from);
    let exit = cli::run(arguments, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (exit, text(out), text(err))
}

fn replayed(arguments: &[&str]) -> String {
    let (exit, out, err) = decant(&[&["replay"], arguments].concat());
    assert_eq!(
        (exit, err.as_str()),
        (Exit::Success, ""),
        "{arguments:?}\n{out}"
    );
    out
}

fn replayed_json(arguments: &[&str]) -> Value {
    let out = replayed(&[&["--json"], arguments].concat());
    serde_json::from_str(&out).expect("JSON")
}

#[test]
fn a_report_says_what_was_saved() {
    let report = replayed(&[
        &session("cc-viewer-medium.jsonl"),
        &session("swe-marshmallow-fc.jsonl"),
    ]);
    expect_file![sessions().join("report.txt")].assert_eq(&report);
}

/// The walk sends what pi sent: the figures were taken from the session by other means.
#[test]
fn the_unpruned_price_is_known() {
    let json = replayed_json(&[
        &session("pi-large-session.jsonl"),
        "--summarizer",
        "ratio:0.1",
    ]);
    let session = &json["sessions"][0];
    let chars = &session["unpruned"]["chars"];
    assert_eq!(session["modelCalls"], 453);
    assert_eq!(
        (&chars["fresh"], &chars["cached"]),
        (&595_521.into(), &162_475_438.into())
    );
    assert_eq!(chars["price"], 16_991_945.0);
}

#[test]
fn two_replays_print_the_same_bytes() {
    let arguments = [&session("pi-large-session.jsonl"), "--json"];
    assert!(replayed(&arguments) == replayed(&arguments));
}

#[test]
fn each_call_sends_what_a_live_host_would_have_sent() {
    let rows: [(&str, &[&str], &[u64]); 7] = [
        ("branch.jsonl", &[], &[3]),
        ("compaction.jsonl", &[], &[1, 3, 4]),
        ("compaction.jsonl", &["--ignore-compactions"], &[1, 3, 5]),
        ("aborted.jsonl", &[], &[1, 2, 2, 4]),
        // The user's message was edited out, the result replaced.
        ("other-entries.jsonl", &[], &[1, 4]),
        ("version-1.jsonl", &[], &[1, 3, 2]),
        ("claude-code.jsonl", &[], &[1, 4, 2, 2]),
    ];
    for (file, arguments, expected) in rows {
        let file = session(&format!("odd/{file}"));
        let json = replayed_json(&[&[file.as_str()], arguments].concat());
        let calls = json["sessions"][0]["calls"].as_array().expect("calls");
        let sent: Vec<u64> = calls
            .iter()
            .map(|call| call["unpruned"]["messages"].as_u64().expect("a count"))
            .collect();
        assert_eq!(sent, expected, "{file}");
    }
}

#[test]
fn the_invariants_hold_on_small_sessions() {
    for file in ["swe-marshmallow-fc.jsonl", "claude-code-small.jsonl"] {
        for settings in ["minBatchChars=0", "cachePolicy=live", "batchingMode=turn"] {
            let out = replayed(&[&session(file), "--check", "--set", settings]);
            assert!(out.contains("checks passed"), "{out}");
        }
    }
    for file in [
        "aborted",
        "branch",
        "compaction",
        "reused-call-ids",
        "other-entries",
        "crlf",
    ] {
        let out = replayed(&[&session(&format!("odd/{file}.jsonl")), "--check"]);
        assert!(out.contains("checks passed"), "{out}");
    }
}

/// Wherever the process dies, the second run ends with the log and the context of a run that was
/// left alone.
#[test]
fn a_killed_replay_is_resumed() {
    let folder = scratch("resume");
    let path = |name: &str| folder.join(name).display().to_string();
    let input = session("cc-viewer-medium.jsonl");
    let (whole, cut) = (path("whole.jsonl"), path("cut.jsonl"));
    replayed(&[&input, "--log", &whole, "--out", &path("whole")]);
    let whole_log = fs::read(&whole).expect("the log");
    let line_ends = (0..whole_log.len()).filter(|at| whole_log[*at] == b'\n');
    for (n, end) in line_ends.enumerate() {
        // Every third time in the middle of a line.
        let end = if n % 3 == 2 { end - 20 } else { end + 1 };
        fs::write(&cut, &whole_log[..end]).expect("the cut log");
        replayed(&[&input, "--log", &cut, "--resume", "--out", &path("cut")]);
        assert!(
            fs::read(&cut).expect("the log") == whole_log,
            "cut off at byte {end}"
        );
        assert_eq!(
            last_context(&folder.join("cut")),
            last_context(&folder.join("whole"))
        );
    }
}

fn last_context(folder: &Path) -> String {
    let contexts = fs::read_dir(folder.join("cc-viewer-medium")).expect("the folder of contexts");
    let paths = contexts.map(|entry| entry.expect("an entry").path());
    fs::read_to_string(paths.max().expect("a context")).expect("a context")
}

#[test]
fn a_log_can_be_asked() {
    let log = scratch("asked").join("log.jsonl").display().to_string();
    replayed(&[&session("cc-viewer-medium.jsonl"), "--log", &log]);
    let (exit, answer, _) = decant(&["query", &log, "t1"]);
    assert_eq!(exit, Exit::Success);
    assert!(answer.starts_with("## toolRef: t1\n"), "{answer}");
    let (_, part, _) = decant(&["query", &log, "t1", "--offset", "1", "--limit", "1"]);
    assert!(part.len() < answer.len(), "{part}");
    let (_, tree, _) = decant(&["tree", &log]);
    assert!(tree.contains("t1"), "{tree}");
    let (_, status, _) = decant(&["status", &log]);
    assert!(status.contains("with pruning"), "{status}");
    let (_, resumed, _) = decant(&["replay", &log, "--resume"]);
    assert!(resumed.contains("refs"), "{resumed}");
}

#[test]
fn an_html_report_needs_nothing_else() {
    let path = scratch("html").join("report.html");
    replayed(&[
        &session("cc-viewer-medium.jsonl"),
        "--html",
        &path.display().to_string(),
    ]);
    let page = fs::read_to_string(path).expect("the report");
    assert!(page.contains("<svg") && page.contains("cc-viewer-medium"));
    for outside in ["http:", "https:", "src=", "@import", "<link", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn what_goes_wrong_is_said() {
    let log = scratch("wrong").join("log.jsonl").display().to_string();
    fs::copy(session("odd/crlf.jsonl"), &log).expect("a log");
    let input = session("odd/branch.jsonl");
    let rows: [(&[&str], Exit, &[&str]); 8] = [
        (
            &["replay", &session("odd/not-json.txt")],
            Exit::Failed,
            &["not-json.txt", "line 1: not a session entry"],
        ),
        (
            &["replay", "nowhere.jsonl"],
            Exit::Failed,
            &["nowhere.jsonl", "cannot read"],
        ),
        (
            &["replay", &input, "--log", &log],
            Exit::Failed,
            &["log.jsonl", "--resume"],
        ),
        (
            &[
                "replay",
                &session("cc-viewer-medium.jsonl"),
                "--log",
                &log,
                "--resume",
            ],
            Exit::Failed,
            &["log.jsonl", "not a log of this session"],
        ),
        (
            &["replay", &input, "--summarizer", "gpt"],
            Exit::Usage,
            &["extractive", "ratio:R"],
        ),
        (
            &["replay", &input, "--set", "minBatchChars"],
            Exit::Failed,
            &["--set minBatchChars"],
        ),
        (
            &["replay", &input, "--rates", "1,2"],
            Exit::Usage,
            &["1.25,0.1,1.5"],
        ),
        (
            &["replay", &input, &input, "--log", &log],
            Exit::Failed,
            &["--log"],
        ),
    ];
    for (arguments, expected, words) in rows {
        let (exit, _, err) = decant(arguments);
        assert_eq!(exit, expected, "{arguments:?}: {err}");
        for word in words {
            assert!(err.contains(word), "{arguments:?}: {err}");
        }
    }
}
