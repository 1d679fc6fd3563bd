use std::sync::{Arc, Mutex};

use decant_host::exports::messages::Message as Synced;
use decant_host::{
    Activity, Answer, JobKind, LogEntry, ModelChoice, Node, Outcome as JobOutcome, PlanUpdate,
    Request, SessionStatus, SummarizerStats, Summary,
};

use super::*;

/// A pruner that writes down what it is told, and asks for one summary at each final reply.
struct Recorder {
    host: SharedHost,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn record(&self, call: String) {
        self.calls.lock().expect("nothing panics here").push(call);
    }
}

const IDLE: Activity = Activity {
    pending_turns: 0,
    running_jobs: 0,
    blocking: false,
};

impl Lane for Recorder {
    fn open(&mut self, _session: &SessionInfo, config: &str) -> Result<Vec<Notice>> {
        self.record(format!("open {config}"));
        Ok(Vec::new())
    }

    fn restore(&mut self, entries: &[LogEntry]) -> Result<Vec<Notice>> {
        self.record(format!("restore {}", entries.len()));
        Ok(Vec::new())
    }

    fn sync(&mut self, at: u32, tail: &[Synced]) -> Result<()> {
        self.record(format!("sync {at}+{}", tail.len()));
        Ok(())
    }

    fn turn_end(&mut self, usage: Option<Usage>, _now_ms: u64) -> Result<Activity> {
        self.record(format!(
            "turn_end {:?}",
            usage.and_then(|usage| usage.tokens)
        ));
        Ok(IDLE)
    }

    fn reply_end(&mut self, closing_at_ms: Option<u64>, now_ms: u64) -> Result<Activity> {
        self.record(format!("reply_end {closing_at_ms:?} {now_ms}"));
        let request = Request {
            kind: JobKind::Batch,
            index: 0,
            prompt: "[[1:bash]] {}\n".to_owned(),
            model: ModelChoice::Session,
            model_name: String::new(),
            thinking: "default".to_owned(),
            idle_timeout_ms: 20,
            total_timeout_ms: 180,
        };
        locked(&self.host).submit(request)?;
        Ok(IDLE)
    }

    fn plan(&mut self, known: Option<u64>, _now_ms: u64) -> Result<Option<PlanUpdate>> {
        self.record(format!("plan {known:?}"));
        Ok(None)
    }

    fn summary_ready(&mut self, job: u64, outcome: &JobOutcome, now_ms: u64) -> Result<Activity> {
        let outcome = match outcome {
            JobOutcome::Answered(Summary { text, .. }) => text.clone(),
            JobOutcome::Failed(failure) => format!("{:?}", failure.kind),
        };
        self.record(format!("summary_ready {job} {outcome} {now_ms}"));
        let mut host = locked(&self.host);
        host.append_message("context-prune-summary", &outcome, "{}", now_ms)?;
        Ok(IDLE)
    }

    fn model_changed(&mut self) -> Result<()> {
        Ok(())
    }

    fn query_tool_offered(&mut self, _offered: bool) -> Result<()> {
        Ok(())
    }

    fn answer(&mut self, tool: &str, arguments: &str, _now_ms: u64) -> Result<Answer> {
        Ok(Answer {
            text: format!("{tool} {arguments}"),
            is_error: false,
            attachments: Vec::new(),
        })
    }

    fn flush(&mut self, _now_ms: u64) -> Result<Result<Activity, CommandError>> {
        Ok(Err(CommandError::Disabled))
    }

    fn compact(&mut self, _now_ms: u64) -> Result<Result<Activity, CommandError>> {
        Ok(Ok(IDLE))
    }

    fn undo(&mut self, name: &str, _now_ms: u64) -> Result<Result<String, CommandError>> {
        Ok(Ok(format!("took {name} back")))
    }

    fn cancel(&mut self) -> Result<Result<(), CommandError>> {
        Ok(Ok(()))
    }

    fn configure(
        &mut self,
        config: &str,
        _now_ms: u64,
    ) -> Result<Result<Vec<Notice>, CommandError>> {
        self.record(format!("configure {config}"));
        Ok(Ok(Vec::new()))
    }

    fn config(&mut self) -> Result<String> {
        Ok("{}".to_owned())
    }

    fn status(&mut self) -> Result<SessionStatus> {
        Err(anyhow!("there is no status"))
    }

    fn stats(&mut self) -> Result<SummarizerStats> {
        Err(anyhow!("there are no stats"))
    }

