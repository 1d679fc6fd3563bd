//! Lengths and token estimates.

use super::message::{Message, Part};

/// Length of a text in UTF-16 code units, the unit of all settings called "chars".
///
/// Source: the seed document, whose lengths are JavaScript's `String.length`.
#[must_use]
pub fn utf16_len(text: &str) -> u64 {
    if text.is_ascii() {
        return text.len() as u64;
    }
    text.chars().map(|c| c.len_utf16() as u64).sum()
}

/// The length of a text in UTF-16 code units, and how many of them are ASCII.
fn counts(text: &str) -> (u64, u64) {
    if text.is_ascii() {
        return (text.len() as u64, text.len() as u64);
    }
    let ascii = text.bytes().filter(u8::is_ascii).count();
    (utf16_len(text), ascii as u64)
}

/// What an image costs, whatever its data weighs: providers bill by area, 1,000 to 2,000 tokens.
const OPAQUE_TOKENS: u64 = 1_200;

/// The size of a part of the context. Both figures are for accounts and decisions, not for billing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// UTF-16 code units of text, arguments and thinking.
    pub chars: u64,
    /// Estimated tokens.
    pub tokens: u64,
}

impl Size {
    /// Four characters of ASCII make a token, one of any other script does: CJK text is not
    /// underrated, at the price of overrating accented Latin.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let (chars, ascii) = counts(text);
        Self::of_counts(chars, ascii)
    }

    /// The size of a text of which only the length is known, and how much of it is ASCII.
    #[must_use]
    pub fn of_counts(chars: u64, ascii: u64) -> Self {
        Self {
            chars,
            tokens: ascii.div_ceil(4) + chars.saturating_sub(ascii),
        }
    }

    /// The size of the text parts of a message, joined with line ends.
    #[must_use]
    pub fn of_joined_text(content: &[Part]) -> Self {
        let counts = content.iter().filter_map(|part| match part {
            Part::Text(text) => Some(counts(text)),
            Part::Withheld { chars, ascii } => Some((u64::from(*chars), u64::from(*ascii))),
            Part::Thinking(_) | Part::ToolCall(_) | Part::Opaque(_) => None,
        });
        let joined = counts.reduce(|(chars, ascii), (more_chars, more_ascii)| {
            (chars + 1 + more_chars, ascii + 1 + more_ascii)
        });
        let (chars, ascii) = joined.unwrap_or_default();
        Self::of_counts(chars, ascii)
    }

    /// The size of ASCII-like text of which only the length is known.
    #[must_use]
    pub fn of_chars(chars: u64) -> Self {
        Self {
            chars,
            tokens: chars.div_ceil(4),
        }
    }

    #[must_use]
    pub fn of_part(part: &Part) -> Self {
        match part {
            Part::Text(text) => Self::of_text(text),
            Part::Thinking(chars) => Self::of_chars(u64::from(*chars)),
            Part::ToolCall(call) => Self::of_text(&call.arguments),
            Part::Opaque(_) => Self {
                chars: 0,
                tokens: OPAQUE_TOKENS,
            },
            Part::Withheld { chars, ascii } => {
                Self::of_counts(u64::from(*chars), u64::from(*ascii))
            }
        }
    }

    #[must_use]
    pub fn of_message(message: &Message) -> Self {
        message.content.iter().map(Self::of_part).sum()
    }
}

impl std::ops::Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            chars: self.chars + other.chars,
            tokens: self.tokens + other.tokens,
        }
    }
}

/// Nothing is less than nothing.
impl std::ops::Sub for Size {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            chars: self.chars.saturating_sub(other.chars),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), std::ops::Add::add)
    }
}
