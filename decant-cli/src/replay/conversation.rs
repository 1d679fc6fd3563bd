//! The host's side of a replay: the transcript as a live host would have had it.

use decant_host::Message;
use serde_json::Value;

/// A message and the id of the session entry that holds it.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) id: String,
    pub(super) message: Message,
}

/// The conversation so far, with and without what the pruner put into it.
#[derive(Default)]
pub(super) struct Conversation {
    /// The transcript that the host sends, summaries of the pruner included.
    pub(super) live: Vec<Line>,
    /// The transcript that the host would send had there been no pruner.
    pub(super) plain: Vec<Line>,
    /// All messages of the branch, those before a compaction included.
    path: Vec<Line>,
    /// The step that brought each message of `path`, or the step before for those of the pruner.
    steps: Vec<StepNumber>,
    /// From here on `plain` is no longer what it was at the last call.
    plain_changed_from: Option<usize>,
}

/// Counts the steps of a recording, from 0.
pub(super) type StepNumber = usize;

impl Conversation {
    /// A recorded message has come.
    pub(super) fn push(&mut self, line: Line, step: StepNumber) {
        self.plain.push(line.clone());
        self.push_live(line, step);
    }

    /// The pruner has put a message into the transcript, behind the message that came last.
    pub(super) fn push_pruners(&mut self, line: Line) {
        self.push_live(line, self.steps.last().copied().unwrap_or(0));
    }

    fn push_live(&mut self, line: Line, step: StepNumber) {
        self.live.push(line.clone());
        self.path.push(line);
        self.steps.push(step);
    }

    /// The host has compacted: the summary stands for all before the step `first_kept`.
    pub(super) fn compact(&mut self, summary: &Line, first_kept: Option<StepNumber>) {
        let kept = first_kept.map_or(self.path.len(), |step| {
            self.steps.partition_point(|before| *before < step)
        });
        let kept = &self.path[kept..];
        let transcript = |is_wanted: &dyn Fn(&Line) -> bool| {
            let kept = kept.iter().filter(|line| is_wanted(line));
            std::iter::once(summary).chain(kept).cloned().collect()
        };
        self.live = transcript(&|_| true);
        self.plain = transcript(&|line| !is_pruners(&line.message));
        self.plain_changed_from = Some(0);
    }

    /// The host has replaced the content of a message, or left it out.
    pub(super) fn edit(&mut self, target: &str, content: Option<&Value>) {
        if let Some(at) = self.plain.iter().position(|line| line.id == target) {
            let before = self.plain_changed_from.unwrap_or(usize::MAX);
            self.plain_changed_from = Some(before.min(at));
        }
        edit(&mut self.plain, target, content);
        edit(&mut self.live, target, content);
        if content.is_none()
            && let Some(at) = self.path.iter().position(|line| line.id == target)
        {
            self.steps.remove(at);
        }
        edit(&mut self.path, target, content);
    }

    /// How many messages at the front of `plain` are what they were when this was asked last.
    pub(super) fn take_plain_prefix(&mut self, len_before: usize) -> usize {
        self.plain_changed_from.take().unwrap_or(len_before)
    }

    pub(super) fn live_messages(&self) -> Vec<Message> {
        self.live.iter().map(|line| line.message.clone()).collect()
    }
}

fn edit(lines: &mut Vec<Line>, target: &str, content: Option<&Value>) {
    let Some(at) = lines.iter().position(|line| line.id == target) else {
        return;
    };
    let Some(content) = content else {
        lines.remove(at);
        return;
    };
    let mut value = lines[at].message.as_json().clone();
    value["content"] = content.clone();
    if let Ok(message) = Message::from_json(value) {
        lines[at].message = message;
    }
}

/// Whether a message was put into the transcript by a pruner.
pub(super) fn is_pruners(message: &Message) -> bool {
    let kind = message.as_json().get("customType").and_then(Value::as_str);
    kind.is_some_and(|kind| kind.starts_with(crate::formats::PRUNER_PREFIX))
}

/// Whether hosts send the message to the model.
///
/// Source: pi, which drops answers that ended in an error and shell commands that the user kept to
/// himself.
pub(super) fn is_sent(message: &Message) -> bool {
    let json = message.as_json();
    match message.role() {
        "assistant" => !matches!(
            json.get("stopReason").and_then(Value::as_str),
            Some("error" | "aborted")
        ),
        "bashExecution" => json.get("excludeFromContext") != Some(&Value::Bool(true)),
        _ => true,
    }
}

/// The ids of the calls in an assistant message.
pub(super) fn call_ids(message: &Message) -> impl Iterator<Item = &str> {
    let calls = message
        .blocks()
        .iter()
        .filter(|block| block["type"] == "toolCall");
    calls.filter_map(|block| block["id"].as_str())
}
