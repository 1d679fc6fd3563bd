//! Which result answers which call, found in the plainest way, and whether a context keeps to it.

use std::collections::BTreeMap;

use decant::engine::message::{Message, Part, Role, StopReason};

use super::apply::Shown;

/// For each message that is a result: the assistant message whose call it answers.
///
/// A result answers a call of its id in the latest message before it that has one without a result;
/// if that message is not sent, it answers none.
pub(crate) fn answered(transcript: &[Message]) -> BTreeMap<usize, Option<usize>> {
    let mut open: Vec<(usize, &str)> = Vec::new();
    let mut answered = BTreeMap::new();
    for (at, message) in transcript.iter().enumerate() {
        match &message.role {
            Role::Assistant { .. } => {
                open.extend(calls(message).into_iter().map(|id| (at, id)));
            }
            Role::ToolResult { call_id, .. } => {
                let found = open.iter().rposition(|(_, id)| id == call_id);
                let found = found.map(|index| open.remove(index).0);
                answered.insert(
                    at,
                    found.filter(|assistant| is_sent_at(transcript, *assistant)),
                );
            }
            _ => {}
        }
    }
    answered
}

/// Hosts do not send what the provider or the user broke off.
pub(crate) fn is_sent(stop: StopReason) -> bool {
    !matches!(stop, StopReason::Error | StopReason::Aborted)
}

fn is_sent_at(transcript: &[Message], at: usize) -> bool {
    matches!(transcript[at].role, Role::Assistant { stop } if is_sent(stop))
}

pub(crate) fn calls(message: &Message) -> Vec<&str> {
    message
        .content
        .iter()
        .filter_map(|block| match block {
            Part::ToolCall(call) => Some(call.id.as_str()),
            _ => None,
        })
        .collect()
}

/// Design B3.
///
/// # Errors
/// A result without its call, a call without its result, or something between them.
pub(crate) fn check(transcript: &[Message], shown: &[Shown]) -> Result<(), String> {
    let answered = answered(transcript);
    let had_result = |assistant: usize| {
        answered
            .iter()
            .filter(move |(_, of)| **of == Some(assistant))
            .map(|(at, _)| *at)
    };
    let mut missing: Vec<usize> = Vec::new();
    for one in shown {
        if let (Role::ToolResult { call_id, .. }, Some(at)) = (&one.message.role, one.origin) {
            let Some(found) = missing.iter().position(|result| *result == at) else {
                return Err(format!(
                    "pairing: the result of {call_id} at {at} answers no open call"
                ));
            };
            missing.remove(found);
            continue;
        }
        let Role::Assistant { stop } = one.message.role else {
            none_missing(&missing)?;
            continue;
        };
        if is_sent(stop) {
            none_missing(&missing)?;
            missing = one.origin.map(had_result).into_iter().flatten().collect();
        }
    }
    none_missing(&missing)
}

fn none_missing(missing: &[usize]) -> Result<(), String> {
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "pairing: the results at {missing:?} do not stand behind their calls"
    ))
}
