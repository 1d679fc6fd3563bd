//! Tokens of messages, as OpenAI's `o200k_base` cuts them.
//!
//! Its ranks are part of the binary, so counting needs no network. Other providers cut differently;
//! a replay scales the counts by what the recording was billed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

/// What an image counts, whatever its data weighs.
///
/// Providers bill by area: a picture of 1,100 by 1,100 pixels is about 1,600 tokens at Anthropic
/// and 1,100 at OpenAI.
pub(crate) const IMAGE_TOKENS: u64 = 1_200;

/// What the frame of a message (role, delimiters) counts.
pub(crate) const MESSAGE_TOKENS: u64 = 4;

/// A text longer than this is cut in pieces of about this many bytes, at line ends where there are
/// any: the tokenizer takes time that grows faster than the length of text without blanks.
const PIECE_BYTES: usize = 8_192;

/// Counts the tokens of a text.
///
/// Special tokens that stand in the text count as the plain characters they are.
#[must_use]
pub(crate) fn of_text(text: &str) -> u64 {
    let mut tokens = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(piece_len(rest));
        tokens += of_piece(piece);
        rest = after;
    }
    tokens
}

fn piece_len(text: &str) -> usize {
    if text.len() <= PIECE_BYTES {
        return text.len();
    }
    let end = text.floor_char_boundary(PIECE_BYTES);
    let line_end = text[..end].rfind('\n').map(|at| at + 1);
    line_end.filter(|at| *at > PIECE_BYTES / 2).unwrap_or(end)
}

fn of_piece(piece: &str) -> u64 {
    let bpe = tiktoken_rs::o200k_base_singleton();
    // The tokenizer's regex engine gives up on some runs of blanks; it says so with a panic.
    let counted = catch_unwind(AssertUnwindSafe(|| bpe.count_ordinary(piece)));
    counted.map_or_else(|_| piece.len() as u64 / 4 + 1, |tokens| tokens as u64)
}

/// Counts the tokens of a message in pi's shape, as it would be sent: text, thinking, tool names and
/// arguments; an image counts [`IMAGE_TOKENS`]. Signatures, ids and details do not count.
#[must_use]
pub(crate) fn of_message(message: &Value) -> u64 {
    let content = match message.get("content") {
        Some(Value::String(text)) => of_text(text),
        Some(Value::Array(blocks)) => blocks.iter().map(of_block).sum(),
        _ => 0,
    };
    let worded = ["summary", "command", "output"].map(|key| text_of(message, key));
    MESSAGE_TOKENS + content + worded.iter().map(|text| of_text(text)).sum::<u64>()
}

fn of_block(block: &Value) -> u64 {
    match text_of(block, "type") {
        "text" => of_text(text_of(block, "text")),
        "thinking" => of_text(text_of(block, "thinking")),
        "toolCall" => {
            let arguments = block.get("arguments").map(Value::to_string);
            of_text(text_of(block, "name")) + of_text(&arguments.unwrap_or_default())
        }
        "image" => IMAGE_TOKENS,
        _ => of_text(&block.to_string()),
    }
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_count_what_the_tokenizer_says() {
        let rows = [
            ("", 0),
            ("hello world", 2),
            ("<|endoftext|>", 7),
            ("日本語", 2),
        ];
        for (text, tokens) in rows {
            assert_eq!(of_text(text), tokens, "{text}");
        }
    }

    #[test]
    fn long_texts_are_counted_in_pieces() {
        let line = "the quick brown fox jumps over the lazy dog\n";
        assert_eq!(of_text(&line.repeat(2_000)), 2_000 * of_text(line));
        assert!(of_text(&"x".repeat(100_000)) > 1_000);
        assert!(of_text(&"日".repeat(20_000)) >= 10_000);
    }

    #[test]
    fn images_count_a_flat_figure() {
        let data = "A".repeat(300_000);
        let message = json!({"role": "user", "content": [{"type": "image", "data": data}]});
        assert_eq!(of_message(&message), MESSAGE_TOKENS + IMAGE_TOKENS);
    }
}
