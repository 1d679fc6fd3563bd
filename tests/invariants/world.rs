//! A host that plays a script, as a live host would.

mod agent;

use std::sync::{Arc, Mutex};

use decant::engine::config::Config;
use decant::engine::host::{FailureKind, JobUsage, Outcome, Request};
use decant::engine::message::{Message, Part, Role};
use decant::engine::plan::Edit;
use serde_json::Value;

use super::check::{Situation, Watch};
use super::host::{FakeHost, Item, Shared, hold};
use super::lane::Lane;
use super::script::{Answer, Command, HostKind, Script, Step};
use super::texts;

/// When the first step happens.
const BEGIN_MS: u64 = 1_745_251_200_000;

/// Why a script was not played to its end.
pub(crate) enum Stop {
    /// The process died.
    Died,
    /// An invariant does not hold; says which and how.
    Violation(String),
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Died => f.write_str("the process died once more"),
            Self::Violation(violation) => f.write_str(violation),
        }
    }
}

impl From<String> for Stop {
    fn from(violation: String) -> Self {
        Self::Violation(violation)
    }
}

/// What was seen of a session from outside.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Trace {
    /// The edits at each model call.
    pub plans: Vec<Vec<Edit>>,
    pub items: Vec<Item>,
    pub blobs: Vec<(String, String)>,
}

/// The host, its session file, and the session.
pub(crate) struct World {
    lane: Box<dyn Lane>,
    host: Shared,
    kind: HostKind,
    answers: Vec<Answer>,
    next_answer: usize,
    settings: Value,
    config: Config,
    is_offered: bool,
    now: u64,
    calls: u32,
    transcript: Vec<Message>,
    /// How much of the transcript the session has been told, and how much it holds.
    synced: usize,
    /// Results that have not come yet.
    held: Vec<Message>,
    is_blocked: bool,
    trace: Trace,
    /// `None`: nothing is checked.
    watch: Option<Watch>,
}

/// What is in the session file, for whoever has to find out what went wrong.
pub(crate) fn story(items: &[Item]) -> String {
    let mut story = String::from("\nsession file:");
    for item in items {
        let line = match item.entry() {
            Some(entry) => format!("{} {}", entry.kind, entry.data),
            None => format!("{item:?}"),
        };
        story.push_str("\n  ");
        story.push_str(&ends_of(&line, 300));
    }
    story
}

/// The first and the last characters of a long line.
fn ends_of(line: &str, chars: usize) -> String {
    let all: Vec<char> = line.chars().collect();
    if all.len() <= 2 * chars {
        return line.to_owned();
    }
    let (head, tail) = (&all[..chars], &all[all.len() - chars..]);
    head.iter().chain(&[' ', '…', ' ']).chain(tail).collect()
}

/// Plays a script and returns what was seen.
///
/// # Errors
/// An invariant that does not hold, with the step at which it was found.
pub(crate) fn play(
    script: &Script,
    lane: impl FnOnce(Shared) -> Box<dyn Lane>,
    is_checked: bool,
) -> Result<Trace, String> {
    let host = Arc::new(Mutex::new(FakeHost::default()));
    let mut world = World {
        lane: lane(Arc::clone(&host)),
        host,
        kind: script.host,
        answers: script.answers.clone(),
        next_answer: 0,
        settings: script.settings.clone(),
        config: Config::parse(&script.settings.to_string())?.0,
        is_offered: true,
        now: BEGIN_MS,
        calls: 0,
        transcript: Vec::new(),
        synced: 0,
        held: Vec::new(),
        is_blocked: false,
        trace: Trace::default(),
        watch: is_checked.then(Watch::default),
    };
    world.open(usize::MAX);
    for (index, step) in script.steps.iter().enumerate() {
        let played = match world.step(step) {
            Err(Stop::Died) => world.rise_again(),
            played => played,
        };
        played.map_err(|stop| format!("at step {index}, {step:?}: {stop}{}", world.story()))?;
    }
    let ended = match world.model_call() {
        Err(Stop::Died) => world.rise_again(),
        ended => ended,
    };
    ended.map_err(|stop| format!("at the end: {stop}{}", world.story()))?;
    Ok(world.finish())
}

impl World {
    fn finish(mut self) -> Trace {
        let host = hold(&self.host);
        self.trace.items.clone_from(&host.disk.items);
        self.trace.blobs = host.disk.blobs.clone().into_iter().collect();
        drop(host);
        self.trace
    }

    fn story(&self) -> String {
        story(&hold(&self.host).disk.items)
    }

