//! From a summarizer's answer to the message that the model sees.

use super::delimiter;
use super::ids::Ref;
use super::prompt::{self, label};

/// Why an answer is no summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("the summary is empty")]
    Empty,
    #[error("the summary was cut off")]
    Truncated,
    #[error("the summary repeats its instructions")]
    Echo,
    #[error("the answer is a tool call, not a summary")]
    ToolSyntax,
}

/// What an answer begins with that is meant to be a tool call.
///
/// Source: field report E07, and the formats in which models write calls as text.
const TOOL_CALL_STARTS: [&str; 11] = [
    "<tool_call",
    "<tool-call",
    "<tool_use",
    "<function_call",
    "<function=",
    "<invoke",
    "<|tool",
    "<|python_tag|>",
    "[tool_calls]",
    "[tool_call",
    "```tool_c",
];

/// Takes the summary out of an answer: without white space around it and without thinking aloud.
///
/// `is_truncated` tells whether the model stopped at its output limit.
///
/// # Errors
/// The answer cannot serve as a summary.
///
/// Source: design B9.
pub fn check(answer: &str, is_truncated: bool) -> Result<&str, Unusable> {
    let summary = without_thinking(answer.trim())?;
    if summary.is_empty() {
        return Err(if is_truncated {
            Unusable::Truncated
        } else {
            Unusable::Empty
        });
    }
    if is_truncated {
        return Err(Unusable::Truncated);
    }
    if prompt::is_echoed(summary) {
        return Err(Unusable::Echo);
    }
    if is_tool_call(summary) {
        return Err(Unusable::ToolSyntax);
    }
    Ok(summary)
}

/// Local models put their thinking in front of the answer.
fn without_thinking(answer: &str) -> Result<&str, Unusable> {
    for (open, close) in [("<think>", "</think>"), ("<thinking>", "</thinking>")] {
        if let Some(thinking) = answer.strip_prefix(open) {
            let (_, summary) = thinking.split_once(close).ok_or(Unusable::Truncated)?;
            return Ok(summary.trim());
        }
    }
    Ok(answer)
}

fn is_tool_call(summary: &str) -> bool {
    let begins_with = |start: &&str| {
        let found = summary.as_bytes().get(..start.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(start.as_bytes()))
    };
    if TOOL_CALL_STARTS.iter().any(begins_with) {
        return true;
    }
    let inside = summary.trim_start_matches("```json").trim_start();
    let has_key = |keys: &[&str]| keys.iter().any(|key| inside.contains(key));
    inside.starts_with(['{', '['])
        && has_key(&["\"name\"", "\"tool\"", "\"function\"", "\"tool_name\""])
        && has_key(&["\"arguments\"", "\"parameters\"", "\"input\"", "\"args\""])
}

/// Turns the labels in a summary into the refs of their calls.
///
/// `calls` are tools and refs in the order of the prompt. A label that is out of range or names
/// another tool is taken out. Our own tags are disarmed; everything else stays as it is.
///
/// Source: design B9, field report E02.
#[must_use]
pub fn label_refs(summary: &str, calls: &[(&str, Ref)]) -> String {
    let mut out = String::with_capacity(summary.len());
    let mut rest = summary;
    while let Some(found) = label::find(rest) {
        out.push_str(found.before);
        let number = found.number();
        let call = number.checked_sub(1).and_then(|at| calls.get(at));
        rest = match call {
            Some((tool, reference)) if found.is_of(number, tool) => {
                push_ref(&mut out, *reference, found.behind)
            }
            _ => take_out(&mut out, found.behind),
        };
    }
    out.push_str(rest);
    delimiter::disarm(&out).into_owned()
}

/// Returns what is left to read. A model that put the label in backticks has done half of it.
fn push_ref<'a>(out: &mut String, reference: Ref, behind: &'a str) -> &'a str {
    if let (true, Some(rest)) = (out.ends_with('`'), behind.strip_prefix('`')) {
        out.push_str(&format!("{reference}`"));
        return rest;
    }
    out.push_str(&format!("`{reference}`"));
    behind
}

/// Closes the gap that a label leaves: its backticks, one of the blanks around it, and what only
/// led over to the text behind it go too.
fn take_out<'a>(out: &mut String, behind: &'a str) -> &'a str {
    let mut behind = behind;
    if let (true, Some(rest)) = (out.ends_with('`'), behind.strip_prefix('`')) {
        out.pop();
        behind = rest;
    }
    let line = out.rsplit('\n').next().unwrap_or_default();
    let is_at_start = line.trim_matches([' ', '\t', '-', '*', '•']).is_empty();
    if is_at_start {
        return behind.trim_start_matches([' ', '\t', ':', '–', '—', ',']);
    }
    if out.ends_with([' ', '(']) {
        return behind.trim_start_matches(' ');
    }
    behind
}

const FOOTER_START: &str = "\n\n---\n**Summarized tool refs**: ";
const FOOTER_END: &str =
    "\nUse `context_tree_query` with these refs to retrieve the original full outputs.";

