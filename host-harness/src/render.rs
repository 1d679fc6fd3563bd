//! Applying a plan: the one place where edits become messages.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::message::{block_type, text_block};
use crate::{Change, Edit, InsertedPart, InsertedSummary, InsertedUser, Message, PlanUpdate};

/// The context that a transcript and a plan make.
#[must_use]
pub fn apply(transcript: &[Message], plan: &Plan) -> Vec<Message> {
    let mut rendered = Rendered::default();
    rendered.render_from(0, transcript, plan);
    rendered.messages
}

/// The edits in force, found by id and by position.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    revision: Option<u64>,
    edits: BTreeMap<u32, Edit>,
    /// Ids of the edits at a position.
    at: BTreeMap<u32, BTreeSet<u32>>,
    /// Single messages that are left out.
    dropped: BTreeSet<u32>,
    /// First position and length of longer runs that are left out. A single one may lie within.
    runs: BTreeMap<u32, u32>,
    /// Pairs of the position moved to and the position moved.
    moves: BTreeSet<(u32, u32)>,
}

impl Plan {
    /// The revision to name in the next request; `None` before the first plan.
    #[must_use]
    pub fn revision(&self) -> Option<u64> {
        self.revision
    }

    /// The edits in rising order of their ids.
    pub fn edits(&self) -> impl Iterator<Item = &Edit> {
        self.edits.values()
    }

    /// Takes a difference, or a whole plan, over. Returns the first position whose rendering it may
    /// change. Costs what the difference is large.
    pub fn update(&mut self, update: PlanUpdate) -> Option<u32> {
        let gone = match update.base {
            Some(_) => update.removed,
            None => self.edits.keys().copied().collect(),
        };
        self.revision = Some(update.revision);
        let gone = gone.into_iter().filter_map(|id| self.remove(id));
        let first_gone = gone.collect::<Vec<_>>().into_iter().min();
        let first_added = update.added.into_iter().map(|e| self.add(e)).min();
        first_gone.into_iter().chain(first_added).min()
    }

    fn add(&mut self, edit: Edit) -> u32 {
        let first = first_position(&edit);
        self.at.entry(edit.at).or_default().insert(edit.id);
        match edit.change {
            Change::Drop(1) => {
                self.dropped.insert(edit.at);
            }
            Change::Drop(n) => {
                self.runs.insert(edit.at, n);
            }
            Change::MoveUp(to) => {
                self.moves.insert((to, edit.at));
            }
            _ => {}
        }
        self.edits.insert(edit.id, edit);
        first
    }

    fn remove(&mut self, id: u32) -> Option<u32> {
        let edit = self.edits.remove(&id)?;
        if let Some(ids) = self.at.get_mut(&edit.at) {
            ids.remove(&id);
            if ids.is_empty() {
                self.at.remove(&edit.at);
            }
        }
        match edit.change {
            Change::Drop(1) => {
                self.dropped.remove(&edit.at);
            }
            Change::Drop(_) => {
                self.runs.remove(&edit.at);
            }
            Change::MoveUp(to) => {
                self.moves.remove(&(to, edit.at));
            }
            _ => {}
        }
        Some(first_position(&edit))
    }

    fn edits_at(&self, position: u32) -> impl Iterator<Item = &Change> {
        let ids = self.at.get(&position).into_iter().flatten();
        ids.filter_map(|id| self.edits.get(id).map(|edit| &edit.change))
    }

    /// Whether the message no longer stands at its position.
    fn is_gone(&self, position: u32) -> bool {
        let run = self.runs.range(..=position).next_back();
        let in_run = run.is_some_and(|(at, n)| position - at < *n);
        in_run
            || self.dropped.contains(&position)
            || self
                .edits_at(position)
                .any(|c| matches!(c, Change::MoveUp(_)))
    }

    /// What moves up to one of these positions, in the order of the transcript.
    fn moved_to(&self, first: u32, last: u32) -> Vec<u32> {
        let moves = self.moves.range((first, 0)..=(last, u32::MAX));
        let mut moved: Vec<u32> = moves.map(|(_, at)| *at).collect();
        moved.sort_unstable();
        moved
    }
}

fn first_position(edit: &Edit) -> u32 {
    match edit.change {
        Change::MoveUp(to) => edit.at.min(to),
        _ => edit.at,
    }
}

/// A rendered context, kept so that a change renders only what stands behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rendered {
    pub(crate) messages: Vec<Message>,
    /// Where the rendering of each position of the transcript begins in `messages`.
    starts: Vec<usize>,
}

