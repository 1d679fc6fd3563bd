//! The component inside its host: what crosses the boundary, and what happens when it breaks.

use std::sync::{Arc, Mutex};

use decant_host::{
    Activity, CommandFailure, Decant, FileHost, Level, Limits, LogEntry, MemoryHost, Message,
    OpenError, Outcome, Session, SessionError, SessionOptions, Summary,
};
use serde_json::json;

const CONFIG: &str = r#"{ "enabled": true }"#;

/// More than any summary of it.
fn output(n: u64) -> String {
    format!("line {n} of the output\n").repeat(200)
}

type Shared = Arc<Mutex<MemoryHost>>;

fn open(config: &str, host: &Shared) -> Session {
    let options = SessionOptions::new("s1", config);
    let decant = Decant::new().expect("the component loads");
    decant
        .open(options, host.clone())
        .expect("the session opens")
}

fn push_turn(session: &mut Session, n: u64) {
    let id = format!("c{n}");
    let arguments = json!({ "command": format!("step {n}") });
    session.push(Message::tool_call(&id, "bash", &arguments, 10 * n + 1));
    session.push(Message::tool_result(&id, "bash", &output(n), 10 * n + 2));
}

fn flush(session: &mut Session, now_ms: u64) -> Activity {
    session.turn_end(None, now_ms);
    session.flush(now_ms).expect("there is something to flush")
}

/// Answers all jobs that wait.
fn answer_jobs(session: &mut Session, host: &Shared, now_ms: u64) -> usize {
    let mut answered = 0;
    loop {
        let job = host.lock().expect("not poisoned").jobs.take();
        let Some((job, _)) = job else {
            return answered;
        };
        session.summary_ready(job, &summary(job), now_ms);
        answered += 1;
    }
}

fn summary(job: u64) -> Outcome {
    Outcome::Answered(Summary {
        text: format!("- summary {job}"),
        truncated: false,
        usage: None,
    })
}

/// A session in which turns 1 to `n` are done and flushed.
fn flushed(n: u64, host: &Shared) -> Session {
    let mut session = open(CONFIG, host);
    session.push(Message::user("do it", 1));
    for turn in 1..=n {
        push_turn(&mut session, turn);
        flush(&mut session, 10 * turn + 3);
        answer_jobs(&mut session, host, 10 * turn + 4);
    }
    session
}

fn texts(session: &mut Session, now_ms: u64) -> Vec<String> {
    short(session.context(now_ms).messages)
}

/// The beginnings of the messages' texts, and their lengths.
fn short(messages: &[Message]) -> Vec<String> {
    let texts = messages.iter().map(Message::text);
    texts
        .map(|text| match text.char_indices().nth(60) {
            Some((end, _)) => format!("{}… {}", &text[..end], text.len()),
            None => text,
        })
        .collect()
}

fn kinds(host: &Shared) -> Vec<String> {
    let host = host.lock().expect("not poisoned");
    host.entries
        .iter()
        .map(|entry| entry.kind.clone())
        .collect()
}

fn errors(host: &Shared) -> Vec<String> {
    let host = host.lock().expect("not poisoned");
    let errors = host.notices.iter().filter(|n| n.level == Level::Error);
    errors.map(|notice| notice.text.clone()).collect()
}

