//! A long session as a host plays it, whichever way its calls go to the pruner.

use std::time::{Duration, Instant};

/// Turns of a chain: with the user's message and the final reply a chain has 20 messages.
pub(crate) const TURNS_PER_CHAIN: usize = 9;

/// What is said in a session.
pub(crate) enum Said {
    User(String),
    Call { id: String, command: String },
    Result { id: String, output: String },
    Reply(String),
}

/// What the steps of something took.
#[derive(Default)]
pub(crate) struct Steps(pub(crate) Vec<(&'static str, Duration)>);

impl Steps {
    #[expect(clippy::disallowed_methods, reason = "a benchmark takes the time")]
    pub(crate) fn timed<T>(&mut self, name: &'static str, step: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = std::hint::black_box(step());
        self.0.push((name, began.elapsed()));
        done
    }
}

/// The way to a pruner.
pub(crate) trait Lane: Sized {
    /// Opens a session on a log that is empty.
    fn open(config: &str) -> Self;

    /// Opens the same session anew: from its log, with its transcript; step by step and timed,
    /// with the first plan. What only the benchmark has to do is not in it.
    fn load(&mut self, now_ms: u64) -> Steps;

    /// Adds a message to the transcript.
    fn say(&mut self, said: Said, at_ms: u64);

    /// Asks for the plan before a model call. Returns how many edits it brought.
    fn plan(&mut self, now_ms: u64) -> usize;

    fn turn_end(&mut self, now_ms: u64);

    /// The final reply with this timestamp is there, and is said afterwards.
    fn reply_end(&mut self, closing_at_ms: u64, now_ms: u64);

    /// Answers all summarizer jobs.
    fn answer_jobs(&mut self, now_ms: u64);
}

/// A session that can be made longer.
pub(crate) struct Long<L> {
    pub(crate) lane: L,
    pub(crate) n_messages: usize,
    /// Bytes, and UTF-16 code units, of a tool result.
    result_chars: usize,
    pub(crate) turns_per_chain: usize,
    n_calls: usize,
    now_ms: u64,
}

impl<L: Lane> Long<L> {
    pub(crate) fn new(config: &str, result_chars: usize) -> Self {
        Self {
            lane: L::open(config),
            result_chars,
            turns_per_chain: TURNS_PER_CHAIN,
            n_messages: 0,
            n_calls: 0,
            now_ms: 1_700_000_000_000,
        }
    }

    /// Adds chains, each of which is flushed at its end, until there are `n_messages`.
    pub(crate) fn grow_to(&mut self, n_messages: usize) {
        while self.n_messages < n_messages {
            self.user();
            self.turns(self.turns_per_chain);
            self.flush();
        }
    }

    pub(crate) fn user(&mut self) {
        let text = format!("Do step {} of the work.", self.n_calls);
        self.say(Said::User(text));
    }

    /// Turns with one call each, as the host goes through them.
    pub(crate) fn turns(&mut self, n: usize) {
        for _ in 0..n {
            let now_ms = self.tick();
            self.lane.plan(now_ms);
            self.turn();
            let now_ms = self.tick();
            self.lane.turn_end(now_ms);
        }
    }

    /// Says a turn, without any hook.
    pub(crate) fn turn(&mut self) {
        self.call();
        self.result();
    }

    pub(crate) fn call(&mut self) {
        self.n_calls += 1;
        let said = Said::Call {
            id: format!("call_{}", self.n_calls),
            command: format!("make step-{}", self.n_calls),
        };
        self.say(said);
    }

    /// The result of the last call.
    pub(crate) fn result(&mut self) {
        let said = Said::Result {
            id: format!("call_{}", self.n_calls),
            output: output(self.n_calls, self.result_chars),
        };
        self.say(said);
    }

    /// The final reply: everything that waits is summarized and flushed. The plan that comes of it
    /// is not asked for.
    pub(crate) fn flush(&mut self) {
        let closing_at_ms = self.tick();
        self.lane.reply_end(closing_at_ms, closing_at_ms);
        self.lane.answer_jobs(closing_at_ms);
        let text = format!("Step {} is done.", self.n_calls);
        self.lane.say(Said::Reply(text), closing_at_ms);
        self.n_messages += 1;
    }

    pub(crate) fn plan(&mut self) -> usize {
        let now_ms = self.tick();
        self.lane.plan(now_ms)
    }

    fn say(&mut self, said: Said) {
        let at_ms = self.tick();
        self.lane.say(said, at_ms);
        self.n_messages += 1;
    }

    /// A second passes: no cache goes cold.
    pub(crate) fn tick(&mut self) -> u64 {
        self.now_ms += 1_000;
        self.now_ms
    }
}

/// Output that no other call has, so that nothing is a duplicate.
fn output(n: usize, chars: usize) -> String {
    let mut text = format!("step {n}\n");
    while text.len() < chars {
        text.push_str("src/engine/session.rs:42: the same line again, as tools write them\n");
    }
    text.truncate(chars);
    text
}

/// The summary that every job is answered with.
pub(crate) fn summary(job: u64) -> String {
    format!("- request {job}: the step was made, 40 lines, no error; nothing else to report")
}
