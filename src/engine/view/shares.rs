//! What the chains hold of the context, kept in step message by message: whoever asks for the
//! largest does not look at the others.

use crate::engine::map::Set;
use crate::engine::transcript::{ChainId, Position};

/// UTF-16 code units that the model sees, by message and by chain.
#[derive(Debug, Default)]
pub(super) struct Shares {
    messages: Vec<u64>,
    chains: Vec<u64>,
    ranked: Set<(u64, usize)>,
}

impl Shares {
    /// Sets what the model sees of a message, which belongs to this chain.
    pub(super) fn set(&mut self, at: Position, chain: Option<ChainId>, chars: u64) {
        let before = put(&mut self.messages, at, chars);
        let Some(chain) = chain.map(ChainId::index).filter(|_| before != chars) else {
            return;
        };
        let known = self.chains.get(chain).copied().unwrap_or(0);
        self.rank(chain, (known + chars).saturating_sub(before));
    }

    fn rank(&mut self, chain: usize, chars: u64) {
        let before = put(&mut self.chains, chain, chars);
        self.ranked.remove(&(before, chain));
        self.ranked.insert((chars, chain));
    }

    /// A chain is gone, or another one is in its place.
    pub(super) fn forget(&mut self, chain: ChainId) {
        self.rank(chain.index(), 0);
    }

    /// What the largest chain holds.
    pub(super) fn largest(&self) -> u64 {
        self.ranked.last().map_or(0, |(chars, _)| *chars)
    }
}

/// Puts a value into a row, which is made longer with zeros. Returns what stood there.
fn put(row: &mut Vec<u64>, index: usize, value: u64) -> u64 {
    if index >= row.len() {
        row.resize(index + 1, 0);
    }
    row.get_mut(index)
        .map_or(0, |known| std::mem::replace(known, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_chain_is_known_whatever_changes() {
        let mut shares = Shares::default();
        assert_eq!(shares.largest(), 0);
        let (first, second) = (ChainId::numbered(0), ChainId::numbered(1));
        for (at, chain, chars, largest) in [
            (0, Some(first), 10, 10),
            (1, Some(first), 90, 100),
            (2, None, 500, 100),
            (3, Some(second), 70, 100),
            (1, Some(first), 20, 70),
            (3, Some(second), 0, 30),
        ] {
            shares.set(at, chain, chars);
            assert_eq!(shares.largest(), largest, "after {at}");
        }
        shares.forget(first);
        assert_eq!(shares.largest(), 0);
        shares.set(4, Some(first), 5);
        assert_eq!(shares.largest(), 5);
    }
}
