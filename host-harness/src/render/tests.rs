use serde_json::{Value, json};

use super::*;
use crate::{InsertedSummary, InsertedUser, ReplacedArguments};

/// 0 user, 1 assistant with calls a and b, 2 result a, 3 user, 4 result b, 5 reply.
fn transcript() -> Vec<Message> {
    let call =
        |id: &str| json!({ "type": "toolCall", "id": id, "name": "read", "arguments": {"p": id} });
    let result = |id: &str, at: u64| {
        json!({
            "role": "toolResult", "toolCallId": id, "toolName": "read",
            "content": [
                { "type": "text", "text": format!("first {id}") },
                { "type": "image", "data": "AAAA", "mimeType": "image/png" },
                { "type": "text", "text": format!("second {id}") },
            ],
            "isError": true, "timestamp": at,
        })
    };
    let thought = json!({ "type": "thinking", "thinking": "hm", "thinkingSignature": "s" });
    let values = [
        json!({ "role": "user", "content": "u0", "timestamp": 0 }),
        json!({ "role": "assistant", "content": [thought, call("a"), call("b")], "timestamp": 1 }),
        result("a", 2),
        json!({ "role": "user", "content": "u3", "timestamp": 3 }),
        result("b", 4),
        json!({ "role": "assistant", "content": [{ "type": "text", "text": "done" }], "timestamp": 5 }),
    ];
    values.map(Message::built).to_vec()
}

fn update(edits: Vec<(u32, Change)>) -> PlanUpdate {
    let edit = |(id, (at, change)): (u32, (u32, Change))| Edit { id, at, change };
    PlanUpdate {
        revision: 1,
        base: None,
        removed: Vec::new(),
        added: (1..).zip(edits).map(edit).collect(),
    }
}

fn applied(edits: Vec<(u32, Change)>) -> Vec<Value> {
    let mut plan = Plan::default();
    plan.update(update(edits));
    apply(&transcript(), &plan)
        .into_iter()
        .map(Message::into_json)
        .collect()
}