    fn tree(&mut self) -> Result<Vec<Node>> {
        Ok(Vec::new())
    }

    fn node_text(&mut self, index: u32) -> Result<Result<String, CommandError>> {
        Ok(Err(CommandError::NotFound(index.to_string())))
    }
}

/// Runs a scenario and returns what the pruner was told, and what came of it.
fn play(scenario: &Value) -> Result<(Vec<String>, Outcome), ScenarioError> {
    let scenario = Scenario::parse(&scenario.to_string())?;
    let calls = Arc::default();
    let recorder = |host| {
        let calls = Arc::clone(&calls);
        Ok(Recorder { host, calls })
    };
    let outcome = run(&scenario, recorder)?;
    let calls = calls.lock().expect("nothing panics here").clone();
    Ok((calls, outcome))
}

const USER: &str = r#"{"role": "user", "content": "go"}"#;
const REPLY: &str = r#"{"role": "assistant", "content": [{"type": "text", "text": "done"}]}"#;

fn message(text: &str) -> Value {
    let message: Value = serde_json::from_str(text).expect("it is JSON");
    json!({ "message": message })
}

#[test]
fn a_final_reply_ends_before_it_is_in_the_session() {
    let steps = [
        message(USER),
        message(REPLY),
        json!({ "turnEnd": {} }),
        json!({ "context": true }),
    ];
    let (calls, outcome) = play(&json!({ "clock": 7, "steps": steps })).expect("it runs");
    let wanted = [
        "open {}",
        "restore 0",
        "sync 0+0",
        "sync 0+1",
        "reply_end Some(8) 9",
        "summary_ready 1 - summary of 1 calls 9",
        "sync 1+2",
        "turn_end None",
        "plan None",
    ];
    assert_eq!(calls, wanted);
    let context = &outcome.contexts[0];
    let roles: Vec<_> = context.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "custom", "assistant"]);
    let times: Vec<_> = context
        .iter()
        .map(|message| &message["timestamp"])
        .collect();
    assert_eq!(times, [7, 9, 8]);
}

#[test]
fn a_reply_that_did_not_stop_by_itself_is_no_final_reply() {
    for reason in ["error", "aborted", "length", "toolUse"] {
        let mut reply = message(REPLY);
        reply["message"]["stopReason"] = json!(reason);
        let (calls, _) = play(&json!({ "steps": [reply] })).expect("it runs");
        assert!(
            calls.iter().all(|call| !call.starts_with("reply_end")),
            "{reason}"
        );
    }
}

#[test]
fn a_timeout_moves_the_clock_past_the_first_limit() {
    let rules = json!([{ "fail": "timeout" }]);
    let scenario = json!({ "clock": 0, "summarizer": rules, "steps": [message(REPLY)] });
    let (calls, _) = play(&scenario).expect("it runs");
    assert_eq!(
        calls.last().expect("there are calls"),
        "summary_ready 1 FailureKind::Timeout 21"
    );
}

#[test]
fn a_branch_keeps_the_first_entries_of_all_kinds() {
    let steps = json!([
        message(USER), message(REPLY), { "config": { "enabled": false } }, { "branch": 2 },
        { "context": true },
    ]);
    let (calls, outcome) =
        play(&json!({ "config": { "a": { "b": 1 } }, "steps": steps })).expect("it runs");
    let reloaded: Vec<_> = calls.iter().rev().take(4).rev().collect();
    let wanted = [
        r#"open {"a":{"b":1},"enabled":false}"#,
        "restore 1",
        "sync 0+2",
        "plan None",
    ];
    assert_eq!(reloaded, wanted);
    assert_eq!(outcome.contexts[0].len(), 2);
}

#[test]
fn commands_print_what_they_did_or_why_not() {
    let steps = json!([
        { "command": "now" }, { "command": "compact" }, { "command": "undo b1" },
        { "query": { "ids": ["t1"], "limit": 3 } },
    ]);
    let (_, outcome) = play(&json!({ "steps": steps })).expect("it runs");
    assert_eq!(
        outcome.commands,
        ["refused: pruning is switched off", "took b1 back"]
    );
    assert_eq!(
        outcome.queries,
        [r#"context_tree_query {"toolCallIds":["t1"],"limit":3}"#]
    );
}

#[test]
fn what_goes_wrong_names_its_step() {
    let steps = json!([{ "context": true }, { "command": "status" }]);
    let error = play(&json!({ "steps": steps })).expect_err("there is no status");
    assert_eq!(error.to_string(), "step 1: there is no status");
}
