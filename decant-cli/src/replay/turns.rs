//! Where the turns of a recording end.

use decant_host::Message;

use crate::formats::{Event, Recording};

use super::conversation::{call_ids, is_sent};

/// For each step the number of the step with the assistant message whose turn ends with it.
///
/// A turn ends with the last result that stands before the next answer; one without results with
/// the answer itself. Answers that ended in an error end no turn of their own, but for results that
/// they have all the same.
pub(super) fn turn_ends(recording: &Recording, messages: &[Option<Message>]) -> Vec<Option<usize>> {
    let mut ends = vec![None; recording.steps.len()];
    let mut open: Option<(usize, usize)> = None;
    for (step, message) in messages.iter().enumerate() {
        match message.as_ref().map_or("", Message::role) {
            "assistant" => {
                close(&mut ends, open, messages);
                open = Some((step, step));
            }
            "toolResult" => {
                if let Some((_, end)) = &mut open {
                    *end = step;
                }
            }
            _ => {}
        }
    }
    close(&mut ends, open, messages);
    ends
}

fn close(ends: &mut [Option<usize>], open: Option<(usize, usize)>, messages: &[Option<Message>]) {
    if let Some((answer, end)) = open
        && (end > answer || messages[answer].as_ref().is_some_and(is_sent))
    {
        ends[end] = Some(answer);
    }
}

/// The messages of the steps; `None` for steps that are something else.
pub(super) fn messages(recording: &Recording) -> Vec<Option<Message>> {
    let message = |event: &Event| match event {
        Event::Message(value) => Message::from_json(value.clone()).ok(),
        Event::Compaction { .. }
        | Event::ContextEdit { .. }
        | Event::ModelChange(_)
        | Event::PrunerEntry { .. }
        | Event::PrunerMessage(_) => None,
    };
    recording
        .steps
        .iter()
        .map(|step| message(&step.event))
        .collect()
}

/// Whether an answer is a final reply: it stopped by itself and calls no tool.
pub(super) fn is_final_reply(message: &Message) -> bool {
    let stopped = message.as_json()["stopReason"].as_str().unwrap_or("stop") == "stop";
    stopped && call_ids(message).next().is_none()
}
