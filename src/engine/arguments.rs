//! Tool arguments in print: their JSON text, laid out anew without touching keys or their order.
//!
//! The text is walked token by token: a JSON value would lose the order of keys and the digits of
//! large numbers.

use super::json::text_of;

/// Deeper than any real call; beyond it the indentation alone could be quadratic in the text.
const MAX_DEPTH: usize = 100;

/// Lays arguments out as `JSON.stringify(arguments, null, 2)` does.
///
/// Empty arguments are `{}`. What is no JSON text comes back as it is.
///
/// Source: the reference's answers to `context_tree_query`.
#[must_use]
pub fn pretty(arguments: &str) -> String {
    let Some(tokens) = tokens(arguments) else {
        return arguments.to_owned();
    };
    let mut out = String::new();
    let mut depth = 0_usize;
    let mut opened = false;
    for token in tokens {
        let closes = matches!(token, Token::Close(_));
        if closes {
            depth = depth.saturating_sub(1);
        }
        if closes != opened {
            new_line(&mut out, depth);
        }
        opened = false;
        match token {
            Token::Open(bracket) => {
                out.push(bracket);
                depth = depth.saturating_add(1);
                opened = true;
            }
            Token::Close(bracket) => out.push(bracket),
            Token::Comma => {
                out.push(',');
                new_line(&mut out, depth);
            }
            Token::Colon => out.push_str(": "),
            Token::String(raw) => out.push_str(&plain_string(raw)),
            Token::Bare(raw) => out.push_str(&plain_number(raw)),
        }
    }
    out
}

/// Arguments on one line, each string value cut by `cut`, which gets its text without escapes.
///
/// Keys stay whole. Empty arguments stay empty. What is no JSON text is cut as a whole.
#[must_use]
pub fn compact(arguments: &str, cut: &dyn Fn(&str) -> String) -> String {
    let Some(tokens) = tokens(arguments) else {
        return cut(arguments);
    };
    if arguments.trim().is_empty() {
        return String::new();
    }
    let mut out = String::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            Token::Open(bracket) | Token::Close(bracket) => out.push(bracket),
            Token::Comma => out.push(','),
            Token::Colon => out.push(':'),
            Token::Bare(raw) => out.push_str(raw),
            Token::String(raw) if tokens.peek() == Some(&Token::Colon) => out.push_str(raw),
            Token::String(raw) => match serde_json::from_str::<String>(raw) {
                Ok(text) => out.push_str(&quoted(&cut(&text))),
                Err(_) => out.push_str(&cut(raw)),
            },
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str("  ");
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Open(char),
    Close(char),
    Comma,
    Colon,
    /// With its quotes and escapes.
    String(&'a str),
    /// A number, `true`, `false` or `null`.
    Bare(&'a str),
}

/// `None` for what is no JSON text, or one too deep to be laid out.
fn tokens(arguments: &str) -> Option<Vec<Token<'_>>> {
    let mut rest = arguments.trim();
    if rest.is_empty() {
        rest = "{}";
    }
    serde_json::from_str::<serde::de::IgnoredAny>(rest).ok()?;
    let mut tokens = Vec::new();
    let mut depth = 0_usize;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' => string_len(rest)?,
            '{' | '[' | '}' | ']' | ',' | ':' => 1,
            _ => rest
                .find(|c: char| c.is_whitespace() || ",:]}".contains(c))
                .unwrap_or(rest.len()),
        };
        let (token, behind) = rest.split_at_checked(len)?;
        tokens.push(match first {
            '"' => Token::String(token),
            '{' | '[' => {
                depth = depth.checked_add(1).filter(|&depth| depth <= MAX_DEPTH)?;
                Token::Open(first)
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                Token::Close(first)
            }
            ',' => Token::Comma,
            ':' => Token::Colon,
            _ => Token::Bare(token),
        });
        rest = behind.trim_start();
    }
    Some(tokens)
}

/// Length in bytes of the string that `text` begins with, quotes included.
fn string_len(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at.checked_add(1),
            _ => {}
        }
    }
    None
}

/// Spells a string without needless escapes; half a surrogate pair stays an escape.
fn plain_string(raw: &str) -> String {
    if !raw.contains('\\') {
        return raw.to_owned();
    }
    serde_json::from_str::<String>(raw).map_or_else(|_| raw.to_owned(), |text| quoted(&text))
}

fn quoted(text: &str) -> String {
    text_of(text)
}

/// Spells a number as JavaScript does. Integers keep all their digits.
fn plain_number(raw: &str) -> String {
    let is_fraction = raw.contains(['.', 'e', 'E']) && raw.contains(|c: char| c.is_ascii_digit());
    if raw == "-0" {
        return "0".to_owned();
    }
    match serde_json::from_str::<f64>(raw) {
        Ok(number) if is_fraction && number.is_finite() => javascript_number(number),
        _ => raw.to_owned(),
    }
}

fn javascript_number(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if (1e-6..1e21).contains(&size) {
        return number.to_string();
    }
    let scientific = text_of(&number);
    match scientific.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with(['-', '+']) => {
            format!("{}e+{exponent}", digits.trim_end_matches(".0"))
        }
        _ => scientific,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pretty_is_what_javascript_prints() {
        let rows = [
            ("", "{}"),
            ("{}", "{}"),
            ("[ ]", "[]"),
            (r#"{"command":"c2"}"#, "{\n  \"command\": \"c2\"\n}"),
            (
                r#"{"z":1,"a":[1,{"k":[]}],"e":{}}"#,
                "{\n  \"z\": 1,\n  \"a\": [\n    1,\n    {\n      \"k\": []\n    }\n  ],\n  \"e\": {}\n}",
            ),
            (
                r#"{"s":"a\"b\\\n\u0007\u00e9😀","t":"{\"x\": [1, 2]}"}"#,
                "{\n  \"s\": \"a\\\"b\\\\\\n\\u0007é😀\",\n  \"t\": \"{\\\"x\\\": [1, 2]}\"\n}",
            ),
            (
                "[1e21,-0,-0.0,1.50,1e-7,12345678901234567890123,true,null]",
                "[\n  1e+21,\n  0,\n  0,\n  1.5,\n  1e-7,\n  12345678901234567890123,\n  true,\n  null\n]",
            ),
            (r#"{"half":"\ud83d"}"#, "{\n  \"half\": \"\\ud83d\"\n}"),
            ("not json {", "not json {"),
        ];
        for (arguments, expected) in rows {
            assert_eq!(pretty(arguments), expected, "{arguments}");
        }
    }

    #[test]
    fn hopeless_depth_stays_as_it_is() {
        let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
        assert_eq!(pretty(&deep), deep);
    }

    #[test]
    fn compact_keeps_short_values_and_all_keys() {
        let cut = |text: &str| text.chars().take(5).collect();
        let rows = [
            ("", ""),
            (" {} ", "{}"),
            (
                "{\n \"a long key\": \"1234567\",\n \"n\": [1, true]\n}",
                r#"{"a long key":"12345","n":[1,true]}"#,
            ),
            (r#"{"q":"\"\n34567"}"#, r#"{"q":"\"\n345"}"#),
            ("no json", "no js"),
        ];
        for (arguments, expected) in rows {
            assert_eq!(compact(arguments, &cut), expected, "{arguments}");
        }
    }
}
