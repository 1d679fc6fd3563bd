//! Walks a recording as a live host would.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, bail};
use decant_host::{Activity, Decant, JobKind, Level, Message, Session, Usage};
use serde_json::Value;

use super::cause::{cause, first_lost};
use super::check::{Checker, Moment};
use super::conversation::{Conversation, Line, is_pruners};
use super::host::ReplayHost;
use super::ledger::{Ledger, Side, Sizes};
use super::log::{LogFile, fields_of};
use super::stored::{adopt, happen, session_options};
use super::turns::{is_final_reply, messages, turn_ends};
use super::{Break, Call, Cause, Options, Replayed, Watcher};
use crate::formats::{self, Event, Format, Recording};
use crate::summarizer::Task;

/// What a model's name in the recording is called, to notice that it changes.
type ModelName = String;

pub(super) struct Driver<'a> {
    recording: &'a Recording,
    options: &'a Options<'a>,
    messages: Vec<Option<Message>>,
    turn_ends: Vec<Option<usize>>,
    /// The step to begin with.
    start: usize,
    host: Arc<Mutex<ReplayHost>>,
    session: Session,
    conversation: Conversation,
    sizes: Sizes,
    unpruned: Ledger,
    pruned: Ledger,
    checker: Option<Checker>,
    now_ms: u64,
    model: Option<ModelName>,
    /// Billed over counted tokens at the last call that was billed.
    scale: f64,
    /// Whether the recording's bills are for what is replayed, and not for a compacted context.
    has_bills: bool,
    /// Whether the host changed the transcript since the last call.
    host_changed: bool,
    replayed: Replayed,
}

impl<'a> Driver<'a> {
    /// Opens the session, with what the log holds already.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written, the log belongs to another session, or the session
    /// cannot be opened.
    pub(super) fn begin(
        decant: &'a Decant,
        path: &Path,
        recording: &'a Recording,
        options: &'a Options<'a>,
    ) -> Result<Self> {
        let mut conversation = Conversation::default();
        let (host, start) = begin_log(path, recording, options, &mut conversation)?;
        let host = Arc::new(Mutex::new(host));
        let session_options = session_options(&recording.session_id, &options.config);
        let mut session = decant
            .open(session_options.clone(), Arc::clone(&host))
            .context("cannot open the session")?;
        let live = conversation.live_messages();
        let checker = options
            .check
            .then(|| Checker::new(decant.clone(), session_options, &mut session));
        session.replace_all(live);
        let messages = messages(recording);
        let mut driver = Self {
            recording,
            options,
            turn_ends: turn_ends(recording, &messages),
            messages,
            start,
            host,
            session,
            conversation,
            sizes: Sizes::default(),
            unpruned: Ledger::default(),
            pruned: Ledger::default(),
            checker,
            now_ms: 0,
            model: None,
            scale: 1.0,
            has_bills: true,
            host_changed: start > 0,
            replayed: Replayed::new(path, recording),
        };
        driver.record_sizes();
        Ok(driver)
    }

