//! Results that are about to become records or aliases, and the entries that are written for them.

use super::basis::Basis;
use super::digest::{ContentHash, hex};
use super::entry;
use super::facts::{Blob, RecordId};
use super::ids::{OccurrenceKey, Ref};
use super::transcript::Position;

/// A result that is about to become a record.
#[derive(Clone, Debug)]
pub struct Draft {
    pub at: Position,
    pub name: Ref,
    pub hash: Option<ContentHash>,
    /// Where its text went, with a preview, if it is outsized.
    pub blob: Option<(Blob, String)>,
    /// The refs that it had brought back, if it is an output of `context_tree_query`.
    pub recovered: Option<Vec<String>>,
    /// Whether the context may show it from the next epoch on only.
    pub is_late: bool,
}

impl Draft {
    #[must_use]
    pub fn new(at: Position, name: Ref, hash: Option<ContentHash>) -> Self {
        Self {
            at,
            name,
            hash,
            blob: None,
            recovered: None,
            is_late: false,
        }
    }
}

impl Basis {
    /// The entry that archives results without a summary.
    #[must_use]
    pub fn backfill_entry(&self, drafts: &[Draft], flush: Option<u32>) -> entry::Index {
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
        index.recovered = drafts.iter().find_map(|draft| draft.recovered.clone());
        index
    }

    /// The entry that holds these results.
    #[must_use]
    pub fn index_entry(&self, drafts: &[Draft]) -> entry::Index {
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

    /// The entry of a duplicate: what it does not share with its original.
    #[must_use]
    pub fn alias_entry(
        &self,
        at: Position,
        original: RecordId,
        hash: &ContentHash,
    ) -> Option<entry::Alias> {
        let key = self.transcript.key_at(at)?;
        let record = self.facts.archive().record(original)?;
        let original_key = record.key.clone();
        let name = record.name;
        let shares_bytes = self.facts.archive().shares_bytes(hash, record.is_error);
        self.alias_of(at, &key, &original_key, name, shares_bytes, hash)
    }

    /// The same for an original that is not in the archive yet.
    #[must_use]
    pub fn alias_of(
        &self,
        at: Position,
        key: &OccurrenceKey,
        original: &OccurrenceKey,
        name: Ref,
        shares_bytes: bool,
        hash: &ContentHash,
    ) -> Option<entry::Alias> {
        let draft = Draft::new(at, name, None);
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
}
