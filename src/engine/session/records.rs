//! From results to records and aliases: their entries, and their way into the archive.

use super::upkeep::Draft;
use super::{Position, Session};
use crate::engine::archive::{Alias, Record, Standing, Stored};
use crate::engine::digest::{ContentHash, hex};
use crate::engine::entry;
use crate::engine::ids::{EntryId, OccurrenceKey, Ref};

impl Session {
    /// Makes a result ready to become a record; `None` if its text is gone.
    pub(super) fn draft(&mut self, at: Position, standing: Standing) -> Option<Draft> {
        let key = self.transcript.key_at(at)?;
        let hash = self.hash_at(at);
        self.transcript.result(at)?.text.as_ref()?;
        let name = self
            .known_name(&key)
            .unwrap_or_else(|| self.archive.next_name());
        Some(Draft {
            at,
            name,
            hash,
            standing,
            blob: None,
            is_late: false,
        })
    }

    /// The content hash of a result; `None` for an empty one, which is never a duplicate.
    pub(super) fn hash_at(&self, at: Position) -> Option<ContentHash> {
        let result = self.transcript.result(at)?;
        let text = result.text.as_deref().filter(|text| !text.is_empty())?;
        Some(ContentHash::of(&result.tool, text))
    }

    pub(super) fn backfill_entry(&self, drafts: &[Draft], flush: Option<u32>) -> entry::Index {
        let mut index = self.index_entry(drafts);
        index.backfilled = true;
        index.flush = flush;
        index.refs = drafts
            .iter()
            .filter_map(|draft| {
                let key = self.transcript.key_at(draft.at)?;
                Some(entry::SummaryRef {
                    short_id: draft.name.to_string(),
                    tool_call_id: key.call_id,
                    result_timestamp: key.at_ms,
                })
            })
            .collect();
        index.recovered = drafts.iter().find_map(|draft| match &draft.standing {
            Standing::Recovered { refs } => Some(refs.clone()),
            Standing::Summarized { .. } | Standing::Spilled { .. } | Standing::Archived => None,
        });
        index
    }

    /// The entry that holds these results.
    pub(super) fn index_entry(&self, drafts: &[Draft]) -> entry::Index {
        entry::Index {
            tool_calls: drafts
                .iter()
                .filter_map(|draft| self.index_call(draft))
                .collect(),
            from_next_epoch: drafts.iter().any(|draft| draft.is_late),
            ..entry::Index::default()
        }
    }

    fn index_call(&self, draft: &Draft) -> Option<entry::IndexCall> {
        let slot = self.transcript.slot(draft.at)?;
        let result = slot.as_result()?;
        let assistant = result
            .site
            .and_then(|site| self.transcript.slot(site.assistant));
        let call = result.site.and_then(|site| self.transcript.call(site));
        let arguments = call.and_then(|call| call.arguments.as_deref());
        let spilled = draft.blob.as_ref();
        Some(entry::IndexCall {
            tool_call_id: result.call_id.clone(),
            tool_name: result.tool.clone(),
            args: entry::raw_arguments(arguments.unwrap_or_default()),
            result_text: if spilled.is_some() {
                String::new()
            } else {
                result.text.clone().unwrap_or_default()
            },
            is_error: result.is_error,
            turn_index: i64::from(self.turn_index_at(draft.at)),
            timestamp: assistant.map_or(slot.at_ms, |slot| slot.at_ms),
            result_timestamp: Some(slot.at_ms),
            short_id: Some(draft.name.to_string()),
            content_hash: draft.hash.as_ref().map(|hash| hex(&hash.normalized)),
            raw_hash: draft
                .hash
                .as_ref()
                .and_then(|hash| hash.raw.as_ref())
                .map(hex),
            spill_path: spilled.map(|(blob, _)| blob.location.clone()),
            spill_blob: spilled.map(|(blob, _)| blob.name.clone()),
            spill_bytes: spilled.map(|(blob, _)| blob.bytes),
            result_preview: spilled.map(|(_, preview)| preview.clone()),
            other_parts: result.other_parts.clone(),
        })
    }

    /// The turn that a result belongs to, counted over the session.
    pub(super) fn turn_index_at(&self, at: Position) -> u32 {
        let turn = self
            .transcript
            .result(at)
            .and_then(|result| self.transcript.assistant(result.site?.assistant));
        turn.map_or_else(
            || self.transcript.turn_count().saturating_sub(1),
            |assistant| assistant.turn_index,
        )
    }

