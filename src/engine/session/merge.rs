//! Fusing adjacent compressed chains to one block.

use std::collections::BTreeSet;

use super::Session;
use super::flush::{Ask, Body, SpanWork};
use crate::engine::block::Extent;
use crate::engine::ids::{BlockId, Ref};
use crate::engine::prompt::range_prompt;
use crate::engine::summary;
use crate::engine::transcript::ChainEnd;

impl Session {
    /// Fuses adjacent compressed chains to one block, if there are enough of them.
    pub(super) fn plan_merge(&mut self, now_ms: u64) {
        let Some(after) = self.config.chain_compression.merge_after else {
            return;
        };
        let row = self.adjacent_blocks();
        if row.len() < after as usize {
            return;
        }
        let blocks: Vec<_> = row
            .iter()
            .filter_map(|id| self.blocks.all.get(id))
            .collect();
        let bodies: Vec<&str> = blocks
            .iter()
            .map(|block| summary::body_of(&block.body))
            .collect();
        let mut seen = BTreeSet::new();
        let refs: Vec<Ref> = blocks
            .iter()
            .flat_map(|block| block.refs.iter().copied())
            .filter(|name| seen.insert(*name))
            .collect();
        let extents: Vec<Extent> = blocks
            .iter()
            .flat_map(|block| block.extents.iter().copied())
            .collect();
        let protected = blocks
            .iter()
            .flat_map(|block| self.shown_in(block))
            .collect();
        let prompt = range_prompt(&bodies);
        let fallback = bodies.join("\n\n");
        let model = self.choose_model(now_ms);
        self.blocks.last_id += 1;
        let span = SpanWork {
            id: BlockId(self.blocks.last_id),
            extents,
            from: 0,
            to: 0,
            refs,
            backfill: Vec::new(),
            protected,
            supersedes: row,
            body: Body::Fused {
                prompt,
                ask: Ask::Queued { model },
                fallback,
            },
        };
        if let Some(flush) = &mut self.flush {
            flush.spans.push(span);
        }
    }

    /// The newest row of compressed chains without another closed chain between them, oldest first.
    /// Costs what the row has of blocks, however many chains these stand for.
    fn adjacent_blocks(&self) -> Vec<BlockId> {
        let mut row: Vec<BlockId> = Vec::new();
        let finished = self.transcript.finished_chains();
        let newest = self.blocks.replies.keys().next_back().copied();
        let mut next = newest.and_then(|reply| self.transcript.chain_at(reply));
        while let Some(index) = next {
            let chain = self.transcript.chains().get(index);
            let Some(ChainEnd::Closed(reply)) = chain.map(|chain| chain.end) else {
                break;
            };
            let Some(id) = self.blocks.replies.get(&reply).copied() else {
                break;
            };
            let chains = self.chains_of(id);
            if chains.len() > 1 {
                // What was merged once is left alone: a flush must not cost what came before it.
                break;
            }
            row.push(id);
            let first = chains.into_iter().min().unwrap_or(index);
            let older = finished.partition_point(|other| *other < first.min(index));
            next = older
                .checked_sub(1)
                .and_then(|at| finished.get(at))
                .copied();
        }
        row.reverse();
        row
    }
}
