//! The scenario file: one scripted session as JSON, read with errors that name the place.

use serde_json::{Map, Value, json};

use super::error::ScenarioError;

/// The clock of a scenario that names none: 2025-04-21T16:00:00Z.
pub(super) const DEFAULT_CLOCK_MS: u64 = 1_745_251_200_000;

/// One scripted session.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub config: Map<String, Value>,
    pub session_id: String,
    /// Whether an appended summary is part of the transcript that the host sends.
    pub summaries_in_transcript: bool,
    pub clock_ms: u64,
    /// Tried in order, the first that fits answers.
    pub summarizer: Vec<Rule>,
    pub steps: Vec<Step>,
}

/// What the scripted summarizer does with the requests that fit.
#[derive(Clone, Debug)]
pub struct Rule {
    pub kind: RuleKind,
    /// Fits only this choice of model; `None` fits both.
    pub model: Option<RuleModel>,
    /// A part of the prompt.
    pub matching: String,
    pub text: Option<String>,
    pub usage: Option<RuleUsage>,
    pub fail: Option<Fail>,
    /// After how many further steps the answer comes.
    pub delay_steps: u32,
    /// How many requests it still answers; `None`: any number.
    pub times: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    Batch,
    Range,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleModel {
    Configured,
    Session,
}

#[derive(Clone, Copy, Debug)]
pub struct RuleUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// US dollars.
    pub cost: Option<f64>,
}

/// How a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fail {
    /// The provider failed; it may work with another model.
    Error,
    /// It will not work with any model.
    Permanent,
    /// No answer until the request's limits have passed.
    Timeout,
    /// The answer is empty.
    Empty,
    /// The answer stops at the output limit.
    Truncated,
    /// The user stopped it.
    Abort,
}

/// One thing that happens in the session.
#[derive(Clone, Debug)]
pub enum Step {
    Message(Map<String, Value>),
    TurnEnd(Option<StepUsage>),
    Context,
    /// The arguments of a call of `context_tree_query`.
    Query(Value),
    /// A call of another tool that the pruner offers.
    Call {
        tool: String,
        arguments: Value,
    },
    Command(String),
    /// An entry that an earlier program has left in the session log.
    Entry {
        kind: String,
        data: Value,
    },
    Config(Map<String, Value>),
    Restart,
    Branch(usize),
    Blobs(BlobFolder),
    Log(SessionLog),
    Tick(u64),
    ModelChanged,
    QueryToolOffered(bool),
}

