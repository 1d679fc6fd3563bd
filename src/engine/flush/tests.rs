//! A flush without a session: what it asks for, what it makes of the answers, what it would write.

use super::*;
use crate::engine::basis::Rules;
use crate::engine::config::Config;
use crate::engine::entry::FlushOutcome;
use crate::engine::facts::Fact;
use crate::engine::hook::Hook;
use crate::engine::host::{
    Cost, FailureKind, Host, HostError, JobUsage, Notice, Outcome, Request, Stamp,
};
use crate::engine::ids::EntryId;
use crate::engine::message::{Message, Part, Role, StopReason, ToolCall};

/// A host that has nothing and is asked for nothing but its ear.
#[derive(Default)]
struct Ear {
    notices: Vec<String>,
}

impl Host for Ear {
    fn append(&mut self, kind: &str, _: &str) -> Result<Stamp, HostError> {
        panic!("a flush appends nothing itself, least of all {kind}")
    }

    fn append_message(&mut self, kind: &str, _: &str, _: &str) -> Result<Stamp, HostError> {
        panic!("a flush appends nothing itself, least of all {kind}")
    }

    fn read(&mut self, _: &EntryId) -> Result<String, HostError> {
        Err(HostError::NotFound)
    }

    fn write_blob(&mut self, _: &str, _: &str) -> Result<String, HostError> {
        Err(HostError::NotFound)
    }

    fn read_blob(&mut self, _: &str) -> Result<String, HostError> {
        Err(HostError::NotFound)
    }

    fn submit(&mut self, _: &Request) -> Result<JobId, HostError> {
        panic!("requests are sent by whoever drives the flush")
    }

    fn cancel(&mut self, _: JobId) {}

    fn notify(&mut self, notice: &Notice) {
        self.notices.push(notice.text.clone());
    }

    fn status(&mut self, _: &str) {}

    fn cost(&mut self, _: &Cost) {}
}

/// A flush, what it looks at, and who drives it.
struct Bench {
    basis: Basis,
    view: View,
    models: Models,
    ear: Ear,
    flush: Flush,
}

fn message(role: Role, part: Part, at_ms: u64) -> Message {
    Message {
        role,
        content: vec![part],
        at_ms,
    }
}

/// A prompt, and a turn of one call for each output.
fn transcript(outputs: &[&str]) -> Vec<Message> {
    let mut messages = vec![message(Role::User, Part::Text("do it".to_owned()), 1)];
    for (n, output) in (1..).zip(outputs) {
        let id = format!("c{n}");
        let call = Part::ToolCall(ToolCall {
            id: id.clone(),
            name: "bash".to_owned(),
            arguments: format!(r#"{{"command":"step {n}"}}"#),
        });
        let assistant = Role::Assistant {
            stop: StopReason::ToolUse,
        };
        messages.push(message(assistant, call, 10 * n));
        let result = Role::ToolResult {
            call_id: id,
            tool: "bash".to_owned(),
            is_error: false,
        };
        messages.push(message(
            result,
            Part::Text((*output).to_owned()),
            10 * n + 1,
        ));
    }
    messages
}

impl Bench {
    fn new(settings: &str, outputs: &[&str]) -> Self {
        let (config, _) = Config::parse(settings).expect("settings are an object");
        let mut basis = Basis::new(Rules::new(config));
        for message in transcript(outputs) {
            basis.transcript.push(message);
        }
        basis.settle_in();
        let mut view = View::default();
        view.renew(&basis);
        let mut models = Models::default();
        let mut flush =
            Flush::begin(Scene::idle(&basis, &view), Trigger::Manual).expect("there is work");
        flush.choose_models(&mut models, &basis.rules, 100);
        Self {
            basis,
            view,
            models,
            ear: Ear::default(),
            flush,
        }
    }

    /// Sends what may be sent. Returns what each request asks.
    fn send(&mut self) -> Vec<String> {
        let mut prompts = Vec::new();
        while let Some((row, request)) = self.flush.next_request(&self.basis.rules) {
            prompts.push(request.prompt.clone());
            let job = JobId(prompts.len() as u64);
            self.flush.submitted(row, &request, Ok(job));
        }
        prompts
    }

    fn answer(&mut self, job: u64, outcome: Outcome) -> bool {
        let (flush, models) = (&mut self.flush, &mut self.models);
        flush.answer(JobId(job), outcome, models, 100)
    }

    fn advance(&mut self) -> Step {
        let scene = self.flush.scene(&self.basis, &self.view);
        let mut hook = Hook::new(100, &mut self.ear);
        self.flush.advance(scene, &mut self.models, &mut hook)
    }

    fn entries(&mut self) -> Entries {
        let scene = self.flush.scene(&self.basis, &self.view);
        let mut hook = Hook::new(100, &mut self.ear);
        self.flush.entries(7, scene, &mut hook)
    }
}

fn said(text: &str) -> Outcome {
    Outcome::Answered {
        text: text.to_owned(),
        truncated: false,
        usage: Some(JobUsage {
            input_tokens: 100,
            output_tokens: 10,
            cost: None,
        }),
    }
}

fn kinds(facts: &[Fact]) -> Vec<&'static str> {
    let kind = |fact: &Fact| match fact {
        Fact::Summary(_) => "summary",
        Fact::Index(_) => "index",
        Fact::Alias(_) => "alias",
        Fact::Chain(_) => "chain",
        Fact::Frontier(_) => "frontier",
        Fact::Epoch(_) => "epoch",
        Fact::Undo(_) | Fact::Stats(_) | Fact::Diagnostic(_) => "other",
    };
    facts.iter().map(kind).collect()
}

