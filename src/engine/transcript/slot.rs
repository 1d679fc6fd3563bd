//! What the mirror keeps of a message, and how it is read off the message.

use super::{CallSite, Position};
use crate::engine::block::is_block;
use crate::engine::entry::{SUMMARY, SummaryDetails};
use crate::engine::ids::{OccurrenceKey, Ref};
use crate::engine::message::{Message, Part, Role, StopReason};
use crate::engine::protect::path_argument;
use crate::engine::size::Size;
use crate::engine::stub::{are_purged, ref_of_stub};

/// What the mirror keeps of a message.
#[derive(Clone, Debug)]
pub struct Slot {
    pub at_ms: u64,
    pub size: Size,
    pub kind: Kind,
}

/// What only one role has.
#[derive(Clone, Debug)]
pub enum Kind {
    User,
    Assistant(Assistant),
    Result(ToolResult),
    /// A `context-prune-summary` message.
    Summary {
        details: SummaryDetails,
    },
    /// A custom message of another kind, or a host's summary of what it cut away: it can begin a
    /// chain.
    Prompt,
    /// A block that the host sends back: left alone.
    Block,
    /// Any other role: left alone.
    Other,
}

/// What the mirror keeps of an assistant message.
#[derive(Clone, Debug)]
pub struct Assistant {
    pub stop: StopReason,
    pub calls: Vec<Call>,
    /// Its text parts, joined with line ends; empty once released.
    pub text: String,
    pub thinking: Size,
    /// Whether it holds a provider's encrypted reasoning, which the next request has to repeat.
    pub is_pinned: bool,
    /// Counted over the assistant messages of the session.
    pub turn_index: u32,
}

/// What the mirror keeps of a tool call.
#[derive(Clone, Debug)]
pub struct Call {
    pub id: String,
    pub tool: String,
    /// A JSON text; `None` once released.
    pub arguments: Option<String>,
    pub arguments_size: Size,
    /// Whether the arguments are the marker of purged ones already.
    pub is_purged: bool,
    /// The argument that `protectedPaths` looks at.
    pub path: Option<String>,
    pub result: Option<Position>,
}

/// What the mirror keeps of a tool result.
#[derive(Clone, Debug)]
pub struct ToolResult {
    pub call_id: String,
    pub tool: String,
    pub is_error: bool,
    /// Its text parts, joined with line ends; `None` once released, or where the host withholds it.
    pub text: Option<String>,
    pub text_size: Size,
    /// The ref that the text is the stub of.
    pub stub_of: Option<Ref>,
    /// Kinds of the parts that are no text.
    pub other_parts: Vec<String>,
    /// The call that it answers; `None`: it answers none.
    pub site: Option<CallSite>,
    /// Whether another message stands between it and its turn.
    pub displaced: bool,
    /// Whether an earlier result has the same occurrence key: it can never be told apart in a log.
    pub ambiguous: bool,
}

impl Slot {
    pub(super) fn of(message: Message) -> Self {
        let size = Size::of_message(&message);
        let at_ms = message.at_ms;
        let kind = match message.role {
            Role::User if message.text().is_some_and(|text| is_block(&text)) => Kind::Block,
            Role::User => Kind::User,
            Role::Assistant { stop } => Kind::Assistant(assistant_of(stop, message.content)),
            Role::ToolResult {
                ref call_id,
                ref tool,
                is_error,
            } => Kind::Result(result_of(call_id, tool, is_error, &message)),
            Role::Custom { kind, details } if kind == SUMMARY => Kind::Summary {
                details: serde_json::from_str(&details).unwrap_or_default(),
            },
            Role::Custom { .. } => Kind::Prompt,
            Role::Other { role } if role == "compactionSummary" || role == "branchSummary" => {
                Kind::Prompt
            }
            Role::Other { .. } => Kind::Other,
        };
        Self { at_ms, size, kind }
    }

    /// Its kind, its call id if it has one, and its timestamp behind the last `@`.
    pub(super) fn mark(&self) -> String {
        let kind = match &self.kind {
            Kind::User => "user",
            Kind::Assistant(_) => "assistant",
            Kind::Result(result) => return format!("result@{}", result.key(self.at_ms)),
            Kind::Summary { .. } => "summary",
            Kind::Prompt => "prompt",
            Kind::Block | Kind::Other => "other",
        };
        format!("{kind}@{}", self.at_ms)
    }

    #[must_use]
    pub fn as_result(&self) -> Option<&ToolResult> {
        let Kind::Result(result) = &self.kind else {
            return None;
        };
        Some(result)
    }

    #[must_use]
    pub fn as_assistant(&self) -> Option<&Assistant> {
        let Kind::Assistant(assistant) = &self.kind else {
            return None;
        };
        Some(assistant)
    }
}

impl ToolResult {
    #[must_use]
    pub fn key(&self, at_ms: u64) -> OccurrenceKey {
        OccurrenceKey::new(self.call_id.clone(), at_ms)
    }
}

fn assistant_of(stop: StopReason, content: Vec<Part>) -> Assistant {
    let mut assistant = Assistant {
        stop,
        calls: Vec::new(),
        text: String::new(),
        thinking: Size::default(),
        is_pinned: false,
        turn_index: 0,
    };
    for part in content {
        match part {
            Part::Text(text) => {
                if !assistant.text.is_empty() {
                    assistant.text.push('\n');
                }
                assistant.text.push_str(&text);
            }
            Part::Thinking(chars) => {
                assistant.thinking = assistant.thinking + Size::of_chars(u64::from(chars));
            }
            Part::ToolCall(call) => assistant.calls.push(Call {
                arguments_size: Size::of_text(&call.arguments),
                is_purged: are_purged(&call.arguments),
                path: path_argument(&call.arguments),
                id: call.id,
                tool: call.name,
                arguments: Some(call.arguments),
                result: None,
            }),
            Part::Opaque(opaque) => assistant.is_pinned |= opaque.kind == "reasoning",
            // Only results are withheld.
            Part::Withheld { .. } => {}
        }
    }
    // Most have one call, and a vector begins with room for four.
    assistant.calls.shrink_to_fit();
    assistant
}

fn result_of(call_id: &str, tool: &str, is_error: bool, message: &Message) -> ToolResult {
    let text = message.text();
    let other_parts = message
        .content
        .iter()
        .filter_map(|part| match part {
            Part::Opaque(opaque) => Some(opaque.kind.clone()),
            Part::Text(_) | Part::Thinking(_) | Part::ToolCall(_) | Part::Withheld { .. } => None,
        })
        .collect();
    ToolResult {
        call_id: call_id.to_owned(),
        tool: tool.to_owned(),
        is_error,
        text_size: Size::of_joined_text(&message.content),
        stub_of: text.as_deref().and_then(ref_of_stub),
        text,
        other_parts,
        site: None,
        displaced: false,
        ambiguous: false,
    }
}
