//! Sessions that once broke an invariant, each with what it taught.

use decant::engine::message::StopReason;
use serde_json::{Value, json};

use super::lane::EngineLane;
use super::script::{
    Answer, Arguments, Call, CallId, Command, Fate, HostKind, Output, Reply, Script, Step, Turn,
};
use super::world::play;

fn check(settings: &Value, steps: &[Step]) {
    check_answered(settings, &[Answer::Summary(0)], steps);
}

fn check_answered(settings: &Value, answers: &[Answer], steps: &[Step]) {
    for shows_summaries in [false, true] {
        let script = Script {
            settings: settings.clone(),
            host: HostKind {
                shows_summaries,
                syncs_at_once: shows_summaries,
                answers_backwards: false,
            },
            answers: answers.to_vec(),
            steps: steps.to_vec(),
        };
        let played = play(&script, |host| Box::new(EngineLane::new(host)), true);
        played.unwrap_or_else(|why| panic!("{why}"));
    }
}

const LONG: Output = Output::Long(0, 10);

fn user() -> Step {
    Step::User(Output::Short(0))
}

fn call(output: Output) -> Call {
    Call {
        id: CallId::Fresh,
        tool: 0,
        arguments: Arguments::None,
        output,
        fate: Fate::Returned,
        is_error: false,
        has_image: false,
    }
}

fn failed(chars: u16) -> Call {
    Call {
        arguments: Arguments::Long(chars),
        is_error: true,
        ..call(Output::Short(0))
    }
}

fn held_back(output: Output) -> Call {
    Call {
        fate: Fate::HeldBack,
        ..call(output)
    }
}

fn turn(calls: Vec<Call>) -> Step {
    Step::Turn(Turn {
        calls,
        words: None,
        thinking: 0,
        has_encrypted_reasoning: false,
        stop: StopReason::ToolUse,
        is_reversed: false,
        is_simultaneous: false,
        foreign: None,
        tokens: None,
        ends: 1,
    })
}

fn reply() -> Step {
    Step::Reply(Reply {
        words: Output::Short(1),
        thinking: 0,
        stop: StopReason::Stop,
        is_early: true,
    })
}

#[test]
fn a_result_that_comes_when_a_block_stands_for_its_turn_is_kept() {
    check(
        &json!({ "minBatchChars": 0, "chainCompression": { "rollingWindow": 0 } }),
        &[
            user(),
            turn(vec![call(LONG), held_back(Output::Short(2))]),
            reply(),
            user(),
            Step::Late(0),
            user(),
        ],
    );
    check(
        &json!({ "chainCompression": { "rollingWindow": 0 } }),
        &[
            user(),
            turn(vec![
                call(Output::Empty),
                call(Output::Empty),
                held_back(Output::Short(2)),
            ]),
            reply(),
            Step::Late(0),
        ],
    );
}

#[test]
fn a_context_sent_back_keeps_its_summaries() {
    let steps = vec![user(), turn(vec![call(LONG)]), reply(), user()];
    check(&json!({}), &steps);
    let steps = vec![turn(vec![call(LONG), call(Output::Short(0))]), reply()];
    check(&json!({}), &steps);
}

#[test]
fn a_result_without_a_call_is_archived_before_it_is_left_out() {
    let steps = vec![
        user(),
        Step::Orphan(CallId::Fresh, Output::Short(0)),
        user(),
    ];
    check(&json!({}), &steps);
}

#[test]
fn a_purge_marker_is_not_purged_again() {
    let steps = vec![
        turn(vec![failed(86)]),
        turn(vec![call(Output::Short(1))]),
        Step::Command(Command::Now),
        user(),
    ];
    let purge = json!({ "purgeErrors": { "cooldownTurns": 0, "minArgChars": 0 } });
    check(&purge, &steps);
}

#[test]
fn a_failed_flush_leaves_no_summary_to_the_next() {
    let steps = vec![
        turn(vec![call(Output::Short(0)), call(LONG)]),
        Step::Hiccup(1),
        Step::Command(Command::Now),
        Step::Command(Command::Now),
        user(),
    ];
    check(&json!({ "minBatchChars": 0 }), &steps);
}

#[test]
fn a_summary_goes_with_the_place_where_it_was_inserted() {
    let steps = vec![
        turn(vec![call(LONG)]),
        reply(),
        user(),
        turn(vec![call(Output::Short(0))]),
        Step::HostCompaction(0),
    ];
    check(&json!({}), &steps);
}

#[test]
fn a_flush_in_the_background_loses_nothing_that_is_archived_meanwhile() {
    let steps = vec![
        turn(vec![call(Output::Long(0, 22))]),
        Step::Command(Command::Now),
        Step::Configure(json!({ "flushMode": "background", "spillThreshold": 600 })),
        user(),
        turn(vec![call(Output::Short(0))]),
        reply(),
        user(),
        Step::ModelCall,
    ];
    check(&json!({ "flushMode": "background" }), &steps);
}

#[test]
fn an_archived_result_is_not_its_own_duplicate() {
    let mut large = failed(600);
    large.output = Output::Long(0, 22);
    let steps = vec![
        turn(vec![large]),
        turn(vec![call(Output::Short(1))]),
        turn(vec![call(Output::Short(2))]),
        Step::Configure(json!({ "spillThreshold": 600 })),
        user(),
        turn(vec![call(Output::Short(3))]),
        reply(),
    ];
    check(&json!({ "pruneOn": "on-demand" }), &steps);
}

#[test]
fn what_fails_to_be_fused_is_found_by_a_load() {
    let chain = || vec![user(), turn(vec![call(LONG)]), reply()];
    let steps: Vec<Step> = [chain(), chain(), chain(), vec![user()]].concat();
    let settings = json!({ "chainCompression": { "rollingWindow": 0, "mergeAfter": 2 } });
    check_answered(&settings, &[Answer::Summary(0), Answer::Empty], &steps);
}
