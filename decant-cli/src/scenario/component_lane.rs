//! The lane through the component.

use anyhow::{Result, anyhow};
use decant_host::exports::messages::Message;
use decant_host::exports::{Call, Instance, SessionInfo, State};
use decant_host::{
    Activity, Answer, CommandError, Decant, Limits, LogEntry, Node, Notice, Outcome, PlanUpdate,
    SessionError, SessionStatus, SummarizerStats, Usage,
};

use super::host::SharedHost;
use super::lane::Lane;

/// An instance of the component in wasmtime.
pub struct ComponentLane {
    instance: Instance,
}

impl ComponentLane {
    /// Makes an instance over the host.
    ///
    /// # Errors
    /// The component cannot be instantiated.
    pub fn new(decant: &Decant, host: SharedHost) -> Result<Self> {
        let instance = Instance::new(decant, State::new(Box::new(host)), Limits::default());
        let instance = instance.map_err(|(_, error)| anyhow!("{error:#}"))?;
        Ok(Self { instance })
    }

    /// Makes a call that is never refused in a session.
    fn hook<T, E: std::fmt::Display>(
        &mut self,
        f: impl FnOnce(&mut Call<'_>) -> wasmtime::Result<Result<T, E>>,
    ) -> Result<T> {
        self.call(f)?
            .map_err(|refused| anyhow!("it was refused: {refused}"))
    }

    fn call<T>(&mut self, f: impl FnOnce(&mut Call<'_>) -> wasmtime::Result<T>) -> Result<T> {
        let called = self.instance.call(Limits::default(), f);
        called.map_err(|error| anyhow!("{error:#}"))
    }
}

impl Lane for ComponentLane {
    fn open(&mut self, session: &SessionInfo, config: &str) -> Result<Vec<Notice>> {
        let config = &config.to_owned();
        self.call(|call| call.lifecycle.call_open(&mut *call.store, session, config))?
            .map_err(refused)
    }

    fn restore(&mut self, entries: &[LogEntry]) -> Result<Vec<Notice>> {
        self.call(|call| call.lifecycle.call_restore(&mut *call.store, entries))?
            .map_err(refused)
    }

    fn sync(&mut self, at: u32, tail: &[Message]) -> Result<()> {
        self.call(|call| call.lifecycle.call_sync(&mut *call.store, at, tail))?
            .map_err(refused)
    }

    fn turn_end(&mut self, usage: Option<Usage>, now_ms: u64) -> Result<Activity> {
        self.hook(|call| {
            call.lifecycle
                .call_turn_end(&mut *call.store, usage, now_ms)
        })
    }

    fn reply_end(&mut self, closing_at_ms: Option<u64>, now_ms: u64) -> Result<Activity> {
        self.hook(|call| {
            let lifecycle = call.lifecycle;
            lifecycle.call_reply_end(&mut *call.store, closing_at_ms, now_ms)
        })
    }

    fn plan(&mut self, known: Option<u64>, now_ms: u64) -> Result<Option<PlanUpdate>> {
        self.hook(|call| call.lifecycle.call_plan(&mut *call.store, known, now_ms))
    }

    fn summary_ready(&mut self, job: u64, outcome: &Outcome, now_ms: u64) -> Result<Activity> {
        self.hook(|call| {
            let lifecycle = call.lifecycle;
            lifecycle.call_summary_ready(&mut *call.store, job, outcome, now_ms)
        })
    }

    fn model_changed(&mut self) -> Result<()> {
        self.hook(|call| call.lifecycle.call_model_changed(&mut *call.store))
    }

    fn query_tool_offered(&mut self, offered: bool) -> Result<()> {
        self.hook(|call| {
            let lifecycle = call.lifecycle;
            lifecycle.call_query_tool_offered(&mut *call.store, offered)
        })
    }

    fn answer(&mut self, tool: &str, arguments: &str, now_ms: u64) -> Result<Answer> {
        let arguments = &arguments.to_owned();
        self.hook(|call| {
            call.query
                .call_call(&mut *call.store, tool, arguments, now_ms)
        })
    }

    fn flush(&mut self, now_ms: u64) -> Result<Result<Activity, CommandError>> {
        self.call(|call| call.control.call_flush(&mut *call.store, now_ms))
    }

    fn compact(&mut self, now_ms: u64) -> Result<Result<Activity, CommandError>> {
        self.call(|call| call.control.call_compact(&mut *call.store, now_ms))
    }

    fn undo(&mut self, name: &str, now_ms: u64) -> Result<Result<String, CommandError>> {
        self.call(|call| call.control.call_undo(&mut *call.store, name, now_ms))
    }

    fn cancel(&mut self) -> Result<Result<(), CommandError>> {
        self.call(|call| call.control.call_cancel(&mut *call.store))
    }

    fn configure(
        &mut self,
        config: &str,
        now_ms: u64,
    ) -> Result<Result<Vec<Notice>, CommandError>> {
        let config = &config.to_owned();
        self.call(|call| {
            call.control
                .call_configure(&mut *call.store, config, now_ms)
        })
    }

    fn config(&mut self) -> Result<String> {
        self.hook(|call| call.control.call_config(&mut *call.store))
    }

    fn status(&mut self) -> Result<SessionStatus> {
        self.hook(|call| call.control.call_status(&mut *call.store))
    }

    fn stats(&mut self) -> Result<SummarizerStats> {
        self.hook(|call| call.control.call_stats(&mut *call.store))
    }

    fn tree(&mut self) -> Result<Vec<Node>> {
        self.hook(|call| call.control.call_tree(&mut *call.store))
    }

    fn node_text(&mut self, index: u32) -> Result<Result<String, CommandError>> {
        self.call(|call| call.control.call_node_text(&mut *call.store, index))
    }
}

fn refused(error: SessionError) -> anyhow::Error {
    match error {
        SessionError::NotOpen => anyhow!("no session is open"),
        SessionError::ReEntered => anyhow!("called from inside an import"),
        SessionError::OutOfOrder(why) => anyhow!("out of order: {why}"),
        SessionError::PositionOutOfRange(length) => {
            anyhow!("position lies behind the end of the transcript, which has {length} messages")
        }
        SessionError::MalformedConfig(words) => anyhow!("settings are no JSON object: {words}"),
    }
}
