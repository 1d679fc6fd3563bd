//! JSON lines as agents leave them behind: CRLF, a last line cut off by a crash, lone surrogates.

use std::borrow::Cow;

use anyhow::{Result, bail};
use decant_host::repair_surrogates;
use serde_json::Value;

/// The lines of a JSONL file that hold a value.
pub(super) struct Lines {
    entries: Vec<(usize, Value)>,
    /// The number of the last line if it was cut off and left out.
    pub(super) truncated: Option<usize>,
}

impl Lines {
    /// Parses each line that is not blank.
    ///
    /// # Errors
    ///
    /// When a line other than the last is no JSON: it names the line.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut lines = Self {
            entries: Vec::new(),
            truncated: None,
        };
        let mut rows = text
            .split('\n')
            .zip(1..)
            .filter(|(row, _)| !row.trim().is_empty())
            .peekable();
        while let Some((row, number)) = rows.next() {
            match serde_json::from_str(&repair_surrogates(row)) {
                Ok(value) => lines.entries.push((number, value)),
                Err(error)
                    if rows.peek().is_none() && !lines.entries.is_empty() && error.is_eof() =>
                {
                    lines.truncated = Some(number);
                }
                Err(error) => bail!("line {number}: not a session entry: {}", json_error(&error)),
            }
        }
        Ok(lines)
    }

    pub(super) fn first(&self) -> Option<(usize, &Value)> {
        self.entries().next()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entries with the numbers of their lines, counted from 1.
    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, &Value)> {
        self.entries.iter().map(|(number, value)| (*number, value))
    }
}

/// The parser's words without its own line number, which would always be 1.
pub(super) fn json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let words = text.split(" at line ").next().unwrap_or(&text);
    format!("{words} at column {}", error.column())
}

/// The text of a file. Bytes that are no UTF-8 become U+FFFD; a byte order mark is left out.
pub(super) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_line_may_be_cut_off() {
        let ok = Lines::parse("{\"a\":1}\r\n\r\n{\"b\":2}\r\n{\"c\":").unwrap();
        assert_eq!((ok.len(), ok.truncated), (2, Some(4)));
        let rows = [
            (
                "{\"a\":1}\n{\"b\":\n{\"c\":3}",
                "line 2: not a session entry",
            ),
            ("{\"a\":1}\nhello", "line 2: not a session entry"),
            ("{\"a\":", "line 1: not a session entry"),
        ];
        for (text, error) in rows {
            let message = Lines::parse(text).err().unwrap().to_string();
            assert!(message.starts_with(error), "{message}");
        }
    }
}
