//! Runs every scenario in every lane and compares its outcome with the recorded one. Besides, loading
//! a session again must not change what the model sees.
//!
//! `DECANT_BLESS=1 cargo test --test scenarios` records outcomes anew; the difference is to be read
//! like code.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use decant_cli::scenario::{ComponentLane, Outcome, Scenario, run};
use decant_host::Decant;
use libtest_mimic::{Arguments, Failed, Trial};

use support::engine_lane::EngineLane;

const OUTCOME: &str = ".outcome.json";

fn main() -> Result<ExitCode> {
    let arguments = Arguments::from_args();
    let files = scenario_files(Path::new("tests/scenarios"))?;
    let decant = Decant::new().map(Arc::new);
    let mut trials = Vec::new();
    for file in files {
        let engine = file.clone();
        trials.push(trial(&file, "engine", move || {
            let scenario = engine.scenario()?;
            engine.check(&run(&scenario, EngineLane::new)?)
        }));
        let reloaded = file.clone();
        trials.push(trial(&file, "reloaded", move || {
            let scenario = reloaded.scenario()?.reloaded();
            same_after_reload(&run(&scenario, EngineLane::new)?)
        }));
        let component = decant.as_ref().map(Arc::clone).map_err(ToString::to_string);
        let of_component = file.clone();
        trials.push(trial(&file, "component", move || {
            let decant = component.map_err(anyhow::Error::msg)?;
            let scenario = of_component.scenario()?;
            let new_lane = |host| ComponentLane::new(&decant, host);
            of_component.check(&run(&scenario, new_lane)?)
        }));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn trial(
    file: &ScenarioFile,
    lane: &str,
    test: impl FnOnce() -> Result<()> + Send + 'static,
) -> Trial {
    let test = || test().map_err(|error| Failed::from(format!("{error:#}")));
    Trial::test(format!("{}::{lane}", file.name), test)
}

/// Design, invariant 6.
fn same_after_reload(outcome: &Outcome) -> Result<()> {
    let [.., before, after] = &outcome.contexts[..] else {
        bail!("the last two contexts are missing");
    };
    let texts = [before, after].map(serde_json::to_string_pretty);
    let [before, after] = texts;
    let (before, after) = (before?, after?);
    ensure!(
        before == after,
        "{}",
        support::difference::describe(&before, &after)
    );
    Ok(())
}

/// A scenario and where its outcome is recorded.
#[derive(Clone)]
struct ScenarioFile {
    /// `area/name`.
    name: String,
    path: PathBuf,
}

impl ScenarioFile {
    fn scenario(&self) -> Result<Scenario> {
        let text = fs::read_to_string(&self.path)?;
        Scenario::parse(&text).with_context(|| self.path.display().to_string())
    }

    fn outcome_path(&self) -> PathBuf {
        self.path.with_extension("outcome.json")
    }

    fn check(&self, outcome: &Outcome) -> Result<()> {
        let path = self.outcome_path();
        let got = outcome.to_json();
        if std::env::var_os("DECANT_BLESS").is_some() {
            fs::write(path, got)?;
            return Ok(());
        }
        let wanted = fs::read_to_string(&path);
        let wanted = wanted.with_context(|| format!("{} is missing", path.display()))?;
        ensure!(
            got == wanted,
            "{}",
            support::difference::describe(&wanted, &got)
        );
        Ok(())
    }
}

/// The scenarios of all areas, in the order of their names.
fn scenario_files(folder: &Path) -> Result<Vec<ScenarioFile>> {
    let mut files = Vec::new();
    let mut outcomes = Vec::new();
    for area in folders(folder)? {
        for path in sorted(&area)? {
            let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
            if let Some(name) = name.strip_suffix(OUTCOME) {
                outcomes.push(name.to_owned());
            } else if let Some(name) = name.strip_suffix(".json") {
                let name = name.to_owned();
                files.push(ScenarioFile { name, path });
            }
        }
    }
    ensure!(
        !files.is_empty(),
        "there are no scenarios in {}",
        folder.display()
    );
    for outcome in outcomes {
        if files.iter().all(|file| file.name != outcome) {
            bail!("{outcome}{OUTCOME} is the outcome of no scenario");
        }
    }
    Ok(files)
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = sorted(folder)?;
    Ok(entries.into_iter().filter(|path| path.is_dir()).collect())
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let paths: Result<Vec<_>, _> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    let mut paths = paths?;
    paths.sort();
    Ok(paths)
}
