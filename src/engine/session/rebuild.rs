//! The second half of a load: from the facts of the log to the state of the process before.

use super::Session;
use super::blocks::Dropped;
use super::restore::{EpochMark, Fact, Restoring, Summary, key_of};
use crate::engine::archive::{Alias, Batch, Blob, Record, Standing, Stored};
use crate::engine::block::{Block, Extent, Outline, State};
use crate::engine::delimiter::{ELEMENTS, disarm};
use crate::engine::digest::ContentHash;
use crate::engine::entry;
use crate::engine::ids::{BlockId, EntryId, MAX_NUMBER, OccurrenceKey, Ref};
use crate::engine::protect::path_argument;
use crate::engine::size::Size;
use crate::engine::stub;

impl Session {
    /// Ends the restoring: from here on the transcript may come.
    pub(super) fn finish_restore(&mut self) {
        let Some(mut restoring) = self.restoring.take() else {
            return;
        };
        self.archive.reserve_name(Ref(restoring.last_name));
        self.blocks.last_id = restoring.last_block;
        self.last_flush = restoring.last_flush;
        self.summarizer.stats = restoring.stats;
        for diagnostic in std::mem::take(&mut restoring.diagnosed) {
            self.diagnosed.insert((diagnostic.kind, diagnostic.detail));
        }
        for fact in std::mem::take(&mut restoring.facts) {
            self.apply(fact, &mut restoring);
        }
    }

    fn apply(&mut self, fact: Fact, restoring: &mut Restoring) {
        match fact {
            Fact::Records {
                entry,
                at_ms,
                index,
                hashes,
                summary,
            } => self.apply_records(&entry, at_ms, index, hashes, summary, restoring),
            Fact::Alias {
                entry,
                at_ms,
                alias,
            } => self.apply_alias(entry, at_ms, alias),
            Fact::Chain { entry, chain } => self.apply_chain(entry, &chain, restoring),
            Fact::Frontier(frontier) => {
                for key in frontier.skipped.iter().flatten() {
                    self.account.skipped.insert(OccurrenceKey::parse(key));
                }
                let is_old = frontier.skipped.is_none();
                if is_old && !frontier.last_attempted_tool_call_id.is_empty() {
                    self.load.frontier = Some((
                        frontier.last_attempted_tool_call_id,
                        frontier.last_attempted_timestamp,
                    ));
                }
                if is_old || frontier.epoch_end.is_some() {
                    self.apply_epoch(frontier.epoch_end);
                }
            }
            Fact::Epoch(epoch) => self.apply_epoch(Some(epoch.epoch_end)),
            Fact::Undo(undo) => self.apply_undo(&undo),
        }
    }

    fn apply_epoch(&mut self, mark: Option<String>) {
        self.epoch.mark.clone_from(&mark);
        let epoch = EpochMark::read(mark);
        self.epoch.is_closed = epoch.is_closed;
        self.load.epoch = Some(epoch);
        self.archive.show_everything();
    }

    fn apply_records(
        &mut self,
        entry: &EntryId,
        at_ms: u64,
        index: entry::Index,
        hashes: Vec<ContentHash>,
        summary: Option<usize>,
        restoring: &mut Restoring,
    ) {
        let keys: Vec<OccurrenceKey> = index.tool_calls.iter().map(key_of).collect();
        let is_summarized = !index.backfilled
            && index
                .tool_calls
                .iter()
                .all(|call| call.spill_path.is_none());
        let summary = is_summarized
            .then(|| summary.or_else(|| restoring.summary_for(&keys)))
            .flatten();
        let batch = self.archive.batches().len();
        let mut records = Vec::new();
        for (position, (call, hash)) in index.tool_calls.into_iter().zip(hashes).enumerate() {
            let key = key_of(&call);
            let written = call.short_id.as_deref().and_then(Ref::parse);
            let known = self.known_name(&key);
            let name = written
                .or_else(|| name_in(&index.refs, &key))
                .or_else(|| {
                    let details = &restoring.summaries.get(summary?)?.message.details;
                    name_in(&details.tool_call_refs, &key)
                })
                .or(known)
                .unwrap_or_else(|| self.archive.next_name());
            let standing = if let Some(location) = &call.spill_path {
                Standing::Spilled {
                    stub: stub::spill_stub(
                        &call.tool_name,
                        call.spill_bytes.unwrap_or(0),
                        call.result_preview.as_deref().unwrap_or_default(),
                        location,
                        name,
                    ),
                }
            } else if let Some(refs) = &index.recovered {
                Standing::Recovered { refs: refs.clone() }
            } else if is_summarized {
                Standing::Summarized { batch }
            } else {
                Standing::Archived
            };
            let is_empty =
                call.spill_path.is_none() && hash == ContentHash::of(&call.tool_name, "");
            let mut record = record_of(call, name, key, standing, entry, position, at_ms);
            record.shown = !index.from_next_epoch;
            records.push(self.archive.insert(record, (!is_empty).then_some(hash)));
        }
        if is_summarized {
            let summary = summary.and_then(|at| restoring.summaries.get(at));
            self.apply_batch(records, index.flush, summary);
        }
    }

