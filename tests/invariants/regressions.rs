//! Sessions that once broke an invariant, each with what it taught.

use decant::engine::entry::SUMMARY;
use decant::engine::message::StopReason;
use decant::engine::plan::{Change, Edit};
use serde_json::{Value, json};

use super::host::{Item, hold};
use super::lane::EngineLane;
use super::script::{
    Answer, Arguments, Call, CallId, Command, Fate, Foreign, HostKind, Output, Reply, Script, Step,
    Turn,
};
use super::twin::TwinLane;
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

/// A turn with something else about it.
fn changed(step: Step, change: impl FnOnce(&mut Turn)) -> Step {
    let Step::Turn(mut turn) = step else {
        panic!("{step:?} is no turn");
    };
    change(&mut turn);
    Step::Turn(turn)
}

fn thinking(step: Step) -> Step {
    changed(step, |turn| turn.thinking = 1)
}

fn aborted(step: Step) -> Step {
    changed(step, |turn| turn.stop = StopReason::Aborted)
}

/// A reply without words, whose hook fires when it is there.
fn late_reply(stop: StopReason, thinking: u32) -> Step {
    Step::Reply(Reply {
        words: Output::Empty,
        thinking,
        stop,
        is_early: false,
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
    // Half of the batch is in a block, the other half too short for a stub.
    let steps = vec![
        user(),
        turn(vec![call(Output::Hostile(69))]),
        turn(vec![call(Output::Empty)]),
        user(),
        Step::Configure(json!({
            "batchingMode": "agent-message",
            "budgetTurnDelta": 0.05,
            "chainCompression": { "openChain": { "keepTurns": 3 } },
        })),
        turn(vec![call(Output::Empty)]),
        turn(vec![call(Output::Empty)]),
        Step::ModelCall,
    ];
    check(&json!({}), &steps);
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

#[test]
fn whether_a_cycle_is_open_depends_on_nothing_that_comes_later() {
    let settings = json!({ "thinkingStrip": { "keepLastTurns": 1 } });
    let steps = vec![
        thinking(aborted(turn(vec![call(Output::Empty)]))),
        aborted(turn(vec![call(Output::Empty)])),
        Step::Configure(settings.clone()),
        Step::HostCompaction(4),
        reply(),
        user(),
    ];
    check(&json!({}), &steps);
    let steps = vec![
        turn(vec![call(Output::Hostile(15))]),
        user(),
        late_reply(StopReason::Length, 1),
        aborted(turn(vec![call(Output::Empty)])),
        Step::Configure(settings.clone()),
        Step::Query(0),
        turn(vec![call(Output::Empty)]),
        user(),
    ];
    check(&json!({ "flushMode": "background" }), &steps);
    let steps = vec![
        thinking(turn(vec![call(Output::Empty)])),
        turn(vec![call(Output::Empty)]),
        Step::Configure(settings),
        Step::User(Output::Hostile(155)),
        user(),
    ];
    check(&json!({}), &steps);
}

#[test]
fn an_epoch_is_marked_by_a_message_that_every_context_has() {
    let steps = vec![
        thinking(turn(vec![call(Output::Hostile(1))])),
        Step::Die(1),
        user(),
        turn(vec![call(Output::Empty)]),
        turn(vec![call(Output::Empty)]),
        Step::Configure(json!({ "thinkingStrip": { "keepLastTurns": 2 } })),
        Step::ModelChanged,
        turn(vec![call(Output::Empty)]),
    ];
    check(&json!({}), &steps);
}

#[test]
fn what_a_cold_cache_makes_due_is_archived_before_its_epoch() {
    let steps = vec![
        Step::Orphan(CallId::Fresh, Output::Short(0)),
        Step::Configure(json!({ "minBatchChars": 0, "thinkingStrip": { "keepLastTurns": 1 } })),
        Step::Query(1),
        turn(vec![call(Output::Long(0, 5))]),
        Step::User(Output::Empty),
        Step::Query(0),
        Step::Query(0),
        Step::User(Output::Empty),
        Step::Tick(299_996),
        Step::User(Output::Empty),
    ];
    check(&json!({}), &steps);
}

#[test]
fn a_summary_stands_behind_all_results_of_its_turn() {
    let steps = vec![
        turn(vec![held_back(LONG)]),
        Step::Orphan(CallId::Fresh, Output::Empty),
        Step::Orphan(CallId::Fresh, Output::Empty),
        user(),
        reply(),
        Step::Late(0),
        turn(vec![call(Output::Empty)]),
    ];
    check(&json!({}), &steps);
    let steps = vec![
        turn(vec![held_back(Output::Empty)]),
        turn(vec![
            held_back(Output::Empty),
            call(Output::Long(0, 2)),
            call(Output::Long(0, 8)),
        ]),
        Step::Late(0),
        Step::Late(0),
        reply(),
        Step::ModelCall,
    ];
    check(&json!({}), &steps);
    let steps = vec![
        turn(vec![call(LONG), held_back(Output::Short(1))]),
        Step::Command(Command::Now),
        Step::ModelCall,
        Step::Late(0),
        Step::ModelCall,
    ];
    check(&json!({ "minBatchChars": 0 }), &steps);
}

#[test]
fn arguments_that_are_overdue_go_with_the_archiving_of_their_result() {
    let steps = vec![
        user(),
        turn(vec![failed(35)]),
        Step::Configure(json!({ "purgeErrors": { "cooldownTurns": 0, "minArgChars": 0 } })),
        Step::Command(Command::Now),
        user(),
    ];
    check(&json!({}), &steps);
}

#[test]
fn a_result_without_a_call_is_archived_even_if_a_block_stands_in_its_place() {
    let steps = vec![
        Step::Log(false),
        user(),
        turn(vec![call(LONG)]),
        aborted(turn(vec![call(Output::Short(0))])),
        reply(),
        Step::Log(true),
        turn(vec![call(Output::Empty)]),
    ];
    check(
        &json!({ "chainCompression": { "rollingWindow": 0 } }),
        &steps,
    );
}

#[test]
fn a_summary_stands_before_a_block_that_begins_behind_it() {
    let steps = vec![
        user(),
        Step::HostCompaction(0),
        turn(vec![call(Output::Long(0, 1))]),
        turn(vec![call(Output::Long(0, 9))]),
        turn(vec![call(Output::Empty)]),
        turn(vec![call(Output::Empty)]),
        Step::ModelCall,
    ];
    let settings = json!({
        "batchingMode": "agent-message",
        "flushWhenSaves": 0,
        "chainCompression": { "openChain": { "keepTurns": 1 } },
    });
    check(&settings, &steps);
}

#[test]
fn two_failed_calls_of_one_name_are_not_taken_for_each_other() {
    let twin = |arguments: Arguments| Call {
        id: CallId::Reused(5),
        arguments,
        output: Output::Empty,
        ..failed(0)
    };
    let twins = turn(vec![twin(Arguments::Long(35)), twin(Arguments::None)]);
    let steps = vec![
        changed(twins, |turn| turn.is_simultaneous = true),
        Step::Tick(299_997),
        user(),
        user(),
        Step::Restart {
            shuts_down: false,
            pieces: 1,
        },
    ];
    let settings = json!({ "purgeErrors": { "cooldownTurns": 0, "minArgChars": 0 } });
    check(&settings, &steps);
}

#[test]
fn a_block_shows_the_protected_call_and_not_another_of_its_id() {
    let twin = |tool: u8, fate: Fate| Call {
        id: CallId::Reused(2),
        tool,
        fate,
        ..call(Output::Empty)
    };
    let grep = Call {
        tool: 2,
        ..call(Output::Empty)
    };
    let calls = turn(vec![grep, twin(0, Fate::HeldBack), twin(1, Fate::Returned)]);
    let steps = vec![
        user(),
        changed(calls, |turn| turn.thinking = 19),
        reply(),
        Step::HostCompaction(5),
        turn(vec![call(Output::Empty)]),
        Step::Late(0),
        user(),
    ];
    let settings = json!({
        "protectedTools": ["read"],
        "chainCompression": { "rollingWindow": 0 },
    });
    check(&settings, &steps);
}

#[test]
fn the_end_of_an_epoch_is_told_from_messages_of_the_same_time() {
    let steps = vec![
        Step::Orphan(CallId::Fresh, Output::Short(0)),
        user(),
        Step::Query(1),
        user(),
        Step::Configure(json!({ "recoveryGraceTurns": 2, "minBatchChars": 1 })),
        Step::Foreign(Foreign::SameTime),
        user(),
        turn(vec![call(Output::Empty)]),
    ];
    check(&json!({}), &steps);
}

#[test]
fn a_block_with_a_duplicate_leaves_the_originals_summary_where_it_is() {
    let read = || {
        turn(vec![Call {
            tool: 1,
            ..call(Output::Long(4, 3))
        }])
    };
    let settings = json!({
        "minBatchChars": 0,
        "flushWhenSaves": 0,
        "chainCompression": { "rollingWindow": 0, "openChain": { "keepTurns": 1 } },
    });
    let steps = vec![
        turn(vec![call(Output::Empty)]),
        read(),
        reply(),
        read(),
        turn(vec![call(Output::Empty)]),
        Step::ModelCall,
    ];
    check(&settings, &steps);
}

#[test]
fn the_summary_of_a_flush_that_died_is_not_taken_for_the_next_ones() {
    let failed_read = Call {
        is_error: true,
        ..call(Output::Lines(0))
    };
    let steps = vec![
        turn(vec![call(Output::Hostile(28))]),
        turn(vec![failed_read]),
        Step::Die(1),
        late_reply(StopReason::Stop, 0),
        user(),
        turn(vec![call(Output::Empty)]),
        late_reply(StopReason::Stop, 0),
        Step::ModelCall,
    ];
    let settings = json!({ "purgeErrors": { "cooldownTurns": 0, "minArgChars": 0 } });
    check_answered(&settings, &[Answer::Empty, Answer::Summary(0)], &steps);
}

#[test]
fn a_result_that_moves_up_makes_nothing_due_that_was_not() {
    let late = Call {
        fate: Fate::HeldBack,
        output: Output::Empty,
        ..failed(486)
    };
    let steps = vec![
        turn(vec![late, call(LONG)]),
        turn(vec![call(Output::Empty)]),
        reply(),
        turn(vec![call(Output::Empty)]),
        Step::Late(0),
        turn(vec![call(Output::Empty)]),
        Step::ModelCall,
    ];
    check(&json!({}), &steps);
}

/// How much later than a hook was told the log has what it writes: between the two is the writing.
const LAG_MS: u64 = 7;

/// What a plan inserts, and at which times.
fn inserted(edits: &[Edit]) -> Vec<(&'static str, u64)> {
    let inserted = edits.iter().filter_map(|edit| match edit.change {
        Change::InsertSummary { at_ms, .. } => Some(("summary", at_ms)),
        Change::InsertUser { at_ms, .. } => Some(("block", at_ms)),
        _ => None,
    });
    inserted.collect()
}

#[test]
fn what_is_inserted_has_the_time_of_the_log_before_and_after_a_load() {
    let chain = || vec![user(), turn(vec![call(LONG)]), reply()];
    let other = || vec![user(), turn(vec![call(Output::Long(1, 12))]), reply()];
    let restart = || {
        let restart = Step::Restart {
            shuts_down: true,
            pieces: 3,
        };
        vec![Step::ModelCall, restart]
    };
    let rows = [
        (
            "a summary",
            3,
            false,
            [chain(), restart()].concat(),
            vec!["summary"],
        ),
        (
            "a block",
            0,
            true,
            [chain(), restart()].concat(),
            vec!["block"],
        ),
        (
            "both",
            1,
            false,
            [chain(), other(), restart()].concat(),
            vec!["block", "summary"],
        ),
        (
            "two loads",
            1,
            false,
            [chain(), restart(), other(), restart()].concat(),
            vec!["block", "summary"],
        ),
    ];
    for (name, rolling_window, shows_summaries, steps, kinds) in rows {
        let script = Script {
            settings: json!({ "chainCompression": { "rollingWindow": rolling_window } }),
            host: HostKind {
                shows_summaries,
                syncs_at_once: false,
                answers_backwards: false,
            },
            answers: vec![Answer::Summary(0)],
            steps,
        };
        let late = |host| {
            hold(&host).lag_ms = LAG_MS;
            Box::new(EngineLane::new(host)) as Box<dyn super::lane::Lane>
        };
        let played = play(&script, late, false).unwrap_or_else(|why| panic!("{name}: {why}"));
        let mut plans = played.plans.iter().rev().map(|edits| inserted(edits));
        let (after, before) = (plans.next().unwrap(), plans.next().unwrap());
        let of: Vec<&str> = before.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(of, kinds, "{name}");
        assert_eq!(before, after, "{name}: before and after the load");
        let written = played.items.iter().filter_map(Item::entry);
        let written = written.filter(|entry| entry.kind == SUMMARY);
        let times: Vec<u64> = written.map(|entry| entry.at_ms).collect();
        for (kind, at_ms) in after {
            assert!(
                kind != "summary" || times.contains(&at_ms),
                "{name}: {at_ms}, not {times:?}"
            );
        }
    }
}

/// The same for whatever else a session says.
#[test]
fn a_log_with_a_clock_of_its_own_loads_as_it_was_written() {
    let chain = || vec![user(), turn(vec![call(LONG), failed(300)]), reply()];
    let spilled = || vec![user(), turn(vec![call(Output::Long(1, 12))])];
    for shows_summaries in [false, true] {
        let script = Script {
            settings: json!({
                "spillThreshold": 1_100,
                "chainCompression": { "rollingWindow": 2 },
            }),
            host: HostKind {
                shows_summaries,
                syncs_at_once: false,
                answers_backwards: false,
            },
            answers: vec![Answer::Summary(0)],
            steps: [chain(), spilled(), chain(), vec![Step::Query(0)]].concat(),
        };
        let late = |host| {
            hold(&host).lag_ms = LAG_MS;
            Box::new(TwinLane::new(host)) as Box<dyn super::lane::Lane>
        };
        let played = play(&script, late, false);
        played.map_or_else(|why| panic!("{why}"), |_| ());
    }
}