#[derive(Clone, Copy, Debug)]
pub struct StepUsage {
    pub tokens: Option<u64>,
    pub context_window: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobFolder {
    Fail,
    Ok,
    Lose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionLog {
    Fail,
    Ok,
}

impl Scenario {
    /// Reads the text of a scenario file.
    ///
    /// # Errors
    /// The text is no JSON, or a part of it is not what the format asks for; the error names it.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let file: Value = serde_json::from_str(text)?;
        let file = Fields::new("the scenario", &file)?;
        let config = file.object("config")?.unwrap_or_default();
        let session = file.object("session")?.unwrap_or_default();
        let session = Value::Object(session);
        let session = Fields::new("session", &session)?;
        // A sentence for readers: what must hold.
        file.text("name")?;
        Ok(Self {
            config,
            session_id: session.text("id")?.unwrap_or_else(|| "s1".to_owned()),
            summaries_in_transcript: session.flag("summariesInTranscript")?.unwrap_or(true),
            clock_ms: file.count("clock")?.unwrap_or(DEFAULT_CLOCK_MS),
            summarizer: file.each("summarizer", Rule::read)?,
            steps: file.each("steps", Step::read)?,
        })
    }

    /// The same session, which is loaded again at the end, with a model call before and after.
    #[must_use]
    pub fn reloaded(mut self) -> Self {
        self.steps
            .extend([Step::Context, Step::Restart, Step::Context]);
        self
    }
}

impl Rule {
    fn read(place: &str, rule: &Value) -> Result<Self, ScenarioError> {
        let rule = Fields::new(place, rule)?;
        let fail = match rule.text("fail")?.as_deref() {
            None => None,
            Some("error") => Some(Fail::Error),
            Some("permanent") => Some(Fail::Permanent),
            Some("timeout") => Some(Fail::Timeout),
            Some("empty") => Some(Fail::Empty),
            Some("truncated") => Some(Fail::Truncated),
            Some("abort") => Some(Fail::Abort),
            Some(_) => {
                let allowed = "one of error, permanent, timeout, empty, truncated, abort";
                return Err(rule.expected("fail", allowed));
            }
        };
        let kind = match rule.text("kind")?.as_deref() {
            None | Some("batch") => RuleKind::Batch,
            Some("range") => RuleKind::Range,
            Some(_) => return Err(rule.expected("kind", "batch or range")),
        };
        let model = match rule.text("model")?.as_deref() {
            None => None,
            Some("configured") => Some(RuleModel::Configured),
            Some("session") => Some(RuleModel::Session),
            Some(_) => return Err(rule.expected("model", "configured or session")),
        };
        let small = |key: &str| {
            let count = rule.count(key)?.map(u32::try_from).transpose();
            count.map_err(|_| rule.expected(key, "a small number"))
        };
        Ok(Self {
            kind,
            model,
            matching: rule.text("match")?.unwrap_or_default(),
            text: rule.text("text")?,
            usage: rule.object("usage")?.map(RuleUsage::read).transpose()?,
            fail,
            delay_steps: small("delay")?.unwrap_or(0),
            times: small("times")?,
        })
    }
}

impl RuleUsage {
    fn read(usage: Map<String, Value>) -> Result<Self, ScenarioError> {
        let usage = Value::Object(usage);
        let usage = Fields::new("a summarizer rule's usage", &usage)?;
        Ok(Self {
            input_tokens: usage.count("input")?.unwrap_or(0),
            output_tokens: usage.count("output")?.unwrap_or(0),
            cost: usage.number("cost")?,
        })
    }
}

impl Step {
    fn read(place: &str, step: &Value) -> Result<Self, ScenarioError> {
        let fields = Fields::new(place, step)?;
        let mut entries = fields.entries.iter();
        let (Some((kind, value)), None) = (entries.next(), entries.next()) else {
            return Err(fields.wrong("must have exactly one key"));
        };
        let kind = kind.as_str();
        let object = || fields.object(kind).map(Option::unwrap_or_default);
        let number = || {
            let number = fields.count(kind)?;
            number.ok_or_else(|| fields.expected(kind, "a number"))
        };
        match kind {
            "message" => Ok(Self::Message(object()?)),
            "turnEnd" => StepUsage::read(place, value).map(Self::TurnEnd),
            "context" => Ok(Self::Context),
            "query" => query_arguments(&fields, value).map(Self::Query),
            "call" => {
                let call = Fields::new(place, value)?;
                let tool = call.text("tool")?;
                Ok(Self::Call {
                    tool: tool.ok_or_else(|| call.expected("tool", "a string"))?,
                    arguments: call.entries.get("arguments").cloned().unwrap_or(json!({})),
                })
            }
            "command" => {
                let command = fields.text(kind)?;
                let command = command.ok_or_else(|| fields.expected(kind, "a string"))?;
                Ok(Self::Command(command))
            }
            "entry" => {
                let entry = Fields::new(place, value)?;
                let kind = entry.text("customType")?;
                Ok(Self::Entry {
                    kind: kind.ok_or_else(|| entry.expected("customType", "a string"))?,
                    data: entry.entries.get("data").cloned().unwrap_or(Value::Null),
                })
            }
            "config" => Ok(Self::Config(object()?)),
            "restart" => Ok(Self::Restart),
            "branch" => {
                let kept = usize::try_from(number()?);
                let kept = kept.map_err(|_| fields.expected(kind, "a number of entries"))?;
                Ok(Self::Branch(kept))
            }
            "blobs" => match value.as_str() {
                Some("fail") => Ok(Self::Blobs(BlobFolder::Fail)),
                Some("ok") => Ok(Self::Blobs(BlobFolder::Ok)),
                Some("lose") => Ok(Self::Blobs(BlobFolder::Lose)),
                _ => Err(fields.expected(kind, "fail, ok or lose")),
            },
            "log" => match value.as_str() {
                Some("fail") => Ok(Self::Log(SessionLog::Fail)),
                Some("ok") => Ok(Self::Log(SessionLog::Ok)),
                _ => Err(fields.expected(kind, "fail or ok")),
            },
            "tick" => Ok(Self::Tick(number()?)),
            "modelChanged" => Ok(Self::ModelChanged),
            "queryToolOffered" => {
                let offered = fields.flag(kind)?;
                let offered = offered.ok_or_else(|| fields.expected(kind, "true or false"))?;
                Ok(Self::QueryToolOffered(offered))
            }
            _ => Err(fields.wrong(&format!("has an unknown kind `{kind}`"))),
        }
    }
}

impl StepUsage {
    fn read(place: &str, turn_end: &Value) -> Result<Option<Self>, ScenarioError> {
        let turn_end = Fields::new(place, turn_end)?;
        let Some(usage) = turn_end.object("usage")? else {
            return Ok(None);
        };
        let usage = Value::Object(usage);
        let usage = Fields::new(place, &usage)?;
        let window = usage.count("contextWindow")?;
        Ok(Some(Self {
            tokens: usage.count("tokens")?,
            context_window: window.ok_or_else(|| usage.expected("contextWindow", "a number"))?,
        }))
    }
}

/// The short forms of a query step as the arguments that the model would write.
fn query_arguments(step: &Fields, query: &Value) -> Result<Value, ScenarioError> {
    match query {
        Value::Array(_) => Ok(json!({ "toolCallIds": query })),
        Value::Object(query) => {
            let named = query.iter().map(|(key, value)| {
                let key = if key == "ids" { "toolCallIds" } else { key };
                (key.to_owned(), value.clone())
            });
            Ok(Value::Object(named.collect()))
        }
        _ => Err(step.expected("query", "a list of ids, or an object with `ids`")),
    }
}

/// The fields of one object of the file, and what the object is called in errors.
struct Fields<'a> {
    place: &'a str,
    entries: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    fn new(place: &'a str, value: &'a Value) -> Result<Self, ScenarioError> {
        let Value::Object(entries) = value else {
            return Err(ScenarioError::Malformed(format!(
                "{place} must be an object"
            )));
        };
        Ok(Self { place, entries })
    }

