//! What code and documents cite is in a document of this repository.
//!
//! Citations are looked for in documents, in comments, and in the sentences of scenarios (`name` and
//! `about`), never in code or data, where the same letters mean other things. There
//!
//! - a rule is the letter B and a number without a leading zero, `design section` and a number a
//!   section, `invariant` and a number an invariant, a field report one of the letters A to O and two
//!   digits that do not make it a rule. Words in backticks are code and cite nothing;
//! - a document is a path below one of [`FOLDERS`] that ends in `.md`, in backticks or not. It is
//!   looked for from the folder of the citing file upwards.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that documents live in, as paths begin that name one.
const FOLDERS: [&str; 4] = ["docs/", "tests/", "test/", "pi-extension/"];

/// Folders in which nothing was written by hand, besides every `node_modules`.
const GENERATED: [&str; 4] = [
    "./target",
    "./pi-extension/component",
    "./pi-extension/dist",
    "./pi-extension/test/out",
];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Citation {
    Rule(u32),
    Report(String),
    Section(u32),
    Invariant(u32),
    Document(String),
}

#[test]
fn what_is_cited_is_defined() {
    let design = Design::read();
    let mut undefined = String::new();
    let mut count = 0;
    for file in files(Path::new(".")) {
        let text = fs::read_to_string(&file).expect("it is text");
        for citation in citations(&prose(&file, &text)) {
            count += 1;
            if !design.defines(&citation) && !is_document(&file, &citation) {
                writeln!(undefined, "{}: {citation:?}", file.display()).expect("it is a string");
            }
        }
    }
    assert!(count > 100, "only {count} citations: the search is broken");
    assert!(
        undefined.is_empty(),
        "cited, but nowhere defined:\n{undefined}"
    );
}

#[test]
fn every_rule_is_defined_once_and_has_scenarios() {
    let design = Design::read();
    let wanted: Vec<u32> = (1..).take(design.rules.len()).collect();
    assert_eq!(
        design.rules, wanted,
        "the rules of docs/design.md, in order"
    );
    let table = read("tests/scenarios/README.md");
    let rows: BTreeMap<u32, &str> = rows(&table)
        .filter_map(|(first, row)| Some((rule(first.split(' ').next()?)?, row)))
        .collect();
    for number in &design.built {
        let row = rows.get(number);
        assert!(
            row.is_some(),
            "B{number} has no row in tests/scenarios/README.md"
        );
    }
    for (number, row) in rows {
        assert!(design.built.contains(&number), "B{number} is not built");
        for pattern in row
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|name| name.contains('/'))
        {
            assert!(
                has_scenario(pattern),
                "B{number}: there is no scenario {pattern}"
            );
        }
    }
}

#[test]
fn citations_are_told_from_other_words() {
    check(
        "Source: design B12, field report H02.",
        &[rule_of(12), report("H02")],
    );
    check("left alone (B2); B7's pages", &[rule_of(2), rule_of(7)]);
    check(
        "design section 5, invariant 6",
        &[Citation::Section(5), Citation::Invariant(6)],
    );
    check(
        "see `docs/seed.md`.",
        &[Citation::Document("docs/seed.md".to_owned())],
    );
    check(
        "A01 and B01, but B10",
        &[report("A01"), report("B01"), rule_of(10)],
    );
    check(
        "block `B2`, U+D83D, AB12, B1x, P01, **/docs/*.md, AGENTS.md",
        &[],
    );
}

#[test]
fn comments_are_told_from_code() {
    let source = "let x = 1; // one\n    /// two\ncode(\"three\");\n//! four";
    assert_eq!(prose(Path::new("a.rs"), source), "one\ntwo\nfour");
    let source = "/** one\n * two\n */\nconst three = 4 * 5;\nf(); // six";
    assert_eq!(prose(Path::new("a.ts"), source), "one\ntwo\n\nsix");
    let source = "{\n  \"about\": \"one\",\n  \"config\": {}";
    assert_eq!(prose(Path::new("scenarios/a.json"), source), "\"one\",");
}

#[track_caller]
fn check(text: &str, wanted: &[Citation]) {
    let wanted: BTreeSet<Citation> = wanted.iter().cloned().collect();
    assert_eq!(citations(text), wanted, "{text}");
}

fn rule_of(number: u32) -> Citation {
    Citation::Rule(number)
}

fn report(name: &str) -> Citation {
    Citation::Report(name.to_owned())
}

/// What `docs/design.md` defines.
struct Design {
    /// In the order of the document: headings of the rules that are built, rows of the others.
    rules: Vec<u32>,
    built: BTreeSet<u32>,
    reports: BTreeSet<String>,
    sections: BTreeSet<u32>,
    invariants: BTreeSet<u32>,
}

impl Design {
    fn read() -> Self {
        let text = read("docs/design.md");
        let headings = |mark| text.lines().filter_map(move |line| line.strip_prefix(mark));
        let first = |text: &str| text.split([' ', '.']).next().unwrap_or_default().to_owned();
        let built: Vec<u32> = headings("### ")
            .filter_map(|title| rule(&first(title)))
            .collect();
        let names: Vec<String> = rows(&text).map(|(name, _)| first(name)).collect();
        let planned = names.iter().filter_map(|name| rule(name));
        Self {
            rules: built.iter().copied().chain(planned).collect(),
            built: built.iter().copied().collect(),
            reports: names
                .iter()
                .filter(|name| is_report(name))
                .cloned()
                .collect(),
            sections: headings("## ")
                .filter_map(|title| first(title).parse().ok())
                .collect(),
            invariants: names.iter().filter_map(|name| name.parse().ok()).collect(),
        }
    }

