//! The tree of everything that was pruned.

use super::{CommandError, Session};
use crate::engine::block::Validity;
use crate::engine::facts::{BatchId, Facts, Member, RecordId, Standing};
use crate::engine::host::Host;
use crate::engine::ids::{BlockId, Ref};
use crate::engine::map::Map;

/// What a node of the tree stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    Block,
    Summary,
    Call,
    Alias,
}

/// A node of the tree of everything that was pruned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub kind: NodeKind,
    /// Block or ref; empty for a summary.
    pub name: String,
    /// One line without the name.
    pub label: String,
    /// Index of the parent, which comes earlier.
    pub parent: Option<u32>,
    pub call_id: String,
}

/// What a node's text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Block(BlockId),
    Summary(BatchId),
    Call(Member),
}

/// The rows of a tree, each parent before its children.
struct Rows<'a> {
    facts: &'a Facts,
    rows: Vec<(Node, Source)>,
}

impl Session {
    /// The tree of blocks, summaries, calls and aliases, each parent before its children.
    #[must_use]
    pub fn tree(&self) -> Vec<Node> {
        let rows = Rows::of(&self.basis.facts).rows;
        rows.into_iter().map(|(node, _)| node).collect()
    }

    /// The text of a node, by its index in [`Session::tree`]: of a summary what it says, of a block
    /// its body, of a call or an alias its original, byte for byte.
    ///
    /// # Errors
    /// There is no such node, or its text cannot be read.
    pub fn node_text(&mut self, index: u32, host: &mut dyn Host) -> Result<String, CommandError> {
        let missing = || CommandError::NotFound(format!("node {index}"));
        let rows = Rows::of(&self.basis.facts).rows;
        let (_, source) = rows.get(index as usize).ok_or_else(missing)?;
        match *source {
            Source::Block(id) => {
                let block = self.basis.facts.blocks().get(id);
                block.map(|block| block.body.clone()).ok_or_else(missing)
            }
            Source::Summary(batch) => self.basis.summary_text(batch, host).ok_or_else(|| {
                let why = "the summary is not in the session log";
                CommandError::Unreadable(why.to_owned())
            }),
            Source::Call(member) => {
                let original = self.original_text(member, host);
                original.map_err(|err| CommandError::Unreadable(err.to_string()))
            }
        }
    }
}

impl<'a> Rows<'a> {
    fn of(facts: &'a Facts) -> Self {
        let mut rows = Self {
            facts,
            rows: Vec::new(),
        };
        let (blocks, owners) = rows.add_blocks();
        for (id, batch) in facts.archive().batches() {
            let parent = batch.block.and_then(|id| blocks.get(&id).copied());
            let label = format!("turn {} · {} calls", batch.turn_index, batch.records.len());
            let node = Node {
                kind: NodeKind::Summary,
                name: String::new(),
                label,
                parent,
                call_id: String::new(),
            };
            let own = rows.push(node, Source::Summary(id));
            for record in &batch.records {
                rows.add_record(*record, Some(own));
            }
        }
        for (id, record) in facts.archive().records() {
            if !matches!(record.standing, Standing::Summarized { .. }) {
                rows.add_record(id, owners.get(&record.name).copied());
            }
        }
        rows
    }

    /// Adds the blocks in force. Returns their rows, and those of the blocks that name a record, the
    /// first one each.
    fn add_blocks(&mut self) -> (Map<BlockId, u32>, Map<Ref, u32>) {
        let mut blocks = Map::new();
        let mut owners = Map::new();
        for block in self.facts.blocks().all() {
            if block.validity != Validity::InForce {
                continue;
            }
            let node = Node {
                kind: NodeKind::Block,
                name: block.id.to_string(),
                label: format!("{} outputs", block.refs.len()),
                parent: None,
                call_id: String::new(),
            };
            let row = self.push(node, Source::Block(block.id));
            blocks.insert(block.id, row);
            for name in &block.refs {
                owners.insert_new(*name, row);
            }
        }
        (blocks, owners)
    }

    fn add_record(&mut self, id: RecordId, parent: Option<u32>) {
        let Some(record) = self.facts.archive().record(id) else {
            return;
        };
        let status = if record.is_error { "failed" } else { "ok" };
        let path = record.path.as_deref().unwrap_or_default();
        let label = [record.tool.as_str(), path, status]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" · ");
        let node = Node {
            kind: NodeKind::Call,
            name: record.name.to_string(),
            label,
            parent,
            call_id: record.key.call_id.clone(),
        };
        let own = self.push(node, Source::Call(Member::Record(id)));
        for alias in self.facts.archive().aliases_of(id) {
            let member = Member::Alias(*alias);
            if let Some(alias) = self.facts.archive().alias(*alias) {
                let node = Node {
                    kind: NodeKind::Alias,
                    name: record.name.to_string(),
                    label: format!("same output in turn {}", alias.turn_index),
                    parent: Some(own),
                    call_id: alias.key.call_id.clone(),
                };
                self.push(node, Source::Call(member));
            }
        }
    }

    fn push(&mut self, node: Node, source: Source) -> u32 {
        let row = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        self.rows.push((node, source));
        row
    }
}