    /// Walks to the end.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub(super) fn run(mut self, watcher: &mut dyn Watcher) -> Result<Replayed> {
        let steps = &self.recording.steps;
        self.now_ms = steps[..self.start]
            .iter()
            .map(|s| s.at_ms)
            .max()
            .unwrap_or(0);
        self.repeat_hooks();
        for number in self.start..steps.len() {
            self.step(number, watcher)?;
            watcher.stepped();
            if self.has_failed() {
                break;
            }
        }
        self.finish(watcher)
    }

    fn has_failed(&self) -> bool {
        self.replayed.violation.is_some()
    }

    /// The process may have died between the last message and its hook.
    fn repeat_hooks(&mut self) {
        let last = self.start.checked_sub(1);
        if let Some(answer) = last.and_then(|last| self.turn_ends[last]) {
            self.turn_end(answer);
        }
    }

    fn step(&mut self, number: usize, watcher: &mut dyn Watcher) -> Result<()> {
        let step = &self.recording.steps[number];
        self.now_ms = self.now_ms.max(step.at_ms);
        match &step.event {
            Event::Message(_) => return self.message(number, watcher),
            Event::Compaction { .. } if self.options.ignore_compactions => self.has_bills = false,
            Event::Compaction { .. } | Event::ContextEdit { .. } => {
                self.record(number)?;
                happen(step, number, self.recording, &mut self.conversation);
                self.host_changed = true;
                self.record_sizes();
                self.session.replace_all(self.conversation.live_messages());
            }
            Event::ModelChange(model) => {
                self.record(number)?;
                self.model_is(model.clone());
            }
            Event::PrunerEntry { .. } | Event::PrunerMessage(_) => {}
        }
        Ok(())
    }

    fn message(&mut self, number: usize, watcher: &mut dyn Watcher) -> Result<()> {
        let Some(message) = self.messages[number].clone() else {
            return Ok(());
        };
        if message.role() == "assistant" {
            if self.recording.format != Format::Pi {
                let model = message.as_json()["model"].as_str();
                model
                    .map(str::to_string)
                    .into_iter()
                    .for_each(|model| self.model_is(model));
            }
            self.model_call(number, &message, watcher)?;
            if is_final_reply(&message) {
                let activity = self.session.reply_end(Some(message.at_ms()), self.now_ms);
                self.after_hook(activity);
            }
        }
        self.record(number)?;
        self.sizes.record(&message);
        let id = self.recording.steps[number].id.clone();
        if let Some(checker) = &mut self.checker {
            checker.pushed(&message);
        }
        self.session.push(message.clone());
        self.conversation.push(Line { id, message }, number);
        if let Some(answer) = self.turn_ends[number] {
            self.turn_end(answer);
        }
        Ok(())
    }

    fn turn_end(&mut self, answer: usize) {
        let tokens = self.messages[answer].as_ref().and_then(billed_context);
        let usage = tokens.map(|tokens| {
            // The bill of the recording is for the whole context; a live one is for what was sent.
            let share = self.replayed.calls.last().map_or(1.0, Call::pruned_share);
            Usage {
                tokens: Some((tokens as f64 * share).round() as u64),
                context_window: self.options.context_window,
            }
        });
        let activity = self.session.turn_end(usage, self.now_ms);
        self.after_hook(activity);
    }

    fn model_is(&mut self, model: ModelName) {
        if self.model.as_ref().is_some_and(|before| *before != model) {
            self.session.model_changed();
            self.after_hook(IDLE);
            if let Some(checker) = &mut self.checker {
                checker.cache_is_cold();
            }
        }
        self.model = Some(model);
    }

    /// Answers the jobs that a hook has started, until there are none.
    fn after_hook(&mut self, mut activity: Activity) {
        self.take_appended();
        while activity.running_jobs > 0 || !self.host().jobs.is_empty() {
            let Some((job, request)) = self.host().jobs.take() else {
                break;
            };
            let task = match request.kind {
                JobKind::Batch => Task::Batch,
                JobKind::Range => Task::Range,
            };
            let mut outcome = self.options.summarizer.summarize(task, &request.prompt);
            self.replayed.asked(&request.prompt, &mut outcome);
            activity = self.session.summary_ready(job, &outcome, self.now_ms);
            self.take_appended();
        }
    }

    /// Takes note of the messages that the pruner has put at the end of the transcript.
    fn take_appended(&mut self) {
        let ids = self.host().take_appended_messages();
        let first = self.session.transcript().len() - ids.len();
        for (id, at) in ids.into_iter().zip(first..) {
            let message = self.session.transcript()[at].clone();
            debug_assert!(
                is_pruners(&message),
                "only appended messages are unaccounted for"
            );
            self.sizes.record(&message);
            self.conversation.push_pruners(Line { id, message });
        }
    }

    /// Renders the context of a model call and accounts for it.
    fn model_call(
        &mut self,
        number: usize,
        answer: &Message,
        watcher: &mut dyn Watcher,
    ) -> Result<()> {
        let (unpruned, pruned, broke) = self.render();
        if let Some(counted) = Some(unpruned.all.tokens).filter(|n| *n > 0 && self.has_bills)
            && let Some(billed) = billed_prompt(answer)
        {
            self.scale = billed as f64 / counted as f64;
        }
        self.replayed.calls.push(Call {
            step: number,
            at_ms: self.now_ms,
            scale: self.scale,
            unpruned,
            pruned,
            broke,
        });
        watcher.rendered(self.replayed.calls.len(), self.pruned.messages())
    }

    fn render(&mut self) -> (Side, Side, Option<Break>) {
        let plain_before = self.unpruned.messages().len();
        let prefix = self.conversation.take_plain_prefix(plain_before);
        let tail = self.conversation.plain[prefix.min(plain_before)..].iter();
        let tail = tail.map(|line| &line.message);
        let (unpruned, _) = self.unpruned.update(prefix, tail, &mut self.sizes);
        let context = self.session.context(self.now_ms);
        let (prefix, is_pruned) = (context.stable_prefix, context.pruned);
        let tail = context.messages[prefix..].iter();
        let (pruned, change) = self.pruned.update(prefix, tail, &mut self.sizes);
        self.after_hook(IDLE);
        let new_tail = &self.pruned.messages()[change.at..];
        let broke = first_lost(&change.old_tail, new_tail).map(|(old, new)| Break {
            cause: match self.host_changed {
                true => Cause::Host,
                false => cause(old, new),
            },
            at: change.at,
        });
        if let Some(checker) = &mut self.checker {
            let moment = Moment {
                call: self.replayed.calls.len() + 1,
                now_ms: self.now_ms,
                is_pruned,
                host_changed: self.host_changed,
                broke,
                old_tail: &change.old_tail,
                at: change.at,
                context: self.pruned.messages(),
                pruned_text: pruned.all.text,
                unpruned_text: unpruned.all.text,
                live: &self.conversation.live,
            };
            self.replayed.violation = checker.call(&moment, &mut self.session, &self.host).err();
        }
        self.host_changed = false;
        (unpruned, pruned, broke)
    }

    fn finish(mut self, watcher: &mut dyn Watcher) -> Result<Replayed> {
        if self.replayed.violation.is_none() {
            self.render();
            watcher.rendered(self.replayed.calls.len() + 1, self.pruned.messages())?;
        }
        if let Some(checker) = &mut self.checker {
            if self.replayed.violation.is_none() {
                let live = &self.conversation.live;
                let moment = (self.replayed.calls.len() + 1, self.now_ms);
                let ended = checker.end(&mut self.session, &self.host, live, moment);
                self.replayed.violation = ended.err();
            }
            self.replayed.checks = checker.checks();
        }
        let status = self.session.status()?;
        self.replayed.refs = u64::from(status.records);
        self.replayed.blocks = u64::from(status.blocks);
        self.replayed.strategies = status.strategies;
        self.replayed.context = self.pruned.messages().to_vec();
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        self.replayed.flushes = std::mem::take(&mut host.flushes);
        let notices = std::mem::take(&mut host.notices);
        drop(host);
        let matters = |notice: &decant_host::Notice| !matches!(notice.level, Level::Info);
        self.replayed.notices = notices.into_iter().filter(matters).collect();
        Ok(self.replayed)
    }

    fn record(&mut self, number: usize) -> Result<()> {
        let step = &self.recording.steps[number];
        let mut host = self.host();
        match fields_of(step).filter(|_| host.has_file()) {
            Some(fields) => host.record(&step.id, step.at_ms, fields),
            None => Ok(()),
        }
    }

    fn record_sizes(&mut self) {
        for line in &self.conversation.live {
            self.sizes.record(&line.message);
        }
    }

    fn host(&self) -> MutexGuard<'_, ReplayHost> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const IDLE: Activity = Activity {
    pending_turns: 0,
    running_jobs: 0,
    blocking: false,
};