impl Rendered {
    /// Renders anew from a position on. Returns how many messages at the front are the same as
    /// before.
    pub(crate) fn render_from(&mut self, from: u32, transcript: &[Message], plan: &Plan) -> usize {
        let from = (from as usize).min(self.starts.len());
        let from = from.checked_sub(1).map_or(0, |p| turn_start(transcript, p));
        let kept = self
            .starts
            .get(from)
            .copied()
            .unwrap_or(self.messages.len());
        let before = self.messages.split_off(kept);
        self.starts.truncate(from);
        for position in from..transcript.len() {
            self.starts.push(self.messages.len());
            render_position(position, transcript, plan, &mut self.messages);
        }
        let pairs = before.iter().zip(&self.messages[kept..]);
        kept + pairs.take_while(|(old, new)| old == new).count()
    }
}

/// The position of the message that the tool results up to this position follow. What moves up to a
/// turn stands behind it, so a change within a turn may change all of it.
fn turn_start(transcript: &[Message], position: usize) -> usize {
    let mut start = position;
    while start > 0 && transcript.get(start).is_some_and(Message::is_tool_result) {
        start -= 1;
    }
    start
}

fn render_position(position: usize, transcript: &[Message], plan: &Plan, out: &mut Vec<Message>) {
    let at = u32::try_from(position).unwrap_or(u32::MAX);
    if !plan.is_gone(at) {
        out.push(changed(&transcript[position], plan.edits_at(at)));
    }
    let ends_turn = !transcript
        .get(position + 1)
        .is_some_and(Message::is_tool_result);
    if ends_turn && !plan.moves.is_empty() {
        let first = u32::try_from(turn_start(transcript, position)).unwrap_or(u32::MAX);
        for moved in plan.moved_to(first, at) {
            if let Some(message) = transcript.get(moved as usize) {
                out.push(changed(message, plan.edits_at(moved)));
            }
        }
    }
    for change in plan.edits_at(at) {
        match change {
            Change::InsertUser(inserted) => out.push(user(inserted, transcript)),
            Change::InsertSummary(inserted) => out.push(summary(inserted)),
            _ => {}
        }
    }
}

/// The message with what the edits change inside it.
fn changed<'a>(message: &Message, changes: impl Iterator<Item = &'a Change>) -> Message {
    changes.fold(message.clone(), |message, change| match change {
        Change::ReplaceText(text) => replace_text(message, text),
        Change::StripThinking => strip_thinking(message),
        Change::ReplaceArguments(new) => replace_arguments(message, new.call, &new.arguments),
        Change::Drop(_) | Change::MoveUp(_) => message,
        Change::InsertUser(_) | Change::InsertSummary(_) => message,
    })
}

fn replace_text(message: Message, text: &str) -> Message {
    let mut content = vec![text_block(text)];
    content.extend(attachments(&message).cloned());
    let mut value = message.into_json();
    value["content"] = Value::Array(content);
    value["isError"] = Value::Bool(false);
    if let Value::Object(result) = &mut value {
        // What the host knew of the text goes with it.
        result.shift_remove("details");
    }
    Message::built(value)
}

/// The parts that stay when the text is replaced.
pub(crate) fn attachments(message: &Message) -> impl Iterator<Item = &Value> {
    message
        .blocks()
        .iter()
        .filter(|block| block_type(block) != "text")
}

fn strip_thinking(message: Message) -> Message {
    let mut value = message.into_json();
    if let Some(Value::Array(content)) = value.get_mut("content") {
        content.retain(|block| block_type(block) != "thinking");
    }
    Message::built(value)
}

fn replace_arguments(message: Message, call: u32, arguments: &str) -> Message {
    let mut value = message.into_json();
    if let Some(Value::Array(content)) = value.get_mut("content") {
        let mut calls = content
            .iter_mut()
            .filter(|block| block_type(block) == "toolCall");
        if let Some(block) = calls.nth(call as usize) {
            block["arguments"] = parsed(arguments);
        }
    }
    Message::built(value)
}

fn user(inserted: &InsertedUser, transcript: &[Message]) -> Message {
    let mut content = Vec::new();
    for part in &inserted.parts {
        match part {
            InsertedPart::Text(text) => content.push(text_block(text)),
            InsertedPart::Attachments(at) => {
                let source = transcript.get(*at as usize).into_iter();
                content.extend(source.flat_map(attachments).cloned());
            }
        }
    }
    Message::built(json!({ "role": "user", "content": content, "timestamp": inserted.at }))
}

fn summary(inserted: &InsertedSummary) -> Message {
    summary_message(&inserted.content, &inserted.details, inserted.at)
}

/// The message that `append-message` stands for.
pub(crate) fn summary_message(content: &str, details: &str, at_ms: u64) -> Message {
    custom_message("context-prune-summary", content, details, at_ms)
}

pub(crate) fn custom_message(kind: &str, content: &str, details: &str, at_ms: u64) -> Message {
    Message::built(json!({
        "role": "custom", "customType": kind, "content": [text_block(content)], "display": false,
        "details": parsed(details), "timestamp": at_ms,
    }))
}

/// A text that is no JSON is kept as a string.
fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.to_owned()))
}

#[cfg(test)]
mod tests;
