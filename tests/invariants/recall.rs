//! Invariant 2: what was put away is asked back through the query.

use std::collections::BTreeSet;

use decant::engine::message::{Message, Part, Role};
use serde_json::{Value, json};

use super::apply::Shown;
use super::check::{Situation, key_of};
use super::lane::Lane;
use super::pairing;

/// Invariant 2 for what the assistant said, and for arguments that were put away.
pub(crate) fn check_words(
    situation: &Situation<'_>,
    shown: &[Shown],
    lane: &mut dyn Lane,
) -> Result<(), String> {
    let visible: BTreeSet<usize> = shown.iter().filter_map(|one| one.origin).collect();
    let mut blocks: Option<String> = None;
    for (at, message) in situation.transcript.iter().enumerate() {
        let text = message.text().expect("it is whole");
        let is_assistant = matches!(message.role, Role::Assistant { .. });
        if !is_assistant || text.is_empty() || visible.contains(&at) {
            continue;
        }
        let answers = match &blocks {
            Some(answers) => answers,
            None => blocks.insert(answers_of_blocks(situation, shown, lane)),
        };
        if !answers.contains(&text) {
            return Err(format!(
                "nothing lost: what the assistant said at {at}: {text:?}"
            ));
        }
    }
    for one in shown {
        if let Some(at) = one.origin {
            check_arguments(situation, at, &one.message, lane)?;
        }
    }
    Ok(())
}

fn answers_of_blocks(situation: &Situation<'_>, shown: &[Shown], lane: &mut dyn Lane) -> String {
    let mut answers = String::new();
    for one in shown.iter().filter(|one| one.origin.is_none()) {
        let text = one.message.text().expect("it is whole");
        if let Some(rest) = text.strip_prefix("<compressed-chain id=\"") {
            let name = rest.split('"').next().unwrap_or_default();
            answers.push_str(&original(lane, name, "", situation.now));
            answers.push('\n');
        }
    }
    answers
}

fn check_arguments(
    situation: &Situation<'_>,
    at: usize,
    message: &Message,
    lane: &mut dyn Lane,
) -> Result<(), String> {
    let calls = |message: &Message| -> Vec<String> {
        let calls = message.content.iter().filter_map(|block| match block {
            Part::ToolCall(call) => Some(call.arguments.clone()),
            _ => None,
        });
        calls.collect()
    };
    let before = calls(&situation.transcript[at]);
    let purged: Vec<&String> = before
        .iter()
        .zip(&calls(message))
        .filter(|(before, after)| before != after)
        .map(|(before, _)| before)
        .collect();
    if purged.is_empty() {
        return Ok(());
    }
    let mut answers = String::new();
    for (result, site) in pairing::answered(situation.transcript) {
        if site == Some(at)
            && let Some(key) = key_of(&situation.transcript[result])
        {
            let arguments = json!({ "toolCallIds": [key.to_string()], "limit": 1 });
            answers.push_str(&lane.call(
                "context_tree_query",
                &arguments.to_string(),
                situation.now,
            ));
        }
    }
    for arguments in purged {
        let value: Result<Value, _> = serde_json::from_str(arguments);
        let printed = value.map_or(arguments.clone(), |value| {
            serde_json::to_string_pretty(&value).unwrap_or_default()
        });
        if !answers.contains(&printed) {
            return Err(format!(
                "nothing lost: the arguments {printed} in {answers}"
            ));
        }
    }
    Ok(())
}

/// What the query gives back for a name: its pages, laid end to end.
///
/// A text that ends like the note behind a page can be told from a page only by whoever knows it.
pub(crate) fn original(lane: &mut dyn Lane, name: &str, known: &str, now: u64) -> String {
    let mut text = String::new();
    let mut offset = 0;
    loop {
        let arguments = json!({ "toolCallIds": [name], "offset": offset });
        let answer = lane.call("context_tree_query", &arguments.to_string(), now);
        let body = ["\nStatus: OK\nTurn: ", "\nStatus: ERROR\nTurn: "]
            .into_iter()
            .filter_map(|status| answer.split_once(status))
            .min_by_key(|(head, _)| head.len())
            .and_then(|(_, rest)| rest.split_once("\n\n"));
        let Some((notes, body)) = body else {
            return answer;
        };
        if notes.contains("cannot be read") {
            return answer;
        }
        if body == known {
            return body.to_owned();
        }
        let note = body.rfind("\n\n[context_tree_query: lines ");
        let more = note.map(|at| &body[at..]).and_then(|note| {
            let rest = note.split_once("More: the same call with offset ")?.1;
            rest.strip_suffix(", or a pattern]")?.parse::<u64>().ok()
        });
        let ends = note.is_some_and(|at| body[at..].ends_with("This is the end]"));
        match more {
            Some(next) if next > offset => {
                text.push_str(&body[..note.unwrap_or_default()]);
                offset = next;
            }
            _ if ends && offset > 0 => {
                text.push_str(&body[..note.unwrap_or_default()]);
                return text;
            }
            _ => {
                text.push_str(body);
                return text;
            }
        }
    }
}
