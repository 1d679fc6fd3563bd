//! Where the blocks stand in the transcript.

use crate::engine::block::Block;
use crate::engine::ids::BlockId;
use crate::engine::map::{Map, Set};
use crate::engine::size::Size;
use crate::engine::transcript::Position;

/// Where a block stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The block's message follows this position.
    pub behind: Position,
    /// Runs of dropped messages, rising.
    pub runs: Vec<Run>,
    /// The final replies, which stay; empty while the chain is open.
    pub replies: Vec<Position>,
}

impl Placement {
    /// The dropped messages, rising.
    pub fn dropped(&self) -> impl Iterator<Item = Position> {
        self.runs.iter().flat_map(|run| run.positions())
    }
}

/// The half-open range `from..to` of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub from: Position,
    pub to: Position,
}

impl Run {
    /// Joins rising positions to runs.
    #[must_use]
    pub fn join(positions: &[Position]) -> Vec<Self> {
        let mut runs: Vec<Self> = Vec::new();
        for &at in positions {
            match runs.last_mut() {
                Some(last) if last.to == at => last.to = at + 1,
                Some(_) | None => runs.push(Self {
                    from: at,
                    to: at + 1,
                }),
            }
        }
        runs
    }

    pub fn positions(self) -> impl Iterator<Item = Position> {
        self.from..self.to
    }
}

/// A block that stands in the context.
#[derive(Clone, Debug)]
pub struct Placed {
    pub placement: Placement,
    /// What it stands for, as the model would see it.
    pub stood: Size,
    /// Its message.
    pub size: Size,
}

/// The blocks that stand in the context, and the messages that they cover.
#[derive(Debug, Default)]
pub struct Placements {
    placed: Map<BlockId, Placed>,
    /// Dropped runs: where each begins, where it ends, and whose it is.
    runs: Map<Position, (Position, BlockId)>,
    /// Final replies of compressed chains.
    replies: Map<Position, BlockId>,
    /// Blocks in force whose span was not found when last looked for.
    unplaced: Set<BlockId>,
}

impl Placements {
    #[must_use]
    pub fn get(&self, id: BlockId) -> Option<&Placed> {
        self.placed.get(&id)
    }

    #[must_use]
    pub fn is_placed(&self, id: BlockId) -> bool {
        self.placed.contains_key(&id)
    }

    /// How many blocks stand.
    #[must_use]
    pub fn count(&self) -> usize {
        self.placed.len()
    }

    /// The messages that a block takes out of the context, rising; none if it does not stand.
    pub fn dropped(&self, id: BlockId) -> impl Iterator<Item = Position> {
        let placed = self.placed.get(&id).into_iter();
        placed.flat_map(|placed| placed.placement.dropped())
    }

    /// The final replies that stay behind a block.
    #[must_use]
    pub fn replies_of(&self, id: BlockId) -> &[Position] {
        let placed = self.placed.get(&id);
        placed.map_or(&[], |placed| &placed.placement.replies)
    }

    /// The block that covers a position.
    #[must_use]
    pub fn covering(&self, at: Position) -> Option<BlockId> {
        let (_, (to, id)) = self.runs.range(..=at).next_back()?;
        (at < *to).then_some(*id)
    }

    /// The blocks whose runs begin in a range, each once.
    #[must_use]
    pub fn beginning_in(&self, from: Position, to: Position) -> Vec<BlockId> {
        let mut ids: Vec<BlockId> = Vec::new();
        for (_, (_, id)) in self.runs.range(from..to) {
            if !ids.contains(id) {
                ids.push(*id);
            }
        }
        ids
    }

    /// The block whose chain a final reply closes.
    #[must_use]
    pub fn closed_by(&self, reply: Position) -> Option<BlockId> {
        self.replies.get(&reply).copied()
    }

    /// The last final reply of a compressed chain.
    #[must_use]
    pub fn last_reply(&self) -> Option<Position> {
        self.replies.keys().next_back().copied()
    }

    /// The blocks that wait for their span.
    pub fn unplaced(&self) -> impl Iterator<Item = BlockId> {
        self.unplaced.iter().copied()
    }

    #[must_use]
    pub fn is_waiting(&self, id: BlockId) -> bool {
        self.unplaced.contains(&id)
    }

    /// A block is in force: it waits for its span.
    pub fn await_span(&mut self, block: &Block) {
        self.unplaced.insert(block.id);
    }

    pub fn enter(&mut self, id: BlockId, placed: Placed) {
        for run in &placed.placement.runs {
            self.runs.insert(run.from, (run.to, id));
        }
        for reply in &placed.placement.replies {
            self.replies.insert(*reply, id);
        }
        self.unplaced.remove(&id);
        self.placed.insert(id, placed);
    }

    /// Takes a block out; it waits for its span again. What it was, if it stood.
    pub fn leave(&mut self, id: BlockId) -> Option<Placed> {
        let placed = self.placed.remove(&id)?;
        for run in &placed.placement.runs {
            self.runs.remove(&run.from);
        }
        for reply in &placed.placement.replies {
            self.replies.remove(reply);
        }
        self.unplaced.insert(id);
        Some(placed)
    }

    /// A block is not in force any more.
    pub fn forget(&mut self, id: BlockId) {
        self.unplaced.remove(&id);
    }

    /// What a covered message would be has changed. Returns the block that covers it, with its
    /// account.
    pub fn restate(&mut self, id: BlockId, before: Size, after: Size) -> Option<&Placed> {
        let placed = self.placed.get_mut(&id)?;
        placed.stood = placed.stood + after - before;
        Some(placed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_join_to_runs() {
        let run = |from, to| Run { from, to };
        for (positions, runs) in [
            (vec![], vec![]),
            (vec![3], vec![run(3, 4)]),
            (
                vec![1, 2, 3, 5, 6, 9],
                vec![run(1, 4), run(5, 7), run(9, 10)],
            ),
        ] {
            assert_eq!(Run::join(&positions), runs);
        }
    }
}
