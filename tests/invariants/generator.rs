//! Random scripts.

use decant::engine::message::StopReason;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::script::{
    Answer, Arguments, Call, CallId, Command, Fate, Foreign, HostKind, Output, Reply, Script, Step,
    Turn,
};

/// Scripts of sessions of up to so many steps.
pub(crate) fn script(max_steps: usize) -> impl Strategy<Value = Script> {
    let host = (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(shows_summaries, syncs_at_once, answers_backwards)| HostKind {
            shows_summaries,
            syncs_at_once,
            answers_backwards,
        },
    );
    (
        settings(),
        host,
        vec(answer(), 1..4),
        vec(step(), 5..max_steps),
    )
        .prop_map(|(settings, host, answers, steps)| Script {
            settings,
            host,
            answers,
            steps,
        })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => output().prop_map(Step::User),
        30 => turn().prop_map(Step::Turn),
        12 => reply().prop_map(Step::Reply),
        3 => foreign().prop_map(Step::Foreign),
        3 => any::<u8>().prop_map(Step::Late),
        1 => (call_id(), output()).prop_map(|(id, output)| Step::Orphan(id, output)),
        3 => (0_u8..8).prop_map(Step::Query),
        1 => Just(Step::Compress),
        2 => Just(Step::ModelCall),
        4 => (any::<u8>(), answer()).prop_map(|(job, answer)| Step::Answer(job, answer)),
        1 => any::<u8>().prop_map(Step::StaleAnswer),
        6 => command().prop_map(Step::Command),
        2 => settings().prop_map(Step::Configure),
        2 => (any::<bool>(), 1_u8..20)
            .prop_map(|(shuts_down, pieces)| Step::Restart { shuts_down, pieces }),
        1 => any::<u8>().prop_map(Step::Branch),
        1 => (0_u8..20).prop_map(Step::HostCompaction),
        2 => any::<bool>().prop_map(Step::Log),
        2 => any::<bool>().prop_map(Step::Blobs),
        1 => Just(Step::LoseBlobs),
        1 => any::<bool>().prop_map(Step::Submit),
        2 => (0_u8..12).prop_map(Step::Die),
        2 => prop_oneof![1_u32..1_000, 50_000_u32..700_000].prop_map(Step::Tick),
        1 => Just(Step::ModelChanged),
        1 => any::<bool>().prop_map(Step::Offered),
        2 => (0_u8..12).prop_map(Step::Hiccup),
        1 => any::<u8>().prop_map(Step::Hostile),
        1 => Just(Step::Unreadable),
        1 => option::of(any::<u64>()).prop_map(Step::ForgetPlan),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    let stop = prop_oneof![
        20 => Just(StopReason::ToolUse),
        1 => Just(StopReason::Aborted),
        1 => Just(StopReason::Error),
        1 => Just(StopReason::Length),
    ];
    let shape = (
        vec(call(), 1..5),
        option::weighted(0.3, output()),
        thinking(),
        prop::bool::weighted(0.05),
        stop,
    );
    let rest = (
        (any::<bool>(), prop::bool::weighted(0.1)),
        option::weighted(0.15, (foreign(), 0_u8..4)),
        option::weighted(0.6, 1_000_u32..290_000),
        prop_oneof![8 => Just(1_u8), 1 => Just(0), 1 => Just(2)],
    );
    (shape, rest).prop_map(
        |(
            (calls, words, thinking, has_encrypted_reasoning, stop),
            ((is_reversed, is_simultaneous), foreign, tokens, ends),
        )| Turn {
            calls,
            words,
            thinking,
            has_encrypted_reasoning,
            stop,
            is_reversed,
            is_simultaneous,
            foreign,
            tokens,
            ends,
        },
    )
}

