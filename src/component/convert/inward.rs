//! What comes from the host.

use super::each;
use crate::component::bindings::decant::pruner::{host_types, messages, session_log};
use crate::component::bindings::exports::decant::pruner::lifecycle;
use crate::engine::host::{FailureKind, HostError, JobUsage, Outcome, Stamp};
use crate::engine::ids::EntryId;
use crate::engine::message::{Message, Opaque, Part, Role, StopReason, ToolCall};
use crate::engine::session::{LogEntry, Usage};

impl From<messages::Message> for Message {
    fn from(message: messages::Message) -> Self {
        let (role, content, at_ms) = match message {
            messages::Message::User(user) => (Role::User, user.content, user.at),
            messages::Message::Assistant(assistant) => {
                let stop = assistant.stop.into();
                (Role::Assistant { stop }, assistant.content, assistant.at)
            }
            messages::Message::ToolResult(result) => {
                let role = Role::ToolResult {
                    call_id: result.call_id,
                    tool: result.tool,
                    is_error: result.is_error,
                };
                (role, result.content, result.at)
            }
            messages::Message::Custom(custom) => {
                let role = Role::Custom {
                    kind: custom.kind,
                    details: custom.details,
                };
                (role, custom.content, custom.at)
            }
            messages::Message::Other(other) => {
                (Role::Other { role: other.role }, other.content, other.at)
            }
        };
        Self {
            role,
            content: each(content),
            at_ms,
        }
    }
}

impl From<messages::Part> for Part {
    fn from(part: messages::Part) -> Self {
        match part {
            messages::Part::Text(text) => Self::Text(text),
            messages::Part::Thinking(chars) => Self::Thinking(chars),
            messages::Part::ToolCall(call) => Self::ToolCall(ToolCall {
                id: call.id,
                name: call.name,
                arguments: call.arguments,
            }),
            messages::Part::Opaque(opaque) => Self::Opaque(Opaque {
                kind: opaque.kind,
                chars: opaque.chars,
            }),
            messages::Part::Withheld(size) => Self::Withheld {
                chars: size.chars,
                ascii: size.ascii,
            },
        }
    }
}

impl From<messages::StopReason> for StopReason {
    fn from(stop: messages::StopReason) -> Self {
        match stop {
            messages::StopReason::Stop => Self::Stop,
            messages::StopReason::ToolUse => Self::ToolUse,
            messages::StopReason::Length => Self::Length,
            messages::StopReason::Error => Self::Error,
            messages::StopReason::Aborted => Self::Aborted,
            messages::StopReason::Other => Self::Other,
        }
    }
}

impl From<lifecycle::LogEntry> for LogEntry {
    fn from(entry: lifecycle::LogEntry) -> Self {
        Self {
            id: EntryId(entry.id),
            kind: entry.kind,
            data: entry.data,
            at_ms: entry.at,
        }
    }
}

impl From<lifecycle::Usage> for Usage {
    fn from(usage: lifecycle::Usage) -> Self {
        Self {
            tokens: usage.tokens,
            context_window: usage.context_window,
        }
    }
}

impl From<lifecycle::Outcome> for Outcome {
    fn from(outcome: lifecycle::Outcome) -> Self {
        match outcome {
            lifecycle::Outcome::Answered(summary) => Self::Answered {
                text: summary.text,
                truncated: summary.truncated,
                usage: summary.usage.map(Into::into),
            },
            lifecycle::Outcome::Failed(failure) => Self::Failed {
                kind: failure.kind.into(),
                message: failure.message,
                usage: failure.usage.map(Into::into),
            },
        }
    }
}

impl From<lifecycle::FailureKind> for FailureKind {
    fn from(kind: lifecycle::FailureKind) -> Self {
        match kind {
            lifecycle::FailureKind::Transient => Self::Transient,
            lifecycle::FailureKind::Timeout => Self::Timeout,
            lifecycle::FailureKind::Aborted => Self::Aborted,
            lifecycle::FailureKind::Permanent => Self::Permanent,
        }
    }
}

impl From<lifecycle::JobUsage> for JobUsage {
    fn from(usage: lifecycle::JobUsage) -> Self {
        Self {
            input_tokens: usage.input,
            output_tokens: usage.output,
            cost: usage.cost,
        }
    }
}

impl From<session_log::Stamp> for Stamp {
    fn from(stamp: session_log::Stamp) -> Self {
        Self {
            entry: EntryId(stamp.entry),
            at_ms: stamp.at,
        }
    }
}

impl From<host_types::HostError> for HostError {
    fn from(err: host_types::HostError) -> Self {
        match err {
            host_types::HostError::NotFound => Self::NotFound,
            host_types::HostError::Unavailable(why) => Self::Unavailable(why),
            host_types::HostError::Failed(why) => Self::Failed(why),
        }
    }
}
