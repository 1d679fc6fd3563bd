//! Pages of a long original.

use super::super::cut;
use super::super::size::utf16_len;

/// Lines of a page unless the model asks for another number.
///
/// Source: the seed document, whose answers end after 2,000 lines.
pub const DEFAULT_LINES: u32 = 2_000;

/// The most that a page holds, in UTF-16 code units, whatever number of lines was asked for.
///
/// Source: the seed document, whose answers end after 50 KB.
pub const MAX_CHARS: u64 = 50_000;

/// A run of whole page lines of a text.
///
/// Laid end to end, the pages that `next_offset` leads to are the text, byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// Empty only if the text is, or if it ends before the offset.
    pub text: &'a str,
    /// Counted from 1. Greater than `last_line` if `text` is empty.
    pub first_line: u32,
    pub last_line: u32,
    pub total_lines: u32,
    /// The offset of the page behind this one, if there is one.
    pub next_offset: Option<u32>,
}

/// Cuts out the page that begins behind `offset` lines.
///
/// A page line is a line with its end, or as much of a longer one as fits on a page; see
/// [`lines`]. `limit` is the number of lines, 2,000 by default, at least one.
#[must_use]
pub fn page(text: &str, offset: u32, limit: Option<u32>) -> Page<'_> {
    let limit = limit.unwrap_or(DEFAULT_LINES).max(1);
    let mut line_no = 0_u32;
    let mut start = 0_usize;
    let mut len = 0_usize;
    let mut chars = 0_u64;
    let mut taken = 0_u32;
    let mut is_full = false;
    for line in lines(text) {
        if line_no < offset {
            start = start.saturating_add(line.len());
        } else if !is_full {
            chars = chars.saturating_add(utf16_len(line));
            is_full = taken == limit || (taken > 0 && chars > MAX_CHARS);
            if !is_full {
                taken = taken.saturating_add(1);
                len = len.saturating_add(line.len());
            }
        }
        line_no = line_no.saturating_add(1);
    }
    let last_line = offset.saturating_add(taken);
    Page {
        text: text
            .get(start..start.saturating_add(len))
            .unwrap_or_default(),
        first_line: offset.saturating_add(1),
        last_line,
        total_lines: line_no,
        next_offset: (last_line < line_no).then_some(last_line),
    }
}

/// The page lines of a text, ends included. Laid end to end they are the text.
///
/// Lines end with `\n`. One of more than [`MAX_CHARS`] counts as several, cut between characters.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').flat_map(pieces)
}

/// The page lines that one line counts as.
pub(super) fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        // A UTF-16 length is never greater than the length in bytes.
        if rest.len() as u64 <= MAX_CHARS {
            let last = std::mem::take(&mut rest);
            return (!last.is_empty()).then_some(last);
        }
        let piece = cut::head_chars(rest, MAX_CHARS);
        rest = rest.get(piece.len()..).unwrap_or_default();
        Some(piece)
    })
}

/// Says which lines a page has and how to get the rest; `None` if it is the whole text.
#[must_use]
pub fn note(page: &Page<'_>) -> Option<String> {
    let total = page.total_lines;
    if page.text.is_empty() && page.first_line > 1 {
        return Some(format!(
            "[context_tree_query: there are {total} lines, none behind offset {}]",
            page.first_line.saturating_sub(1)
        ));
    }
    let span = format!(
        "[context_tree_query: lines {}-{} of {total}",
        page.first_line, page.last_line
    );
    match page.next_offset {
        Some(offset) => Some(format!(
            "{span}. More: the same call with offset {offset}, or a pattern]"
        )),
        None if page.first_line > 1 => Some(format!("{span}. This is the end]")),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn walk(text: &str, limit: Option<u32>) -> Vec<Page<'_>> {
        let mut pages = vec![page(text, 0, limit)];
        while let Some(offset) = pages.last().and_then(|page| page.next_offset) {
            pages.push(page(text, offset, limit));
        }
        pages
    }

    fn joined(pages: &[Page<'_>]) -> String {
        pages.iter().map(|page| page.text).collect()
    }

    #[test]
    fn a_short_text_is_one_page() {
        for (text, total_lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\r\nb\rc\n\n", 3)] {
            let page = page(text, 0, None);
            assert_eq!((page.text, page.total_lines), (text, total_lines));
            assert_eq!(note(&page), None);
        }
    }

    #[test]
    fn many_lines_are_several_pages() {
        let text = "x\n".repeat(4_500);
        let spans: Vec<_> = walk(&text, None)
            .iter()
            .map(|page| (page.first_line, page.last_line, page.next_offset))
            .collect();
        assert_eq!(
            spans,
            [
                (1, 2_000, Some(2_000)),
                (2_001, 4_000, Some(4_000)),
                (4_001, 4_500, None)
            ]
        );
    }

    #[test]
    fn pages_are_bounded_in_characters_of_utf16() {
        let text = format!("{}\n", "😀".repeat(12_000)).repeat(5);
        let pages = walk(&text, Some(1_000_000));
        assert_eq!(
            pages.iter().map(|page| page.last_line).collect::<Vec<_>>(),
            [2, 4, 5]
        );
        assert_eq!(joined(&pages), text);
    }

    #[test]
    fn an_overlong_line_counts_as_several() {
        let text = format!("a\n{}\nz", "😀".repeat(60_000));
        let pages = walk(&text, None);
        assert_eq!(
            pages[0].total_lines, 5,
            "a, three pieces of 50,000, 50,000 and 20,001, z"
        );
        assert_eq!(joined(&pages), text);
        assert!(pages.iter().all(|page| utf16_len(page.text) <= MAX_CHARS));
    }

    #[test]
    fn notes_say_how_to_go_on() {
        let text = "x\n".repeat(5);
        let rows = [
            (
                0,
                Some(2),
                "[context_tree_query: lines 1-2 of 5. More: the same call with offset 2, or a pattern]",
            ),
            (
                3,
                Some(9),
                "[context_tree_query: lines 4-5 of 5. This is the end]",
            ),
            (
                9,
                None,
                "[context_tree_query: there are 5 lines, none behind offset 9]",
            ),
        ];
        for (offset, limit, expected) in rows {
            assert_eq!(note(&page(&text, offset, limit)).as_deref(), Some(expected));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn pages_laid_end_to_end_are_the_text(
            parts in prop::collection::vec(("[a-c😀\u{e9}\r\n]{0,40}", 0_usize..2_000), 0..6),
            n_pages in prop::option::of(1_u32..20),
        ) {
            let text: String = parts.iter().map(|(part, times)| part.repeat(*times)).collect();
            let limit = n_pages.map(|n_pages| page(&text, 0, None).total_lines / n_pages);
            let pages = walk(&text, limit);
            prop_assert_eq!(joined(&pages), text.as_str());
            prop_assert!(pages.iter().all(|page| utf16_len(page.text) <= MAX_CHARS));
        }
    }
}
