//! Names of originals, in any spelling that the model has seen.

use super::super::ids::{BlockId, OccurrenceKey, Ref};

/// The most refs that one range such as `t1..t9` stands for.
const MAX_RANGE: u32 = 200;

/// How many pieces of a list an id with separators of its own may have.
const MAX_PIECES_OF_ID: usize = 8;

/// How many layers of quotes, brackets and words may lie around a name.
const MAX_LAYERS: usize = 10;

/// Words that stand around a name without being one.
const FILLERS: [&str; 14] = [
    "ref",
    "refs",
    "toolref",
    "toolrefs",
    "toolcallid",
    "toolcallids",
    "tool",
    "tools",
    "call",
    "id",
    "ids",
    "block",
    "chain",
    "and",
];

/// What a written name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// A ref, whether or not there is such a record.
    Ref(Ref),
    /// A compressed span, whether or not there is one.
    Block(BlockId),
    /// A call id that the archive knows; or, unchanged, what could not be read as anything.
    Id(String),
    /// An occurrence whose call id the archive knows.
    Occurrence(OccurrenceKey),
}

/// Reads what the model wrote as one name or as a list of names, in its order.
///
/// A text that is exactly a ref means the ref, even if a call has that id. Otherwise an id that the
/// archive knows (`knows_id`) wins over any other reading, so ids with commas, blanks or brackets
/// are found. What is left is freed of quotes, brackets and words such as `ref`, read as a range,
/// and split at commas and blanks. The result is never empty: what means nothing is an
/// [`Name::Id`] to be reported as not found, as is a range of more than 200 refs.
///
/// Source: design B7, field report D03.
#[must_use]
pub fn resolve_spelling(written: &str, knows_id: &dyn Fn(&str) -> bool) -> Vec<Name> {
    if let Some(name) = exact(written, knows_id) {
        return vec![name];
    }
    let names = one(written, knows_id).unwrap_or_else(|| list(written, knows_id));
    if names.iter().any(|name| is_known(name, knows_id)) {
        return names;
    }
    vec![Name::Id(written.trim().to_owned())]
}

fn is_known(name: &Name, knows_id: &dyn Fn(&str) -> bool) -> bool {
    match name {
        Name::Id(id) => knows_id(id),
        Name::Ref(_) | Name::Block(_) | Name::Occurrence(_) => true,
    }
}

/// A name without anything around it.
fn exact(written: &str, knows_id: &dyn Fn(&str) -> bool) -> Option<Name> {
    if let Some(reference) = Ref::parse(written) {
        return Some(Name::Ref(reference));
    }
    if let Some(block) = BlockId::parse(written) {
        return Some(Name::Block(block));
    }
    if knows_id(written) {
        return Some(Name::Id(written.to_owned()));
    }
    let occurrence = OccurrenceKey::parse(written);
    let is_dated = occurrence.at_ms.is_some() && knows_id(&occurrence.call_id);
    is_dated.then_some(Name::Occurrence(occurrence))
}

/// One name or range, with anything around it. `None` if it is a list or nothing at all.
fn one(written: &str, knows_id: &dyn Fn(&str) -> bool) -> Option<Vec<Name>> {
    let mut rest = written;
    for _ in 0..MAX_LAYERS {
        if let Some(name) = exact(rest, knows_id) {
            return Some(vec![name]);
        }
        let bare = undressed(rest);
        if bare.len() == rest.len() {
            break;
        }
        rest = bare;
    }
    let lower = rest.to_ascii_lowercase();
    if let Some(reference) = Ref::parse(&lower) {
        return Some(vec![Name::Ref(reference)]);
    }
    if let Some(block) = BlockId::parse(&lower) {
        return Some(vec![Name::Block(block)]);
    }
    range(&lower)
}

/// Takes one layer off: blanks, else a pair of quotes or brackets, else a word in front.
fn undressed(text: &str) -> &str {
    let trimmed = text.trim().trim_end_matches(['.', ',', ';', ':']);
    if trimmed.len() < text.len() {
        return trimmed;
    }
    let is_wrapping = |c: char| "`'\"*“”‘’()[]{}<>#".contains(c);
    let unwrapped = text.trim_matches(is_wrapping);
    if unwrapped.len() < text.len() {
        return unwrapped;
    }
    let word_len = text
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    match text.split_at_checked(word_len) {
        Some((word, behind)) if !behind.is_empty() && is_filler(word) => {
            behind.trim_start_matches(|c: char| c.is_whitespace() || ":=#-".contains(c))
        }
        _ => text,
    }
}

fn is_filler(word: &str) -> bool {
    FILLERS
        .iter()
        .any(|filler| filler.eq_ignore_ascii_case(word))
}

/// Reads `t1..t7`, `t1-t7`, `t1–7`, `t1 to t7` and the like, in lower case, ends in either order.
fn range(lower: &str) -> Option<Vec<Name>> {
    let is_quote = |c: char| c.is_whitespace() || "`'\"[]".contains(c);
    let separators = ["...", "..", "…", "–", "—", "-", " to ", " through "];
    let (from, to) = separators
        .iter()
        .find_map(|separator| lower.split_once(separator))?;
    let from = Ref::parse(from.trim_matches(is_quote))?;
    let to = to.trim_matches(is_quote);
    let to = Ref::parse(to).or_else(|| Ref::parse(&format!("t{to}")))?;
    let (first, last) = (from.min(to).0, from.max(to).0);
    if last.saturating_sub(first) >= MAX_RANGE {
        return None;
    }
    Some(
        (first..=last)
            .map(|number| Name::Ref(Ref(number)))
            .collect(),
    )
}

