//! The words of `context_tree_query`: what it is asked, and how it answers.
//!
//! Finding and reading the originals is the session's part.

pub mod names;
pub mod page;
pub mod search;

use super::arguments;
use super::json::{Json, text_of};

/// Lines shown before and after each matching line.
const CONTEXT_LINES: u32 = 2;

/// Name of the tool that gives originals back.
pub const TOOL_NAME: &str = "context_tree_query";

/// What a call of the tool asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// As the model wrote them, see [`names::resolve_spelling`].
    pub names: Vec<String>,
    /// Lines to leave out; with a pattern, matching lines.
    pub offset: Option<u32>,
    /// Lines to give; with a pattern, matching lines.
    pub limit: Option<u32>,
    /// A regular expression.
    pub pattern: Option<String>,
}

impl Request {
    /// Reads the arguments of a call, a JSON text.
    ///
    /// Names are a list or one string, under `toolCallIds` or a name that models mistake for it.
    /// Numbers may be written as strings.
    ///
    /// # Errors
    /// The arguments cannot be understood; the text tells the model the right form.
    pub fn parse(arguments_json: &str) -> Result<Self, String> {
        let arguments = Json::parse(arguments_json)
            .map_err(|err| wrong(&format!("the arguments are no JSON object ({err})")))?;
        let names = NAME_KEYS
            .iter()
            .find_map(|&key| arguments.get(key).filter(|value| **value != Json::Null))
            .ok_or_else(|| wrong("toolCallIds is missing"))?;
        Ok(Self {
            names: read_names(names)?,
            offset: read_count(&arguments, "offset")?,
            limit: read_count(&arguments, "limit")?,
            pattern: match arguments.get("pattern") {
                None | Some(Json::Null) => None,
                Some(Json::Text(pattern)) => Some(pattern.clone()).filter(|p| !p.is_empty()),
                Some(_) => return Err(wrong("pattern is no string")),
            },
        })
    }
}

const NAME_KEYS: [&str; 8] = [
    "toolCallIds",
    "ids",
    "refs",
    "toolCallId",
    "toolRefs",
    "toolRef",
    "id",
    "ref",
];

fn wrong(what: &str) -> String {
    format!(
        "context_tree_query: {what}. Right is {{\"toolCallIds\": [\"t1\", \"t2\"]}}, with \
         \"offset\" and \"limit\" (whole numbers) or \"pattern\" (a regular expression) as needed."
    )
}

fn read_names(value: &Json) -> Result<Vec<String>, String> {
    match value {
        Json::Text(text) => Ok(written_list(text).unwrap_or_else(|| vec![text.clone()])),
        Json::List(items) => {
            let mut names = Vec::new();
            for item in items {
                names.push(match item {
                    Json::Text(name) => name.clone(),
                    Json::Number(_) => text_of(item),
                    Json::Null | Json::Flag(_) | Json::List(_) | Json::Object(_) => {
                        return Err(wrong("toolCallIds holds something other than strings"));
                    }
                });
            }
            Ok(names)
        }
        Json::Null | Json::Flag(_) | Json::Number(_) | Json::Object(_) => {
            Err(wrong("toolCallIds is no list of strings"))
        }
    }
}

/// The strings of a list that was written as a text.
fn written_list(text: &str) -> Option<Vec<String>> {
    let Ok(Json::List(items)) = Json::parse(text) else {
        return None;
    };
    let names = items.iter().map(|item| Some(item.as_text()?.to_owned()));
    names.collect()
}

fn read_count(arguments: &Json, key: &str) -> Result<Option<u32>, String> {
    let text = match arguments.get(key) {
        None | Some(Json::Null) => return Ok(None),
        Some(Json::Text(text)) => text.trim().to_owned(),
        Some(other) => text_of(other),
    };
    if text.is_empty() {
        return Ok(None);
    }
    let digits = text.strip_suffix(".0").unwrap_or(&text);
    match digits.parse::<u64>() {
        Ok(count) => Ok(Some(u32::try_from(count).unwrap_or(u32::MAX))),
        Err(_) => Err(wrong(&format!("{key} is no whole number from 0 up"))),
    }
}

/// Name, description and JSON schema of the tool. Every model request pays for them.
#[must_use]
pub fn tool_definition() -> (&'static str, &'static str, &'static str) {
    (TOOL_NAME, DESCRIPTION, PARAMETERS)
}

