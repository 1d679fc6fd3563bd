//! Takes a scenario through a lane, step by step.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, anyhow};
use decant_host::exports::{SessionInfo, to_wit};
use decant_host::{
    CommandError, Environment, Message, Notice, Outcome as JobOutcome, Plan, Usage, apply,
};
use serde_json::{Map, Value, json};

use super::command::{printed_stats, printed_status, printed_tree, refusal};
use super::error::ScenarioError;
use super::file::{BlobFolder, Scenario, SessionLog, Step, StepUsage};
use super::host::{ScenarioHost, SharedHost};
use super::json;
use super::lane::Lane;
use super::message::{completed, is_final_reply};
use super::outcome::Outcome;
use super::summarizer::Summarizer;

/// Runs a scenario. `new_lane` makes an instance of the pruner over the host that it is given; it is
/// called once for each time the session is loaded.
///
/// # Errors
/// A step cannot be taken; the error names it. Refused commands are a part of the outcome.
pub fn run<L: Lane>(
    scenario: &Scenario,
    new_lane: impl Fn(SharedHost) -> Result<L>,
) -> Result<Outcome, ScenarioError> {
    let host = ScenarioHost::new(
        &scenario.session_id,
        scenario.summaries_in_transcript,
        scenario.clock_ms,
    );
    let host = Arc::new(Mutex::new(host));
    let mut driver = Driver::new(scenario, Arc::clone(&host), new_lane);
    for (index, step) in scenario.steps.iter().enumerate() {
        let taken = driver.take(step);
        taken.map_err(|error| ScenarioError::Failed {
            step: index,
            message: format!("{error:#}"),
        })?;
    }
    let outcome = std::mem::take(&mut locked(&host).outcome);
    Ok(outcome)
}

struct Driver<L, N> {
    host: SharedHost,
    new_lane: N,
    /// `None` until the session is loaded, which the first step does.
    lane: Option<L>,
    session: SessionInfo,
    /// The settings of the scenario with all later changes.
    config: Map<String, Value>,
    summarizer: Summarizer,
    /// Jobs whose answer is on its way, with the steps that it still takes.
    delayed: Vec<(u64, JobOutcome, u32)>,
    /// The transcript as the pruner knows it.
    synced: Vec<Message>,
    plan: Plan,
}

impl<L: Lane, N: Fn(SharedHost) -> Result<L>> Driver<L, N> {
    fn new(scenario: &Scenario, host: SharedHost, new_lane: N) -> Self {
        Self {
            host,
            new_lane,
            lane: None,
            session: SessionInfo {
                id: scenario.session_id.clone(),
            },
            config: scenario.config.clone(),
            summarizer: Summarizer::new(scenario.summarizer.clone()),
            delayed: Vec::new(),
            synced: Vec::new(),
            plan: Plan::default(),
        }
    }

    /// The instance at hand; the first time it is asked for, the session is loaded.
    fn lane(&mut self) -> Result<&mut L> {
        if self.lane.is_none() {
            self.load()?;
        }
        self.lane
            .as_mut()
            .ok_or_else(|| anyhow!("there is no instance"))
    }

    /// Loads the session into a new instance: settings, log, transcript.
    fn load(&mut self) -> Result<()> {
        self.lane = None;
        self.host().forget_jobs();
        self.delayed.clear();
        let mut lane = (self.new_lane)(Arc::clone(&self.host))?;
        let config = json::compact(&Value::Object(self.config.clone()));
        let notices = lane.open(&self.session, &config)?;
        self.note(&notices);
        let entries = self.host().entries(0)?;
        let notices = lane.restore(&entries)?;
        self.note(&notices);
        let transcript = self.host().transcript();
        self.synced = transcript;
        self.plan = Plan::default();
        let transcript: Vec<_> = self.synced.iter().map(to_wit).collect();
        lane.sync(0, &transcript)?;
        self.lane = Some(lane);
        Ok(())
    }

    fn take(&mut self, step: &Step) -> Result<()> {
        self.finish_delayed()?;
        match step {
            Step::Message(message) => self.message(message)?,
            Step::TurnEnd(usage) => self.turn_end(*usage)?,
            Step::Context => self.context()?,
            Step::Query(arguments) => self.call("context_tree_query", arguments)?,
            Step::Call { tool, arguments } => self.call(tool, arguments)?,
            Step::Command(command) => self.command(command)?,
            Step::Entry { kind, data } => self.host().add_entry(kind, &json::compact(data)),
            Step::Config(changes) => self.configure(changes)?,
            Step::Restart => self.load()?,
            Step::Branch(kept) => {
                self.host().go_back(*kept);
                self.load()?;
            }
            Step::Blobs(BlobFolder::Lose) => self.host().lose_blobs(),
            Step::Blobs(folder) => self.host().blobs_fail = *folder == BlobFolder::Fail,
            Step::Log(log) => self.host().log_fails = *log == SessionLog::Fail,
            Step::Tick(ms) => self.host().clock_ms += ms,
            Step::ModelChanged => self.lane()?.model_changed()?,
            Step::QueryToolOffered(offered) => self.lane()?.query_tool_offered(*offered)?,
        }
        self.finish_jobs()
    }

    fn message(&mut self, message: &Map<String, Value>) -> Result<()> {
        self.lane()?;
        let mut host = self.host();
        if !message.contains_key("timestamp") {
            host.clock_ms += 1;
        }
        let message = completed(message.clone(), host.clock_ms.saturating_sub(1))?;
        drop(host);
        if is_final_reply(&message) {
            // The host fires this hook before the reply is in the session.
            self.sync()?;
            let now_ms = self.now_ms();
            self.lane()?.reply_end(Some(message.at_ms()), now_ms)?;
            self.finish_jobs()?;
        }
        self.host().add_message(message);
        Ok(())
    }