fn reply() -> impl Strategy<Value = Reply> {
    let stop = prop_oneof![
        12 => Just(StopReason::Stop),
        1 => Just(StopReason::Length),
        1 => Just(StopReason::Error),
        1 => Just(StopReason::Aborted),
        1 => Just(StopReason::Other),
    ];
    (output(), thinking(), stop, prop::bool::weighted(0.8)).prop_map(
        |(words, thinking, stop, is_early)| Reply {
            words,
            thinking,
            stop,
            is_early,
        },
    )
}

fn thinking() -> impl Strategy<Value = u32> {
    prop_oneof![2 => Just(0), 1 => 1_u32..2_000]
}

fn call() -> impl Strategy<Value = Call> {
    let fate = prop_oneof![
        20 => Just(Fate::Returned),
        2 => Just(Fate::HeldBack),
        1 => Just(Fate::Lost),
    ];
    (
        (call_id(), 0_u8..6, arguments(), output()),
        (fate, prop::bool::weighted(0.2), prop::bool::weighted(0.1)),
    )
        .prop_map(
            |((id, tool, arguments, output), (fate, is_error, has_image))| Call {
                id,
                tool,
                arguments,
                output,
                fate,
                is_error,
                has_image,
            },
        )
}

fn call_id() -> impl Strategy<Value = CallId> {
    prop_oneof![
        3 => Just(CallId::Fresh),
        1 => (0_u8..6).prop_map(CallId::Reused),
    ]
}

fn arguments() -> impl Strategy<Value = Arguments> {
    prop_oneof![
        1 => Just(Arguments::None),
        6 => any::<u8>().prop_map(Arguments::Command),
        3 => (0_u8..6).prop_map(Arguments::Path),
        3 => (0_u16..900).prop_map(Arguments::Long),
        1 => any::<u8>().prop_map(Arguments::Marker),
        1 => Just(Arguments::Broken),
    ]
}

fn output() -> impl Strategy<Value = Output> {
    prop_oneof![
        2 => Just(Output::Empty),
        6 => (0_u8..4).prop_map(Output::Short),
        20 => (0_u8..6, prop_oneof![1_u8..4, 5_u8..40]).prop_map(|(n, len)| Output::Long(n, len)),
        2 => (0_u8..6, 1_u8..12).prop_map(|(n, len)| Output::Untidy(n, len)),
        4 => any::<u8>().prop_map(Output::Hostile),
        1 => (0_u16..200).prop_map(Output::Lines),
    ]
}

fn foreign() -> impl Strategy<Value = Foreign> {
    prop_oneof![
        6 => Just(Foreign::Custom),
        6 => Just(Foreign::Bash),
        3 => Just(Foreign::BranchSummary),
        3 => Just(Foreign::Other),
        2 => any::<u8>().prop_map(Foreign::StraySummary),
        1 => Just(Foreign::SameTime),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        14 => any::<u8>().prop_map(Answer::Summary),
        1 => (1_u8..30).prop_map(Answer::Long),
        3 => any::<u8>().prop_map(Answer::Hostile),
        1 => Just(Answer::Empty),
        1 => Just(Answer::Truncated),
        1 => Just(Answer::Echo),
        1 => Just(Answer::ToolSyntax),
        1 => Just(Answer::Transient),
        1 => Just(Answer::Timeout),
        1 => Just(Answer::Permanent),
        1 => Just(Answer::Aborted),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        4 => Just(Command::Now),
        4 => Just(Command::Compact),
        2 => (0_u8..4).prop_map(Command::UndoBlock),
        2 => (0_u8..12).prop_map(Command::UndoRef),
        1 => Just(Command::UndoNonsense),
        1 => Just(Command::Cancel),
    ]
}