const DESCRIPTION: &str =
    "Returns original tool outputs that were summarized here. Long ones come in pages.";

const PARAMETERS: &str = concat!(
    r#"{"type":"object","properties":{"#,
    r#""toolCallIds":{"type":"array","items":{"type":"string"},"description":"refs (t3), blocks (b1) or ids"},"#,
    r#""pattern":{"type":"string","description":"regular expression: matching lines only"},"#,
    r#""offset":{"type":"integer","description":"lines to skip"},"#,
    r#""limit":{"type":"integer","description":"lines to return"}},"#,
    r#""required":["toolCallIds"]}"#,
);

/// An original, read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// The name as asked for, for instance `t2` or a call id.
    pub title: &'a str,
    pub tool: &'a str,
    /// A JSON text; may be empty.
    pub arguments: &'a str,
    pub is_error: bool,
    /// Counted from 0 over the session.
    pub turn: u32,
    /// The whole original.
    pub text: &'a str,
    /// Facts about it that are not in the text, one line each.
    pub notes: &'a [String],
}

/// Answers a request with one original.
///
/// If it is given in full, the text stands at the end, without anything behind it. Otherwise a
/// blank line and one line in brackets follow, which say what this is and how to get the rest.
///
/// Source: the reference's answers; paging and patterns are design B7.
#[must_use]
pub fn render(found: &Found<'_>, request: &Request) -> String {
    let status = if found.is_error { "ERROR" } else { "OK" };
    let mut answer = format!(
        "## toolRef: {}\nTool: {}\nArgs: {}\nStatus: {status}\nTurn: {}\n",
        found.title,
        found.tool,
        arguments::pretty(found.arguments),
        found.turn
    );
    for note in found.notes {
        answer.push_str("Note: ");
        answer.push_str(note);
        answer.push('\n');
    }
    answer.push('\n');
    match &request.pattern {
        Some(pattern) => answer.push_str(&matches(found.text, pattern, request)),
        None => {
            let page = page::page(found.text, request.offset.unwrap_or(0), request.limit);
            answer.push_str(page.text);
            if let Some(note) = page::note(&page) {
                answer.push_str("\n\n");
                answer.push_str(&note);
            }
        }
    }
    answer
}

fn matches(text: &str, pattern: &str, request: &Request) -> String {
    let scope = search::Scope {
        context_lines: CONTEXT_LINES,
        offset: request.offset.unwrap_or(0),
        limit: request.limit,
    };
    match search::search(text, pattern, scope) {
        Ok(hits) if hits.text.is_empty() => search::note(&hits, pattern, scope),
        Ok(hits) => format!("{}\n\n{}", hits.text, search::note(&hits, pattern, scope)),
        Err(why) => format!("[context_tree_query: {why}]"),
    }
}

/// Answers for a name that the archive does not know.
///
/// `known` says which refs there are, for instance `t1..t41`; empty if there are none.
#[must_use]
pub fn not_found(title: &str, known: &str) -> String {
    let answer =
        format!("## toolRef: {title}\n(not found in index — may not have been summarized yet)");
    if known.is_empty() {
        answer
    } else {
        format!("{answer}\nRefs that exist: {known}")
    }
}

