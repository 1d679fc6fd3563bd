//! Blocks: which spans the log has compressed, and what it has taken back.

use crate::engine::block::{self, Block, Extent, Validity};
use crate::engine::ids::{BlockId, OccurrenceKey};
use crate::engine::map::{Map, Set};

/// The blocks of the log.
#[derive(Debug, Default)]
pub struct Blocks {
    all: Map<BlockId, Block>,
    last_id: u32,
    /// Which blocks quote a block.
    quoted_by: Map<BlockId, Vec<BlockId>>,
    /// The blocks that end at a timestamp.
    ends: Map<u64, Vec<BlockId>>,
    /// Spans that a block has been made for.
    extents: Set<Extent>,
    /// Timestamps of the first messages of spans that the user has taken back.
    undone: Set<u64>,
}

impl Blocks {
    #[must_use]
    pub fn get(&self, id: BlockId) -> Option<&Block> {
        self.all.get(&id)
    }

    /// All blocks, in the order of their names.
    pub fn all(&self) -> impl Iterator<Item = &Block> {
        self.all.values()
    }

    /// The last name that was given out; `b0` if none was.
    #[must_use]
    pub fn last_id(&self) -> BlockId {
        BlockId(self.last_id)
    }

    /// The blocks whose bodies quote a block.
    #[must_use]
    pub fn quoting(&self, id: BlockId) -> &[BlockId] {
        self.quoted_by.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The blocks whose span ends with a message of this timestamp.
    #[must_use]
    pub fn ending_at(&self, at_ms: u64) -> &[BlockId] {
        self.ends.get(&at_ms).map_or(&[], Vec::as_slice)
    }

    /// Whether a block has ever been made for a span.
    #[must_use]
    pub fn has_made(&self, extent: &Extent) -> bool {
        self.extents.contains(extent)
    }

    /// Whether the user has taken back a span that began with a message of this timestamp.
    #[must_use]
    pub fn is_undone(&self, first_at_ms: u64) -> bool {
        self.undone.contains(&first_at_ms)
    }

    pub(super) fn reserve(&mut self, id: BlockId) {
        self.last_id = self.last_id.max(id.0);
    }

    pub(super) fn add(&mut self, block: Block) {
        for quoted in block::mentions(&block.body) {
            self.quoted_by.update(quoted, |ids| ids.push(block.id));
        }
        for extent in &block.extents {
            self.extents.insert(*extent);
            self.ends.update(extent.end_ms(), |ids| ids.push(block.id));
        }
        self.all.insert(block.id, block);
    }

    /// Puts a block out of the way of the one that takes its place. Says whether there is one.
    pub(super) fn supersede(&mut self, id: BlockId) -> bool {
        let block = self.all.get_mut(&id);
        block
            .map(|block| block.validity = Validity::Superseded)
            .is_some()
    }

    /// Takes a block back for good. Says whether there is one.
    pub(super) fn undo(&mut self, id: BlockId) -> bool {
        let Some(block) = self.all.get_mut(&id) else {
            return false;
        };
        block.validity = Validity::Undone;
        self.undone
            .extend(block.extents.iter().map(Extent::start_ms));
        true
    }
}

/// The results that a block takes out of the context, as its entry has them.
pub struct Dropped<'a>(Option<Set<&'a str>>);

impl<'a> Dropped<'a> {
    /// `keys` are `id@ms`; old logs have none, and there any result that the block names counts.
    #[must_use]
    pub fn of(keys: Option<&'a [String]>) -> Self {
        Self(keys.map(|keys| {
            let mut set = Set::new();
            set.extend(keys.iter().map(String::as_str));
            set
        }))
    }

    #[must_use]
    pub fn has(&self, result: &OccurrenceKey) -> bool {
        let Some(keys) = &self.0 else {
            return true;
        };
        keys.contains(result.to_string().as_str())
    }
}
