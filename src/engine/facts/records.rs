//! Records, batches and aliases: from their entries into the archive.

use super::archive::{Alias, Batch, Blob, Member, Record, RecordId, Standing, Stored};
use super::summaries::SummaryId;
use super::{Changes, Facts, Indexed};
use crate::engine::digest::{ContentHash, parse_hex};
use crate::engine::entry;
use crate::engine::host::Stamp;
use crate::engine::ids::{EntryId, MAX_NUMBER, OccurrenceKey, Ref};
use crate::engine::protect::path_argument;
use crate::engine::stub;

impl Facts {
    /// Says of an index entry what can be said when it is read: its texts are let go.
    pub(super) fn indexed(&mut self, mut index: entry::Index) -> Indexed {
        let mut hashes = Vec::with_capacity(index.tool_calls.len());
        for call in &mut index.tool_calls {
            hashes.push(hash_of(call));
            call.result_text = String::new();
        }
        let first = index.tool_calls.first().filter(|_| !index.backfilled);
        let summary = first.and_then(|first| self.summaries.take_before(&key_of(first)));
        Indexed {
            index,
            hashes,
            summary,
        }
    }

    pub(super) fn apply_index(&mut self, stamp: &Stamp, indexed: Indexed, changes: &mut Changes) {
        let Indexed {
            index,
            hashes,
            summary,
        } = indexed;
        let is_summarized = !index.backfilled
            && index
                .tool_calls
                .iter()
                .all(|call| call.spill_path.is_none());
        let summary = is_summarized
            .then(|| {
                let first = index.tool_calls.first().map(key_of);
                summary.or_else(|| self.summaries.take_any(&first?))
            })
            .flatten();
        let batch = self.archive.next_batch();
        let mut records = Vec::with_capacity(index.tool_calls.len());
        for (place, (call, hash)) in index.tool_calls.into_iter().zip(hashes).enumerate() {
            let key = key_of(&call);
            let name = self.name_of(&call, &key, &index.refs, summary);
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
            let is_empty = call.spill_path.is_none() && self.is_of_nothing(&hash, &call.tool_name);
            let mut record = record_of(call, name, key, standing, &stamp.entry, place);
            record.archived_at_ms = stamp.at_ms;
            record.shown = !index.from_next_epoch;
            records.push(self.archive.insert(record, (!is_empty).then_some(hash)));
        }
        changes.records.extend(records.iter().copied());
        if is_summarized {
            self.apply_batch(records, index.flush, summary, changes);
        }
    }

    /// Whether it is the hash of an empty output of this tool.
    fn is_of_nothing(&mut self, hash: &ContentHash, tool: &str) -> bool {
        if let Some(of_nothing) = self.of_nothing.get(tool) {
            return hash == of_nothing;
        }
        let of_nothing = ContentHash::of(tool, "");
        self.of_nothing.insert(tool.to_owned(), of_nothing);
        *hash == of_nothing
    }

    /// The name of a call: as its entry has it, else as its summary has it, else the one that the
    /// occurrence has already, else the next one.
    fn name_of(
        &self,
        call: &entry::IndexCall,
        key: &OccurrenceKey,
        refs: &[entry::SummaryRef],
        summary: Option<SummaryId>,
    ) -> Ref {
        let written = call.short_id.as_deref().and_then(Ref::parse);
        written
            .or_else(|| name_in(refs, key))
            .or_else(|| name_in(&self.summaries.get(summary?)?.refs, key))
            .or_else(|| self.known_name(key))
            .unwrap_or_else(|| self.archive.next_name())
    }

    fn apply_batch(
        &mut self,
        records: Vec<RecordId>,
        flush: Option<u32>,
        summary: Option<SummaryId>,
        changes: &mut Changes,
    ) {
        let last = records.last().and_then(|last| self.archive.record(*last));
        let turn_index = last.map_or(0, |record| record.turn_index);
        let summary = summary.and_then(|id| self.summaries.get(id));
        let batch = Batch {
            records,
            summary: summary.map(|summary| summary.entry.clone()),
            summary_size: summary.map(|summary| summary.size).unwrap_or_default(),
            summary_at_ms: summary.map_or(0, |summary| summary.at_ms),
            flush,
            turn_index,
            undone: false,
            block: None,
        };
        changes.batches.push(self.archive.insert_batch(batch));
    }

    pub(super) fn apply_alias(&mut self, stamp: Stamp, alias: entry::Alias, changes: &mut Changes) {
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
            Some(Member::Record(id)) => Some(id),
            Some(Member::Alias(id)) => self.archive.alias(id).map(|alias| alias.original),
            None => None,
        };
        let Some(original) = original else {
            return;
        };
        let own = alias.own.unwrap_or_default();
        let has_own = !own.tool_call_id.is_empty();
        let (is_error, turn_index) = match self.archive.record(original) {
            Some(record) if !has_own => (record.is_error, record.turn_index),
            Some(_) | None => (own.is_error, turn_index(&own)),
        };
        let id = self.archive.insert_alias(Alias {
            key: OccurrenceKey {
                call_id: alias.new_tool_call_id,
                at_ms: alias.new_result_timestamp,
            },
            original,
            entry: stamp.entry,
            has_own_text: own.raw_hash.is_some() || !own.result_text.is_empty(),
            is_error,
            turn_index,
            archived_at_ms: stamp.at_ms,
            shown: !alias.from_next_epoch,
        });
        changes.aliases.push(id);
    }
}

fn hash_of(call: &entry::IndexCall) -> ContentHash {
    match call.content_hash.as_deref().and_then(parse_hex) {
        Some(normalized) => ContentHash {
            normalized,
            raw: call.raw_hash.as_deref().and_then(parse_hex),
        },
        None => ContentHash::of(&call.tool_name, &call.result_text),
    }
}

fn key_of(call: &entry::IndexCall) -> OccurrenceKey {
    OccurrenceKey {
        call_id: call.tool_call_id.clone(),
        at_ms: call.result_timestamp,
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
    place: usize,
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
        archived_at_ms: 0,
        stored: Stored {
            entry: entry.clone(),
            call: place,
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