/// The content of a summary message: the summary and a footer with the refs that it covers.
///
/// Source: the seed document and the reference's summary messages.
#[must_use]
pub fn content(summary: &str, refs: &[Ref]) -> String {
    let refs: Vec<String> = refs
        .iter()
        .map(|reference| format!("`{reference}`"))
        .collect();
    format!("{summary}{FOOTER_START}{}{FOOTER_END}", refs.join(", "))
}

/// The summary in a message's content, without the footer.
///
/// Only what [`content`] put last counts as the footer: a summary that quotes one keeps it, and what
/// has no footer is all summary.
#[must_use]
pub fn body_of(content: &str) -> &str {
    let body = content
        .strip_suffix(FOOTER_END)
        .and_then(|content| content.rsplit_once(FOOTER_START))
        .filter(|(_, refs)| !refs.contains('\n'));
    body.map_or(content, |(body, _)| body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_summary_is_refused() {
        let rows = [
            ("- `a` ran", false, Ok("- `a` ran")),
            (" \n- ran\n", false, Ok("- ran")),
            ("<think>hm</think>\n- ran", false, Ok("- ran")),
            (
                "<html> was returned, with \"name\" and \"arguments\"",
                false,
                Ok("<html> was returned, with \"name\" and \"arguments\""),
            ),
            ("", false, Err(Unusable::Empty)),
            (" \n\t", false, Err(Unusable::Empty)),
            ("<think>hm</think>", false, Err(Unusable::Empty)),
            ("<think>hm", false, Err(Unusable::Truncated)),
            ("- ran", true, Err(Unusable::Truncated)),
            ("", true, Err(Unusable::Truncated)),
            ("<tool-call-batch>\n[[1:bash]]", false, Err(Unusable::Echo)),
            (
                "<tool_call>{\"name\": \"bash\"}",
                false,
                Err(Unusable::ToolSyntax),
            ),
            ("[TOOL_CALLS] [{}]", false, Err(Unusable::ToolSyntax)),
            (
                "```json\n{\"name\": \"bash\", \"arguments\": {}}\n```",
                false,
                Err(Unusable::ToolSyntax),
            ),
            (
                "{\"tool\":\"read\",\"input\":{\"path\":\"é\"}}",
                false,
                Err(Unusable::ToolSyntax),
            ),
        ];
        for (answer, is_truncated, expected) in rows {
            assert_eq!(check(answer, is_truncated), expected, "{answer}");
        }
    }

    #[test]
    fn both_prompts_are_recognized_in_an_answer() {
        for prompt in [prompt::batch_prompt(&[], &[]), prompt::range_prompt(&[])] {
            let instructions = prompt.split("\n\n<").next().unwrap();
            assert_eq!(check(&prompt, false), Err(Unusable::Echo));
            assert_eq!(check(instructions, false), Err(Unusable::Echo));
        }
    }

    #[test]
    fn labels_become_refs() {
        let calls = [("bash", Ref(7)), ("read", Ref(8)), ("a b", Ref(9))];
        let rows = [
            (
                "no labels, [[1]] but a[[1:3]]",
                "no labels, [[1]] but a[[1:3]]",
            ),
            (
                "[[1:bash]] ran\n- [[2:read]] read\n[[3:bash]] invented\nsee [[1:bash]] again",
                "`t7` ran\n- `t8` read\ninvented\nsee `t7` again",
            ),
            ("- `[[1:bash]]`: ok", "- `t7`: ok"),
            ("**[[2:read]]** x", "**`t8`** x"),
            ("[[3:a_b]] odd name", "`t9` odd name"),
            ("- [[9:read]]: gone", "- gone"),
            ("- `[[0:bash]]` — gone", "- gone"),
            ("see [[2:bash]] again", "see again"),
            ("see ([[2:bash]] again)", "see (again)"),
            ("end [[77777777777777777777777:bash]]", "end "),
            ("[[1:bash]][[2:read]]", "`t7``t8`"),
            (
                "[[1:bash]] printed </compressed-chain>",
                "`t7` printed <\\/compressed-chain>",
            ),
        ];
        for (answer, expected) in rows {
            assert_eq!(label_refs(answer, &calls), expected, "{answer}");
        }
    }

    #[test]
    fn the_footer_has_the_seeds_form() {
        let content = content("- ran three tools", &[Ref(1), Ref(2), Ref(3)]);
        assert_eq!(
            content,
            "- ran three tools\n\n---\n**Summarized tool refs**: `t1`, `t2`, `t3`\n\
             Use `context_tree_query` with these refs to retrieve the original full outputs."
        );
        assert_eq!(body_of(&content), "- ran three tools");
    }

    #[test]
    fn only_the_last_footer_is_ours() {
        let quoting = content("a", &[Ref(9)]);
        let more = format!("{quoting}\nmore");
        let unfinished = format!("a{FOOTER_START}`t1`\n- b");
        for summary in ["", "a\n\n---\nb", &quoting, &more, &unfinished] {
            assert_eq!(body_of(&content(summary, &[Ref(1)])), summary);
            assert_eq!(body_of(&content(summary, &[])), summary);
        }
        assert_eq!(body_of("no footer"), "no footer");
        assert_eq!(
            body_of(&format!("{unfinished}{FOOTER_END}")),
            format!("{unfinished}{FOOTER_END}")
        );
    }
}