fn long(word: &str) -> String {
    format!("{word} says so\n").repeat(100)
}

#[test]
fn an_answered_flush_writes_summaries_and_records_and_commits_them() {
    let outputs = [long("one"), long("two"), long("one")];
    let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
    let mut bench = Bench::new(r#"{"batchingMode":"turn"}"#, &outputs);
    let prompts = bench.send();
    // The third output repeats the first: nothing is asked about it.
    assert_eq!(prompts.len(), 2);
    assert!(prompts.iter().all(|prompt| prompt.contains(" says so")));
    assert_eq!(bench.advance(), Step::Waits);
    assert!(bench.answer(2, said("- the second step went well")));
    assert_eq!(bench.advance(), Step::Waits);
    assert!(bench.answer(1, said("- the first step went well")));
    assert!(!bench.answer(1, said("- an answer twice")));
    assert!(!bench.answer(9, said("- an answer to nobody")));
    assert_eq!(bench.advance(), Step::Asks);
    assert_eq!(bench.advance(), Step::IsReady);

    let Entries { facts, tally } = bench.entries();
    assert_eq!(
        kinds(&facts),
        ["summary", "index", "summary", "index", "alias", "frontier"]
    );
    assert_eq!(tally.outcome, FlushOutcome::Summarized);
    assert!(tally.is_epoch);
    let frontier = tally.frontier.expect("something was tried");
    assert_eq!(frontier.flush, Some(7));
    assert_eq!(frontier.attempted_tool_call_count, 3);
    assert_eq!(frontier.epoch_end.as_deref(), Some("result@c3@31"));
    let names = |fact: &Fact| match fact {
        Fact::Index(index) => {
            let calls = index.tool_calls.iter();
            calls.filter_map(|call| call.short_id.clone()).collect()
        }
        _ => Vec::new(),
    };
    let names: Vec<String> = facts.iter().flat_map(names).collect();
    assert_eq!(names, ["t1", "t2"]);
    let used = bench.models.unwritten;
    assert_eq!((used.call_count, used.total_input_tokens), (2, 200));
}

#[test]
fn what_a_flush_writes_counts_from_its_commit_on() {
    let output = long("one");
    let mut bench = Bench::new("{}", &[&output]);
    bench.send();
    bench.answer(1, said("- it went well"));
    while bench.advance() != Step::IsReady {}
    let Entries { facts, .. } = bench.entries();
    let last = facts.len() - 1;
    for (n, fact) in facts.into_iter().enumerate() {
        let stamp = Stamp {
            entry: EntryId(n.to_string()),
            at_ms: 107,
        };
        let changes = bench.basis.facts.apply(stamp, fact);
        let counts = usize::from(n == last);
        assert_eq!(changes.batches.len(), counts, "entry {n}");
        assert_eq!(bench.basis.facts.archive().record_count(), counts);
    }
    let (_, batch) = bench
        .basis
        .facts
        .archive()
        .batches()
        .next()
        .expect("one batch");
    // The log's time, not the hook's.
    assert_eq!(batch.summary_at_ms, 107);
}

#[test]
fn what_is_not_worth_it_is_skipped_and_what_fails_waits() {
    let output = long("one");
    let answers: [(&str, Outcome, FlushOutcome, &[&str]); 3] = [
        (
            "a summary that is no shorter",
            said(&format!("- {output}")),
            FlushOutcome::SkippedOversized,
            &["frontier"],
        ),
        (
            "a failure",
            Outcome::Failed {
                kind: FailureKind::Permanent,
                message: "no key".to_owned(),
                usage: None,
            },
            FlushOutcome::Error,
            &[],
        ),
        ("nothing", said("  \n"), FlushOutcome::Error, &[]),
    ];
    for (what, answer, outcome, entries) in answers {
        let mut bench = Bench::new("{}", &[&output]);
        bench.send();
        bench.answer(1, answer);
        while bench.advance() != Step::IsReady {}
        let Entries { facts, tally } = bench.entries();
        assert_eq!(kinds(&facts), entries, "{what}");
        assert_eq!(tally.outcome, outcome, "{what}");
        assert!(!tally.is_epoch, "{what}");
        let has_failed = outcome == FlushOutcome::Error;
        assert_eq!(!bench.ear.notices.is_empty(), has_failed, "{what}");
        assert_eq!(bench.flush.last_name(), Ref(0), "{what} takes no name");
    }
}

#[test]
fn no_more_requests_are_out_than_may_be() {
    let outputs = [long("one"), long("two"), long("three")];
    let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
    let settings = r#"{"batchingMode":"turn","summarizerConcurrency":2}"#;
    let mut bench = Bench::new(settings, &outputs);
    assert_eq!(bench.send().len(), 2);
    assert_eq!(bench.flush.unfinished_jobs(), 3);
    bench.answer(1, said("- it went well"));
    assert_eq!(bench.send().len(), 1);
}

#[test]
fn a_flush_without_work_does_not_begin() {
    let mut bench = Bench::new("{}", &[&long("one")]);
    bench.send();
    bench.answer(1, said("- it went well"));
    while bench.advance() != Step::IsReady {}
    for (n, fact) in bench.entries().facts.into_iter().enumerate() {
        let stamp = Stamp {
            entry: EntryId(n.to_string()),
            at_ms: 107,
        };
        let changes = bench.basis.facts.apply(stamp, fact);
        bench.view.apply(&bench.basis, &changes);
    }
    let scene = Scene::idle(&bench.basis, &bench.view);
    assert!(Flush::begin(scene, Trigger::Manual).is_none());
    let edits: Vec<_> = bench.view.plan.edits().collect();
    assert!(!edits.is_empty(), "the result has its stub");
}
