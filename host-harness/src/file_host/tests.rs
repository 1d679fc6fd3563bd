use std::env;

use super::*;

/// A folder of its own for each test, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("decant-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a writable folder");
        Self(folder)
    }

    fn log(&self) -> PathBuf {
        self.0.join("session.jsonl")
    }

    fn with_log(name: &str, lines: &str) -> Self {
        let folder = Self::new(name);
        fs::write(folder.log(), lines).expect("a writable folder");
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(folder: &Folder) -> FileHost {
    FileHost::open(folder.log()).expect("a readable log")
}

fn data(host: &mut FileHost) -> Vec<String> {
    let entries = host.entries(0).expect("a readable log");
    entries.into_iter().map(|entry| entry.data).collect()
}

#[test]
fn entries_are_read_back_as_they_were_appended() {
    let folder = Folder::new("round-trip");
    let mut host = open(&folder);
    let spaced = r#"{"b": 1.0, "a": "\ud83d\ude42"}"#;
    let first = host
        .append("k", spaced, 1_796_090_276_694)
        .expect("appended");
    let second = host
        .append_message("m", "text \n", "[1]", 0)
        .expect("appended");
    let third = host.append("k", "{\n\"a\": 1\n}", 0).expect("appended");
    let refused = host.append("k", "no JSON", 0);
    assert!(matches!(refused, Err(HostError::Failed(_))), "{refused:?}");

    let mut again = open(&folder);
    for host in [&mut host, &mut again] {
        assert_eq!(host.read(&first.entry).as_deref(), Ok(spaced));
        let message = r#"{"content":"text \n","details":[1]}"#;
        assert_eq!(host.read(&second.entry).as_deref(), Ok(message));
        assert_eq!(host.read(&third.entry).as_deref(), Ok(r#"{"a":1}"#));
        assert_eq!(host.read("x"), Err(HostError::NotFound));
        let entries = host.entries(0).expect("a readable log");
        let stamps: Vec<Stamp> = entries
            .iter()
            .map(|entry| Stamp {
                entry: entry.id.clone(),
                at: entry.at,
            })
            .collect();
        assert_eq!(stamps, [first.clone(), second.clone(), third.clone()]);
        assert_eq!(entries[0].at, 1_796_090_276_694);
        assert_eq!(host.entries(3), Ok(Vec::new()));
    }
    let written = fs::read_to_string(folder.log()).expect("a readable log");
    expect_first_line(
        &written,
        r#"{"type":"custom","customType":"k","data":{"b": 1.0, "a": "\ud83d\ude42"},"id":"00000000","timestamp":"2026-12-01T01:57:56.694Z"}"#,
    );
}

fn expect_first_line(text: &str, expected: &str) {
    assert_eq!(text.lines().next(), Some(expected));
}

#[test]
fn a_line_that_a_crash_cut_off_is_passed_over() {
    let whole = r#"{"type":"custom","customType":"k","data":1,"id":"a","timestamp":"1970-01-01T00:00:00Z"}"#;
    let cut = &whole[..40];
    // The last line of the third file is whole but for its line end.
    for (name, lines) in [
        ("cut", format!("{whole}\n{cut}")),
        ("crlf", format!("{whole}\r\n\r\n")),
        ("no-end", whole.to_owned()),
    ] {
        let folder = Folder::with_log(name, &lines);
        let mut host = open(&folder);
        assert_eq!(data(&mut host), ["1"], "{name}");
        host.append("k", "2", 0).expect("appended");
        assert_eq!(data(&mut host), ["1", "2"], "{name}");
        assert_eq!(data(&mut open(&folder)), ["1", "2"], "{name}");
    }
}

#[test]
fn in_a_tree_the_entries_of_the_last_branch_count() {
    let lines = r#"
{"type":"session","version":3,"id":"s","timestamp":"1970-01-01T00:00:00Z"}
{"type":"message","id":"a","parentId":null,"timestamp":"1970-01-01T00:00:00Z","message":{"content":"\ud83d"}}
{"type":"custom","customType":"k","data":"gone \ud83d","id":"b","parentId":"a","timestamp":"1970-01-01T00:00:00Z"}
{"type":"custom_message","customType":"m","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}],"display":false,"id":"c","parentId":"a","timestamp":"1970-01-01T00:00:00Z"}
"#;
    let folder = Folder::with_log("tree", lines.trim_start());
    let mut host = open(&folder);
    assert_eq!(data(&mut host), [r#"{"content":"x\ny","details":null}"#]);
    assert_eq!(host.read("b").as_deref(), Ok(r#""gone \ufffd""#));
    host.append("k", "3", 0).expect("appended");
    let written = fs::read_to_string(folder.log()).expect("a readable log");
    let last = written.lines().last().expect("lines");
    assert!(last.contains(r#""parentId":"c""#), "{last}");
    assert_eq!(data(&mut open(&folder)).len(), 2);
}

#[test]
fn blobs_are_files_beside_the_log() {
    let folder = Folder::new("blobs");
    let mut host = open(&folder);
    let place = host.write_blob("c1.txt", "text").expect("written");
    assert_eq!(
        place,
        folder.0.join("session-blobs/c1.txt").display().to_string()
    );
    assert_eq!(fs::read_to_string(place).expect("a file"), "text");
    assert_eq!(host.read_blob("c1.txt").as_deref(), Ok("text"));
    assert_eq!(host.read_blob("c2.txt"), Err(HostError::NotFound));
    assert_eq!(fs::read_dir(host.blobs()).expect("a folder").count(), 1);
}
