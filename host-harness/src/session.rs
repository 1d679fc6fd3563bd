//! One conversation: its transcript, its component instance, and the context that they make.

mod commands;
mod link;

pub use commands::CommandFailure;
use link::Link;

use crate::instance::{Call, State};
use crate::render::Rendered;
use crate::{
    Activity, Decant, Environment, HostError, Limits, Message, Outcome, Plan, SessionError, Usage,
};

/// How to open a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Unique for the host.
    pub id: String,
    /// The settings, a JSON object that is merged over the defaults.
    pub config: String,
    /// Whether a summary that the pruner appends becomes a message of the transcript (the session
    /// pushes it), as in a host whose log is the transcript. If not, the plan inserts it.
    pub summaries_in_transcript: bool,
    pub limits: Limits,
}

impl SessionOptions {
    /// Options with the given settings, with summaries outside the transcript and the usual limits.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "it takes a `json!` or a string as it comes"
    )]
    pub fn new(id: impl Into<String>, config: impl ToString) -> Self {
        Self {
            id: id.into(),
            config: config.to_string(),
            summaries_in_transcript: false,
            limits: Limits::default(),
        }
    }
}

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the pruner refused the session: {0}")]
    Refused(SessionError),
    #[error("the session log cannot be read: {0}")]
    Log(HostError),
    /// The component trapped or passed its limits.
    #[error("the pruner broke down: {0:#}")]
    Broken(wasmtime::Error),
}

/// The position lies behind the end of the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("position {at} lies behind the end of the transcript, which has {len} messages")]
pub struct OutOfRange {
    pub at: usize,
    pub len: usize,
}

/// The context to send.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// What the model shall see.
    pub messages: &'a [Message],
    /// How many messages at the front are the same as in the context before.
    pub stable_prefix: usize,
    /// Whether the pruner was there. If not, this is the transcript as it is.
    pub pruned: bool,
}

/// One conversation and its pruner.
///
/// **Protocol.** [`push`](Self::push) each message when it is there. Before each model call take the
/// [`context`](Self::context). After each answer with tool calls, once their results are pushed,
/// call [`turn_end`](Self::turn_end); for an answer without any call
/// [`reply_end`](Self::reply_end), just before it is pushed. Run the jobs that the
/// [`Environment`] was given, and report each with [`summary_ready`](Self::summary_ready); while an
/// [`Activity`] says `blocking`, hold the next model call until `running_jobs` is 0.
///
/// No hook fails because the pruner does: one whose call traps returns a neutral answer, the context
/// is the transcript, and a new instance is loaded from the log. What the user asks for says so: see
/// [`CommandFailure`].
pub struct Session {
    decant: Decant,
    options: SessionOptions,
    link: Link,
    transcript: Vec<Message>,
    plan: Plan,
    rendered: Rendered,
    /// The first position to be rendered anew, if any.
    stale_from: Option<u32>,
}

impl Session {
    pub(crate) fn open(
        decant: Decant,
        options: SessionOptions,
        environment: Box<dyn Environment>,
    ) -> Result<Self, OpenError> {
        let link = Link::open(&decant, &options, State::new(environment))?;
        Ok(Self {
            decant,
            options,
            link,
            transcript: Vec::new(),
            plan: Plan::default(),
            rendered: Rendered::default(),
            stale_from: None,
        })
    }

    /// Adds a message at the end of the transcript.
    pub fn push(&mut self, message: Message) {
        self.stale(self.transcript.len());
        self.transcript.push(message);
    }

    /// From position `at` on the transcript is now `tail`.
    ///
    /// # Errors
    /// The position lies behind the end; nothing has changed.
    pub fn replace_from(&mut self, at: usize, tail: Vec<Message>) -> Result<(), OutOfRange> {
        let len = self.transcript.len();
        if at > len {
            return Err(OutOfRange { at, len });
        }
        self.stale(at);
        self.link.transcript_changed(at);
        self.transcript.truncate(at);
        self.transcript.extend(tail);
        Ok(())
    }

    /// The transcript is now `messages`: for hosts that hand all of them over each time. Only what
    /// follows the first difference is taken as changed.
    pub fn replace_all(&mut self, messages: Vec<Message>) {
        let pairs = messages.iter().zip(&self.transcript);
        let same = pairs.take_while(|(new, old)| new == old).count();
        if same < messages.len() || same < self.transcript.len() {
            let tail = messages.into_iter().skip(same).collect();
            let replaced = self.replace_from(same, tail);
            debug_assert!(replaced.is_ok(), "the position is within both");
        }
    }

    /// The transcript, unpruned.
    #[must_use]
    pub fn transcript(&self) -> &[Message] {
        &self.transcript
    }

    /// The edits in force.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The surroundings of the session.
    pub fn environment(&mut self) -> &mut dyn Environment {
        &mut *self.link.state().environment
    }

    /// Instructions that the component's present instance has taken since it was made, loading the
    /// log included. An exact count, the same on every machine: for measuring.
    #[must_use]
    pub fn fuel_spent(&self) -> u64 {
        self.link.fuel_spent()
    }

