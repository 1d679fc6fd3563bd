//! What a scenario came to.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::json;

/// Everything that a run of a scenario made visible, in the order in which it happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The messages that the model would see, one list per `context` step.
    pub contexts: Vec<Vec<Value>>,
    /// The answers to `query` and `call` steps.
    pub queries: Vec<String>,
    /// Per answer the results whose images should be attached to it.
    pub attachments: Vec<Vec<Value>>,
    /// The entries that were appended to the session log, as `{customType, data}`.
    pub entries: Vec<Value>,
    /// The summaries that were appended, as `{content, details}`.
    pub summaries: Vec<Value>,
    /// The requests to the summarizer, as `{kind, prompt}`.
    pub requests: Vec<Value>,
    /// As `{level, text}`.
    pub notices: Vec<Value>,
    /// What the commands printed.
    pub commands: Vec<String>,
    /// What the blob folder holds at the end.
    pub blobs: BTreeMap<String, String>,
}

impl Outcome {
    /// The outcome as a JSON text with a fixed order of keys. `attachments` is there only if an
    /// answer has some.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut outcome = Map::new();
        outcome.insert("contexts".to_owned(), json!(self.contexts));
        outcome.insert("queries".to_owned(), json!(self.queries));
        if self
            .attachments
            .iter()
            .any(|of_answer| !of_answer.is_empty())
        {
            outcome.insert("attachments".to_owned(), json!(self.attachments));
        }
        outcome.insert("entries".to_owned(), json!(self.entries));
        outcome.insert("summaries".to_owned(), json!(self.summaries));
        outcome.insert("requests".to_owned(), json!(self.requests));
        outcome.insert("notices".to_owned(), json!(self.notices));
        outcome.insert("commands".to_owned(), json!(self.commands));
        outcome.insert("blobs".to_owned(), json!(self.blobs));
        json::pretty(&Value::Object(outcome)) + "\n"
    }
}
