//! The chains that may come to be compressed. Each is looked at until it is known what becomes of
//! it, so that a flush does not look at the whole session.

use super::View;
use crate::engine::basis::Basis;
use crate::engine::ids::BlockId;
use crate::engine::map::Set;
use crate::engine::transcript::{ChainEnd, ChainId};

/// The chains, by what is known of their end.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Closed chains that a block may come to stand for.
    closed: Set<ChainId>,
    /// Chains that are not closed, as long as a block may come to stand for their turns.
    unclosed: Set<ChainId>,
}

impl Candidates {
    /// Enters the last chain, when a message has been appended.
    pub(super) fn note(&mut self, basis: &Basis) {
        let Some((id, chain)) = basis.transcript.last_chain() else {
            return;
        };
        let last = basis.transcript.len().saturating_sub(1);
        match chain.end {
            ChainEnd::Closed(reply) if reply == last => {
                self.unclosed.remove(&id);
                self.closed.insert(id);
            }
            ChainEnd::Open if !chain.turns.is_empty() => {
                self.unclosed.insert(id);
            }
            ChainEnd::Closed(_) | ChainEnd::Open | ChainEnd::Interrupted(_) => {}
        }
    }

    /// Enters all chains.
    pub(super) fn renew(&mut self, basis: &Basis) {
        for (id, chain) in basis.transcript.chains() {
            match chain.end {
                ChainEnd::Closed(_) => self.closed.insert(id),
                ChainEnd::Open | ChainEnd::Interrupted(_) => self.unclosed.insert(id),
            };
        }
    }
}

impl View {
    /// Closed chains that a block may come to stand for, up to and with one.
    pub fn closed_candidates(&self, last: ChainId) -> impl Iterator<Item = ChainId> {
        self.candidates.closed.range(..=last).copied()
    }

    /// Closed chains that a block may come to stand for, behind one.
    pub fn closed_candidates_behind(&self, last: Option<ChainId>) -> impl Iterator<Item = ChainId> {
        let from = last.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        let range = (from, std::ops::Bound::Unbounded);
        self.candidates.closed.range(range).copied()
    }

    /// Chains that are not closed, as long as a block may come to stand for their turns.
    pub fn unclosed_candidates(&self) -> impl Iterator<Item = ChainId> {
        self.candidates.unclosed.iter().copied()
    }

    /// Nothing will change for a chain any more.
    pub fn forget_candidate(&mut self, id: ChainId) {
        self.candidates.closed.remove(&id);
        self.candidates.unclosed.remove(&id);
    }

    /// A block stands for these chains now.
    pub(super) fn forget_candidates(&mut self, basis: &Basis, id: BlockId) {
        for chain in self.chains_of(basis, id) {
            self.candidates.closed.remove(&chain);
        }
    }

    /// The closed chains that a placed block stands for.
    #[must_use]
    pub fn chains_of(&self, basis: &Basis, id: BlockId) -> Vec<ChainId> {
        let replies = self.layout.blocks.replies_of(id).iter();
        replies
            .filter_map(|reply| basis.transcript.chain_at(*reply))
            .collect()
    }
}
