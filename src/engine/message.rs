//! The transcript's messages, as the contract's interface `messages` describes them.
//!
//! Image data, thinking text and signatures are not here: they never leave the host.

/// A request of the assistant to run a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// Unique within one assistant message only.
    pub id: String,
    pub name: String,
    /// A JSON text; empty for a call without arguments.
    pub arguments: String,
}

/// A part that stays with the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opaque {
    pub kind: String,
    /// In UTF-16 code units of the request.
    pub chars: u32,
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Text(String),
    /// Length of text and signature, in UTF-16 code units.
    Thinking(u32),
    ToolCall(ToolCall),
    Opaque(Opaque),
    /// Text of a tool result that stays with the host because the log has it: its length in UTF-16
    /// code units, and how many of them are ASCII.
    Withheld {
        chars: u32,
        ascii: u32,
    },
}

/// Why the assistant stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    Stop,
    ToolUse,
    Length,
    Error,
    Aborted,
    Other,
}

impl StopReason {
    /// Whether hosts send a message that ended so to the provider.
    #[must_use]
    pub fn is_sent(self) -> bool {
        !matches!(self, Self::Error | Self::Aborted)
    }
}

/// What only one role has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    User,
    Assistant {
        stop: StopReason,
    },
    ToolResult {
        call_id: String,
        tool: String,
        is_error: bool,
    },
    /// `details` is a JSON text for our own summaries, else empty.
    Custom {
        kind: String,
        details: String,
    },
    /// A role that the pruner leaves alone, by the host's name for it.
    Other {
        role: String,
    },
}

/// One message of the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub role: Role,
    pub content: Vec<Part>,
    /// Unix milliseconds.
    pub at_ms: u64,
}

impl Message {
    /// The text parts, joined with line ends: what a record archives and a stub replaces. `None`
    /// where the host withholds some of it.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        if self.content.iter().any(Part::is_withheld) {
            return None;
        }
        let texts: Vec<&str> = self.content.iter().filter_map(Part::as_text).collect();
        Some(texts.join("\n"))
    }
}

impl Part {
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Thinking(_) | Self::ToolCall(_) | Self::Opaque(_) | Self::Withheld { .. } => None,
        }
    }

    fn is_withheld(&self) -> bool {
        matches!(self, Self::Withheld { .. })
    }
}