/// Opens the log, takes over what is in it, and tells the first step that is not.
fn begin_log(
    path: &Path,
    recording: &Recording,
    options: &Options<'_>,
    conversation: &mut Conversation,
) -> Result<(ReplayHost, usize)> {
    let mut host = ReplayHost::default();
    let first_ms = recording.steps.first().map_or(0, |step| step.at_ms);
    match (&options.log, options.resume) {
        (None, false) => Ok((host, 0)),
        (None, true) => {
            for (number, step) in recording.steps.iter().enumerate() {
                adopt(step, number, recording, conversation, &mut host);
            }
            let folder = super::log::blob_folder(path);
            Ok((host.with_blob_folders([folder]), recording.steps.len()))
        }
        (Some(log), resume) if !resume || !log.exists() => {
            let file =
                LogFile::create(log, &recording.session_id, first_ms).with_context(|| {
                    format!(
                        "{}: cannot begin a log; --resume goes on with one that is there",
                        log.display()
                    )
                })?;
            Ok((host.with_file(file), 0))
        }
        (Some(log), _) => {
            let mut stored = formats::read(log)?;
            if stored.session_id != recording.session_id {
                bail!(
                    "{}: not a log of this session: it belongs to the session `{}`",
                    log.display(),
                    stored.session_id
                );
            }
            // The hook that was under way when the process died is run again, from its beginning.
            while stored
                .steps
                .pop_if(|step| is_by_pruner(&step.event))
                .is_some()
            {}
            let leaf = stored.steps.last().map(|step| step.id.clone());
            let start = take_over(log, &stored, recording, conversation, &mut host)?;
            let file = LogFile::go_on(log, leaf)
                .with_context(|| format!("{}: cannot go on with the log", log.display()))?;
            Ok((host.with_file(file), start))
        }
    }
}