    fn turn_end(&mut self, usage: Option<StepUsage>) -> Result<()> {
        self.sync()?;
        let usage = usage.map(|usage| Usage {
            tokens: usage.tokens,
            context_window: usage.context_window,
        });
        let now_ms = self.now_ms();
        self.lane()?.turn_end(usage, now_ms)?;
        Ok(())
    }

    fn context(&mut self) -> Result<()> {
        self.sync()?;
        let now_ms = self.now_ms();
        let known = self.plan.revision();
        if let Some(update) = self.lane()?.plan(known, now_ms)? {
            self.plan.update(update);
        }
        let context = apply(&self.synced, &self.plan).into_iter();
        let context = context.map(Message::into_json).collect();
        self.host().outcome.contexts.push(context);
        Ok(())
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<()> {
        self.sync()?;
        let now_ms = self.now_ms();
        let answer = self
            .lane()?
            .answer(tool, &json::compact(arguments), now_ms)?;
        let attachments = answer.attachments.iter().map(
            |occurrence| json!({ "toolCallId": occurrence.call_id, "resultTimestamp": occurrence.at }),
        );
        let attachments = attachments.collect();
        let outcome = &mut self.host().outcome;
        outcome.attachments.push(attachments);
        outcome.queries.push(answer.text);
        Ok(())
    }

    fn configure(&mut self, changes: &Map<String, Value>) -> Result<()> {
        merge(&mut self.config, changes);
        self.sync()?;
        let config = json::compact(&Value::Object(self.config.clone()));
        let now_ms = self.now_ms();
        match self.lane()?.configure(&config, now_ms)? {
            Ok(notices) => self.note(&notices),
            Err(error) => self.host().note_refusal(&refusal(&error)),
        }
        Ok(())
    }

    fn command(&mut self, command: &str) -> Result<()> {
        self.sync()?;
        let now_ms = self.now_ms();
        let (name, argument) = command.split_once(' ').unwrap_or((command, ""));
        let printed = match name {
            "now" => self.lane()?.flush(now_ms)?.map(|_| None),
            "compact" => self.lane()?.compact(now_ms)?.map(|_| None),
            "undo" => self.lane()?.undo(argument, now_ms)?.map(Some),
            "cancel" => self.lane()?.cancel()?.map(|()| None),
            "config" => Ok(Some(self.lane()?.config()?)),
            "status" => Ok(Some(printed_status(&self.lane()?.status()?))),
            "stats" => Ok(Some(printed_stats(&self.lane()?.stats()?))),
            "tree" => Ok(Some(printed_tree(&self.lane()?.tree()?))),
            "text" => match argument.parse() {
                Ok(index) => self.lane()?.node_text(index)?.map(Some),
                Err(_) => Err(CommandError::Malformed("the number of a node".to_owned())),
            },
            _ => return Err(anyhow!("there is no command `{name}`")),
        };
        match printed {
            Ok(None) => {}
            Ok(Some(printed)) => self.host().outcome.commands.push(printed),
            Err(error) => self.host().note_refusal(&refusal(&error)),
        }
        Ok(())
    }

    /// Brings the pruner's transcript up to date.
    fn sync(&mut self) -> Result<()> {
        let transcript = self.host().transcript();
        let same = transcript
            .iter()
            .zip(&self.synced)
            .take_while(|(now, then)| now == then);
        let at = same.count();
        if at < transcript.len() || at < self.synced.len() {
            let tail: Vec<_> = transcript[at..].iter().map(to_wit).collect();
            self.lane()?.sync(u32::try_from(at)?, &tail)?;
            self.synced = transcript;
        }
        Ok(())
    }

    /// Answers the summarizer requests that wait, in the order of their submission.
    fn finish_jobs(&mut self) -> Result<()> {
        loop {
            let job = self.host().jobs.take();
            let Some((job, request)) = job else {
                return Ok(());
            };
            let response = self.summarizer.respond(&request);
            self.host().clock_ms += response.took_ms;
            match response.outcome {
                Some(outcome) if response.delay_steps > 0 => {
                    self.delayed.push((job, outcome, response.delay_steps));
                }
                Some(outcome) => self.deliver(job, &outcome)?,
                None => {}
            }
        }
    }

    /// Delivers the answers whose time has come, one step after another.
    fn finish_delayed(&mut self) -> Result<()> {
        for (_, _, steps) in &mut self.delayed {
            *steps -= 1;
        }
        let is_due = |(_, _, steps): &mut (u64, JobOutcome, u32)| *steps == 0;
        let due: Vec<_> = self.delayed.extract_if(.., is_due).collect();
        for (job, outcome, _) in due {
            self.deliver(job, &outcome)?;
        }
        Ok(())
    }

    fn deliver(&mut self, job: u64, outcome: &JobOutcome) -> Result<()> {
        let now_ms = self.now_ms();
        self.lane()?.summary_ready(job, outcome, now_ms)?;
        Ok(())
    }

    fn note(&self, notices: &[Notice]) {
        for notice in notices {
            self.host().notify(notice.clone());
        }
    }

    fn now_ms(&self) -> u64 {
        self.host().clock_ms
    }

    fn host(&self) -> MutexGuard<'_, ScenarioHost> {
        locked(&self.host)
    }
}

fn locked(host: &SharedHost) -> MutexGuard<'_, ScenarioHost> {
    host.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Merges changed settings in, blocks key by key.
fn merge(config: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (key, value) in changes {
        match (config.get_mut(key), value) {
            (Some(Value::Object(block)), Value::Object(changes)) => merge(block, changes),
            _ => {
                config.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
