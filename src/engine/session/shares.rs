//! What the chains hold of the context, kept in step message by message: whoever asks for the
//! largest does not look at the others.

use std::collections::BTreeSet;

use super::{Position, Session};

/// UTF-16 code units that the model sees, by message and by chain.
#[derive(Debug, Default)]
pub(super) struct Shares {
    messages: Vec<u64>,
    chains: Vec<u64>,
    ranked: BTreeSet<(u64, usize)>,
}

impl Shares {
    /// Sets what the model sees of a message, which belongs to the chain of this index.
    fn set(&mut self, at: Position, chain: Option<usize>, chars: u64) {
        let before = put(&mut self.messages, at, chars);
        let Some(chain) = chain.filter(|_| before != chars) else {
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

    /// The chain of this index is gone, or another one is in its place.
    fn forget(&mut self, chain: usize) {
        self.rank(chain, 0);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
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

impl Session {
    /// Notes what the model sees of a message that has been decided on.
    pub(super) fn note_share(&mut self, at: Position, is_covered: bool) {
        let chars = if is_covered {
            0
        } else {
            self.rendered(at).chars
        };
        let chain = self.transcript.chain_at(at);
        self.shares.set(at, chain, chars);
    }

    /// What the last chain is known by while a message is appended.
    pub(super) fn last_chain(&self) -> Option<(usize, Position)> {
        let chains = self.transcript.chains();
        chains.last().map(|last| (chains.len() - 1, last.start()))
    }

    /// A chain that never came to use a tool makes room for the next one.
    pub(super) fn note_last_chain(&mut self, before: Option<(usize, Position)>) {
        let Some((index, start)) = before else {
            return;
        };
        let stands = self.transcript.chains().get(index);
        if stands.is_none_or(|chain| chain.start() != start) {
            self.shares.forget(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_chain_is_known_whatever_changes() {
        let mut shares = Shares::default();
        assert_eq!(shares.largest(), 0);
        for (at, chain, chars, largest) in [
            (0, Some(0), 10, 10),
            (1, Some(0), 90, 100),
            (2, None, 500, 100),
            (3, Some(1), 70, 100),
            (1, Some(0), 20, 70),
            (3, Some(1), 0, 30),
        ] {
            shares.set(at, chain, chars);
            assert_eq!(shares.largest(), largest, "after {at}");
        }
        shares.forget(0);
        assert_eq!(shares.largest(), 0);
        shares.set(4, Some(0), 5);
        assert_eq!(shares.largest(), 5);
    }
}
