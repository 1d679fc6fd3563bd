//! Blocks: from their entries to what they stand for.

use super::archive::{BatchId, Member, Record};
use super::blocks::Dropped;
use super::{Changes, Facts};
use crate::engine::block::{Block, Extent, Outline, Validity};
use crate::engine::delimiter::{ELEMENTS, disarm};
use crate::engine::entry;
use crate::engine::ids::{BlockId, EntryId, OccurrenceKey, Ref};
use crate::engine::map::Set;

impl Facts {
    pub(super) fn apply_chain(
        &mut self,
        entry: EntryId,
        chain: &entry::Chain,
        changes: &mut Changes,
    ) {
        let Some(id) = BlockId::parse(&chain.block_id) else {
            return;
        };
        for superseded in chain.supersedes.iter().filter_map(|id| BlockId::parse(id)) {
            if self.blocks.supersede(superseded) {
                changes.retired.push(superseded);
            }
        }
        let refs: Vec<Ref> = chain
            .tool_refs
            .iter()
            .filter_map(|name| Ref::parse(name))
            .collect();
        let dropped = Dropped::of(chain.dropped_occurrence_keys.as_deref());
        let written = chain.range_summary_text.as_ref().or(chain.body.as_ref());
        let body = match written {
            Some(body) => with_safe_tags(body),
            None => self.body_from_log(&refs, &dropped),
        };
        self.claim_batches(id, &refs, &dropped);
        let protected = protected_in(chain);
        self.blocks.add(Block {
            id,
            entry,
            extents: extents_of(chain),
            refs,
            dropped: self.members_dropped(chain, &protected),
            protected,
            body,
            compressed_at_ms: chain.compressed_at,
            validity: Validity::InForce,
        });
        changes.blocks.push(id);
    }

    /// The body of a block whose entry has none: its summaries as they stand, or an outline.
    ///
    /// A ref may be there for a duplicate only: the summary of its original is not of this chain.
    fn body_from_log(&self, refs: &[Ref], dropped: &Dropped<'_>) -> String {
        let is_own = |name: &Ref| {
            let record = self.archive.named(*name);
            let record = record.and_then(|id| self.archive.record(id));
            record.is_none_or(|record| dropped.has(&record.key))
        };
        let mut batches: Vec<BatchId> = Vec::new();
        for name in refs.iter().filter(|name| is_own(name)) {
            if let Some(batch) = self.archive.batch_named(*name)
                && !batches.contains(&batch)
            {
                batches.push(batch);
            }
        }
        let contents: Vec<&str> = batches
            .into_iter()
            .filter_map(|batch| self.summary_text(batch))
            .collect();
        if contents.is_empty() {
            return self.outline_of(refs).write();
        }
        with_safe_tags(&contents.join("\n\n"))
    }

