//! The way through the component: a host as `decant-host` makes one.

use std::sync::LazyLock;

use decant::engine::host::{
    FailureKind, Host, HostError, JobKind, ModelChoice, Outcome, Request, Stamp,
};
use decant::engine::ids::{EntryId, JobId};
use decant::engine::message::{Message, Part, Role, StopReason};
use decant::engine::plan::{Change, Edit, InsertedPart};
use decant::engine::session::Usage;
use decant_host as outer;
use serde_json::{Value, json};

use super::host::{Shared, hold};
use super::lane::{Account, Lane, undo_name};
use super::script::Command;

static DECANT: LazyLock<outer::Decant> =
    LazyLock::new(|| outer::Decant::new().expect("the component loads"));

/// The component, and the host library around it.
pub(crate) struct ComponentLane {
    host: Shared,
    session: Option<outer::Session>,
}

impl ComponentLane {
    pub(crate) fn new(host: Shared) -> Self {
        Self {
            host,
            session: None,
        }
    }

    fn session(&mut self) -> &mut outer::Session {
        self.session.as_mut().expect("it is open")
    }
}

impl Lane for ComponentLane {
    fn open(&mut self, settings: &str, is_offered: bool, _pieces: usize) {
        let options = outer::SessionOptions::new("s1", settings);
        let surroundings = Surroundings(self.host.clone());
        let mut session = DECANT.open(options, surroundings).expect("it opens");
        session.query_tool_offered(is_offered);
        self.session = Some(session);
    }

    fn sync(&mut self, at: usize, tail: &[Message]) {
        let tail = tail.iter().map(message).collect();
        self.session().replace_from(at, tail).expect("in range");
    }

    fn turn_end(&mut self, usage: Option<Usage>, now: u64) -> bool {
        let usage = usage.map(|usage| outer::Usage {
            tokens: usage.tokens,
            context_window: usage.context_window,
        });
        self.session().turn_end(usage, now).blocking
    }

    fn reply_end(&mut self, closing_at: Option<u64>, now: u64) -> bool {
        self.session().reply_end(closing_at, now).blocking
    }

    fn summary_ready(&mut self, job: u64, outcome: Outcome, now: u64) -> bool {
        let outcome = outcome_of(outcome);
        self.session().summary_ready(job, &outcome, now).blocking
    }

    fn plan(&mut self, now: u64) -> Result<Vec<Edit>, String> {
        if !self.session().context(now).pruned {
            return Err("the component broke down".to_owned());
        }
        Ok(self.session().plan().edits().map(edit).collect())
    }

    fn forget_plan(&mut self, _known: Option<u64>) {
        // The host library knows its own revision.
    }

    fn call(&mut self, tool: &str, arguments: &str, now: u64) -> String {
        self.session().answer(tool, arguments, now).text
    }

    fn command(&mut self, command: Command, now: u64) -> Result<String, String> {
        let session = self.session();
        let words = |err: outer::CommandFailure| format!("{err:?}");
        if let Some(name) = undo_name(command) {
            return session.undo(&name, now).map_err(words);
        }
        let done = match command {
            Command::Now => session.flush(now).map(|_| ()),
            Command::Compact => session.compact(now).map(|_| ()),
            _ => session.cancel(),
        };
        done.map(|()| String::new()).map_err(words)
    }

    fn configure(&mut self, settings: &str, now: u64) -> Result<(), String> {
        let configured = self.session().configure(settings, now);
        configured.map(|_| ()).map_err(|err| format!("{err:?}"))
    }

    fn account(&mut self) -> Account {
        let status = self.session().status().expect("it is there");
        let saved = status.strategies.into_iter();
        Account {
            before: status.before.chars,
            after: status.after.chars,
            saved: saved
                .map(|one| (one.kind.name().to_owned(), one.saved))
                .collect(),
        }
    }

    fn model_changed(&mut self) {
        self.session().model_changed();
    }

    fn offer(&mut self, is_offered: bool) {
        self.session().query_tool_offered(is_offered);
    }

    fn shutdown(&mut self) {
        self.session().shutdown();
    }
}

/// A message in pi's shape.
fn message(message: &Message) -> outer::Message {
    let content: Vec<Value> = message.content.iter().map(part).collect();
    let value = match &message.role {
        Role::User => json!({ "role": "user", "content": content }),
        Role::Assistant { stop } => {
            json!({ "role": "assistant", "content": content, "stopReason": stop_reason(*stop) })
        }
        Role::ToolResult {
            call_id,
            tool,
            is_error,
        } => json!({
            "role": "toolResult", "toolCallId": call_id, "toolName": tool, "content": content,
            "isError": is_error,
        }),
        Role::Custom { kind, details } => {
            let details: Value = serde_json::from_str(details).unwrap_or_default();
            json!({ "role": "custom", "customType": kind, "content": content, "details": details })
        }
        Role::Other { role } => json!({ "role": role, "content": content }),
    };
    let mut value = value;
    value["timestamp"] = message.at_ms.into();
    outer::Message::from_json(value).expect("it has a role")
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Thinking(chars) => {
            json!({ "type": "thinking", "thinking": "h".repeat(*chars as usize) })
        }
        Part::ToolCall(call) => {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
            json!({ "type": "toolCall", "id": call.id, "name": call.name, "arguments": arguments })
        }
        Part::Opaque(opaque) => json!({ "type": opaque.kind, "data": "" }),
        Part::Withheld { .. } => unreachable!("the transcript of a test is whole"),
    }
}