    /// Enters results into the archive, after their entry has been written.
    pub(super) fn admit(&mut self, entry: &EntryId, drafts: Vec<Draft>, now_ms: u64) -> Vec<usize> {
        let mut records = Vec::new();
        for (call, draft) in drafts.into_iter().enumerate() {
            let Some((record, at, hash)) = self.record_from(entry, call, draft, now_ms) else {
                continue;
            };
            let is_only_archived = record.standing == Standing::Archived;
            records.push(self.archive.insert(record, hash));
            if !is_only_archived || !self.account.untried.contains(at) {
                self.let_go(at);
            }
        }
        records
    }

    fn record_from(
        &self,
        entry: &EntryId,
        call: usize,
        draft: Draft,
        now_ms: u64,
    ) -> Option<(Record, Position, Option<ContentHash>)> {
        let slot = self.transcript.slot(draft.at)?;
        let result = slot.as_result()?;
        let turn = result
            .site
            .and_then(|site| self.transcript.slot(site.assistant));
        let named = result.site.and_then(|site| self.transcript.call(site));
        let record = Record {
            name: draft.name,
            key: result.key(slot.at_ms),
            tool: result.tool.clone(),
            path: named.and_then(|call| call.path.clone()),
            is_error: result.is_error,
            turn_index: self.turn_index_at(draft.at),
            turn_at_ms: turn.map_or(slot.at_ms, |slot| slot.at_ms),
            archived_at_ms: now_ms,
            stored: Stored {
                entry: entry.clone(),
                call,
                blob: draft.blob.map(|(blob, _)| blob),
            },
            has_other_parts: !result.other_parts.is_empty(),
            standing: draft.standing,
            shown: !draft.is_late,
        };
        Some((record, draft.at, draft.hash))
    }

    /// Lets the text of an archived result go.
    pub(super) fn let_go(&mut self, at: Position) {
        self.account.untried.remove(at);
        let site = self.transcript.result(at).and_then(|result| result.site);
        self.transcript.release(at);
        if let Some(site) = site {
            self.transcript.release_arguments(site);
        }
    }

    /// The entry of a duplicate: what it does not share with its original.
    pub(super) fn alias_entry(
        &mut self,
        at: Position,
        original: usize,
        hash: &ContentHash,
    ) -> Option<entry::Alias> {
        let key = self.transcript.key_at(at)?;
        let record = self.archive.record(original)?;
        let original_key = record.key.clone();
        let name = record.name;
        let shares_bytes = self.archive.shares_bytes(hash, record.is_error);
        self.alias_of(at, &key, &original_key, name, shares_bytes, hash)
    }

    pub(super) fn alias_of(
        &self,
        at: Position,
        key: &OccurrenceKey,
        original: &OccurrenceKey,
        name: Ref,
        shares_bytes: bool,
        hash: &ContentHash,
    ) -> Option<entry::Alias> {
        let draft = Draft {
            at,
            name,
            hash: None,
            standing: Standing::Archived,
            blob: None,
            is_late: false,
        };
        let mut own = self.index_call(&draft)?;
        own.short_id = None;
        own.content_hash = Some(hex(&hash.normalized));
        if shares_bytes {
            own.result_text = String::new();
        } else {
            // The texts differ in white space: this one's own is kept, or it could not be given
            // back byte for byte.
            own.raw_hash = Some(hex(&hash.raw.unwrap_or(hash.normalized)));
        }
        Some(entry::Alias {
            new_tool_call_id: key.call_id.clone(),
            original_tool_call_id: original.call_id.clone(),
            new_result_timestamp: key.at_ms,
            original_result_timestamp: original.at_ms,
            own: Some(own),
            flush: None,
            from_next_epoch: false,
        })
    }

    pub(super) fn admit_alias(
        &mut self,
        at: Position,
        original: usize,
        entry: EntryId,
        alias: &entry::Alias,
        now_ms: u64,
    ) {
        let Some(key) = self.transcript.key_at(at) else {
            return;
        };
        let own = alias.own.as_ref();
        let is_error = self
            .transcript
            .result(at)
            .is_some_and(|result| result.is_error);
        self.archive.insert_alias(Alias {
            key,
            original,
            entry,
            has_own_text: own.is_some_and(|own| own.raw_hash.is_some()),
            is_error,
            turn_index: self.turn_index_at(at),
            archived_at_ms: now_ms,
            shown: !alias.from_next_epoch,
        });
        self.let_go(at);
    }
}
