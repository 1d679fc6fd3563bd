//! Why the prefix of a context broke.

use decant_host::Message;
use serde_json::Value;

use super::conversation::is_sent;

/// What changed a message that had been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// A result became the stub of a summarized one.
    Flush,
    /// A span became a block, or one block took the place of others.
    Chain,
    /// A result that had been sent went into a blob.
    Spill,
    /// The arguments of a failed call were purged.
    Purge,
    /// Thinking was stripped.
    Thinking,
    /// A recovered output became a stub again.
    Recovery,
    /// Something pruned stands in full again.
    Restored,
    /// A result moved to its call, or was left out for the lack of one.
    Pairing,
    /// The host itself changed the transcript: a compaction, an edit.
    Host,
    /// None of these.
    Other,
}

impl Cause {
    /// The name for reports.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Chain => "chain",
            Self::Spill => "spill",
            Self::Purge => "purge",
            Self::Thinking => "thinking",
            Self::Recovery => "recovery",
            Self::Restored => "restored",
            Self::Pairing => "pairing",
            Self::Host => "host",
            Self::Other => "other",
        }
    }
}

/// The first message of the old context that the new one does not send again, and what it sends
/// instead. Hosts leave out the answers that were broken off.
pub(super) fn first_lost<'a>(
    old: &'a [Message],
    new: &'a [Message],
) -> Option<(&'a Message, Option<&'a Message>)> {
    let mut new = new.iter().filter(|message| is_sent(message));
    old.iter()
        .filter(|message| is_sent(message))
        .map(|old| (old, new.next()))
        .find(|(old, new)| Some(*old) != *new)
}

/// Tells the cause from the first message that differs, and what stands there instead.
pub(super) fn cause(old: &Message, new: Option<&Message>) -> Cause {
    let Some(new) = new else {
        return Cause::Pairing;
    };
    if is_block(new) || is_block(old) {
        return Cause::Chain;
    }
    match (old.role(), new.role()) {
        ("toolResult", "toolResult") if same_call(old, new) => result_cause(old, new),
        ("toolResult", _) | (_, "toolResult") => Cause::Pairing,
        ("assistant", "assistant") => answer_cause(old, new),
        _ => Cause::Other,
    }
}

fn same_call(old: &Message, new: &Message) -> bool {
    old.as_json().get("toolCallId") == new.as_json().get("toolCallId") && old.at_ms() == new.at_ms()
}

fn result_cause(old: &Message, new: &Message) -> Cause {
    let is_stub = |text: &str| text.starts_with("[Summarized in pruner summary, ref `");
    let is_spill = |text: &str| text.starts_with("[Spilled: ");
    let (before, after) = (old.text(), new.text());
    if after.starts_with("[Recovered output put away again.") {
        Cause::Recovery
    } else if is_stub(&after) && !is_stub(&before) {
        Cause::Flush
    } else if is_spill(&after) && !is_spill(&before) {
        Cause::Spill
    } else if is_stub(&before) || is_spill(&before) {
        Cause::Restored
    } else {
        Cause::Other
    }
}

fn answer_cause(old: &Message, new: &Message) -> Cause {
    let blocks = |message: &Message, kind: &str| -> Vec<Value> {
        let of_kind = message
            .blocks()
            .iter()
            .filter(|block| block["type"] == kind);
        of_kind.cloned().collect()
    };
    if old.at_ms() != new.at_ms() {
        return Cause::Chain;
    }
    if blocks(old, "toolCall") != blocks(new, "toolCall") {
        return Cause::Purge;
    }
    match blocks(old, "thinking") == blocks(new, "thinking") {
        true => Cause::Other,
        false => Cause::Thinking,
    }
}

fn is_block(message: &Message) -> bool {
    message.role() == "user" && message.text().starts_with("<compressed-chain id=\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_that_are_not_sent_break_nothing() {
        let answer = |thinking: &str, stop: &str| {
            let json = json!({
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": thinking}],
                "stopReason": stop,
                "timestamp": 1,
            });
            Message::from_json(json).unwrap()
        };
        let prompt = |text: &str| Message::user(text, 2);
        let old = [answer("hm", "aborted"), prompt("hi")];
        let new = [answer("", "aborted"), prompt("hi"), prompt("ho")];
        assert_eq!(first_lost(&old, &new), None);
        let new = [answer("", "aborted"), prompt("ho")];
        assert_eq!(first_lost(&old, &new), Some((&old[1], Some(&new[1]))));
        assert_eq!(first_lost(&old, &[]), Some((&old[1], None)));
    }

    #[test]
    fn the_first_difference_tells_the_cause() {
        let result = |text: &str| Message::tool_result("c", "ls", text, 1);
        let stub = "[Summarized in pruner summary, ref `t1`. Use context_tree_query to retrieve full output.]";
        let answer = |content: Value| {
            let json = json!({"role": "assistant", "content": content, "timestamp": 1});
            Message::from_json(json).unwrap()
        };
        let call = |value: &str| json!({"type": "toolCall", "id": "c", "name": "ls", "arguments": {"a": value}});
        let thinking = json!({"type": "thinking", "thinking": "hm"});
        let block = Message::user(
            "<compressed-chain id=\"b1\" tools=\"\">\n</compressed-chain>",
            1,
        );
        let rows = [
            (result("long"), Some(result(stub)), Cause::Flush),
            (result(stub), Some(result("long")), Cause::Restored),
            (
                result("long"),
                Some(result("[Spilled: ls (9 bytes). Head preview:")),
                Cause::Spill,
            ),
            (
                result("x"),
                Some(result("[Recovered output put away again. Originals: `t1`]")),
                Cause::Recovery,
            ),
            (
                answer(json!([thinking, call("x")])),
                Some(answer(json!([call("x")]))),
                Cause::Thinking,
            ),
            (
                answer(json!([call("x")])),
                Some(answer(json!([call("y")]))),
                Cause::Purge,
            ),
            (answer(json!([])), Some(block), Cause::Chain),
            (result("x"), Some(Message::user("hi", 2)), Cause::Pairing),
            (
                Message::user("hi", 2),
                Some(Message::user("ho", 2)),
                Cause::Other,
            ),
            (result("x"), None, Cause::Pairing),
        ];
        for (old, new, expected) in rows {
            assert_eq!(cause(&old, new.as_ref()), expected, "{old:?} {new:?}");
        }
    }
}
