//! What the model and the user ask of a session.

use std::fmt;

use serde_json::Value;

use super::Session;
use crate::instance::Call;
use crate::render::attachments;
use crate::{
    Activity, Answer, BatchProgress, CommandError, Node, Notice, Occurrence, SessionStatus,
    StrategyKind, SummarizerStats, Tool,
};

/// Why something that the user asked for was not done.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandFailure {
    /// The pruner refused. The session is unchanged.
    Refused(CommandError),
    /// The pruner broke down at it and has been loaded again from the log: asking again may work.
    Broken,
    /// The pruner broke down and could not be loaded again. The session goes on unpruned, for good
    /// if that has happened too often: then it has to be opened again.
    Down,
}

impl std::error::Error for CommandFailure {}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(CommandError::NotOpen) => f.write_str("no session is open"),
            Self::Refused(CommandError::ReEntered) => {
                f.write_str("the pruner was called from inside an import")
            }
            Self::Refused(CommandError::Disabled) => f.write_str("pruning is switched off"),
            Self::Refused(CommandError::SwitchedOff(key)) => write!(f, "`{key}` is switched off"),
            Self::Refused(CommandError::Busy) => f.write_str("a flush is in progress"),
            Self::Refused(CommandError::NothingToDo(why)) => write!(f, "nothing to do: {why}"),
            Self::Refused(CommandError::NotFound(what)) => write!(f, "there is no `{what}`"),
            Self::Refused(CommandError::LogFailed(why)) => {
                write!(f, "the session log failed: {why}")
            }
            Self::Refused(CommandError::Malformed(allowed)) => {
                write!(f, "cannot be read: {allowed}")
            }
            Self::Refused(CommandError::Unreadable(why)) => {
                write!(f, "the text cannot be read: {why}")
            }
            Self::Broken => {
                f.write_str("the pruner broke down and was loaded again from the log; try again")
            }
            Self::Down => {
                f.write_str("the pruner broke down and the session goes on unpruned; open it again")
            }
        }
    }
}

impl StrategyKind {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stub => "stub",
            Self::Dedup => "dedup",
            Self::Spill => "spill",
            Self::Chain => "chain",
            Self::Purge => "purge",
            Self::Thinking => "thinking",
            Self::Pairing => "pairing",
        }
    }
}

impl Session {
    /// The tools to offer to the model under the present settings; none while the pruner is down.
    pub fn tools(&mut self) -> Vec<Tool> {
        let tools = self.hook("tools", None, |call| {
            call.query.call_tools(&mut *call.store)
        });
        tools.unwrap_or_default()
    }

    /// Answers a call of one of these tools. `arguments` is what the model wrote, a JSON text.
    pub fn answer(&mut self, tool: &str, arguments: &str, now_ms: u64) -> Answer {
        let arguments = arguments.to_owned();
        let answer = self.hook("call", Some(now_ms), |call| {
            let query = call.query;
            query.call_call(&mut *call.store, tool, &arguments, now_ms)
        });
        answer.unwrap_or_else(|| Answer {
            text: format!("`{tool}` is out of order at the moment. Call it again."),
            is_error: true,
            attachments: Vec::new(),
        })
    }

    /// The images and other non-text parts that belong to an answer, from the transcript.
    #[must_use]
    pub fn attachments(&self, answer: &Answer) -> Vec<Value> {
        let results = |occurrence: &Occurrence| {
            let (call_id, at) = (occurrence.call_id.clone(), occurrence.at);
            let transcript = self.transcript.iter().filter(|m| m.is_tool_result());
            transcript.filter(move |m| {
                m.text_field("toolCallId") == call_id && at.is_none_or(|at| at == m.at_ms())
            })
        };
        let messages = answer.attachments.iter().flat_map(results);
        messages.flat_map(attachments).cloned().collect()
    }

    /// Flushes everything that waits, whatever `pruneOn` says.
    ///
    /// # Errors
    /// See [`CommandFailure`].
    pub fn flush(&mut self, now_ms: u64) -> Result<Activity, CommandFailure> {
        self.command("flush", Some(now_ms), |call| {
            call.control.call_flush(&mut *call.store, now_ms)
        })
    }

