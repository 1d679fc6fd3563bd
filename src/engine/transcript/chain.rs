//! Chains: a prompt, and what the agent did about it.

use super::Position;

/// Which chain of the transcript is meant: they are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChainId(pub(super) usize);

impl ChainId {
    /// Its place among the chains, from 0.
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }

    /// The chain at this place.
    #[must_use]
    pub fn numbered(index: usize) -> Self {
        Self(index)
    }
}

/// A user message and the tool-using turns after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The message that began it; `None` where the transcript begins in its middle.
    pub anchor: Option<Position>,
    /// The first block that the host sends back in place of turns of it.
    pub block: Option<Position>,
    /// Its tool-using assistant messages, rising.
    pub turns: Vec<Position>,
    pub end: ChainEnd,
}

impl Chain {
    /// Where it begins.
    #[must_use]
    pub fn start(&self) -> Position {
        self.anchor.or(self.first_turn()).unwrap_or(0)
    }

    /// Where its first turn stands, or a block in place of it; `None`: the model has not begun to
    /// work on it.
    #[must_use]
    pub fn first_turn(&self) -> Option<Position> {
        let turns = self.turns.first().copied();
        self.block.into_iter().chain(turns).min()
    }
}

/// How a chain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainEnd {
    /// Not yet.
    Open,
    /// With the final reply at this position.
    Closed(Position),
    /// With another prompt at this position, before any final reply.
    Interrupted(Position),
}
