//! The price of a session in characters: a measure that needs no tokenizer and no provider.
//!
//! Each message that is sent counts the characters of the JSON of its `role`, `toolCallId` and
//! `content`, at each recorded model call. What the host words itself when it sends (a shell
//! command of the user, a compaction summary) has no `content` in the session and counts its role
//! only. Calls that ended in an error count like all others, while the answers that ended so are
//! never sent and count nothing.

use std::ops::AddAssign;

use serde_json::{Value, json};

/// Length of a text in UTF-16 code units.
#[must_use]
pub(crate) fn utf16_len(text: &str) -> u64 {
    if text.is_ascii() {
        return text.len() as u64;
    }
    text.chars().map(|c| c.len_utf16() as u64).sum()
}

/// What a message counts, in UTF-16 code units.
#[must_use]
pub(crate) fn chars_of_message(message: &Value) -> u64 {
    let mut sent = serde_json::Map::new();
    // A custom message goes out as the user's.
    let role = match message.get("role") {
        Some(role) if role == "custom" => json!("user"),
        Some(role) => role.clone(),
        None => Value::Null,
    };
    sent.insert("role".to_string(), role);
    for key in ["toolCallId", "content"] {
        if let Some(value) = message.get(key) {
            sent.insert(key.to_string(), value.clone());
        }
    }
    utf16_len(&Value::Object(sent).to_string())
}

/// The amounts that make up a price, in characters or in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
    /// Sent, and not in the longest prefix of whole messages shared with the call before.
    pub fresh: u64,
    /// The rest of what was sent.
    pub cached: u64,
    /// Prompts of the summarizer.
    pub asked: u64,
}

impl Amounts {
    /// Everything that was sent in the session's own calls.
    #[must_use]
    pub(crate) fn sent(self) -> u64 {
        self.fresh + self.cached
    }
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, other: Self) {
        self.fresh += other.fresh;
        self.cached += other.cached;
        self.asked += other.asked;
    }
}

/// What each amount costs, relative to one plain input character or token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates {
    pub fresh: f64,
    pub cached: f64,
    pub asked: f64,
}

impl Rates {
    /// The price of the amounts.
    #[must_use]
    pub(crate) fn price(&self, amounts: Amounts) -> f64 {
        let weigh = |rate: f64, amount: u64| rate * amount as f64;
        weigh(self.fresh, amounts.fresh)
            + weigh(self.cached, amounts.cached)
            + weigh(self.asked, amounts.asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_count_role_id_and_content() {
        let rows = [
            (
                json!({"role": "user", "content": "hi", "timestamp": 1}),
                r#"{"role":"user","content":"hi"}"#,
            ),
            (
                json!({"role": "toolResult", "toolName": "ls", "toolCallId": "c", "content": []}),
                r#"{"role":"toolResult","toolCallId":"c","content":[]}"#,
            ),
            (
                json!({"role": "custom", "customType": "x", "content": "é"}),
                r#"{"role":"user","content":"é"}"#,
            ),
            (
                json!({"role": "bashExecution", "command": "ls", "output": "a"}),
                r#"{"role":"bashExecution"}"#,
            ),
        ];
        for (message, counted) in rows {
            assert_eq!(chars_of_message(&message), utf16_len(counted), "{message}");
        }
        assert_eq!(utf16_len("a😀"), 3);
    }
}