#[test]
fn a_flush_goes_to_the_log_and_a_restart_loads_it() {
    let host = Shared::default();
    let mut session = flushed(2, &host);
    let kinds = kinds(&host);
    assert!(
        kinds.iter().any(|kind| kind == "context-prune-summary"),
        "{kinds:?}"
    );
    assert!(
        kinds.iter().any(|kind| kind == "context-prune-index"),
        "{kinds:?}"
    );
    let before = texts(&mut session, 100);
    assert_ne!(before, short(session.transcript()), "the output was pruned");

    let transcript = session.transcript().to_vec();
    drop(session);
    let mut session = open(CONFIG, &host);
    session.replace_all(transcript);
    assert_eq!(texts(&mut session, 101), before);
    let reply = session.answer("context_tree_query", r#"{"toolCallIds":["t1"]}"#, 102);
    assert!(reply.text.contains(output(1).trim_end()), "{}", reply.text);
}

#[test]
fn a_session_on_disk_is_loaded_by_the_next_process() {
    let folder = std::env::temp_dir().join(format!("decant-embedding-{}", std::process::id()));
    let log = folder.join("s1.jsonl");
    let open = || {
        let host = FileHost::open(&log).expect("a readable log");
        let host = Arc::new(Mutex::new(host));
        let decant = Decant::new().expect("the component loads");
        let options = SessionOptions::new("s1", CONFIG);
        let session = decant.open(options, host.clone());
        (session.expect("the session opens"), host)
    };
    let (mut session, host) = open();
    session.push(Message::user("do it", 1));
    push_turn(&mut session, 1);
    flush(&mut session, 13);
    let (job, _) = host
        .lock()
        .expect("not poisoned")
        .jobs
        .take()
        .expect("a job");
    session.summary_ready(job, &summary(job), 14);
    let before = texts(&mut session, 100);
    let transcript = session.transcript().to_vec();
    drop((session, host));

    let (mut session, _host) = open();
    session.replace_all(transcript);
    assert_eq!(texts(&mut session, 101), before);
    assert_ne!(before, short(session.transcript()), "the output was pruned");
    let reply = session.answer("context_tree_query", r#"{"toolCallIds":["t1"]}"#, 102);
    assert!(reply.text.contains(output(1).trim_end()), "{}", reply.text);
    std::fs::remove_dir_all(&folder).expect("removable");
}

#[test]
fn only_what_follows_the_first_change_is_rendered_anew() {
    let host = Shared::default();
    let mut session = open(CONFIG, &host);
    session.push(Message::user("do it", 1));
    assert_eq!(session.context(2).stable_prefix, 0);
    push_turn(&mut session, 1);
    assert_eq!(session.context(15).stable_prefix, 1);
    assert_eq!(session.context(16).stable_prefix, 3);
    flush(&mut session, 17);
    answer_jobs(&mut session, &host, 18);
    let context = session.context(19);
    assert_eq!(context.stable_prefix, 2, "the result has become a stub");
    assert!(context.pruned);
}

#[test]
fn a_trap_costs_one_unpruned_context() {
    let host = Shared::default();
    let mut session = flushed(2, &host);
    let before = texts(&mut session, 100);
    let unpruned = short(session.transcript());

    session.set_limits(Limits {
        fuel: 100,
        ..Limits::default()
    });
    let context = session.context(101);
    assert!(!context.pruned);
    assert_eq!(short(context.messages), unpruned);
    // The instance could not be made anew under that limit.
    assert_eq!(errors(&host).len(), 2, "{:?}", errors(&host));

    session.set_limits(Limits::default());
    assert_eq!(texts(&mut session, 102), before);
    assert!(session.context(103).pruned);
}

#[test]
fn after_three_faults_the_session_stays_unpruned() {
    let host = Shared::default();
    let mut session = flushed(1, &host);
    session.set_limits(Limits {
        fuel: 100,
        ..Limits::default()
    });
    for now_ms in 100..110 {
        assert!(!session.context(now_ms).pruned);
        session.turn_end(None, now_ms);
    }
    let errors = errors(&host);
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors[2].contains("goes on unpruned"), "{errors:?}");
    let reply = session.answer("context_tree_query", "{}", 111);
    assert!(reply.is_error);
    assert_eq!(session.flush(112), Err(CommandFailure::Down));
    assert_eq!(session.status(), Err(CommandFailure::Down));
}

#[test]
fn jobs_of_a_lost_instance_are_cancelled() {
    let host = Shared::default();
    let mut session = open(CONFIG, &host);
    session.push(Message::user("do it", 1));
    push_turn(&mut session, 1);
    let activity = flush(&mut session, 13);
    assert_eq!(activity.running_jobs, 1);
    assert!(activity.blocking);

    session.set_limits(Limits {
        fuel: 100,
        ..Limits::default()
    });
    session.context(14);
    assert!(host.lock().expect("not poisoned").jobs.is_empty());
}

#[test]
fn a_message_that_does_not_fit_the_memory_leaves_the_session_unpruned() {
    let host = Shared::default();
    let decant = Decant::new().expect("the component loads");
    let mut options = SessionOptions::new("s1", CONFIG);
    options.limits.memory_bytes = 4 << 20;
    let mut session = decant
        .open(options, host.clone())
        .expect("the session opens");
    session.push(Message::user(&"x".repeat(8 << 20), 1));
    let context = session.context(2);
    assert!(!context.pruned);
    assert_eq!(context.messages.len(), 1);
    assert!(!errors(&host).is_empty());
}

#[test]
fn two_sessions_do_not_see_each_other() {
    let hosts = [Shared::default(), Shared::default()];
    let mut alone = flushed(3, &Shared::default());
    let expected = texts(&mut alone, 100);

    let mut sessions = hosts.each_ref().map(|host| open(CONFIG, host));
    for session in &mut sessions {
        session.push(Message::user("do it", 1));
    }
    for turn in 1..=3 {
        for (session, host) in sessions.iter_mut().zip(&hosts) {
            push_turn(session, turn);
            flush(session, 10 * turn + 3);
            answer_jobs(session, host, 10 * turn + 4);
        }
    }
    for (session, host) in sessions.iter_mut().zip(&hosts) {
        assert_eq!(texts(session, 100), expected);
        assert_eq!(kinds(host), kinds(&hosts[0]));
    }
}

#[test]
fn a_log_that_cannot_be_written_leaves_the_context_as_it_was() {
    let host = Shared::default();
    host.lock().expect("not poisoned").log_fails = true;
    let mut session = flushed(1, &host);
    let unpruned = short(session.transcript());
    assert_eq!(texts(&mut session, 100), unpruned);

    host.lock().expect("not poisoned").log_fails = false;
    push_turn(&mut session, 2);
    flush(&mut session, 101);
    assert!(answer_jobs(&mut session, &host, 102) > 0);
    assert_ne!(texts(&mut session, 103), short(session.transcript()));
}

#[test]
fn summaries_become_messages_where_the_log_is_the_transcript() {
    let host = Shared::default();
    let decant = Decant::new().expect("the component loads");
    let mut options = SessionOptions::new("s1", CONFIG);
    options.summaries_in_transcript = true;
    let mut session = decant
        .open(options, host.clone())
        .expect("the session opens");
    session.push(Message::user("do it", 1));
    push_turn(&mut session, 1);
    flush(&mut session, 13);
    answer_jobs(&mut session, &host, 14);
    let last = session.transcript().last().expect("there are messages");
    assert_eq!(last.role(), "custom");
    assert_eq!(last.at_ms(), 14);
    let n_summaries = |session: &mut Session| {
        let context = session.context(15).messages;
        context.iter().filter(|m| m.role() == "custom").count()
    };
    assert_eq!(n_summaries(&mut session), 1);
}

#[test]
fn settings_that_are_no_object_are_refused() {
    let decant = Decant::new().expect("the component loads");
    let refused = decant.open(SessionOptions::new("s1", "[1]"), MemoryHost::default());
    let Err(OpenError::Refused(SessionError::MalformedConfig(_))) = refused else {
        panic!("the session was opened");
    };
}

#[test]
fn entries_of_others_are_passed_over() {
    let host = Shared::default();
    host.lock().expect("not poisoned").entries.push(LogEntry {
        id: "x1".to_owned(),
        kind: "somebody-else".to_owned(),
        data: "not even JSON".to_owned(),
        at: 1,
    });
    let mut session = open(CONFIG, &host);
    session.push(Message::user("do it", 1));
    assert!(session.context(2).pruned);
    assert_eq!(errors(&host), Vec::<String>::new());
}