    /// The name that an occurrence has already: a backfilled result may be summarized later.
    pub(super) fn known_name(&self, key: &OccurrenceKey) -> Option<Ref> {
        let member = self.archive.member(key)?;
        self.archive.original(member).map(|record| record.name)
    }

    fn apply_batch(&mut self, records: Vec<usize>, flush: Option<u32>, summary: Option<&Summary>) {
        let turn_index = records
            .last()
            .and_then(|index| self.archive.record(*index))
            .map_or(0, |record| record.turn_index);
        let batch = self.archive.insert_batch(Batch {
            records,
            summary: summary.map(|summary| summary.entry.clone()),
            summary_size: summary
                .map(|summary| Size::of_text(&summary.message.content))
                .unwrap_or_default(),
            summary_at_ms: summary.map_or(0, |summary| summary.at_ms),
            flush,
            turn_index,
            undone: false,
            active: false,
            block: None,
        });
        if let Some(summary) = summary {
            self.account
                .unseen
                .insert(batch, summary.message.content.clone());
        }
    }

    fn apply_alias(&mut self, entry: EntryId, at_ms: u64, alias: entry::Alias) {
        let original_key = OccurrenceKey {
            call_id: alias.original_tool_call_id,
            at_ms: alias.original_result_timestamp,
        };
        let member = self.archive.member(&original_key).or_else(|| {
            let bare = original_key.at_ms.is_none();
            bare.then(|| self.archive.members_of(&original_key.call_id).last())
                .flatten()
        });
        let original = match member {
            Some(super::Member::Record(index)) => index,
            Some(super::Member::Alias(index)) => match self.archive.alias(index) {
                Some(alias) => alias.original,
                None => return,
            },
            None => return,
        };
        let own = alias.own.unwrap_or_default();
        let has_own = !own.tool_call_id.is_empty();
        let (is_error, turn_index) = match self.archive.record(original) {
            Some(record) if !has_own => (record.is_error, record.turn_index),
            Some(_) | None => (own.is_error, turn_index(&own)),
        };
        self.archive.insert_alias(Alias {
            key: OccurrenceKey {
                call_id: alias.new_tool_call_id,
                at_ms: alias.new_result_timestamp,
            },
            original,
            entry,
            has_own_text: own.raw_hash.is_some() || !own.result_text.is_empty(),
            is_error,
            turn_index,
            archived_at_ms: at_ms,
            shown: !alias.from_next_epoch,
        });
    }

    fn apply_chain(&mut self, entry: EntryId, chain: &entry::Chain, restoring: &Restoring) {
        let Some(id) = BlockId::parse(&chain.block_id) else {
            return;
        };
        for superseded in chain.supersedes.iter().filter_map(|id| BlockId::parse(id)) {
            if let Some(block) = self.blocks.all.get_mut(&superseded) {
                block.state = State::Superseded;
                self.blocks.unplaced.remove(&superseded);
            }
        }
        let refs: Vec<Ref> = chain
            .tool_refs
            .iter()
            .filter_map(|name| Ref::parse(name))
            .collect();
        let dropped = chain.dropped_occurrence_keys.as_deref();
        let written = chain.range_summary_text.as_ref().or(chain.body.as_ref());
        let body = match written {
            Some(body) => with_safe_tags(body),
            None => self.body_from_log(&refs, dropped, restoring),
        };
        let block = Block {
            id,
            entry,
            extents: extents_of(chain),
            refs,
            protected: protected_in(chain),
            body,
            compressed_at_ms: chain.compressed_at,
            state: State::Unplaced,
        };
        self.add_block(block);
        self.claim_batches(id, dropped);
    }