/// Reads a list. Names that mean nothing stay in it, words around names do not.
fn list(written: &str, knows_id: &dyn Fn(&str) -> bool) -> Vec<Name> {
    let pieces = pieces(written);
    let mut names = Vec::new();
    let mut next = 0;
    while let Some(&(start, end)) = pieces.get(next) {
        let longest = (1..=MAX_PIECES_OF_ID).rev().find_map(|n_pieces| {
            let behind = next.checked_add(n_pieces)?;
            let &(_, end) = pieces.get(behind.checked_sub(1)?)?;
            let found = one(written.get(start..end)?, knows_id)?;
            Some((found, behind))
        });
        if let Some((found, behind)) = longest {
            names.extend(found);
            next = behind;
        } else {
            let piece = written.get(start..end).unwrap_or_default();
            let bare = piece.trim_matches(|c: char| !c.is_alphanumeric());
            if !bare.is_empty() && !is_filler(bare) {
                names.push(Name::Id(piece.to_owned()));
            }
            next = next.saturating_add(1);
        }
    }
    names
}

/// Byte ranges between commas, semicolons, bars, ampersands and white space.
fn pieces(text: &str) -> Vec<(usize, usize)> {
    let is_separator = |c: char| c.is_whitespace() || ",;|&+".contains(c);
    let mut pieces = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices() {
        match start {
            Some(from) if is_separator(c) => {
                pieces.push((from, at));
                start = None;
            }
            None if !is_separator(c) => start = Some(at),
            _ => {}
        }
    }
    pieces.extend(start.map(|from| (from, text.len())));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &str, expected: &[&str]) {
        let ids = [
            "c1",
            "t2",
            "call 7, part [b]",
            "`odd`",
            "call_a|fc_b",
            "id@home",
            "ref-9",
            "a,b",
        ];
        let names = resolve_spelling(written, &|id| ids.contains(&id));
        let shown: Vec<String> = names
            .iter()
            .map(|name| match name {
                Name::Ref(reference) => format!("ref {reference}"),
                Name::Block(block) => format!("block {block}"),
                Name::Id(id) => format!("id {id}"),
                Name::Occurrence(key) => format!("occurrence {key}"),
            })
            .collect();
        assert_eq!(shown, expected, "{written:?}");
    }

    #[test]
    fn every_spelling_of_a_ref_is_read() {
        let spellings = [
            "t3",
            "`t3`",
            "T3",
            " t3\n",
            "ref t3",
            "ref `t3`",
            "Ref: t3",
            "[t3]",
            "[`t3`]",
            "(t3)",
            "\"t3\"",
            "'t3'",
            "**t3**",
            "#t3",
            "toolRef: t3",
            "## toolRef: t3",
            "t3.",
            "toolCallId=t3",
            "<t3>",
            "[ref `t3`]",
        ];
        for written in spellings {
            check(written, &["ref t3"]);
        }
    }

    #[test]
    fn blocks_ids_and_occurrences_are_read() {
        check("b2", &["block b2"]);
        check("block `B2`", &["block b2"]);
        check("c1", &["id c1"]);
        check("`c1`", &["id c1"]);
        check("id c1", &["id c1"]);
        check("c1@1745251200002", &["occurrence c1@1745251200002"]);
        check("`c1@7`", &["occurrence c1@7"]);
        check("id@home", &["id id@home"]);
        check("call_a|fc_b", &["id call_a|fc_b"]);
    }

    #[test]
    fn a_ref_wins_over_an_id_and_an_id_over_a_list() {
        check("t2", &["ref t2"]);
        check("call 7, part [b]", &["id call 7, part [b]"]);
        check("`odd`", &["id `odd`"]);
        check("ref-9", &["id ref-9"]);
        check("a,b", &["id a,b"]);
    }

    #[test]
    fn lists_and_ranges_are_taken_apart() {
        check("t3,t4", &["ref t3", "ref t4"]);
        check("`t3`, `t4` and c1", &["ref t3", "ref t4", "id c1"]);
        check("[\"t3\", \"t4\"]", &["ref t3", "ref t4"]);
        check("refs t5 t4; b1", &["ref t5", "ref t4", "block b1"]);
        check("t1..t3", &["ref t1", "ref t2", "ref t3"]);
        check("`t1`..`t2`", &["ref t1", "ref t2"]);
        check("t2-t1", &["ref t1", "ref t2"]);
        check("t1 to t2, T9", &["ref t1", "ref t2", "ref t9"]);
        check("refs t1–3", &["ref t1", "ref t2", "ref t3"]);
        check("t1, a,b, t2", &["ref t1", "id a,b", "ref t2"]);
        check(
            "t1, call 7, part [b]; t4",
            &["ref t1", "id call 7, part [b]", "ref t4"],
        );
        check("t1,nope", &["ref t1", "id nope"]);
    }

    #[test]
    fn what_means_nothing_is_kept_as_it_was_written() {
        check("nope", &["id nope"]);
        check(" no such thing ", &["id no such thing"]);
        check("t0", &["id t0"]);
        check("t01", &["id t01"]);
        check("nope@12", &["id nope@12"]);
        check("t1..t4000000000", &["id t1..t4000000000"]);
        check("", &["id "]);
        check("ref", &["id ref"]);
        check("``", &["id ``"]);
    }

    #[test]
    fn long_lists_take_linear_time() {
        let written = "nope, ".repeat(20_000);
        assert_eq!(resolve_spelling(&written, &|_| false).len(), 1);
        let written = "`[".repeat(100_000);
        assert_eq!(resolve_spelling(&written, &|_| false).len(), 1);
    }
}
