//! What a context costs, kept up to date from call to call.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use decant_host::Message;
use serde_json::Value;

use super::conversation::is_sent;
use crate::price::{chars_of_message, utf16_len};
use crate::tokens;

/// Sizes of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Messages that are sent.
    pub messages: u64,
    /// Tokens as the tokenizer counts them.
    pub tokens: u64,
    /// Characters as the price counts them.
    pub chars: u64,
    /// Characters of text, arguments and thinking alone.
    pub text: u64,
}

impl std::ops::Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            tokens: self.tokens + other.tokens,
            chars: self.chars + other.chars,
            text: self.text + other.text,
        }
    }
}

/// Counts each message once.
#[derive(Default)]
pub(super) struct Sizes {
    /// By the address of the message, which is kept so that the address stays its own.
    recorded: HashMap<usize, (Message, Size)>,
    /// Tokens of messages that were made by edits, by the hash of their JSON: they are made anew
    /// each time their place is rendered.
    edited: HashMap<u64, u64>,
}

impl Sizes {
    /// Counts a message that will be asked for again.
    pub(super) fn record(&mut self, message: &Message) {
        let size = sized(message, tokens::of_message(message.as_json()));
        self.recorded
            .insert(address(message), (message.clone(), size));
    }

    fn of(&mut self, message: &Message) -> Size {
        if !is_sent(message) {
            return Size::default();
        }
        if let Some((_, size)) = self.recorded.get(&address(message)) {
            return *size;
        }
        let mut hasher = DefaultHasher::new();
        message.as_json().to_string().hash(&mut hasher);
        let tokens = self.edited.entry(hasher.finish());
        let tokens = *tokens.or_insert_with(|| tokens::of_message(message.as_json()));
        sized(message, tokens)
    }
}

fn address(message: &Message) -> usize {
    std::ptr::from_ref(message.as_json()).addr()
}

fn sized(message: &Message, tokens: u64) -> Size {
    Size {
        messages: 1,
        tokens,
        chars: chars_of_message(message.as_json()),
        text: text_chars(message),
    }
}

/// Characters of text, arguments, thinking and signatures: what pruning is about.
fn text_chars(message: &Message) -> u64 {
    let of = |value: Option<&Value>| value.and_then(Value::as_str).map_or(0, utf16_len);
    let json = message.as_json();
    let outside = ["summary", "command", "output"].map(|key| of(json.get(key)));
    let block_chars = |block: &Value| {
        let texts = ["text", "thinking", "thinkingSignature"].map(|key| of(block.get(key)));
        let arguments = block
            .get("arguments")
            .map_or(0, |a| utf16_len(&a.to_string()));
        texts.iter().sum::<u64>() + arguments
    };
    let blocks: u64 = message.blocks().iter().map(block_chars).sum();
    of(json.get("content")) + blocks + outside.iter().sum::<u64>()
}

/// One context after the other.
#[derive(Default)]
pub(super) struct Ledger {
    messages: Vec<Message>,
    /// The size of the first `n` messages, from `n` = 0 on.
    sums: Vec<Size>,
}

/// The size of a context, and of what it shares with the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Side {
    pub all: Size,
    /// The longest prefix, in whole messages, that the context shares with the one before.
    pub shared: Size,
    /// How many messages of the one before are not in that prefix, although they were sent.
    pub lost_messages: u64,
}

/// What the step from one context to the next replaced.
pub(super) struct Change {
    /// The index of the first message that is not what it was.
    pub(super) at: usize,
    /// The messages that stood from there on.
    pub(super) old_tail: Vec<Message>,
}

impl Ledger {
    /// Takes over the next context, of which the first `prefix` messages are what they were. Costs
    /// what follows them.
    pub(super) fn update<'a>(
        &mut self,
        prefix: usize,
        tail: impl Iterator<Item = &'a Message>,
        sizes: &mut Sizes,
    ) -> (Side, Change) {
        let at = prefix.min(self.messages.len());
        let before = self.total();
        let old_tail = self.messages.split_off(at);
        self.sums.truncate(at + 1);
        let shared = self.total();
        for message in tail {
            let sum = self.total() + sizes.of(message);
            self.messages.push(message.clone());
            if self.sums.is_empty() {
                self.sums.push(Size::default());
            }
            self.sums.push(sum);
        }
        let side = Side {
            all: self.total(),
            shared,
            lost_messages: before.messages - shared.messages,
        };
        (side, Change { at, old_tail })
    }

    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    fn total(&self) -> Size {
        self.sums.last().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_knows_what_is_shared_and_what_is_lost() {
        let mut sizes = Sizes::default();
        let mut ledger = Ledger::default();
        let text = |n: usize| Message::user(&"word ".repeat(n), 1);
        let first = [text(1), text(2)];
        let (side, _) = ledger.update(0, first.iter(), &mut sizes);
        assert_eq!(
            (side.all.messages, side.shared.messages, side.lost_messages),
            (2, 0, 0)
        );
        let (side, change) = ledger.update(2, [text(3)].iter(), &mut sizes);
        assert_eq!(
            (side.all.messages, side.shared.messages, side.lost_messages),
            (3, 2, 0)
        );
        assert!(change.old_tail.is_empty());
        let (side, change) = ledger.update(1, [text(4)].iter(), &mut sizes);
        assert_eq!(
            (side.all.messages, side.shared.messages, side.lost_messages),
            (2, 1, 2)
        );
        assert_eq!((change.at, change.old_tail.len()), (1, 2));
        assert_eq!(side.all.text, 5 + 20);
    }

    #[test]
    fn what_hosts_do_not_send_counts_nothing() {
        let mut sizes = Sizes::default();
        let mut ledger = Ledger::default();
        let aborted = Message::from_json(serde_json::json!({
            "role": "assistant", "content": [], "stopReason": "aborted",
        }));
        let (side, _) = ledger.update(0, [aborted.unwrap()].iter(), &mut sizes);
        assert_eq!(side.all, Size::default());
    }
}
