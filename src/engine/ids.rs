//! Names that are written into the session log and shown to the model.

use std::fmt;

/// Identity of one tool result within a session branch.
///
/// Providers reuse call ids across responses, so the id alone is not unique; the timestamp of the
/// result tells occurrences apart. Written `id@ms`; records from before the timestamp was kept are
/// a bare `id`.
///
/// Source: design B1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OccurrenceKey {
    pub call_id: String,
    /// When the tool returned, in Unix milliseconds; `None` for legacy records.
    pub at_ms: Option<u64>,
}

impl OccurrenceKey {
    #[must_use]
    pub fn new(call_id: impl Into<String>, at_ms: u64) -> Self {
        Self {
            call_id: call_id.into(),
            at_ms: Some(at_ms),
        }
    }

    /// Reads `id@ms`; anything without a decimal number behind its last `@` is a bare id.
    #[must_use]
    pub fn parse(written: &str) -> Self {
        if let Some((call_id, at)) = written.rsplit_once('@')
            && let Ok(at_ms) = at.parse()
        {
            return Self::new(call_id, at_ms);
        }
        Self {
            call_id: written.to_owned(),
            at_ms: None,
        }
    }
}

impl fmt::Display for OccurrenceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at_ms {
            Some(at_ms) => write!(f, "{}@{at_ms}", self.call_id),
            None => f.write_str(&self.call_id),
        }
    }
}

/// The short name of a record: `t1`, `t2`, … Unique in a session, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ref(pub u32);

impl Ref {
    /// Reads `t` and a decimal number from 1 to 999 999 999, without leading zeros.
    #[must_use]
    pub fn parse(written: &str) -> Option<Self> {
        numbered('t', written).map(Self)
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

/// The name of a compressed span: `b1`, `b2`, … Unique in a session, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

impl BlockId {
    /// Reads `b` and a decimal number from 1 to 999 999 999, without leading zeros.
    #[must_use]
    pub fn parse(written: &str) -> Option<Self> {
        numbered('b', written).map(Self)
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

/// The highest number that a log can have given out. A damaged log may hold any number; there is
/// always room for the ones that come after this one.
pub const MAX_NUMBER: u32 = 999_999_999;

fn numbered(letter: char, written: &str) -> Option<u32> {
    let digits = written.strip_prefix(letter)?;
    let plain = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| plain);
    number.filter(|number| *number <= MAX_NUMBER)
}

/// The host's name of a session log entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub String);

/// The host's name of a summarizer job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);
