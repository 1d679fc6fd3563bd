//! Text of an exact length that says nothing.

const PHRASE: &str = "- what was done, with the outcome in a few words\n";

/// ASCII text of this many characters, without white space at its ends.
pub(super) fn text(chars: usize) -> String {
    let mut text: String = PHRASE.chars().cycle().take(chars).collect();
    if text.ends_with(char::is_whitespace) {
        text.pop();
        text.push('.');
    }
    text
}