fn is_by_pruner(event: &Event) -> bool {
    matches!(event, Event::PrunerEntry { .. } | Event::PrunerMessage(_))
}

/// Takes over a log, whose steps have to be the first ones of the recording.
fn take_over(
    log: &Path,
    stored: &Recording,
    recording: &Recording,
    conversation: &mut Conversation,
    host: &mut ReplayHost,
) -> Result<usize> {
    let mut next = 0;
    for step in &stored.steps {
        if is_by_pruner(&step.event) {
            adopt(step, next, recording, conversation, host);
            continue;
        }
        // Steps that are not logged lie between those that are.
        while recording
            .steps
            .get(next)
            .is_some_and(|own| own.id != step.id)
        {
            next += 1;
        }
        let Some(own) = recording.steps.get(next) else {
            bail!(
                "{}: not a log of this session: its entry `{}` is not in the recording",
                log.display(),
                step.id
            );
        };
        happen(own, next, recording, conversation);
        next += 1;
    }
    Ok(next)
}

/// Tokens of the context of a call, with its answer, as they were billed.
fn billed_context(answer: &Message) -> Option<u64> {
    let usage = answer.as_json().get("usage")?;
    let total = usage["totalTokens"].as_u64().filter(|total| *total > 0);
    total.or_else(|| Some(billed_prompt(answer)? + usage["output"].as_u64().unwrap_or(0)))
}

/// Tokens of the context of a call as they were billed; `None` without a bill.
fn billed_prompt(answer: &Message) -> Option<u64> {
    let usage: &Value = answer.as_json().get("usage")?;
    let count = |key: &str| usage[key].as_u64().unwrap_or(0);
    Some(count("input") + count("cacheRead") + count("cacheWrite")).filter(|total| *total > 0)
}
