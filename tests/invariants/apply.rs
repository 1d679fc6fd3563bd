//! The plan applied, in the plainest way: the contract's words, one after another.

use decant::engine::entry::SUMMARY;
use decant::engine::message::{Message, Part, Role};
use decant::engine::plan::{Change, Edit, InsertedPart};
use decant::engine::size::utf16_len;

/// A message of the context.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown {
    /// Its position in the transcript; `None` for what the plan has inserted.
    pub origin: Option<usize>,
    pub message: Message,
}

/// The context that a transcript and the edits of a plan make.
///
/// # Errors
/// An edit does not fit the transcript, or two of them overlap.
pub(crate) fn apply(transcript: &[Message], edits: &[Edit]) -> Result<Vec<Shown>, String> {
    check_edits(transcript, edits)?;
    let mut shown = Vec::new();
    for at in 0..transcript.len() {
        if !is_dropped(edits, at) && moved_to(edits, at).is_none() {
            shown.push(changed(transcript, edits, at));
        }
        if let Some(turn) = turn_that_ends_at(transcript, at) {
            for moved in 0..transcript.len() {
                if moved_to(edits, moved) == Some(turn) && !is_dropped(edits, moved) {
                    shown.push(changed(transcript, edits, moved));
                }
            }
        }
        let mut inserted: Vec<&Edit> = edits.iter().filter(|edit| at_of(edit) == at).collect();
        inserted.sort_by_key(|edit| edit.id);
        shown.extend(inserted.into_iter().filter_map(|edit| {
            Some(Shown {
                origin: None,
                message: insertion(transcript, &edit.change)?,
            })
        }));
    }
    Ok(shown)
}

/// Characters of a context, by the contract's count.
pub(crate) fn chars<'a>(messages: impl IntoIterator<Item = &'a Message>) -> u64 {
    messages
        .into_iter()
        .flat_map(|message| &message.content)
        .map(|part| match part {
            Part::Text(text) => utf16_len(text),
            Part::Thinking(chars) => u64::from(*chars),
            Part::ToolCall(call) => utf16_len(&call.arguments),
            Part::Opaque(_) => 0,
            Part::Withheld { chars, .. } => u64::from(*chars),
        })
        .sum()
}

fn at_of(edit: &Edit) -> usize {
    edit.at as usize
}

fn is_dropped(edits: &[Edit], at: usize) -> bool {
    edits.iter().any(|edit| match edit.change {
        Change::Drop(n) => (at_of(edit)..at_of(edit) + n as usize).contains(&at),
        _ => false,
    })
}

fn moved_to(edits: &[Edit], at: usize) -> Option<usize> {
    edits.iter().find_map(|edit| match edit.change {
        Change::MoveUp(to) if at_of(edit) == at => Some(to as usize),
        _ => None,
    })
}

/// The assistant message whose row of results ends at a position.
fn turn_that_ends_at(transcript: &[Message], at: usize) -> Option<usize> {
    let is_result = |at: usize| {
        transcript
            .get(at)
            .is_some_and(|message| matches!(message.role, Role::ToolResult { .. }))
    };
    if is_result(at + 1) {
        return None;
    }
    (0..=at).rev().find(|at| !is_result(*at))
}

fn changed(transcript: &[Message], edits: &[Edit], at: usize) -> Shown {
    let mut message = transcript[at].clone();
    for edit in edits.iter().filter(|edit| at_of(edit) == at) {
        match &edit.change {
            Change::ReplaceText(text) => {
                message
                    .content
                    .retain(|block| !matches!(block, Part::Text(_)));
                message.content.insert(0, Part::Text(text.clone()));
                if let Role::ToolResult { is_error, .. } = &mut message.role {
                    *is_error = false;
                }
            }
            Change::StripThinking => message
                .content
                .retain(|block| !matches!(block, Part::Thinking(_))),
            Change::ReplaceArguments { call, arguments } => {
                let calls = message.content.iter_mut().filter_map(|block| match block {
                    Part::ToolCall(call) => Some(call),
                    _ => None,
                });
                if let Some(call) = calls.into_iter().nth(*call as usize) {
                    call.arguments.clone_from(arguments);
                }
            }
            _ => {}
        }
    }
    Shown {
        origin: Some(at),
        message,
    }
}

fn insertion(transcript: &[Message], change: &Change) -> Option<Message> {
    match change {
        Change::InsertUser { parts, at_ms } => {
            let mut content = Vec::new();
            for part in parts {
                match part {
                    InsertedPart::Text(text) => content.push(Part::Text(text.clone())),
                    InsertedPart::Attachments(at) => content.extend(
                        transcript[*at as usize]
                            .content
                            .iter()
                            .filter(|block| !matches!(block, Part::Text(_)))
                            .cloned(),
                    ),
                }
            }
            Some(Message {
                role: Role::User,
                content,
                at_ms: *at_ms,
            })
        }
        Change::InsertSummary {
            content,
            details,
            at_ms,
        } => Some(Message {
            role: Role::Custom {
                kind: SUMMARY.to_owned(),
                details: details.clone(),
            },
            content: vec![Part::Text(content.clone())],
            at_ms: *at_ms,
        }),
        _ => None,
    }
}

fn check_edits(transcript: &[Message], edits: &[Edit]) -> Result<(), String> {
    for (index, edit) in edits.iter().enumerate() {
        let fits = match (&edit.change, transcript.get(at_of(edit)).map(|m| &m.role)) {
            (_, None) => false,
            (Change::ReplaceText(_), Some(role)) => matches!(role, Role::ToolResult { .. }),
            (Change::MoveUp(to), Some(role)) => {
                matches!(role, Role::ToolResult { .. })
                    && matches!(transcript[*to as usize].role, Role::Assistant { .. })
                    && (*to as usize) < at_of(edit)
            }
            (Change::Drop(n), Some(_)) => *n > 0 && at_of(edit) + *n as usize <= transcript.len(),
            (Change::StripThinking, Some(role)) => matches!(role, Role::Assistant { .. }),
            (Change::ReplaceArguments { call, arguments }, Some(_)) => {
                let calls = transcript[at_of(edit)]
                    .content
                    .iter()
                    .filter(|block| matches!(block, Part::ToolCall(_)));
                (*call as usize) < calls.count()
                    && serde_json::from_str::<serde_json::Map<_, _>>(arguments).is_ok()
            }
            (Change::InsertUser { .. } | Change::InsertSummary { .. }, Some(_)) => true,
        };
        if !fits {
            return Err(format!("the edit does not fit: {edit:?}"));
        }
        let is_insertion = matches!(
            edit.change,
            Change::InsertUser { .. } | Change::InsertSummary { .. }
        );
        for other in edits.iter().skip(index + 1) {
            if other.id == edit.id {
                return Err(format!("two edits have one id: {edit:?}, {other:?}"));
            }
        }
        if is_insertion {
            continue;
        }
        let overlaps = edits.iter().enumerate().any(|(other, run)| {
            other != index
                && matches!(run.change, Change::Drop(n)
                    if (at_of(run)..at_of(run) + n as usize).contains(&at_of(edit)))
        });
        if overlaps {
            return Err(format!("a change inside of what is dropped: {edit:?}"));
        }
    }
    Ok(())
}