    fn step(&mut self, step: &Step) -> Result<(), Stop> {
        match step {
            Step::User(output) => {
                let content = vec![Part::Text(texts::output(*output))];
                self.push_role(Role::User, content);
            }
            Step::Turn(turn) => self.turn(turn)?,
            Step::Reply(reply) => self.reply(reply)?,
            Step::Foreign(foreign) => self.foreign(*foreign),
            Step::Late(which) => self.late(*which),
            Step::Orphan(id, output) => {
                let id = self.call_id(*id);
                let message = self.result(&id, "bash", texts::output(*output), false, false);
                self.push(message);
            }
            Step::Query(n) => self.query(*n)?,
            Step::Compress => self.own_call("context_compress", "{}")?,
            Step::ModelCall => self.model_call()?,
            Step::Answer(which, answer) => {
                let count = hold(&self.host).jobs.len();
                if count > 0 {
                    self.answer(usize::from(*which) % count, *answer)?;
                }
            }
            Step::StaleAnswer(which) => self.stale_answer(*which)?,
            Step::Command(command) => self.command(*command)?,
            Step::Configure(settings) => self.configure(settings)?,
            Step::Restart { shuts_down, pieces } => {
                if *shuts_down {
                    self.tell();
                    self.lane.shutdown();
                    self.after_hook()?;
                }
                self.restart(usize::from(*pieces));
            }
            Step::Branch(share) => self.branch(*share),
            Step::HostCompaction(kept) => self.host_compaction(usize::from(*kept)),
            Step::Log(works) => hold(&self.host).log_fails = !works,
            Step::Blobs(work) => hold(&self.host).blobs_fail = !work,
            Step::LoseBlobs => {
                hold(&self.host).disk.blobs.clear();
                if let Some(watch) = &mut self.watch {
                    watch.has_lost_blobs = true;
                }
            }
            Step::Submit(works) => hold(&self.host).submit_fails = !works,
            Step::Die(after) => hold(&self.host).dies_after = Some(*after),
            Step::Hiccup(after) => hold(&self.host).hiccup_after = Some(*after),
            Step::Tick(ms) => self.now += u64::from(*ms),
            Step::ModelChanged => {
                self.lane.model_changed();
                self.with_watch(|watch| watch.is_cold = true);
            }
            Step::Offered(is_offered) => {
                self.lane.offer(*is_offered);
                self.is_offered = *is_offered;
                self.with_watch(Watch::epoch);
            }
            Step::Hostile(n) => {
                self.tell();
                let arguments = texts::hostile_query(*n);
                let tool = if n % 5 == 4 {
                    "nope"
                } else {
                    "context_tree_query"
                };
                self.lane.call(tool, &arguments, self.now);
                self.after_hook()?;
            }
            Step::Unreadable => self.unreadable()?,
            Step::ForgetPlan(known) => self.lane.forget_plan(*known),
        }
        Ok(())
    }

    fn with_watch(&mut self, act: impl FnOnce(&mut Watch)) {
        if let Some(watch) = &mut self.watch {
            act(watch);
        }
    }

    // The session.

    fn open(&mut self, pieces: usize) {
        let settings = self.settings.to_string();
        self.lane.open(&settings, self.is_offered, pieces.max(1));
        self.synced = 0;
        self.is_blocked = false;
        self.tell_from(0);
        self.with_watch(Watch::epoch);
    }

    fn restart(&mut self, pieces: usize) {
        let mut host = hold(&self.host);
        host.restart();
        self.transcript = host.disk.transcript(self.kind.shows_summaries);
        drop(host);
        self.open(pieces);
    }

    /// After a death: what the session makes of what was written, and a new process.
    fn rise_again(&mut self) -> Result<(), Stop> {
        let disk = hold(&self.host).disk.clone();
        if let Some(watch) = &self.watch {
            watch.check_crash(&disk, &self.situation())?;
        }
        self.restart(usize::MAX);
        Ok(())
    }