    /// Bytes of the linear memory of the component's present instance. It never shrinks, so this is
    /// the peak too.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.link.memory_bytes()
    }

    /// Other limits for the calls from here on. The memory limit counts from the next instance on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.options.limits = limits;
    }

    /// The context for the model call that is about to be made. What it returns is taken as sent.
    ///
    /// Costs what has changed since the last call and what stands behind the first change.
    pub fn context(&mut self, now_ms: u64) -> Context<'_> {
        let known = self.plan.revision();
        let update = self.hook("plan", Some(now_ms), |call| {
            call.lifecycle.call_plan(&mut *call.store, known, now_ms)
        });
        let pruned = update.is_some();
        if let Some(first) = update.flatten().and_then(|update| self.plan.update(update)) {
            self.stale(first as usize);
        }
        let stable_prefix = match self.stale_from.take() {
            Some(from) => self
                .rendered
                .render_from(from, &self.transcript, &self.plan),
            None => self.rendered.messages.len(),
        };
        Context {
            messages: &self.rendered.messages,
            stable_prefix,
            pruned,
        }
    }

    /// A turn is over: its assistant message and all results are pushed. May start a flush.
    pub fn turn_end(&mut self, usage: Option<Usage>, now_ms: u64) -> Activity {
        let answer = self.hook("turn-end", Some(now_ms), |call| {
            call.lifecycle
                .call_turn_end(&mut *call.store, usage, now_ms)
        });
        answer.unwrap_or(IDLE)
    }

    /// The final reply is there. `closing_at_ms` is its timestamp if it has not been pushed yet. May
    /// start a flush.
    pub fn reply_end(&mut self, closing_at_ms: Option<u64>, now_ms: u64) -> Activity {
        let answer = self.hook("reply-end", Some(now_ms), |call| {
            let lifecycle = call.lifecycle;
            lifecycle.call_reply_end(&mut *call.store, closing_at_ms, now_ms)
        });
        answer.unwrap_or(IDLE)
    }

    /// A job has ended. Unknown jobs are ignored.
    pub fn summary_ready(&mut self, job: u64, outcome: &Outcome, now_ms: u64) -> Activity {
        self.link.state().running.remove(&job);
        let answer = self.hook("summary-ready", Some(now_ms), |call| {
            let lifecycle = call.lifecycle;
            lifecycle.call_summary_ready(&mut *call.store, job, outcome, now_ms)
        });
        answer.unwrap_or(IDLE)
    }

    /// Output of a job has arrived, `chars` UTF-16 code units so far.
    pub fn summary_progress(&mut self, job: u64, chars: u32) {
        self.hook("summary-progress", None, |call| {
            let lifecycle = call.lifecycle;
            lifecycle.call_summary_progress(&mut *call.store, job, chars)
        });
    }

    /// The session runs on another model from here on, so its cache is cold.
    pub fn model_changed(&mut self) {
        self.hook("model-changed", None, |call| {
            call.lifecycle.call_model_changed(&mut *call.store)
        });
    }

    /// Whether the model is offered `context_tree_query`. It is, until this says otherwise.
    pub fn query_tool_offered(&mut self, offered: bool) {
        self.link.query_tool_offered = offered;
        self.hook("query-tool-offered", None, |call| {
            let lifecycle = call.lifecycle;
            lifecycle.call_query_tool_offered(&mut *call.store, offered)
        });
    }

    /// The process is about to end: a flush in progress is given up, its jobs are cancelled.
    pub fn shutdown(&mut self) {
        self.hook("shutdown", None, |call| {
            call.lifecycle.call_shutdown(&mut *call.store)
        });
    }

    fn stale(&mut self, from: usize) {
        let from = u32::try_from(from).unwrap_or(u32::MAX);
        self.stale_from = Some(self.stale_from.map_or(from, |before| before.min(from)));
    }

    /// As [`ask`](Self::ask), for what is never refused.
    fn hook<T, E: std::fmt::Display>(
        &mut self,
        name: &'static str,
        now_ms: Option<u64>,
        call: impl FnOnce(&mut Call<'_>) -> wasmtime::Result<Result<T, E>>,
    ) -> Option<T> {
        self.ask(name, now_ms, |exports| {
            let answer = call(exports)?;
            answer.map_err(|refused| wasmtime::Error::msg(format!("it was refused: {refused}")))
        })
    }

    /// Brings the mirror up to date and calls an export. `None` when the instance was lost by it, or
    /// is lost: then there is a new one afterwards, if that can be had.
    fn ask<T>(
        &mut self,
        name: &'static str,
        now_ms: Option<u64>,
        call: impl FnOnce(&mut Call<'_>) -> wasmtime::Result<T>,
    ) -> Option<T> {
        let state = self.link.state();
        state.now_ms = now_ms.unwrap_or(state.now_ms);
        self.link.revive(&self.decant, &self.options);
        let answer = self.link.call(self.options.limits, &self.transcript, call);
        let appended = std::mem::take(&mut self.link.state().appended);
        if self.options.summaries_in_transcript {
            appended.into_iter().for_each(|message| self.push(message));
        }
        match answer? {
            Ok(answer) => Some(answer),
            Err(err) => {
                self.link.lose(name, &err);
                self.plan = Plan::default();
                self.stale(0);
                self.link.revive(&self.decant, &self.options);
                None
            }
        }
    }
}

/// The answer of a pruner that is not there.
const IDLE: Activity = Activity {
    pending_turns: 0,
    running_jobs: 0,
    blocking: false,
};