    /// Compresses every closed chain, whatever the rolling window says.
    ///
    /// # Errors
    /// See [`CommandFailure`].
    pub fn compact(&mut self, now_ms: u64) -> Result<Activity, CommandFailure> {
        self.command("compact", Some(now_ms), |call| {
            call.control.call_compact(&mut *call.store, now_ms)
        })
    }

    /// Takes a block (`b1`) or the batch of a ref (`t1`) back, and says what was taken back.
    ///
    /// # Errors
    /// See [`CommandFailure`].
    pub fn undo(&mut self, name: &str, now_ms: u64) -> Result<String, CommandFailure> {
        self.command("undo", Some(now_ms), |call| {
            call.control.call_undo(&mut *call.store, name, now_ms)
        })
    }

    /// Gives the flush in progress up. Its batches wait for the next one.
    ///
    /// # Errors
    /// See [`CommandFailure`].
    pub fn cancel(&mut self) -> Result<(), CommandFailure> {
        self.command("cancel", None, |call| {
            call.control.call_cancel(&mut *call.store)
        })
    }

    /// Replaces the settings by a whole JSON object. Bad settings are named in the result.
    ///
    /// # Errors
    /// See [`CommandFailure`]; the settings are what they were.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "it takes a `json!` or a string as it comes"
    )]
    pub fn configure(
        &mut self,
        config: impl ToString,
        now_ms: u64,
    ) -> Result<Vec<Notice>, CommandFailure> {
        let config = config.to_string();
        let notices = self.command("configure", Some(now_ms), |call| {
            let control = call.control;
            control.call_configure(&mut *call.store, &config, now_ms)
        })?;
        self.options.config = config;
        Ok(notices)
    }

    /// The settings in force, a JSON object with every key.
    ///
    /// # Errors
    /// See [`CommandFailure`].
    pub fn config(&mut self) -> Result<String, CommandFailure> {
        self.command("config", None, |call| {
            call.control.call_config(&mut *call.store)
        })
    }

    /// The state of the session at a glance.
    ///
    /// # Errors
    /// See [`CommandFailure`].
    pub fn status(&mut self) -> Result<SessionStatus, CommandFailure> {
        self.command("status", None, |call| {
            call.control.call_status(&mut *call.store)
        })
    }

    /// What the summarizer did, over the life of the session.
    ///
    /// # Errors
    /// See [`CommandFailure`].
    pub fn stats(&mut self) -> Result<SummarizerStats, CommandFailure> {
        self.command("stats", None, |call| {
            call.control.call_stats(&mut *call.store)
        })
    }

    /// The rows of the flush in progress; empty when there is none.
    ///
    /// # Errors
    /// See [`CommandFailure`].
    pub fn progress(&mut self) -> Result<Vec<BatchProgress>, CommandFailure> {
        self.command("progress", None, |call| {
            call.control.call_progress(&mut *call.store)
        })
    }

    /// The tree of blocks, summaries, calls and aliases, each parent before its children.
    ///
    /// # Errors
    /// See [`CommandFailure`].
    pub fn tree(&mut self) -> Result<Vec<Node>, CommandFailure> {
        self.command("tree", None, |call| {
            call.control.call_tree(&mut *call.store)
        })
    }

    /// The text of a node, by its index in the tree: of a summary what it says, of a block its body,
    /// of a call or an alias its original, byte for byte.
    ///
    /// # Errors
    /// See [`CommandFailure`].
    pub fn node_text(&mut self, index: u32) -> Result<String, CommandFailure> {
        self.command("node-text", None, |call| {
            call.control.call_node_text(&mut *call.store, index)
        })
    }

    fn command<T>(
        &mut self,
        name: &'static str,
        now_ms: Option<u64>,
        call: impl FnOnce(&mut Call<'_>) -> wasmtime::Result<Result<T, CommandError>>,
    ) -> Result<T, CommandFailure> {
        match self.ask(name, now_ms, call) {
            Some(answer) => answer.map_err(CommandFailure::Refused),
            None if self.link.is_live() => Err(CommandFailure::Broken),
            None => Err(CommandFailure::Down),
        }
    }
}
