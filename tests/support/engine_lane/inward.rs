//! What goes into the engine, from the contract's types.

use decant::engine::host::{FailureKind, HostError, JobUsage, Outcome, Stamp};
use decant::engine::ids::EntryId;
use decant::engine::message::{Message, Opaque, Part, Role, StopReason, ToolCall};
use decant::engine::session::{LogEntry, Usage};
use decant_host::exports::messages;

pub(super) fn message(message: &messages::Message) -> Message {
    let (role, content, at_ms) = match message {
        messages::Message::User(user) => (Role::User, &user.content, user.at),
        messages::Message::Assistant(assistant) => {
            let stop = stop_reason(assistant.stop);
            (Role::Assistant { stop }, &assistant.content, assistant.at)
        }
        messages::Message::ToolResult(result) => {
            let role = Role::ToolResult {
                call_id: result.call_id.clone(),
                tool: result.tool.clone(),
                is_error: result.is_error,
            };
            (role, &result.content, result.at)
        }
        messages::Message::Custom(custom) => {
            let role = Role::Custom {
                kind: custom.kind.clone(),
                details: custom.details.clone(),
            };
            (role, &custom.content, custom.at)
        }
        messages::Message::Other(other) => {
            let role = Role::Other {
                role: other.role.clone(),
            };
            (role, &other.content, other.at)
        }
    };
    Message {
        role,
        content: content.iter().map(part).collect(),
        at_ms,
    }
}

fn part(part: &messages::Part) -> Part {
    match part {
        messages::Part::Text(text) => Part::Text(text.clone()),
        messages::Part::Thinking(chars) => Part::Thinking(*chars),
        messages::Part::ToolCall(call) => Part::ToolCall(ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        }),
        messages::Part::Opaque(opaque) => Part::Opaque(Opaque {
            kind: opaque.kind.clone(),
            chars: opaque.chars,
        }),
        messages::Part::Withheld(size) => Part::Withheld {
            chars: size.chars,
            ascii: size.ascii,
        },
    }
}

fn stop_reason(stop: messages::StopReason) -> StopReason {
    match stop {
        messages::StopReason::Stop => StopReason::Stop,
        messages::StopReason::ToolUse => StopReason::ToolUse,
        messages::StopReason::Length => StopReason::Length,
        messages::StopReason::Error => StopReason::Error,
        messages::StopReason::Aborted => StopReason::Aborted,
        messages::StopReason::Other => StopReason::Other,
    }
}

pub(super) fn log_entry(entry: &decant_host::LogEntry) -> LogEntry {
    LogEntry {
        id: EntryId(entry.id.clone()),
        kind: entry.kind.clone(),
        data: entry.data.clone(),
        at_ms: entry.at,
    }
}

pub(super) fn usage(usage: decant_host::Usage) -> Usage {
    Usage {
        tokens: usage.tokens,
        context_window: usage.context_window,
    }
}

pub(super) fn outcome(outcome: &decant_host::Outcome) -> Outcome {
    match outcome {
        decant_host::Outcome::Answered(summary) => Outcome::Answered {
            text: summary.text.clone(),
            truncated: summary.truncated,
            usage: summary.usage.map(job_usage),
        },
        decant_host::Outcome::Failed(failure) => Outcome::Failed {
            kind: failure_kind(failure.kind),
            message: failure.message.clone(),
            usage: failure.usage.map(job_usage),
        },
    }
}

fn failure_kind(kind: decant_host::FailureKind) -> FailureKind {
    match kind {
        decant_host::FailureKind::Transient => FailureKind::Transient,
        decant_host::FailureKind::Timeout => FailureKind::Timeout,
        decant_host::FailureKind::Aborted => FailureKind::Aborted,
        decant_host::FailureKind::Permanent => FailureKind::Permanent,
    }
}

fn job_usage(usage: decant_host::JobUsage) -> JobUsage {
    JobUsage {
        input_tokens: usage.input,
        output_tokens: usage.output,
        cost: usage.cost,
    }
}

pub(super) fn stamp(stamp: decant_host::Stamp) -> Stamp {
    Stamp {
        entry: EntryId(stamp.entry),
        at_ms: stamp.at,
    }
}

pub(super) fn host_error(error: decant_host::HostError) -> HostError {
    match error {
        decant_host::HostError::NotFound => HostError::NotFound,
        decant_host::HostError::Unavailable(why) => HostError::Unavailable(why),
        decant_host::HostError::Failed(why) => HostError::Failed(why),
    }
}
