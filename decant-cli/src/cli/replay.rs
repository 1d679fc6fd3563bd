//! `decant replay`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use decant_host::{Decant, Message};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::Exit;
use super::settings::Settings;
use crate::formats::{self, Recording};
use crate::price::Rates;
use crate::replay::{Options, Replayed, Watcher, replay};
use crate::report;
use crate::summarizer::Named;

/// Writing to the cache costs a quarter more than plain input and reading from it a tenth, as at
/// Anthropic; a prompt of the summarizer is paid in full, with half as much for its answer.
const USUAL_RATES: &str = "1.25,0.1,1.5";

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Recorded sessions, and folders of them: pi and Claude Code JSONL, OpenAI-style and
    /// Anthropic-style message arrays
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<PathBuf>,
    /// Prints JSON, with a row per model call
    #[arg(long)]
    json: bool,
    /// Writes a report with charts into one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Writes the rendered context of each model call into a folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Checks all invariants at every model call; the exit status is 1 if one does not hold
    #[arg(long)]
    check: bool,
    /// Replays as though the host had never compacted
    #[arg(long)]
    ignore_compactions: bool,
    /// Writes the summaries: `extractive`, `ratio:R` for a stand-in whose answer has R times the
    /// characters of its prompt, or `PROVIDER/MODEL` for a model that is asked: `anthropic/…` with
    /// the key in `ANTHROPIC_API_KEY`, `openai/…` with `OPENAI_API_KEY`, or a server of your own
    /// that speaks the same at `ANTHROPIC_BASE_URL` or `OPENAI_BASE_URL`
    #[arg(long, value_name = "NAME", default_value = "extractive")]
    summarizer: Named,
    /// Keeps the session log in this file, in pi's format, and blobs in a folder beside it
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Goes on where the log ends; without --log, with the pruner's entries in the session itself
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    settings: Settings,
    /// Tokens of the model's window, for the budget triggers
    #[arg(long, value_name = "TOKENS", default_value_t = 200_000)]
    context_window: u64,
    /// The price table: what a fresh, a cached and a summarizer's token cost, relative to a plain
    /// input token
    #[arg(long, value_name = "FRESH,CACHED,ASKED", default_value = USUAL_RATES, value_parser = rates)]
    rates: Rates,
}

fn rates(text: &str) -> Result<Rates, String> {
    let numbers: Result<Vec<f64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    match numbers.as_deref() {
        Ok([fresh, cached, asked]) if numbers.iter().flatten().all(|rate| *rate >= 0.0) => {
            Ok(Rates {
                fresh: *fresh,
                cached: *cached,
                asked: *asked,
            })
        }
        _ => Err("three numbers from 0 up, such as 1.25,0.1,1.5".to_string()),
    }
}

pub(super) fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<Exit> {
    let files = files(&arguments.sessions)?;
    if arguments.log.is_some() && files.len() != 1 {
        bail!(
            "--log FILE takes one session, and there are {}",
            files.len()
        );
    }
    let config = arguments.settings.read()?;
    let decant = Decant::new().context("cannot load the component")?;
    let recordings = read_all(&files)?;
    let bar = progress_bar(&recordings);
    let mut replayed = Vec::new();
    for (path, recording) in &recordings {
        bar.set_message(
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        );
        let options = Options {
            config: config.clone(),
            ignore_compactions: arguments.ignore_compactions,
            context_window: arguments.context_window,
            check: arguments.check,
            log: arguments.log.clone(),
            resume: arguments.resume,
            ..Options::new(&arguments.summarizer)
        };
        let out = arguments
            .out
            .as_ref()
            .map(|folder| folder.join(folder_name(path, &files)));
        let mut watcher = Progress { bar: &bar, out };
        let session = replay(&decant, path, recording, &options, &mut watcher);
        replayed.push(session.with_context(|| path.display().to_string())?);
    }
    bar.finish_and_clear();
    print(arguments, &replayed, out)?;
    match replayed.iter().any(|session| session.violation.is_some()) {
        true => Ok(Exit::Found),
        false => Ok(Exit::Success),
    }
}

fn print(arguments: &Arguments, sessions: &[Replayed], out: &mut dyn Write) -> Result<()> {
    if let Some(path) = &arguments.html {
        std::fs::write(path, report::page(sessions, &arguments.rates))
            .with_context(|| format!("{}: cannot write the report", path.display()))?;
    }
    if arguments.json {
        let rows = sessions
            .iter()
            .map(|session| session.to_json(&arguments.rates));
        let document = json!({"sessions": rows.collect::<Vec<_>>()});
        writeln!(out, "{document:#}")?;
    } else {
        write!(out, "{}", report::text(sessions, &arguments.rates))?;
    }
    Ok(())
}

/// The files to replay, in order: those named, and of folders all that look like sessions.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        collect(path, &mut files).with_context(|| path.display().to_string())?;
        if files.len() == before {
            bail!("{}: there is no .jsonl or .json file in it", path.display());
        }
    }
    Ok(files)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).context("cannot read the folder")?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.context("cannot read the folder")?.path());
    }
    paths.sort();
    for path in paths {
        let is_session = path
            .extension()
            .is_some_and(|ext| ext == "jsonl" || ext == "json");
        if path.is_dir() {
            collect(&path, files)?;
        } else if is_session {
            files.push(path);
        }
    }
    Ok(())
}

fn read_all(files: &[PathBuf]) -> Result<Vec<(PathBuf, Recording)>> {
    let read = |path: &PathBuf| Ok((path.clone(), formats::read(path)?));
    files.iter().map(read).collect()
}

/// The file's name, with a number if others have the same.
fn folder_name(path: &Path, files: &[PathBuf]) -> String {
    let stem = path.file_stem().unwrap_or_default();
    let namesakes: Vec<&PathBuf> = files
        .iter()
        .filter(|file| file.file_stem() == Some(stem))
        .collect();
    let stem = stem.to_string_lossy();
    match namesakes.iter().position(|file| *file == path) {
        Some(at) if at > 0 => format!("{stem}-{}", at + 1),
        _ => stem.into_owned(),
    }
}

/// A bar on a terminal; nothing elsewhere.
fn progress_bar(recordings: &[(PathBuf, Recording)]) -> ProgressBar {
    let steps: usize = recordings
        .iter()
        .map(|(_, recording)| recording.steps.len())
        .sum();
    let bar = ProgressBar::new(steps as u64);
    let style = ProgressStyle::with_template("{bar:30} {percent:>3}%  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

struct Progress<'a> {
    bar: &'a ProgressBar,
    /// Where the rendered contexts go.
    out: Option<PathBuf>,
}

impl Watcher for Progress<'_> {
    fn rendered(&mut self, call: usize, context: &[Message]) -> Result<()> {
        let Some(folder) = &self.out else {
            return Ok(());
        };
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{}: cannot make the folder", folder.display()))?;
        let path = folder.join(format!("call-{call:05}.jsonl"));
        let lines: String = context
            .iter()
            .map(|message| format!("{}\n", message.as_json()))
            .collect();
        std::fs::write(&path, lines)
            .with_context(|| format!("{}: cannot write the context", path.display()))
    }

    fn stepped(&mut self) {
        self.bar.inc(1);
    }
}