    fn outline_of(&self, refs: &[Ref]) -> Outline<'_> {
        let records: Vec<&Record> = refs
            .iter()
            .filter_map(|name| self.archive.record(self.archive.named(*name)?))
            .collect();
        let mut tools: Vec<(&str, usize)> = Vec::new();
        for record in &records {
            match tools.iter_mut().find(|(tool, _)| *tool == record.tool) {
                Some((_, n)) => *n += 1,
                None => tools.push((&record.tool, 1)),
            }
        }
        let time = |record: Option<&&Record>| record.map_or(0, |record| record.turn_at_ms);
        let tool = |record: Option<&&Record>| record.map_or("", |record| &record.tool).to_owned();
        let mut turns: Vec<u32> = records.iter().map(|record| record.turn_index).collect();
        turns.dedup();
        Outline {
            turns: turns.len(),
            errors: records.iter().filter(|record| record.is_error).count(),
            tools,
            from_ms: time(records.first()),
            to_ms: time(records.last()),
            first: tool(records.first()),
            last: tool(records.last()),
        }
    }

    /// The archived results among those that a chain names as dropped; `None` if it names none, or any
    /// that is neither archived nor protected: what it means then is for the span to tell.
    fn members_dropped(
        &self,
        chain: &entry::Chain,
        protected: &[OccurrenceKey],
    ) -> Option<Vec<Member>> {
        let mut members = Set::new();
        for key in chain.dropped_occurrence_keys.as_ref()? {
            let key = OccurrenceKey::parse(key);
            match self.archive.member(&key) {
                Some(member) => {
                    members.insert(member);
                }
                None if protected.contains(&key) => {}
                None => return None,
            }
        }
        Some(members.into_iter().collect())
    }

    /// Hands the batches to a block all of whose results it takes out of the context. `dropped` says
    /// which these are, as `id@ms`; old logs do not, and there the refs have to do.
    ///
    /// A ref may be there for a duplicate only: its original, and its summary, stand elsewhere.
    fn claim_batches(&mut self, id: BlockId, refs: &[Ref], dropped: &Dropped<'_>) {
        let mut named = Set::new();
        named.extend(refs.iter().copied());
        let mut batches = Set::new();
        batches.extend(
            refs.iter()
                .filter_map(|name| self.archive.batch_named(*name)),
        );
        for batch in batches {
            let all = self
                .archive
                .records_of(batch)
                .all(|record| named.contains(&record.name) && dropped.has(&record.key));
            if all && let Some(batch) = self.archive.batch_mut(batch) {
                batch.block = Some(id);
            }
        }
    }

    /// The batches whose place a block takes.
    #[must_use]
    pub fn batches_in(&self, id: BlockId) -> Vec<BatchId> {
        let Some(block) = self.blocks.get(id) else {
            return Vec::new();
        };
        let mut batches: Vec<BatchId> = Vec::new();
        let named = block.refs.iter();
        for batch in named.filter_map(|name| self.archive.batch_named(*name)) {
            let owner = self.archive.batch(batch).and_then(|batch| batch.block);
            if owner == Some(id) && !batches.contains(&batch) {
                batches.push(batch);
            }
        }
        batches
    }

    /// Withdraws a block for good, at the user's word.
    pub(super) fn undo_block(&mut self, id: BlockId, changes: &mut Changes) {
        for batch in self.batches_in(id) {
            if let Some(batch) = self.archive.batch_mut(batch) {
                batch.block = None;
            }
            changes.reopened.push(batch);
        }
        if self.blocks.undo(id) {
            changes.retired.push(id);
        }
    }
}

fn protected_in(chain: &entry::Chain) -> Vec<OccurrenceKey> {
    if let Some(keys) = &chain.protected_occurrence_keys {
        return keys.iter().map(|key| OccurrenceKey::parse(key)).collect();
    }
    let ids = chain.protected_tool_call_ids.iter();
    let bare = |id: &String| OccurrenceKey {
        call_id: id.clone(),
        at_ms: None,
    };
    ids.map(bare).collect()
}

fn extents_of(chain: &entry::Chain) -> Vec<Extent> {
    if !chain.merged.is_empty() {
        return chain
            .merged
            .iter()
            .map(|merged| Extent::Chain {
                anchor_at_ms: merged.start_user_timestamp,
                reply_at_ms: merged.final_assistant_timestamp,
            })
            .collect();
    }
    vec![match chain.first_turn_timestamp {
        Some(first_at_ms) => Extent::Turns {
            first_at_ms,
            last_at_ms: chain.final_assistant_timestamp,
        },
        None => Extent::Chain {
            anchor_at_ms: chain.start_user_timestamp,
            reply_at_ms: chain.final_assistant_timestamp,
        },
    }]
}

/// Disarms a body that another program wrote; what this one writes has no live tag in it.
fn with_safe_tags(body: &str) -> String {
    let lower = body.to_ascii_lowercase();
    let has_tag = ELEMENTS
        .iter()
        .any(|name| lower.contains(&format!("<{name}")) || lower.contains(&format!("</{name}")));
    if has_tag {
        disarm(body).into_owned()
    } else {
        body.to_owned()
    }
}
