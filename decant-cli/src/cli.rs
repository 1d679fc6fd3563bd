//! The command `decant`.

mod archive;
mod component;
mod replay;
mod scenario;
mod settings;

use std::ffi::OsString;
use std::io::Write;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Lossless, cache-stable context pruning for LLM agents.
#[derive(Debug, Parser)]
#[command(name = "decant", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replays recorded sessions as a live host would have run them, and tells what pruning saves
    Replay(replay::Arguments),
    /// Reads originals back from a session's log
    Query(archive::Query),
    /// Shows the tree of summaries, blocks, calls and aliases of a session's log
    Tree(archive::Target),
    /// Shows the state of a session's log at a glance
    Status(archive::Target),
    /// Shows size, imports and exports of the component
    Component(component::Arguments),
    /// Runs scripted sessions
    #[command(subcommand)]
    Scenario(scenario::Command),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Success,
    /// It ran, and found what it was to find: a violated invariant, an unknown ref.
    Found,
    /// It could not run; the reason was printed.
    Failed,
    /// The arguments were wrong; the reason was printed.
    Usage,
}

impl Exit {
    /// The status of the process.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Found | Self::Failed => 1,
            Self::Usage => 2,
        }
    }
}

/// Runs the command. `arguments` begin with the program's name; reports go to `out`, what went wrong
/// to `err`.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Exit {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let _ = write!(err, "{error}");
            return Exit::Usage;
        }
        Err(help) => {
            let _ = write!(out, "{help}");
            return Exit::Success;
        }
    };
    match dispatch(cli.command, out) {
        Ok(exit) => exit,
        // A reader such as `head` that has had enough is no failure.
        Err(error) if is_broken_pipe(&error) => Exit::Success,
        Err(error) => {
            let _ = writeln!(err, "decant: {error:#}");
            Exit::Failed
        }
    }
}

fn dispatch(command: Command, out: &mut dyn Write) -> Result<Exit> {
    match command {
        Command::Replay(arguments) => replay::run(&arguments, out),
        Command::Query(arguments) => archive::query(&arguments, out),
        Command::Tree(arguments) => archive::tree(&arguments, out),
        Command::Status(arguments) => archive::status(&arguments, out),
        Command::Component(arguments) => component::run(&arguments, out),
        Command::Scenario(command) => scenario::run(&command, out),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error
        .downcast_ref::<std::io::Error>()
        .map(std::io::Error::kind);
    kind == Some(std::io::ErrorKind::BrokenPipe)
}