/// Short names of the messages: the role's first letter and the timestamp.
fn order(messages: &[Value]) -> String {
    let name = |m: &Value| format!("{}{}", &m["role"].as_str().unwrap()[..1], m["timestamp"]);
    messages.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn insert_user(text: &str, at: u64) -> Change {
    let parts = vec![InsertedPart::Text(text.to_owned())];
    Change::InsertUser(InsertedUser { parts, at })
}

#[test]
fn without_edits_the_transcript_is_the_context() {
    assert_eq!(apply(&transcript(), &Plan::default()), transcript());
}

#[test]
fn a_replaced_text_comes_first_and_keeps_the_other_parts() {
    let message = &applied(vec![(2, Change::ReplaceText("stub".to_owned()))])[2];
    let expected = json!({
        "role": "toolResult", "toolCallId": "a", "toolName": "read",
        "content": [
            { "type": "text", "text": "stub" },
            { "type": "image", "data": "AAAA", "mimeType": "image/png" },
        ],
        "isError": false, "timestamp": 2,
    });
    assert_eq!(message.to_string(), expected.to_string());
}

#[test]
fn thinking_is_stripped_and_arguments_are_replaced() {
    let replaced = |call, arguments: &str| {
        let arguments = arguments.to_owned();
        Change::ReplaceArguments(ReplacedArguments { call, arguments })
    };
    let edits = vec![
        (1, Change::StripThinking),
        (1, replaced(1, r#"{"z":1,"a":2}"#)),
        (1, replaced(7, "{}")),
    ];
    let expected = json!([
        { "type": "toolCall", "id": "a", "name": "read", "arguments": { "p": "a" } },
        { "type": "toolCall", "id": "b", "name": "read", "arguments": { "z": 1, "a": 2 } },
    ]);
    assert_eq!(
        applied(edits)[1]["content"].to_string(),
        expected.to_string()
    );
}

#[test]
fn inserted_messages_have_the_shapes_of_the_host() {
    let details = r#"{"b":1,"a":[]}"#;
    let summary = |details: &str| {
        Change::InsertSummary(InsertedSummary {
            content: "sum".to_owned(),
            details: details.to_owned(),
            at: 8,
        })
    };
    let user = Change::InsertUser(InsertedUser {
        parts: vec![
            InsertedPart::Text("chain".to_owned()),
            InsertedPart::Attachments(2),
            InsertedPart::Attachments(99),
        ],
        at: 9,
    });
    let messages = applied(vec![
        (5, summary(details)),
        (5, user),
        (5, summary("no JSON")),
    ]);
    let expected = [
        json!({
            "role": "custom", "customType": "context-prune-summary",
            "content": [{ "type": "text", "text": "sum" }], "display": false,
            "details": { "b": 1, "a": [] }, "timestamp": 8,
        }),
        json!({
            "role": "user",
            "content": [
                { "type": "text", "text": "chain" },
                { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            ],
            "timestamp": 9,
        }),
    ];
    assert_eq!(messages[6].to_string(), expected[0].to_string());
    assert_eq!(messages[7].to_string(), expected[1].to_string());
    assert_eq!(messages[8]["details"], json!("no JSON"));
}

#[test]
fn edits_are_applied_in_place() {
    let rows: Vec<(Vec<(u32, Change)>, &str)> = vec![
        (vec![], "u0 a1 t2 u3 t4 a5"),
        (vec![(1, Change::Drop(3))], "u0 t4 a5"),
        (vec![(4, Change::MoveUp(1))], "u0 a1 t2 t4 u3 a5"),
        (
            vec![(2, insert_user("x", 7)), (4, Change::MoveUp(1))],
            "u0 a1 t2 t4 u7 u3 a5",
        ),
        (
            vec![
                (4, Change::MoveUp(1)),
                (4, Change::ReplaceText("s".to_owned())),
            ],
            "u0 a1 t2 t4 u3 a5",
        ),
        (
            vec![
                (0, insert_user("x", 7)),
                (0, insert_user("y", 6)),
                (0, Change::Drop(1)),
            ],
            "u7 u6 a1 t2 u3 t4 a5",
        ),
        (
            vec![(5, Change::Drop(9)), (99, Change::StripThinking)],
            "u0 a1 t2 u3 t4",
        ),
    ];
    for (edits, expected) in rows {
        assert_eq!(order(&applied(edits.clone())), expected, "{edits:?}");
    }
}

#[test]
fn differences_lead_to_the_whole_plan() {
    let mut plan = Plan::default();
    assert_eq!(plan.revision(), None);
    let first = plan.update(update(vec![
        (2, insert_user("x", 7)),
        (4, Change::MoveUp(1)),
    ]));
    assert_eq!(first, Some(1), "a move changes what it moves to");
    let second = plan.update(PlanUpdate {
        revision: 2,
        base: Some(1),
        removed: vec![2],
        added: vec![Edit {
            id: 3,
            at: 3,
            change: Change::Drop(1),
        }],
    });
    assert_eq!(second, Some(1));
    let messages: Vec<Value> = apply(&transcript(), &plan)
        .into_iter()
        .map(Message::into_json)
        .collect();
    assert_eq!(order(&messages), "u0 a1 t2 u7 t4 a5");
    let third = plan.update(PlanUpdate {
        revision: 3,
        base: None,
        removed: Vec::new(),
        added: Vec::new(),
    });
    assert_eq!(third, Some(2));
    assert_eq!(apply(&transcript(), &plan), transcript());
}

#[test]
fn rendering_from_the_first_change_equals_rendering_everything() {
    let all = transcript();
    let edits = [
        (2, insert_user("x", 7)),
        (3, Change::Drop(1)),
        (4, Change::MoveUp(1)),
    ];
    let plan_for = |len: usize| {
        let within = edits.iter().filter(|(at, _)| (*at as usize) < len);
        update(within.cloned().collect())
    };
    for before in 0..=all.len() {
        for after in 0..=all.len() {
            let mut plan = Plan::default();
            plan.update(plan_for(before));
            let mut rendered = Rendered::default();
            rendered.render_from(0, &all[..before], &plan);
            let old = rendered.messages.clone();

            let changed = plan.update(plan_for(after)).unwrap_or(u32::MAX);
            let from = changed.min(before.min(after) as u32);
            let stable = rendered.render_from(from, &all[..after], &plan);
            assert_eq!(
                rendered.messages,
                apply(&all[..after], &plan),
                "{before} {after}"
            );
            assert_eq!(
                old[..stable],
                rendered.messages[..stable],
                "{before} {after}"
            );
        }
    }
}