/// Settings: each key has its default for the most part.
pub(crate) fn settings() -> impl Strategy<Value = Value> {
    let batches = (
        rarely(&json!([false])),
        maybe(&json!(["agent-message", "on-demand"])),
        maybe(&json!(["turn", "agent-message"])),
        often(&json!([0, 0, 0, 200, 1_000])),
        maybe(&json!([false])),
        maybe(&json!([["read"], ["*"], ["none"], [7, "grep"]])),
        maybe(&json!([["**/keep/*"], []])),
        maybe(&json!([0, 600, 600, 2_000])),
        maybe(&json!([0, 64, 2_048, 1_000_000])),
    );
    let triggers = (
        maybe(&json!([0.1, 0.5, null])),
        maybe(&json!([0.05, 0.3])),
        maybe(&json!([100_000, null])),
        maybe(&json!([0, 1_000, 5_000])),
        maybe(&json!(["background"])),
        rarely(&json!(["live"])),
        maybe(&json!([0, 60_000, 300_000])),
        maybe(&json!([0, 1, 2, 3])),
    );
    let chains = (
        rarely(&json!([false])),
        often(&json!([0, 0, 1, 3])),
        maybe(&json!([false])),
        maybe(&json!([false])),
        maybe(&json!([2, 3])),
        maybe(&json!([{ "keepTurns": 0 }, { "keepTurns": 1 }, { "keepTurns": 3 }])),
    );
    let passes = (
        maybe(&json!([
            { "enabled": false },
            { "cooldownTurns": 0, "minArgChars": 0 },
            { "cooldownTurns": 1, "minArgChars": 20 },
            { "cooldownTurns": 3 },
        ])),
        maybe(&json!([{ "enabled": false }, { "keepLastTurns": 1 }, { "keepLastTurns": 2 }])),
        maybe(&json!(["a/b"])),
        maybe(&json!([1, 2])),
        maybe(&json!([true])),
        rarely(&json!([false, "odd"])),
        rarely(&json!([{ "x": 1 }])),
    );
    (batches, triggers, chains, passes).prop_map(|(batches, triggers, chains, passes)| {
        let mut all = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                all.insert(key.to_owned(), value);
            }
        };
        put("enabled", batches.0);
        put("pruneOn", batches.1);
        put("batchingMode", batches.2);
        put("minBatchChars", batches.3);
        put("dedupByContentHash", batches.4);
        put("protectedTools", batches.5);
        put("protectedPaths", batches.6);
        put("spillThreshold", batches.7);
        put("spillPreviewBytes", batches.8);
        put("autoBudgetThreshold", triggers.0);
        put("budgetTurnDelta", triggers.1);
        put("budgetWindowCap", triggers.2);
        put("flushWhenSaves", triggers.3);
        put("flushMode", triggers.4);
        put("cachePolicy", triggers.5);
        put("idleColdMs", triggers.6);
        put("recoveryGraceTurns", triggers.7);
        let mut inside = Map::new();
        for (key, value) in [
            ("enabled", chains.0),
            ("rollingWindow", chains.1),
            ("fuseRangeSummary", chains.2),
            ("stripFinalAssistantThinking", chains.3),
            ("mergeAfter", chains.4),
            ("openChain", chains.5),
        ] {
            if let Some(value) = value {
                inside.insert(key.to_owned(), value);
            }
        }
        put("chainCompression", Some(Value::Object(inside)));
        put("purgeErrors", passes.0);
        put("thinkingStrip", passes.1);
        put("summarizerModel", passes.2);
        put("summarizerConcurrency", passes.3);
        put("compressTool", passes.4);
        put("showStatusLine", passes.5);
        put("unheardOf", passes.6);
        Value::Object(all)
    })
}

fn rarely(values: &Value) -> impl Strategy<Value = Option<Value>> + use<> {
    one_of(values, 0.06)
}

fn maybe(values: &Value) -> impl Strategy<Value = Option<Value>> + use<> {
    one_of(values, 0.25)
}

fn often(values: &Value) -> impl Strategy<Value = Option<Value>> + use<> {
    one_of(values, 0.85)
}

fn one_of(values: &Value, probability: f64) -> impl Strategy<Value = Option<Value>> + use<> {
    let values = values.as_array().cloned().unwrap_or_default();
    option::weighted(probability, prop::sample::select(values))
}
