//! The lane through the engine itself, without the component around it.

mod inward;
mod outward;

use std::sync::{MutexGuard, PoisonError};

use anyhow::{Result, anyhow, ensure};
use decant::engine::hook::Hook;
use decant::engine::host::{Cost, Host, HostError, Notice, Request, Stamp};
use decant::engine::ids::{EntryId, JobId};
use decant::engine::session::Session;
use decant_cli::scenario::{Lane, ScenarioHost, SharedHost};
use decant_host::exports::{SessionInfo, messages};
use decant_host::{
    Activity, Answer, CommandError, Environment, LogEntry, Node, Outcome, Plan, PlanUpdate,
    SessionStatus, SummarizerStats, Usage,
};

/// A session of the engine over the host of a scenario.
pub(crate) struct EngineLane {
    host: FakeHost,
    session: Option<Session>,
    /// What the differences that were handed out add up to.
    plan: Plan,
}

/// The scenario's host in the engine's words.
struct FakeHost(SharedHost);

impl EngineLane {
    /// Makes a lane without a session yet.
    pub(crate) fn new(host: SharedHost) -> Result<Self> {
        Ok(Self {
            host: FakeHost(host),
            session: None,
            plan: Plan::default(),
        })
    }

    /// The differences must add up to the whole plan.
    fn check_difference(
        &mut self,
        update: Option<PlanUpdate>,
        whole: Option<PlanUpdate>,
    ) -> Result<()> {
        if let Some(update) = update {
            self.plan.update(update);
        }
        let mut fresh = Plan::default();
        if let Some(whole) = whole {
            fresh.update(whole);
        }
        let same = self.plan.edits().eq(fresh.edits());
        ensure!(
            same,
            "the differences do not add up to the whole plan: {fresh:?}"
        );
        Ok(())
    }

    /// The session and its host.
    fn parts(&mut self) -> Result<(&mut Session, &mut FakeHost)> {
        let session = self
            .session
            .as_mut()
            .ok_or_else(|| anyhow!("no session is open"))?;
        Ok((session, &mut self.host))
    }
}

impl Lane for EngineLane {
    fn open(&mut self, _: &SessionInfo, config: &str) -> Result<Vec<decant_host::Notice>> {
        let (session, notices) = Session::open(config)?;
        self.session = Some(session);
        Ok(notices.iter().map(outward::notice).collect())
    }

    fn restore(&mut self, entries: &[LogEntry]) -> Result<Vec<decant_host::Notice>> {
        let (session, _) = self.parts()?;
        let notices = session.restore(entries.iter().map(inward::log_entry).collect())?;
        Ok(notices.iter().map(outward::notice).collect())
    }

    fn sync(&mut self, at: u32, tail: &[messages::Message]) -> Result<()> {
        let (session, _) = self.parts()?;
        Ok(session.sync(at, tail.iter().map(inward::message).collect())?)
    }

    fn turn_end(&mut self, usage: Option<Usage>, now_ms: u64) -> Result<Activity> {
        let (session, host) = self.parts()?;
        Ok(outward::activity(session.turn_end(
            usage.map(inward::usage),
            &mut Hook::new(now_ms, host),
        )))
    }

    fn reply_end(&mut self, closing_at_ms: Option<u64>, now_ms: u64) -> Result<Activity> {
        let (session, host) = self.parts()?;
        Ok(outward::activity(
            session.reply_end(closing_at_ms, &mut Hook::new(now_ms, host)),
        ))
    }

    fn plan(&mut self, known: Option<u64>, now_ms: u64) -> Result<Option<PlanUpdate>> {
        let (session, host) = self.parts()?;
        let update = session
            .plan(known, &mut Hook::new(now_ms, host))
            .map(outward::plan_update);
        let whole = session
            .plan(None, &mut Hook::new(now_ms, host))
            .map(outward::plan_update);
        self.check_difference(update.clone(), whole)?;
        Ok(update)
    }

    fn summary_ready(&mut self, job: u64, outcome: &Outcome, now_ms: u64) -> Result<Activity> {
        let (session, host) = self.parts()?;
        let outcome = inward::outcome(outcome);
        Ok(outward::activity(session.summary_ready(
            JobId(job),
            outcome,
            &mut Hook::new(now_ms, host),
        )))
    }

    fn model_changed(&mut self) -> Result<()> {
        self.parts()?.0.model_changed();
        Ok(())
    }

