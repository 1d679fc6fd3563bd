//! `decant scenario`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Subcommand;
use decant_host::Decant;

use super::Exit;
use crate::scenario::{ComponentLane, Scenario, run as run_scenario};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Runs scenarios through the component and prints each outcome as JSON
    Run {
        /// Scenario files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

pub(super) fn run(command: &Command, out: &mut dyn Write) -> Result<Exit> {
    let Command::Run { files } = command;
    let decant = Decant::new().context("cannot load the component")?;
    for file in files {
        let outcome = outcome(&decant, file).with_context(|| file.display().to_string())?;
        write!(out, "{outcome}")?;
    }
    Ok(Exit::Success)
}

fn outcome(decant: &Decant, file: &PathBuf) -> Result<String> {
    let text = std::fs::read_to_string(file).context("cannot read the scenario")?;
    let scenario = Scenario::parse(&text)?;
    let outcome = run_scenario(&scenario, |host| ComponentLane::new(decant, host))?;
    Ok(outcome.to_json())
}
