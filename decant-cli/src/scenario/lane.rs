//! What a scenario is run through.

use anyhow::Result;
use decant_host::exports::SessionInfo;
use decant_host::exports::messages::Message;
use decant_host::{
    Activity, Answer, CommandError, LogEntry, Node, Notice, Outcome, PlanUpdate, SessionStatus,
    SummarizerStats, Usage,
};

/// One instance of the pruner: its exports, with the host of the scenario behind its imports.
///
/// The same scenario has the same outcome in every lane. An error means that the pruner refused a
/// hook or that its instance is lost, and ends the run; a refused command does not.
pub trait Lane {
    /// # Errors
    /// The pruner refused.
    fn open(&mut self, session: &SessionInfo, config: &str) -> Result<Vec<Notice>>;

    /// # Errors
    /// The pruner refused.
    fn restore(&mut self, entries: &[LogEntry]) -> Result<Vec<Notice>>;

    /// # Errors
    /// The pruner refused.
    fn sync(&mut self, at: u32, tail: &[Message]) -> Result<()>;

    /// # Errors
    /// The instance is lost.
    fn turn_end(&mut self, usage: Option<Usage>, now_ms: u64) -> Result<Activity>;

    /// # Errors
    /// The instance is lost.
    fn reply_end(&mut self, closing_at_ms: Option<u64>, now_ms: u64) -> Result<Activity>;

    /// # Errors
    /// The instance is lost.
    fn plan(&mut self, known: Option<u64>, now_ms: u64) -> Result<Option<PlanUpdate>>;

    /// # Errors
    /// The instance is lost.
    fn summary_ready(&mut self, job: u64, outcome: &Outcome, now_ms: u64) -> Result<Activity>;

    /// # Errors
    /// The instance is lost.
    fn model_changed(&mut self) -> Result<()>;

    /// # Errors
    /// The instance is lost.
    fn query_tool_offered(&mut self, offered: bool) -> Result<()>;

    /// # Errors
    /// The instance is lost.
    fn answer(&mut self, tool: &str, arguments: &str, now_ms: u64) -> Result<Answer>;

    /// # Errors
    /// The instance is lost.
    fn flush(&mut self, now_ms: u64) -> Result<Result<Activity, CommandError>>;

    /// # Errors
    /// The instance is lost.
    fn compact(&mut self, now_ms: u64) -> Result<Result<Activity, CommandError>>;

    /// # Errors
    /// The instance is lost.
    fn undo(&mut self, name: &str, now_ms: u64) -> Result<Result<String, CommandError>>;

    /// # Errors
    /// The instance is lost.
    fn cancel(&mut self) -> Result<Result<(), CommandError>>;

    /// # Errors
    /// The instance is lost.
    fn configure(&mut self, config: &str, now_ms: u64)
    -> Result<Result<Vec<Notice>, CommandError>>;

    /// # Errors
    /// The instance is lost.
    fn config(&mut self) -> Result<String>;

    /// # Errors
    /// The instance is lost.
    fn status(&mut self) -> Result<SessionStatus>;

    /// # Errors
    /// The instance is lost.
    fn stats(&mut self) -> Result<SummarizerStats>;

    /// # Errors
    /// The instance is lost.
    fn tree(&mut self) -> Result<Vec<Node>>;

    /// # Errors
    /// The instance is lost.
    fn node_text(&mut self, index: u32) -> Result<Result<String, CommandError>>;
}