    fn wrong(&self, what: &str) -> ScenarioError {
        ScenarioError::Malformed(format!("{} {what}", self.place))
    }

    fn expected(&self, key: &str, allowed: &str) -> ScenarioError {
        self.wrong(&format!("has a wrong `{key}`: it must be {allowed}"))
    }

    /// The value at `key`, `null` counting as absent.
    fn read<T>(
        &self,
        key: &str,
        allowed: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, ScenarioError> {
        match self.entries.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match read(value) {
                Some(value) => Ok(Some(value)),
                None => Err(self.expected(key, allowed)),
            },
        }
    }

    fn text(&self, key: &str) -> Result<Option<String>, ScenarioError> {
        self.read(key, "a string", |value| value.as_str().map(str::to_owned))
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, ScenarioError> {
        self.read(key, "true or false", Value::as_bool)
    }

    fn count(&self, key: &str) -> Result<Option<u64>, ScenarioError> {
        self.read(key, "a number from 0 up", Value::as_u64)
    }

    fn number(&self, key: &str) -> Result<Option<f64>, ScenarioError> {
        self.read(key, "a number", Value::as_f64)
    }

    fn object(&self, key: &str) -> Result<Option<Map<String, Value>>, ScenarioError> {
        self.read(key, "an object", |value| value.as_object().cloned())
    }

    /// Reads each item of the list at `key`; an absent list is empty.
    fn each<T>(
        &self,
        key: &str,
        read: impl Fn(&str, &Value) -> Result<T, ScenarioError>,
    ) -> Result<Vec<T>, ScenarioError> {
        let list = self.read(key, "a list", |value| value.as_array().cloned())?;
        let singular = key.strip_suffix('s').unwrap_or("summarizer rule");
        let items = list.unwrap_or_default();
        let read_item = |(index, item)| read(&format!("{singular} {index}"), item);
        items.iter().enumerate().map(read_item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_error(text: &str, wanted: &str) {
        let error = Scenario::parse(text).expect_err("the scenario is wrong");
        assert_eq!(error.to_string(), wanted);
    }

    #[test]
    fn errors_name_the_place() {
        check_error("[]", "the scenario must be an object");
        check_error(
            r#"{"steps": [{"context": true}, {"tick": "long"}]}"#,
            "step 1 has a wrong `tick`: it must be a number from 0 up",
        );
        check_error(
            r#"{"steps": [{"dance": true}]}"#,
            "step 0 has an unknown kind `dance`",
        );
        check_error(
            r#"{"steps": [{"context": true, "tick": 1}]}"#,
            "step 0 must have exactly one key",
        );
        check_error(
            r#"{"summarizer": [{"fail": "often"}]}"#,
            "summarizer rule 0 has a wrong `fail`: it must be one of error, permanent, timeout, \
             empty, truncated, abort",
        );
    }

    #[test]
    fn a_list_of_ids_is_a_query() {
        let scenario = Scenario::parse(r#"{"steps": [{"query": ["t1"]}]}"#).expect("it is right");
        let [Step::Query(arguments)] = &scenario.steps[..] else {
            panic!("there is one query");
        };
        assert_eq!(arguments.to_string(), r#"{"toolCallIds":["t1"]}"#);
    }
}
