//! Fusing adjacent compressed chains to one block.

use super::{Ask, Body, Flush, Models, Scene, SpanWork};
use crate::engine::block::Extent;
use crate::engine::ids::{BlockId, Ref};
use crate::engine::map::Set;
use crate::engine::prompt::range_prompt;
use crate::engine::summary;
use crate::engine::transcript::ChainEnd;

impl Flush {
    /// Fuses adjacent compressed chains to one block, if there are enough of them.
    pub(super) fn plan_merge(&mut self, scene: Scene<'_>, models: &mut Models, now_ms: u64) {
        let Some(after) = scene.basis.rules.config.chain_compression.merge_after else {
            return;
        };
        let row = scene.adjacent_blocks();
        if row.len() < after as usize {
            return;
        }
        let known = scene.basis.facts.blocks();
        let blocks: Vec<_> = row.iter().filter_map(|id| known.get(*id)).collect();
        let bodies: Vec<&str> = blocks
            .iter()
            .map(|block| summary::body_of(&block.body))
            .collect();
        let mut seen = Set::new();
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
            .flat_map(|block| scene.view.shown_in(scene.basis, block))
            .collect();
        let prompt = range_prompt(&bodies);
        let fallback = bodies.join("\n\n");
        let model = models.choose(&scene.basis.rules, now_ms);
        self.last_block = BlockId(self.last_block.0 + 1);
        self.spans.push(SpanWork {
            id: self.last_block,
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
        });
    }
}

impl Scene<'_> {
    /// The newest row of compressed chains without another closed chain between them, oldest first.
    /// Costs what the row has of blocks, however many chains these stand for.
    fn adjacent_blocks(self) -> Vec<BlockId> {
        let mut row: Vec<BlockId> = Vec::new();
        let finished = self.basis.transcript.finished_chains();
        let blocks = &self.view.layout().blocks;
        let newest = blocks.last_reply();
        let mut next = newest.and_then(|reply| self.basis.transcript.chain_at(reply));
        while let Some(chain) = next {
            let end = self.basis.transcript.chain(chain).map(|chain| chain.end);
            let Some(ChainEnd::Closed(reply)) = end else {
                break;
            };
            let Some(id) = blocks.closed_by(reply) else {
                break;
            };
            let chains = self.view.chains_of(self.basis, id);
            if chains.len() > 1 {
                // What was merged once is left alone: a flush must not cost what came before it.
                break;
            }
            row.push(id);
            let first = chains.into_iter().min().unwrap_or(chain);
            let older = finished.partition_point(|other| *other < first.min(chain));
            next = older
                .checked_sub(1)
                .and_then(|at| finished.get(at))
                .copied();
        }
        row.reverse();
        row
    }
}
