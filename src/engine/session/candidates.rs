//! The chains that may come to be compressed. Each is looked at until it is known what becomes of
//! it, so that a flush does not look at the whole session.

use super::Session;
use super::spans::Candidate;
use crate::engine::block::Block;
use crate::engine::ids::BlockId;
use crate::engine::transcript::{Chain, ChainEnd};

impl Session {
    /// Enters the last chain, when a message has been appended.
    pub(super) fn note_candidate(&mut self) {
        let Some((index, _)) = self.last_chain() else {
            return;
        };
        let last = self.transcript.len().saturating_sub(1);
        match self.transcript.chains().get(index) {
            Some(Chain {
                end: ChainEnd::Closed(reply),
                ..
            }) if *reply == last => {
                self.blocks.unclosed.remove(&index);
                self.blocks.candidates.insert(index);
            }
            Some(Chain {
                end: ChainEnd::Open,
                turns,
                ..
            }) if !turns.is_empty() => {
                self.blocks.unclosed.insert(index);
            }
            Some(_) | None => {}
        }
    }

    /// Enters all chains anew.
    pub(super) fn renew_candidates(&mut self) {
        self.blocks.candidates.clear();
        self.blocks.unclosed.clear();
        for (index, chain) in self.transcript.chains().iter().enumerate() {
            match chain.end {
                ChainEnd::Closed(_) => self.blocks.candidates.insert(index),
                ChainEnd::Open | ChainEnd::Interrupted(_) => self.blocks.unclosed.insert(index),
            };
        }
    }

    /// A block stands for these chains now.
    pub(super) fn forget_candidates(&mut self, id: BlockId) {
        for index in self.chains_of(id) {
            self.blocks.candidates.remove(&index);
        }
    }

    /// The closed chains that a placed block stands for, by index.
    pub(super) fn chains_of(&self, id: BlockId) -> Vec<usize> {
        let block = self.blocks.all.get(&id);
        let replies = block.map_or(&[][..], Block::replies).iter();
        replies
            .filter_map(|reply| self.transcript.chain_at(*reply))
            .collect()
    }

    /// Leaves out the chains for which nothing will change any more: those whose boundaries are not
    /// to be found, that have been decided on, or whose outputs are all protected.
    pub(super) fn forget_hopeless(&mut self) {
        if !self.config.chain_compression.enabled {
            return;
        }
        for index in self.closed_due() {
            let chain = self.transcript.chains().get(index);
            let candidate = chain.and_then(|chain| self.closed_candidate(chain));
            if self.is_hopeless(candidate.as_ref()) {
                self.blocks.candidates.remove(&index);
            }
        }
        for index in self.blocks.unclosed.clone() {
            let Some(chain) = self.transcript.chains().get(index) else {
                continue;
            };
            let Some(before) = self.due_before(index) else {
                continue;
            };
            let is_over = matches!(chain.end, ChainEnd::Interrupted(_))
                && chain.turns.last().is_none_or(|last| *last < before);
            let candidate = self.open_candidate(chain, before, self.transcript.len());
            if is_over && self.is_hopeless(candidate.as_ref()) {
                self.blocks.unclosed.remove(&index);
            }
        }
    }

    fn is_hopeless(&self, candidate: Option<&Candidate>) -> bool {
        candidate.is_none_or(|candidate| {
            self.blocks.decided.contains(&candidate.extent) || self.is_all_protected(candidate)
        })
    }
}
