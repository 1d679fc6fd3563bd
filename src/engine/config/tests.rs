use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::engine::host::Level;

fn parse(json: &Value) -> (Config, Vec<Notice>) {
    Config::parse(&json.to_string()).expect("an object")
}

#[test]
fn an_empty_object_gives_the_defaults() {
    assert_eq!(parse(&json!({})), (Config::default(), vec![]));
}

#[test]
fn every_setting_is_read_and_written_back_in_its_place() {
    let text = concat!(
        r#"{"enabled":false,"pruneOn":"on-demand","batchingMode":"agent-message","#,
        r#""minBatchChars":1,"dedupByContentHash":false,"protectedTools":["todo*"],"#,
        r#""protectedPaths":["**/*.md"],"spillThreshold":0,"spillPreviewBytes":2,"#,
        r#""quietOversizedSkips":true,"autoBudgetThreshold":0.8,"budgetTurnDelta":0.1,"#,
        r#""budgetWindowCap":null,"flushWhenSaves":3,"flushMode":"background","#,
        r#""cachePolicy":"live","idleColdMs":4,"recoveryGraceTurns":5,"#,
        r#""chainCompression":{"enabled":false,"rollingWindow":6,"fuseRangeSummary":false,"#,
        r#""stripFinalAssistantThinking":false,"mergeAfter":7,"openChain":{"keepTurns":8}},"#,
        r#""purgeErrors":{"enabled":false,"cooldownTurns":9,"minArgChars":10},"#,
        r#""thinkingStrip":{"enabled":false,"keepLastTurns":11},"#,
        r#""summarizerModel":"router/maker/model","summarizerThinking":"low","#,
        r#""summarizerIdleTimeoutMs":12,"summarizerMaxTimeoutMs":13,"#,
        r#""summarizerConcurrency":14,"compressTool":true,"showStatusLine":false}"#,
    );
    let (config, notices) = Config::parse(text).expect("an object");
    assert_eq!(notices, []);
    assert_eq!(config.chain_compression.open_chain.keep_turns, Some(8));
    assert_eq!(config.to_json(), text);
}

#[test]
fn blocks_merge_key_by_key() {
    let (config, notices) = parse(&json!({"chainCompression": {"rollingWindow": 1}}));
    assert_eq!(notices, []);
    let mut expected = Config::default();
    expected.chain_compression.rolling_window = 1;
    assert_eq!(config, expected);
}

#[test]
fn a_bad_value_is_named_and_its_default_used() {
    let rows = [
        ("enabled", json!("yes"), "true or false"),
        (
            "pruneOn",
            json!("agentic-auto"),
            "\"agent-message\", \"on-demand\"",
        ),
        ("pruneOn", json!(1), "one of"),
        ("minBatchChars", json!(-1), "from 0 to 4294967295"),
        ("minBatchChars", json!(1.5), "a whole number"),
        ("minBatchChars", json!("1000"), "a whole number"),
        ("minBatchChars", json!(4_294_967_296_u64), "a whole number"),
        ("minBatchChars", Value::Null, "a whole number"),
        ("idleColdMs", json!(1_u64 << 53), "to 9007199254740991"),
        ("idleColdMs", json!(1e300), "a whole number"),
        (
            "autoBudgetThreshold",
            json!(0),
            "above 0 and up to 1, or null",
        ),
        ("autoBudgetThreshold", json!(1.01), "above 0"),
        ("budgetTurnDelta", json!(-0.1), "above 0"),
        ("budgetWindowCap", json!(0), "from 1 to"),
        ("summarizerConcurrency", json!(0), "from 1 to"),
        ("summarizerModel", json!("haiku"), "\"provider/model\""),
        (
            "summarizerModel",
            json!("anthropic/ "),
            "\"provider/model\"",
        ),
        ("summarizerThinking", json!("max"), "\"xhigh\""),
        ("protectedTools", json!("read"), "a list of strings"),
        ("purgeErrors", json!(true), "an object"),
        ("chainCompression.mergeAfter", json!(1), "from 2 to"),
        ("chainCompression.openChain.keepTurns", json!([]), "or null"),
        ("chainCompression.openChain", json!(3), "an object"),
        (
            "thinkingStrip.keepLastTurns",
            json!("all"),
            "a whole number",
        ),
    ];
    for (path, value, allowed) in rows {
        let shown = value.to_string();
        let object = path
            .rsplit('.')
            .fold(value, |inner, key| json!({ key: inner }));
        let (config, notices) = parse(&object);
        assert_eq!(config, Config::default(), "{path}: {shown}");
        let [notice] = notices.as_slice() else {
            panic!("{path}: {notices:?}");
        };
        assert_eq!(notice.level, Level::Warning);
        for part in [&format!("`{path}`"), &shown, allowed] {
            assert!(notice.text.contains(part), "{part} in {}", notice.text);
        }
    }
}