    fn query_tool_offered(&mut self, offered: bool) -> Result<()> {
        self.parts()?.0.query_tool_offered(offered);
        Ok(())
    }

    fn answer(&mut self, tool: &str, arguments: &str, now_ms: u64) -> Result<Answer> {
        let (session, host) = self.parts()?;
        Ok(outward::answer(session.call(
            tool,
            arguments,
            &mut Hook::new(now_ms, host),
        )))
    }

    fn flush(&mut self, now_ms: u64) -> Result<Result<Activity, CommandError>> {
        let (session, host) = self.parts()?;
        let flushed = session.flush(&mut Hook::new(now_ms, host));
        Ok(flushed
            .map(outward::activity)
            .map_err(outward::command_error))
    }

    fn compact(&mut self, now_ms: u64) -> Result<Result<Activity, CommandError>> {
        let (session, host) = self.parts()?;
        let compacted = session.compact(&mut Hook::new(now_ms, host));
        Ok(compacted
            .map(outward::activity)
            .map_err(outward::command_error))
    }

    fn undo(&mut self, name: &str, now_ms: u64) -> Result<Result<String, CommandError>> {
        let (session, host) = self.parts()?;
        Ok(session
            .undo(name, &mut Hook::new(now_ms, host))
            .map_err(outward::command_error))
    }

    fn cancel(&mut self) -> Result<Result<(), CommandError>> {
        let (session, host) = self.parts()?;
        Ok(session.cancel(host).map_err(outward::command_error))
    }

    fn configure(
        &mut self,
        config: &str,
        now_ms: u64,
    ) -> Result<Result<Vec<decant_host::Notice>, CommandError>> {
        let (session, host) = self.parts()?;
        let configured = session.configure(config, &mut Hook::new(now_ms, host));
        let notices = configured.map(|notices| notices.iter().map(outward::notice).collect());
        Ok(notices.map_err(outward::command_error))
    }

    fn config(&mut self) -> Result<String> {
        Ok(self.parts()?.0.config())
    }

    fn status(&mut self) -> Result<SessionStatus> {
        Ok(outward::status(self.parts()?.0.status()))
    }

    fn stats(&mut self) -> Result<SummarizerStats> {
        Ok(outward::stats(&self.parts()?.0.stats()))
    }

    fn tree(&mut self) -> Result<Vec<Node>> {
        Ok(self
            .parts()?
            .0
            .tree()
            .into_iter()
            .map(outward::node)
            .collect())
    }

    fn node_text(&mut self, index: u32) -> Result<Result<String, CommandError>> {
        let (session, host) = self.parts()?;
        Ok(session
            .node_text(index, host)
            .map_err(outward::command_error))
    }
}

impl FakeHost {
    fn inner(&self) -> MutexGuard<'_, ScenarioHost> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The scenario's host has a clock of its own, so it is told no time.
const NO_TIME: u64 = 0;

impl Host for FakeHost {
    fn append(&mut self, kind: &str, data: &str) -> Result<Stamp, HostError> {
        let appended = self.inner().append(kind, data, NO_TIME);
        appended.map(inward::stamp).map_err(inward::host_error)
    }

    fn append_message(
        &mut self,
        kind: &str,
        content: &str,
        details: &str,
    ) -> Result<Stamp, HostError> {
        let appended = self.inner().append_message(kind, content, details, NO_TIME);
        appended.map(inward::stamp).map_err(inward::host_error)
    }

    fn read(&mut self, entry: &EntryId) -> Result<String, HostError> {
        self.inner().read(&entry.0).map_err(inward::host_error)
    }

    fn write_blob(&mut self, name: &str, text: &str) -> Result<String, HostError> {
        self.inner()
            .write_blob(name, text)
            .map_err(inward::host_error)
    }

    fn read_blob(&mut self, name: &str) -> Result<String, HostError> {
        self.inner().read_blob(name).map_err(inward::host_error)
    }

    fn submit(&mut self, request: &Request) -> Result<JobId, HostError> {
        let submitted = self.inner().submit(outward::request(request));
        submitted.map(JobId).map_err(inward::host_error)
    }

    fn cancel(&mut self, job: JobId) {
        self.inner().cancel(job.0);
    }

    fn notify(&mut self, notice: &Notice) {
        self.inner().notify(outward::notice(notice));
    }

    fn status(&mut self, line: &str) {
        self.inner().status(line);
    }

    fn cost(&mut self, cost: &Cost) {
        self.inner().cost(outward::cost(*cost));
    }
}
