//! Scripts of sessions: what a host, a user and a model do, step by step.
//!
//! Whatever a step names (a call, a job, a position) it names by a number that is taken modulo what
//! there is, so that a script stays valid when steps are taken out of it.

use decant::engine::message::StopReason;
use serde_json::Value;

/// A whole session.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub settings: Value,
    pub host: HostKind,
    /// How jobs end that the host answers before a model call; used in turn, again and again.
    pub answers: Vec<Answer>,
    pub steps: Vec<Step>,
}

/// What kind of host plays it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostKind {
    /// Whether summaries that are appended turn up in the transcript.
    pub shows_summaries: bool,
    /// Whether each message is synced at once, not all of them before the next hook.
    pub syncs_at_once: bool,
    /// Whether the newest job is answered first.
    pub answers_backwards: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    User(Output),
    Turn(Turn),
    Reply(Reply),
    Foreign(Foreign),
    /// One of the results that were held back arrives.
    Late(u8),
    /// A result that no call asked for.
    Orphan(CallId, Output),
    /// The model calls `context_tree_query`.
    Query(u8),
    /// The model calls `context_compress`.
    Compress,
    /// A model call that brings no answer.
    ModelCall,
    /// A job ends, whether or not the host waits for it.
    Answer(u8, Answer),
    /// A job ends that was cancelled, or for the second time.
    StaleAnswer(u8),
    Command(Command),
    Configure(Value),
    Restart {
        shuts_down: bool,
        /// Entries come in pieces of this many.
        pieces: u8,
    },
    /// The branch keeps this share, in 255ths, of what is in the session.
    Branch(u8),
    /// The host cuts all but the last so many messages away.
    HostCompaction(u8),
    /// Writing the log fails, or works again.
    Log(bool),
    /// Writing blobs fails, or works again.
    Blobs(bool),
    /// The blobs written so far are gone.
    LoseBlobs,
    /// Submitting jobs fails, or works again.
    Submit(bool),
    /// The process dies after so many more writes.
    Die(u8),
    /// One write fails, after so many more that work.
    Hiccup(u8),
    Tick(u32),
    ModelChanged,
    Offered(bool),
    /// Arguments for the query tool that no model should write.
    Hostile(u8),
    /// Originals are asked for while the log and the blobs cannot be read.
    Unreadable,
    /// A whole plan is asked for, or the difference to a revision that never was.
    ForgetPlan(Option<u64>),
}

#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub calls: Vec<Call>,
    pub words: Option<Output>,
    pub thinking: u32,
    pub has_encrypted_reasoning: bool,
    pub stop: StopReason,
    pub is_reversed: bool,
    /// Whether all results have the same timestamp.
    pub is_simultaneous: bool,
    /// A message of others, and behind how many results it stands.
    pub foreign: Option<(Foreign, u8)>,
    /// Tokens that the model call has used.
    pub tokens: Option<u32>,
    /// Whether the host fires `turn-end`, and how often.
    pub ends: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub words: Output,
    pub thinking: u32,
    pub stop: StopReason,
    /// Whether the hook fires before the message is there.
    pub is_early: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub id: CallId,
    pub tool: u8,
    pub arguments: Arguments,
    pub output: Output,
    pub fate: Fate,
    pub is_error: bool,
    pub has_image: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum CallId {
    Fresh,
    /// One of a few that are used again and again.
    Reused(u8),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Arguments {
    None,
    Command(u8),
    Path(u8),
    /// So many letters.
    Long(u16),
    /// Copies one of the pruner's own texts.
    Marker(u8),
    /// No JSON object.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Returned,
    HeldBack,
    Lost,
}

/// A text, from a few that come again and again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    Empty,
    Short(u8),
    /// So many hundred characters.
    Long(u8, u8),
    /// Many lines, more than a page has.
    Lines(u16),
    Hostile(u8),
    /// The same as `Long`, with other line ends and trailing blanks.
    Untidy(u8, u8),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Foreign {
    Custom,
    Bash,
    BranchSummary,
    Other,
    /// A summary message that is not in the log.
    StraySummary(u8),
    /// A message with the timestamp of the one before.
    SameTime,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Summary(u8),
    /// So many hundred characters.
    Long(u8),
    Hostile(u8),
    Empty,
    Truncated,
    Echo,
    ToolSyntax,
    Transient,
    Timeout,
    Permanent,
    Aborted,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    Now,
    Compact,
    UndoBlock(u8),
    UndoRef(u8),
    UndoNonsense,
    Cancel,
}

impl Script {
    /// The script without what a host of the component cannot say: arguments that are no JSON.
    pub(crate) fn portable(&self) -> Self {
        let mut script = self.clone();
        for step in &mut script.steps {
            if let Step::Turn(turn) = step {
                for call in &mut turn.calls {
                    if matches!(call.arguments, Arguments::None | Arguments::Broken) {
                        call.arguments = Arguments::Command(0);
                    }
                }
            }
        }
        script
    }
}