/// Puts the answers of one call together.
#[must_use]
pub fn join(answers: &[String]) -> String {
    answers.join("\n\n---\n\n")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn request(arguments: &str) -> Request {
        Request::parse(arguments).unwrap()
    }

    #[test]
    fn names_are_read_from_what_models_write() {
        let rows: [(&str, &[&str]); 8] = [
            (r#"{"toolCallIds":["t1","c 2"]}"#, &["t1", "c 2"]),
            (r#"{"toolCallIds":"t1, t2"}"#, &["t1, t2"]),
            (r#"{"toolCallIds":"[\"t1\",\"t2\"]"}"#, &["t1", "t2"]),
            (r#"{"toolCallIds":"[t1]"}"#, &["[t1]"]),
            (r#"{"refs":["t1"]}"#, &["t1"]),
            (r#"{"toolCallIds":null,"ids":"t1"}"#, &["t1"]),
            (r#"{"ids":[7]}"#, &["7"]),
            (r#"{"toolCallIds":[]}"#, &[]),
        ];
        for (arguments, expected) in rows {
            assert_eq!(request(arguments).names, expected, "{arguments}");
        }
    }

    #[test]
    fn numbers_may_be_strings() {
        let rows = [
            (r#"{"refs":["t1"]}"#, None, None),
            (
                r#"{"refs":["t1"],"offset":2000,"limit":"50"}"#,
                Some(2000),
                Some(50),
            ),
            (
                r#"{"refs":["t1"],"offset":" 7 ","limit":3.0}"#,
                Some(7),
                Some(3),
            ),
            (
                r#"{"refs":["t1"],"offset":"","limit":99999999999}"#,
                None,
                Some(u32::MAX),
            ),
        ];
        for (arguments, offset, limit) in rows {
            let request = request(arguments);
            assert_eq!(
                (request.offset, request.limit),
                (offset, limit),
                "{arguments}"
            );
        }
        assert_eq!(request(r#"{"refs":"t1","pattern":""}"#).pattern, None);
    }

    #[test]
    fn what_cannot_be_understood_is_answered_with_the_right_form() {
        let rows = [
            "",
            "t1",
            "[]",
            "{}",
            r#"{"toolCallIds":{"a":1}}"#,
            r#"{"toolCallIds":[["t1"]]}"#,
            r#"{"refs":"t1","offset":-1}"#,
            r#"{"refs":"t1","limit":"many"}"#,
            r#"{"refs":"t1","pattern":5}"#,
        ];
        for arguments in rows {
            let err = Request::parse(arguments).unwrap_err();
            assert!(
                err.contains(r#"{"toolCallIds": ["t1", "t2"]}"#),
                "{arguments}: {err}"
            );
        }
    }

    #[test]
    fn the_tool_is_small_and_its_schema_is_json() {
        let (name, description, parameters) = tool_definition();
        let schema: Value = serde_json::from_str(parameters).unwrap();
        assert_eq!(schema["required"][0], "toolCallIds");
        assert!(name.len() + description.len() + parameters.len() < 700);
    }

    const FOUND: Found<'_> = Found {
        title: "t2",
        tool: "bash",
        arguments: r#"{"command":"c2"}"#,
        is_error: false,
        turn: 1,
        text: "a\nb\nc\n",
        notes: &[],
    };

    #[test]
    fn a_whole_answer_has_the_references_form() {
        assert_eq!(
            render(&FOUND, &Request::default()),
            "## toolRef: t2\nTool: bash\nArgs: {\n  \"command\": \"c2\"\n}\nStatus: OK\nTurn: 1\n\na\nb\nc\n"
        );
        let failed = Found {
            title: "c1",
            is_error: true,
            notes: &["1 image is attached".to_owned()],
            ..FOUND
        };
        assert_eq!(
            render(&failed, &Request::default()),
            "## toolRef: c1\nTool: bash\nArgs: {\n  \"command\": \"c2\"\n}\nStatus: ERROR\nTurn: 1\n\
             Note: 1 image is attached\n\na\nb\nc\n"
        );
    }

    #[test]
    fn a_part_says_which_it_is() {
        let page = render(&FOUND, &request(r#"{"refs":"t2","limit":2}"#));
        assert!(
            page.ends_with("\n\na\nb\n\n\n[context_tree_query: lines 1-2 of 3. More: the same call with offset 2, or a pattern]"),
            "{page}"
        );
        let found = render(&FOUND, &request(r#"{"refs":"t2","pattern":"^c"}"#));
        assert!(
            found.ends_with("\n\n1-a\n2-b\n3:c\n\n[context_tree_query: 1 line matches ^c]"),
            "{found}"
        );
        let bad = render(&FOUND, &request(r#"{"refs":"t2","pattern":"c("}"#));
        assert!(
            bad.contains("\n\n[context_tree_query: the pattern c( is no"),
            "{bad}"
        );
    }

    #[test]
    fn unknown_names_are_answered_with_the_known_ones() {
        assert_eq!(
            not_found("t9", ""),
            "## toolRef: t9\n(not found in index — may not have been summarized yet)"
        );
        assert_eq!(
            not_found("t9", "t1..t4"),
            "## toolRef: t9\n(not found in index — may not have been summarized yet)\nRefs that exist: t1..t4"
        );
        assert_eq!(join(&["a".to_owned(), "b".to_owned()]), "a\n\n---\n\nb");
        assert_eq!(join(&[]), "");
    }
}
