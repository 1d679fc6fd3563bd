//! What the log has for an epoch.

/// Follows the mark of an epoch's last message where the agent's final reply came next.
pub const CLOSED: &str = " closed";

/// The last message that edits may count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochMark {
    /// As `Transcript::mark` writes it; empty where an older program does not say.
    pub mark: String,
    /// Whether a final reply came next.
    pub is_closed: bool,
    /// The message's timestamp in Unix milliseconds. Everything counts in the log of an older
    /// program, nothing for an epoch before the first message.
    pub at_ms: u64,
}

impl EpochMark {
    /// Reads what an entry has; `None` is an entry of an older program.
    #[must_use]
    pub fn read(written: Option<String>) -> Self {
        let Some(written) = written else {
            return Self {
                mark: String::new(),
                is_closed: false,
                at_ms: u64::MAX,
            };
        };
        let (mark, is_closed) = match written.strip_suffix(CLOSED) {
            Some(mark) => (mark.to_owned(), true),
            None => (written, false),
        };
        let time = mark.rsplit('@').next();
        let at_ms = time.and_then(|at| at.split('#').next()?.parse().ok());
        Self {
            at_ms: at_ms.unwrap_or(0),
            is_closed,
            mark,
        }
    }
}
