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
pub enum Block {
    Text(String),
    /// Length of text and signature, in UTF-16 code units.
    Thinking(u32),
    ToolCall(ToolCall),
    Opaque(Opaque),
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
    pub content: Vec<Block>,
    /// Unix milliseconds.
    pub at_ms: u64,
}

impl Message {
    /// The text blocks, joined with line ends. This is what a record archives and a stub replaces.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Block::as_text).collect();
        texts.join("\n")
    }
}

impl Block {
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Thinking(_) | Self::ToolCall(_) | Self::Opaque(_) => None,
        }
    }
}
