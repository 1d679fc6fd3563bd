//! The pruner's settings, from a file and from the command line.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::{Map, Value};

/// Settings of the pruner.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct Settings {
    /// Takes settings from a JSON file: an object as it stands under `contextPrune` in pi's
    /// settings, or a whole settings file of pi
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Sets one setting; nested keys have dots, values are JSON, and what is no JSON is a string:
    /// `--set chainCompression.rollingWindow=1`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Settings {
    /// The settings, to be merged over the pruner's defaults.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or a setting cannot be understood.
    pub(super) fn read(&self) -> Result<Map<String, Value>> {
        let mut config = match &self.config {
            Some(path) => from_file(path).with_context(|| path.display().to_string())?,
            None => Map::new(),
        };
        for setting in &self.set {
            let Some((key, value)) = setting.split_once('=') else {
                bail!("--set {setting}: there is no `=`; right is --set minBatchChars=0");
            };
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            put(&mut config, key, value).with_context(|| format!("--set {setting}"))?;
        }
        Ok(config)
    }
}

fn from_file(path: &PathBuf) -> Result<Map<String, Value>> {
    let text = std::fs::read_to_string(path).context("cannot read the settings")?;
    let value: Value = serde_json::from_str(&text).context("the settings are no JSON")?;
    let Value::Object(mut config) = value else {
        bail!("the settings are no JSON object");
    };
    match config.remove("contextPrune") {
        Some(Value::Object(own)) => Ok(own),
        Some(_) => bail!("`contextPrune` is no JSON object"),
        None => Ok(config),
    }
}

fn put(config: &mut Map<String, Value>, key: &str, value: Value) -> Result<()> {
    let Some((block, rest)) = key.split_once('.') else {
        if key.is_empty() {
            bail!("the key is empty");
        }
        config.insert(key.to_string(), value);
        return Ok(());
    };
    let block_value = config
        .entry(block)
        .or_insert_with(|| Value::Object(Map::new()));
    match block_value {
        Value::Object(fields) => put(fields, rest, value),
        _ => bail!("`{block}` is no block of settings"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_are_put_together() {
        let set = |settings: &[&str]| {
            let set = settings.iter().map(ToString::to_string).collect();
            Settings { config: None, set }.read().map(Value::Object)
        };
        let rows = [
            (vec!["minBatchChars=0"], json!({"minBatchChars": 0})),
            (vec!["pruneOn=turn"], json!({"pruneOn": "turn"})),
            (
                vec!["protectedTools=[\"a\"]"],
                json!({"protectedTools": ["a"]}),
            ),
            (vec!["a.b=1", "a.c=null"], json!({"a": {"b": 1, "c": null}})),
            (vec!["a=1", "a=2"], json!({"a": 2})),
        ];
        for (settings, expected) in rows {
            assert_eq!(set(&settings).unwrap(), expected, "{settings:?}");
        }
        for settings in [vec!["a"], vec!["=1"], vec!["a=1", "a.b=2"]] {
            assert!(set(&settings).is_err(), "{settings:?}");
        }
    }
}
