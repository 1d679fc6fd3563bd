//! `decant component`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use decant_host::{ComponentSource, Decant};
use serde_json::json;

use super::Exit;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Looks at this component instead of the one that belongs to the command
    #[arg(value_name = "FILE")]
    component: Option<PathBuf>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<Exit> {
    let (source, place) = match &arguments.component {
        Some(path) => (
            ComponentSource::File(path.clone()),
            path.display().to_string(),
        ),
        None if cfg!(feature = "embed") => (ComponentSource::Own, "embedded".to_string()),
        None => (ComponentSource::Own, "built from source".to_string()),
    };
    let decant = Decant::builder()
        .source(source)
        .load()
        .context("cannot load the component")?;
    let interfaces = decant.interfaces();
    if arguments.json {
        let document = json!({
            "component": place,
            "bytes": decant.wasm_bytes(),
            "imports": interfaces.imports,
            "exports": interfaces.exports,
        });
        writeln!(out, "{document:#}")?;
        return Ok(Exit::Success);
    }
    writeln!(out, "component: {place}, {} bytes", decant.wasm_bytes())?;
    for (title, names) in [
        ("imports", &interfaces.imports),
        ("exports", &interfaces.exports),
    ] {
        writeln!(out, "{title}:")?;
        for name in names {
            writeln!(out, "  {name}")?;
        }
    }
    Ok(Exit::Success)
}