    /// The body of a block whose entry has none: its summaries as they stand, or an outline.
    ///
    /// A ref may be there for a duplicate only: the summary of its original is not of this chain.
    fn body_from_log(
        &self,
        refs: &[Ref],
        dropped: Option<&[String]>,
        restoring: &Restoring,
    ) -> String {
        let dropped = Dropped::of(dropped);
        let is_own = |name: &Ref| {
            let record = self
                .archive
                .named(*name)
                .and_then(|at| self.archive.record(at));
            record.is_none_or(|record| dropped.has(&record.key))
        };
        let mut batches: Vec<usize> = Vec::new();
        for name in refs.iter().filter(|name| is_own(name)) {
            if let Some(batch) = self.batch_named(*name)
                && !batches.contains(&batch)
            {
                batches.push(batch);
            }
        }
        let contents: Vec<&str> = batches
            .iter()
            .filter_map(|batch| self.archive.batch(*batch)?.summary.as_ref())
            .filter_map(|entry| {
                let index = *restoring.summary_at.get(entry)?;
                let summary = restoring.summaries.get(index)?;
                Some(summary.message.content.as_str())
            })
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

    /// The batch whose summary covers a record.
    pub(super) fn batch_named(&self, name: Ref) -> Option<usize> {
        match self.archive.record(self.archive.named(name)?)?.standing {
            Standing::Summarized { batch } => Some(batch),
            Standing::Spilled { .. } | Standing::Recovered { .. } | Standing::Archived => None,
        }
    }

    /// The committed batch that a summary message speaks of.
    pub(super) fn batch_of(&self, details: &entry::SummaryDetails) -> Option<usize> {
        let first = details.tool_call_refs.first()?;
        let name = Ref::parse(&first.short_id)?;
        let batch = self.batch_named(name)?;
        let Batch { records, flush, .. } = self.archive.batch(batch)?;
        let names_record = |(named, index): (&entry::SummaryRef, &usize)| {
            self.archive.record(*index).is_some_and(|record| {
                record.name.to_string() == named.short_id
                    && record.key.call_id == named.tool_call_id
                    && record.key.at_ms == named.result_timestamp
            })
        };
        let refs = &details.tool_call_refs;
        let is_whole = refs.len() == records.len() && refs.iter().zip(records).all(names_record);
        let is_from_it = details.flush.is_none() || details.flush == *flush;
        (is_whole && is_from_it).then_some(batch)
    }

    fn apply_undo(&mut self, undo: &entry::Undo) {
        if let Some(id) = undo.block_id.as_deref().and_then(BlockId::parse) {
            self.mark_undone(id);
        }
        for name in undo.refs.iter().filter_map(|name| Ref::parse(name)) {
            if let Some(batch) = self.batch_named(name)
                && let Some(batch) = self.archive.batch_mut(batch)
            {
                batch.undone = true;
            }
        }
        if undo.epoch_end.is_some() {
            self.apply_epoch(undo.epoch_end.clone());
        }
    }
}

fn name_in(refs: &[entry::SummaryRef], key: &OccurrenceKey) -> Option<Ref> {
    let exact = refs.iter().find(|named| {
        named.tool_call_id == key.call_id
            && (named.result_timestamp == key.at_ms || named.result_timestamp.is_none())
    })?;
    Ref::parse(&exact.short_id)
}

fn turn_index(call: &entry::IndexCall) -> u32 {
    let index = u32::try_from(call.turn_index).ok();
    index.filter(|index| *index <= MAX_NUMBER).unwrap_or(0)
}

fn record_of(
    call: entry::IndexCall,
    name: Ref,
    key: OccurrenceKey,
    standing: Standing,
    entry: &EntryId,
    position: usize,
    at_ms: u64,
) -> Record {
    let blob = call.spill_path.as_ref().map(|location| Blob {
        name: call
            .spill_blob
            .clone()
            .unwrap_or_else(|| last_segment(location).to_owned()),
        location: location.clone(),
        bytes: call.spill_bytes.unwrap_or(0),
    });
    Record {
        name,
        path: path_argument(call.args.get()),
        is_error: call.is_error,
        turn_index: turn_index(&call),
        turn_at_ms: call.timestamp,
        archived_at_ms: at_ms,
        stored: Stored {
            entry: entry.clone(),
            call: position,
            blob,
        },
        has_other_parts: !call.other_parts.is_empty(),
        standing,
        shown: true,
        tool: call.tool_name,
        key,
    }
}

/// The blob's name in an entry that has its path only.
fn last_segment(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
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