#[test]
fn a_bad_value_leaves_its_neighbours_alone() {
    let (config, notices) = parse(&json!({
        "minBatchChars": 5, "spillThreshold": "big",
        "purgeErrors": {"enabled": 0, "cooldownTurns": 7},
    }));
    assert_eq!(notices.len(), 2);
    assert_eq!(config.min_batch_chars, 5);
    assert_eq!(config.spill_threshold, 65_536);
    assert!(config.purge_errors.enabled);
    assert_eq!(config.purge_errors.cooldown_turns, 7);
}

#[test]
fn numbers_may_have_a_fraction_of_zero() {
    let (config, notices) = parse(&json!({"minBatchChars": 2.0, "autoBudgetThreshold": 1}));
    assert_eq!(notices, []);
    assert_eq!(config.min_batch_chars, 2);
    assert_eq!(config.auto_budget_threshold, Some(1.0));
}

#[test]
fn kept_turns_are_raised_to_one_without_a_word() {
    for (written, read) in [
        (json!(0), 1),
        (json!(-3), 1),
        (json!(1), 1),
        (json!(2.0), 2),
    ] {
        let (config, notices) = parse(&json!({"thinkingStrip": {"keepLastTurns": written}}));
        assert_eq!(notices, []);
        assert_eq!(config.thinking_strip.keep_last_turns, read);
    }
}

#[test]
fn bad_entries_are_left_out_of_a_list() {
    let (config, notices) =
        parse(&json!({"protectedTools": ["read", " ", 3, "mcp__*", "x".repeat(2_000)]}));
    assert_eq!(config.protected_tools, ["read", "mcp__*"]);
    let [notice] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    assert_eq!(notice.level, Level::Warning);
    assert!(notice.text.contains("`protectedTools`"));
    assert!(notice.text.contains(r#"" " (blank), 3 (no string)"#));
    assert!(notice.text.contains("(longer than 1024 bytes)"));
}

#[test]
fn unknown_keys_are_kept_and_named_once() {
    let written = json!({
        "$schema": "schema.json",
        "agenticAuto": {"a": [1, 2.5, null]},
        "chainCompression": {"depth": 1, "openChain": {"x": "y"}},
        "thinkingStrip": {"enabled": false, "$schema": 1},
    });
    let (config, notices) = parse(&written);
    assert_eq!(
        notices,
        [Notice::info(
            "These settings are not known, so they are kept but do nothing: \
             `chainCompression.openChain.x`, `chainCompression.depth`, \
             `thinkingStrip.$schema`, `agenticAuto`."
        )]
    );
    let back: Value = serde_json::from_str(&config.to_json()).expect("JSON");
    assert_eq!(back["$schema"], written["$schema"]);
    assert_eq!(back["agenticAuto"], written["agenticAuto"]);
    assert_eq!(back["chainCompression"]["depth"], 1);
    assert_eq!(back["chainCompression"]["openChain"]["x"], "y");
    assert_eq!(back["thinkingStrip"]["$schema"], 1);
    assert_eq!(back["thinkingStrip"]["enabled"], false);
}

#[test]
fn a_schema_alone_needs_no_notice() {
    assert_eq!(parse(&json!({"$schema": "x"})).1, []);
}

#[test]
fn long_values_and_names_are_cut_short() {
    let (_, notices) = parse(&json!({"enabled": "😀".repeat(9_999), "k".repeat(9_999): 1}));
    assert_eq!(notices.len(), 2);
    for notice in notices {
        assert!(notice.text.len() < 500, "{}", notice.text);
    }
}

#[test]
fn what_is_no_object_is_an_error() {
    for text in ["", "{", "[]", "null", "3", "{} {}", "\"enabled\""] {
        let error = Config::parse(text).expect_err(text);
        assert!(!error.is_empty());
    }
}

/// JSON with the keys of settings in it, so that random values reach every reader.
fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("enabled".to_owned()),
        Just("pruneOn".to_owned()),
        Just("minBatchChars".to_owned()),
        Just("protectedTools".to_owned()),
        Just("autoBudgetThreshold".to_owned()),
        Just("budgetWindowCap".to_owned()),
        Just("idleColdMs".to_owned()),
        Just("summarizerModel".to_owned()),
        Just("chainCompression".to_owned()),
        Just("openChain".to_owned()),
        Just("keepTurns".to_owned()),
        Just("thinkingStrip".to_owned()),
        Just("keepLastTurns".to_owned()),
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..100_u64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0.0..2.0).prop_map(|share: f64| Value::from(share)),
        any::<String>().prop_map(Value::from),
        Just(Value::from("live")),
        Just(Value::from("a/b")),
    ];
    leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..12)
                .prop_map(|object| object.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back_the_same(json in any_json()) {
        if let Ok((config, _)) = Config::parse(&json.to_string()) {
            let written = config.to_json();
            let (again, notices) = Config::parse(&written).expect("an object");
            prop_assert_eq!(&again, &config);
            prop_assert!(notices.iter().all(|notice| notice.level == Level::Info));
            prop_assert_eq!(again.to_json(), written);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = Config::parse(&text);
    }
}