    fn situation(&self) -> Situation<'_> {
        Situation {
            transcript: &self.transcript,
            settings: self.settings.to_string(),
            config: &self.config,
            is_offered: self.is_offered,
            shows_summaries: self.kind.shows_summaries,
            log_fails: hold(&self.host).log_fails,
            now: self.now,
        }
    }

    /// Brings the mirror up to date, and the host's clock.
    fn tell(&mut self) {
        hold(&self.host).now = self.now;
        if self.synced < self.transcript.len() {
            self.tell_from(self.synced);
        }
    }

    fn tell_from(&mut self, at: usize) {
        hold(&self.host).now = self.now;
        self.lane.sync(at, &self.transcript[at..]);
        self.synced = self.transcript.len();
    }

    fn after_hook(&mut self) -> Result<(), Stop> {
        let mut host = hold(&self.host);
        let appended = std::mem::take(&mut host.appended);
        let is_dead = host.is_dead;
        drop(host);
        if self.kind.shows_summaries {
            self.transcript.extend(appended);
        }
        if is_dead {
            return Err(Stop::Died);
        }
        if self.kind.syncs_at_once {
            self.tell();
        }
        Ok(())
    }

    // The models.

    /// A model call, after everything that it has to wait for.
    fn model_call(&mut self) -> Result<(), Stop> {
        while self.is_blocked {
            let count = hold(&self.host).jobs.len();
            if count == 0 {
                return Err("the session waits for a job that is not there"
                    .to_owned()
                    .into());
            }
            let which = if self.kind.answers_backwards {
                count - 1
            } else {
                0
            };
            let answer = self.answers[self.next_answer % self.answers.len()];
            self.next_answer += 1;
            self.answer(which, answer)?;
        }
        self.tell();
        let edits = self.lane.plan(self.now)?;
        if hold(&self.host).is_dead {
            return self.after_hook();
        }
        if let Some(watch) = &mut self.watch {
            let situation = Situation {
                transcript: &self.transcript,
                settings: self.settings.to_string(),
                config: &self.config,
                is_offered: self.is_offered,
                shows_summaries: self.kind.shows_summaries,
                log_fails: hold(&self.host).log_fails,
                now: self.now,
            };
            watch.check(&edits, &situation, &mut *self.lane, &self.host)?;
        }
        self.trace.plans.push(edits);
        self.after_hook()
    }

    fn answer(&mut self, which: usize, answer: Answer) -> Result<(), Stop> {
        let mut host = hold(&self.host);
        let (job, request) = host.jobs.remove(which);
        host.ended.push(job);
        drop(host);
        let outcome = outcome(answer, &request);
        self.tell();
        self.is_blocked = self.lane.summary_ready(job, outcome, self.now);
        self.after_hook()
    }

    fn stale_answer(&mut self, which: u8) -> Result<(), Stop> {
        let host = hold(&self.host);
        let ended = host.ended.clone();
        drop(host);
        if ended.is_empty() {
            return Ok(());
        }
        let job = ended[usize::from(which) % ended.len()];
        let outcome = Outcome::Answered {
            text: "- too late".to_owned(),
            truncated: false,
            usage: None,
        };
        self.tell();
        self.is_blocked = self.lane.summary_ready(job, outcome, self.now);
        self.after_hook()
    }

    // The user.

    fn command(&mut self, command: Command) -> Result<(), Stop> {
        self.tell();
        let said = self.lane.command(command, self.now);
        let is_undo = matches!(command, Command::UndoBlock(_) | Command::UndoRef(_));
        if is_undo && said.is_ok() {
            self.with_watch(Watch::epoch);
        }
        if said.is_ok() && matches!(command, Command::Now | Command::Compact) {
            // The user waits for it, and so does the host.
            self.is_blocked = !hold(&self.host).jobs.is_empty();
        }
        if matches!(command, Command::Cancel) && said.is_ok() {
            self.is_blocked = false;
        }
        self.after_hook()
    }

    fn configure(&mut self, settings: &Value) -> Result<(), Stop> {
        self.tell();
        if self.lane.configure(&settings.to_string(), self.now).is_ok() {
            self.settings = settings.clone();
            self.config = Config::parse(&self.settings.to_string())?.0;
            self.with_watch(Watch::epoch);
        }
        self.after_hook()
    }

    fn branch(&mut self, share: u8) {
        let mut host = hold(&self.host);
        let kept = host.disk.items.len() * usize::from(share) / 255;
        host.disk.items.truncate(kept);
        drop(host);
        self.held.clear();
        self.with_watch(Watch::forget);
        self.restart(usize::MAX);
    }

    fn host_compaction(&mut self, kept: usize) {
        let message = Message {
            role: Role::Other {
                role: "compactionSummary".to_owned(),
            },
            content: vec![Part::Text("what happened before".to_owned())],
            at_ms: self.now,
        };
        self.now += 1;
        self.tell();
        let from = self.transcript.len().saturating_sub(kept);
        self.transcript.drain(..from);
        self.transcript.insert(0, message.clone());
        hold(&self.host)
            .disk
            .items
            .push(Item::Cut { message, kept });
        self.tell_from(0);
        self.with_watch(Watch::epoch);
    }
}

/// How a job ends.
fn outcome(answer: Answer, request: &Request) -> Outcome {
    let usage = Some(JobUsage {
        input_tokens: 10,
        output_tokens: 1,
        cost: Some(0.5),
    });
    let text = match answer {
        Answer::Summary(n) => format!("- step {n} went well [[1:bash]] and `[[2:read]]`"),
        Answer::Long(hundreds) => "- long ".repeat(usize::from(hundreds) * 15),
        Answer::Hostile(n) => texts::hostile(n),
        Answer::Empty => " \n".to_owned(),
        Answer::Truncated => "- half".to_owned(),
        Answer::Echo => request.prompt.clone(),
        Answer::ToolSyntax => "<tool_call>{}".to_owned(),
        Answer::Transient | Answer::Timeout | Answer::Permanent | Answer::Aborted => String::new(),
    };
    let kind = match answer {
        Answer::Transient => FailureKind::Transient,
        Answer::Timeout => FailureKind::Timeout,
        Answer::Permanent => FailureKind::Permanent,
        Answer::Aborted => FailureKind::Aborted,
        _ => {
            return Outcome::Answered {
                text,
                truncated: matches!(answer, Answer::Truncated),
                usage,
            };
        }
    };
    Outcome::Failed {
        kind,
        message: "no luck".to_owned(),
        usage,
    }
}