    fn defines(&self, citation: &Citation) -> bool {
        match citation {
            Citation::Rule(number) => self.rules.contains(number),
            Citation::Report(name) => self.reports.contains(name),
            Citation::Section(number) => self.sections.contains(number),
            Citation::Invariant(number) => self.invariants.contains(number),
            Citation::Document(_) => false,
        }
    }
}

/// The rows of a document's tables, each with its first cell.
fn rows(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
    rows.filter_map(|row| Some((row.split(" | ").next()?, row)))
}

fn is_document(citing: &Path, citation: &Citation) -> bool {
    let Citation::Document(path) = citation else {
        return false;
    };
    let mut folders = citing.ancestors().skip(1);
    folders.any(|folder| folder.join(path).is_file())
}

/// Whether a scenario has this name, or, with a `*` at the end, begins like it.
fn has_scenario(pattern: &str) -> bool {
    let path = Path::new("tests/scenarios").join(pattern);
    let Some(start) = pattern.strip_suffix('*') else {
        return path.with_extension("json").is_file();
    };
    let start = Path::new("tests/scenarios").join(start);
    let start = start.to_str().expect("names are ASCII");
    let found = files(path.parent().expect("it has a folder"));
    found
        .iter()
        .any(|file| file.to_str().is_some_and(|file| file.starts_with(start)))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All files that may cite something, in order. Links are not followed.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let entry = entry.expect("it can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().expect("it has a type");
        let path = entry.path();
        let is_generated = GENERATED.iter().any(|folder| path == Path::new(folder));
        if name.starts_with('.') || name == "node_modules" || is_generated {
            continue;
        }
        if kind.is_dir() {
            files.extend(self::files(&path));
        } else if kind.is_file() && Source::of(&path).is_some() {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// How a file says what it says to people.
enum Source {
    Document,
    /// Comments that begin with `//`.
    Slashes,
    /// These, and lines that begin with a `*`.
    Stars,
    Scenario,
}

impl Source {
    fn of(path: &Path) -> Option<Self> {
        let text = path.to_str()?;
        match path.extension()?.to_str()? {
            "md" => Some(Self::Document),
            "rs" | "wit" => Some(Self::Slashes),
            "ts" | "mjs" => Some(Self::Stars),
            "json" if text.contains("scenarios/") && !text.ends_with(".outcome.json") => {
                Some(Self::Scenario)
            }
            _ => None,
        }
    }

    fn words<'a>(&self, line: &'a str) -> Option<&'a str> {
        let trimmed = line.trim_start();
        let slashes = || line.find("//").and_then(|at| line.get(at..));
        match self {
            Self::Document => Some(line),
            Self::Slashes => slashes(),
            Self::Stars if trimmed.starts_with("/*") || trimmed.starts_with('*') => Some(trimmed),
            Self::Stars => slashes(),
            Self::Scenario => ["\"name\":", "\"about\":"]
                .iter()
                .find_map(|key| trimmed.strip_prefix(key)),
        }
    }
}

/// The lines of a file that are meant for people, without the signs that mark them.
fn prose(path: &Path, text: &str) -> String {
    let Some(source) = Source::of(path) else {
        return String::new();
    };
    let lines = text.lines().filter_map(|line| source.words(line));
    let lines = lines.map(|line| line.trim_matches(['/', '!', '*', ' ']));
    lines.collect::<Vec<_>>().join("\n")
}

fn citations(prose: &str) -> BTreeSet<Citation> {
    let mut words: Vec<&str> = Vec::new();
    for line in prose.lines() {
        for outside_of_code in line.split('`').step_by(2) {
            let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
            words.extend(outside_of_code.split(|c| !is_of_word(c)));
        }
    }
    words.retain(|word| !word.is_empty());
    let mut found: BTreeSet<Citation> = paths(prose).collect();
    for (at, word) in words.iter().enumerate() {
        let before = |distance: usize| {
            let earlier = at.checked_sub(distance).and_then(|at| words.get(at));
            earlier.map_or(String::new(), |word| word.to_lowercase())
        };
        if let Some(number) = rule(word) {
            found.insert(Citation::Rule(number));
        } else if is_report(word) {
            found.insert(Citation::Report((*word).to_owned()));
        } else if let Ok(number) = word.parse() {
            if before(1) == "invariant" {
                found.insert(Citation::Invariant(number));
            } else if before(1) == "section" && before(2) == "design" {
                found.insert(Citation::Section(number));
            }
        }
    }
    found
}

fn paths(prose: &str) -> impl Iterator<Item = Citation> {
    let is_of_path = |c: char| c.is_alphanumeric() || "/._-*".contains(c);
    let words = prose.split(move |c| !is_of_path(c));
    let words = words.map(|word| word.trim_end_matches('.'));
    let paths = words.filter(|word| {
        let is_below = FOLDERS.iter().any(|folder| word.starts_with(folder));
        is_below && word.ends_with(".md") && !word.contains('*')
    });
    paths.map(|path| Citation::Document(path.to_owned()))
}

fn rule(word: &str) -> Option<u32> {
    let digits = word
        .strip_prefix('B')
        .filter(|digits| !digits.starts_with('0'))?;
    let are_digits = digits.chars().all(|c| c.is_ascii_digit());
    are_digits.then(|| digits.parse().ok()).flatten()
}

fn is_report(word: &str) -> bool {
    let mut chars = word.chars();
    let has_letter = chars
        .next()
        .is_some_and(|letter| ('A'..='O').contains(&letter));
    let digits = chars.as_str();
    let has_digits = digits.len() == 2 && digits.chars().all(|c| c.is_ascii_digit());
    has_letter && has_digits && rule(word).is_none()
}
