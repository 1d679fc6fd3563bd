//! Calls and results belong together.

use std::collections::BTreeSet;

use decant_host::Message;

use super::super::conversation::{call_ids, is_sent};

/// Checks the context from the answer before index `from` on. `answered` are calls that have a
/// result in the transcript, by the time of their answer.
///
/// # Errors
///
/// The index of the message, and what is wrong with it.
pub(super) fn check(
    context: &[Message],
    from: usize,
    answered: &BTreeSet<(u64, String)>,
) -> Result<(), (usize, String)> {
    let is_answer = |message: &Message| message.role() == "assistant" && is_sent(message);
    let start = context[..from.min(context.len())]
        .iter()
        .rposition(is_answer)
        .unwrap_or(0);
    let mut open: Vec<&str> = Vec::new();
    let mut answer = start;
    for (index, message) in context.iter().enumerate().skip(start) {
        if !is_sent(message) {
            continue;
        }
        if message.role() == "toolResult" {
            let id = message.as_json()["toolCallId"].as_str().unwrap_or_default();
            let Some(at) = open.iter().position(|call| *call == id) else {
                return Err((index, format!("the result of `{id}` answers no open call")));
            };
            open.remove(at);
            continue;
        }
        lost_result(context, answer, &open, answered)?;
        open.clear();
        if is_answer(message) {
            open = call_ids(message).collect();
            answer = index;
        }
    }
    lost_result(context, answer, &open, answered)
}

fn lost_result(
    context: &[Message],
    answer: usize,
    open: &[&str],
    answered: &BTreeSet<(u64, String)>,
) -> Result<(), (usize, String)> {
    let at_ms = context.get(answer).map_or(0, Message::at_ms);
    let is_lost = |id: &&&str| answered.contains(&(at_ms, (**id).to_string()));
    match open.iter().find(is_lost) {
        Some(id) => Err((answer, format!("the call `{id}` has lost its result"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn results_stand_behind_their_calls() {
        let answer = |ids: &[&str], stop: &str| {
            let call = |id: &&str| json!({"type": "toolCall", "id": id, "name": "ls"});
            let content: Vec<_> = ids.iter().map(call).collect();
            let json = json!({"role": "assistant", "content": content, "stopReason": stop, "timestamp": 7});
            Message::from_json(json).unwrap()
        };
        let a = |ids: &[&str]| answer(ids, "toolUse");
        let r = |id: &str| Message::tool_result(id, "ls", "x", 8);
        let u = || Message::user("hi", 9);
        let rows = [
            (vec![u(), a(&["1", "2"]), r("2"), r("1"), u()], None),
            (vec![a(&["1"]), answer(&["9"], "aborted"), r("1")], None),
            (vec![a(&["2"]), u()], None),
            (vec![a(&["1"]), u(), r("1")], Some(0)),
            (vec![a(&["1"]), u()], Some(0)),
            (vec![a(&["2"]), r("2"), r("2")], Some(2)),
            (vec![r("1")], Some(0)),
            (vec![answer(&["1"], "aborted"), r("1")], Some(1)),
        ];
        let answered = BTreeSet::from([(7, "1".to_string())]);
        for (context, expected) in rows {
            let found = check(&context, 0, &answered).err().map(|(at, _)| at);
            assert_eq!(found, expected, "{context:?}");
        }
    }
}
