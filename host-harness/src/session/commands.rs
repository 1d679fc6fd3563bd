//! What the model and the user ask of a session.

use serde_json::Value;

use super::Session;
use crate::instance::Call;
use crate::render::attachments;
use crate::{
    Activity, BatchProgress, CommandError, Node, Notice, Occurrence, Reply, SessionStatus, Size,
    SummarizerStats, Tool,
};

impl Session {
    /// The tools to offer to the model under the present settings.
    pub fn tools(&mut self) -> Vec<Tool> {
        let tools = self.hook("tools", None, |call| {
            call.query.call_tools(&mut *call.store)
        });
        tools.unwrap_or_default()
    }

    /// Answers a call of one of these tools. `arguments` is what the model wrote, a JSON text.
    pub fn answer(&mut self, tool: &str, arguments: &str, now_ms: u64) -> Reply {
        let arguments = arguments.to_owned();
        let reply = self.hook("call", Some(now_ms), |call| {
            let query = call.query;
            query.call_call(&mut *call.store, tool, &arguments, now_ms)
        });
        reply.unwrap_or_else(|| Reply {
            text: format!("`{tool}` is out of order at the moment. Call it again."),
            is_error: true,
            attachments: Vec::new(),
        })
    }

    /// The images and other non-text parts that belong to an answer, from the transcript.
    #[must_use]
    pub fn attachments(&self, reply: &Reply) -> Vec<Value> {
        let results = |occurrence: &Occurrence| {
            let (call_id, at) = (occurrence.call_id.clone(), occurrence.at);
            let transcript = self.transcript.iter().filter(|m| m.is_tool_result());
            transcript.filter(move |m| {
                m.text_field("toolCallId") == call_id && at.is_none_or(|at| at == m.at_ms())
            })
        };
        let messages = reply.attachments.iter().flat_map(results);
        messages.flat_map(attachments).cloned().collect()
    }

    /// Flushes everything that waits, whatever `pruneOn` says.
    ///
    /// # Errors
    /// See [`CommandError`]; nothing has changed.
    pub fn flush(&mut self, now_ms: u64) -> Result<Activity, CommandError> {
        self.command("flush", Some(now_ms), |call| {
            call.control.call_flush(&mut *call.store, now_ms)
        })
    }

    /// Compresses every closed chain, whatever the rolling window says.
    ///
    /// # Errors
    /// See [`CommandError`]; nothing has changed.
    pub fn compact(&mut self, now_ms: u64) -> Result<Activity, CommandError> {
        self.command("compact", Some(now_ms), |call| {
            call.control.call_compact(&mut *call.store, now_ms)
        })
    }

    /// Takes a block (`b1`) or the batch of a ref (`t1`) back, and says what was taken back.
    ///
    /// # Errors
    /// See [`CommandError`]; nothing has changed.
    pub fn undo(&mut self, name: &str, now_ms: u64) -> Result<String, CommandError> {
        self.command("undo", Some(now_ms), |call| {
            call.control.call_undo(&mut *call.store, name, now_ms)
        })
    }

    /// Gives the flush in progress up. Its batches wait for the next one.
    ///
    /// # Errors
    /// See [`CommandError`]; nothing has changed.
    pub fn cancel(&mut self) -> Result<(), CommandError> {
        self.command("cancel", None, |call| {
            call.control.call_cancel(&mut *call.store)
        })
    }

    /// Replaces the settings by a whole JSON object. Bad settings are named in the result.
    ///
    /// # Errors
    /// It is no JSON object; nothing has changed.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "it takes a `json!` or a string as it comes"
    )]
    pub fn configure(
        &mut self,
        config: impl ToString,
        now_ms: u64,
    ) -> Result<Vec<Notice>, CommandError> {
        let config = config.to_string();
        let notices = self.command("configure", Some(now_ms), |call| {
            let control = call.control;
            control.call_configure(&mut *call.store, &config, now_ms)
        })?;
        self.options.config = config;
        Ok(notices)
    }

    /// The settings in force, a JSON object with every key.
    pub fn config(&mut self) -> String {
        let config = self.hook("config", None, |call| {
            call.control.call_config(&mut *call.store)
        });
        config.unwrap_or_else(|| self.options.config.clone())
    }

    /// The state of the session at a glance.
    pub fn status(&mut self) -> SessionStatus {
        let status = self.hook("status", None, |call| {
            call.control.call_status(&mut *call.store)
        });
        status.unwrap_or_else(no_status)
    }

    /// What the summarizer did, over the life of the session.
    pub fn stats(&mut self) -> SummarizerStats {
        let stats = self.hook("stats", None, |call| {
            call.control.call_stats(&mut *call.store)
        });
        stats.unwrap_or(SummarizerStats {
            input_tokens: 0,
            output_tokens: 0,
            cost: 0.0,
            calls: 0,
            chains_compressed: 0,
            ranges_summarized: 0,
        })
    }

    /// The rows of the flush in progress; empty when there is none.
    pub fn progress(&mut self) -> Vec<BatchProgress> {
        let progress = self.hook("progress", None, |call| {
            call.control.call_progress(&mut *call.store)
        });
        progress.unwrap_or_default()
    }

    /// The tree of blocks, summaries, calls and aliases, each parent before its children.
    pub fn tree(&mut self) -> Vec<Node> {
        let tree = self.hook("tree", None, |call| {
            call.control.call_tree(&mut *call.store)
        });
        tree.unwrap_or_default()
    }

    /// The text of a summary or the body of a block, by its index in the tree.
    ///
    /// # Errors
    /// There is no such node, or it has no text.
    pub fn node_text(&mut self, index: u32) -> Result<String, CommandError> {
        self.command("node-text", None, |call| {
            call.control.call_node_text(&mut *call.store, index)
        })
    }

    fn command<T>(
        &mut self,
        name: &'static str,
        now_ms: Option<u64>,
        call: impl FnOnce(&mut Call<'_>) -> wasmtime::Result<Result<T, CommandError>>,
    ) -> Result<T, CommandError> {
        let answer = self.hook(name, now_ms, call);
        answer.unwrap_or_else(|| {
            let reason = "the pruner broke down and is loaded again".to_owned();
            Err(CommandError::NothingToDo(reason))
        })
    }
}

fn no_status() -> SessionStatus {
    let nothing = Size {
        chars: 0,
        tokens: 0,
    };
    SessionStatus {
        enabled: false,
        line: String::new(),
        before: nothing,
        after: nothing,
        pending_turns: 0,
        running_jobs: 0,
        records: 0,
        blocks: 0,
        strategies: Vec::new(),
        open_cycle_thinking: nothing,
        largest_chain_percent: 0,
        frontier_gap: nothing,
    }
}