fn stop_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Stop => "stop",
        StopReason::ToolUse => "toolUse",
        StopReason::Length => "length",
        StopReason::Error => "error",
        StopReason::Aborted => "aborted",
        StopReason::Other => "refusal",
    }
}

fn edit(edit: &outer::Edit) -> Edit {
    let change = match edit.change.clone() {
        outer::Change::ReplaceText(text) => Change::ReplaceText(text),
        outer::Change::Drop(n) => Change::Drop(n),
        outer::Change::MoveUp(to) => Change::MoveUp(to),
        outer::Change::InsertUser(user) => Change::InsertUser {
            parts: user.parts.into_iter().map(inserted_part).collect(),
            at_ms: user.at,
        },
        outer::Change::InsertSummary(summary) => Change::InsertSummary {
            content: summary.content,
            details: summary.details,
            at_ms: summary.at,
        },
        outer::Change::StripThinking => Change::StripThinking,
        outer::Change::ReplaceArguments(replaced) => Change::ReplaceArguments {
            call: replaced.call,
            arguments: replaced.arguments,
        },
    };
    Edit {
        id: edit.id,
        at: edit.at,
        change,
    }
}

fn inserted_part(part: outer::InsertedPart) -> InsertedPart {
    match part {
        outer::InsertedPart::Text(text) => InsertedPart::Text(text),
        outer::InsertedPart::Attachments(at) => InsertedPart::Attachments(at),
    }
}

fn outcome_of(outcome: Outcome) -> outer::Outcome {
    let usage_of = |usage: Option<decant::engine::host::JobUsage>| {
        usage.map(|usage| outer::JobUsage {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cost: usage.cost,
        })
    };
    match outcome {
        Outcome::Answered {
            text,
            truncated,
            usage,
        } => outer::Outcome::Answered(outer::Summary {
            text,
            truncated,
            usage: usage_of(usage),
        }),
        Outcome::Failed {
            kind,
            message,
            usage,
        } => outer::Outcome::Failed(outer::Failure {
            kind: match kind {
                FailureKind::Transient => outer::FailureKind::Transient,
                FailureKind::Timeout => outer::FailureKind::Timeout,
                FailureKind::Aborted => outer::FailureKind::Aborted,
                FailureKind::Permanent => outer::FailureKind::Permanent,
            },
            message,
            usage: usage_of(usage),
        }),
    }
}

/// The shared host in the words of the library.
struct Surroundings(Shared);

fn stamp(stamp: Stamp) -> outer::Stamp {
    outer::Stamp {
        entry: stamp.entry.0,
        at: stamp.at_ms,
    }
}

fn refused(err: HostError) -> outer::HostError {
    match err {
        HostError::NotFound => outer::HostError::NotFound,
        HostError::Unavailable(why) => outer::HostError::Unavailable(why),
        HostError::Failed(why) => outer::HostError::Failed(why),
    }
}

impl outer::Environment for Surroundings {
    fn append(
        &mut self,
        kind: &str,
        data: &str,
        _at: u64,
    ) -> Result<outer::Stamp, outer::HostError> {
        let appended = hold(&self.0).append(kind, data);
        appended.map(stamp).map_err(refused)
    }

    fn append_message(
        &mut self,
        kind: &str,
        content: &str,
        details: &str,
        _at: u64,
    ) -> Result<outer::Stamp, outer::HostError> {
        let appended = hold(&self.0).append_message(kind, content, details);
        appended.map(stamp).map_err(refused)
    }

    fn read(&mut self, entry: &str) -> Result<String, outer::HostError> {
        let read = hold(&self.0).read(&EntryId(entry.to_owned()));
        read.map_err(refused)
    }

    fn entries(&mut self, from: usize) -> Result<Vec<outer::LogEntry>, outer::HostError> {
        let entries = hold(&self.0).disk.entries().into_iter().skip(from);
        let entries = entries.map(|entry| outer::LogEntry {
            id: entry.id.0,
            kind: entry.kind,
            data: entry.data,
            at: entry.at_ms,
        });
        Ok(entries.collect())
    }

    fn write_blob(&mut self, name: &str, text: &str) -> Result<String, outer::HostError> {
        hold(&self.0).write_blob(name, text).map_err(refused)
    }

    fn read_blob(&mut self, name: &str) -> Result<String, outer::HostError> {
        hold(&self.0).read_blob(name).map_err(refused)
    }

    fn submit(&mut self, request: outer::Request) -> Result<u64, outer::HostError> {
        let request = Request {
            kind: match request.kind {
                outer::JobKind::Batch => JobKind::Batch,
                outer::JobKind::Range => JobKind::Range,
            },
            index: request.index,
            prompt: request.prompt,
            model: match request.model {
                outer::ModelChoice::Configured => ModelChoice::Configured,
                outer::ModelChoice::Session => ModelChoice::Session,
            },
            model_name: request.model_name,
            thinking: request.thinking,
            idle_timeout_ms: request.idle_timeout_ms,
            total_timeout_ms: request.total_timeout_ms,
        };
        let submitted = hold(&self.0).submit(&request);
        submitted.map(|job| job.0).map_err(refused)
    }

    fn cancel(&mut self, job: u64) {
        hold(&self.0).cancel(JobId(job));
    }

    fn notify(&mut self, _notice: outer::Notice) {}
}
