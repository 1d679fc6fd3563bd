//! The summary messages of the log, and which index entry each was written for.

use crate::engine::entry;
use crate::engine::host::Stamp;
use crate::engine::ids::{EntryId, OccurrenceKey};
use crate::engine::map::Map;
use crate::engine::size::Size;

/// Which summary of the log is meant, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SummaryId(usize);

/// The summaries, oldest first.
#[derive(Debug, Default)]
pub(super) struct SummaryLog {
    all: Vec<Summary>,
    by_entry: Map<EntryId, SummaryId>,
    /// Summaries by the occurrences that they name, oldest first. Those of committed batches are
    /// taken out.
    by_key: Map<OccurrenceKey, Vec<SummaryId>>,
}

/// A summary message of the log.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) entry: EntryId,
    pub(super) at_ms: u64,
    pub(super) size: Size,
    pub(super) refs: Vec<entry::SummaryRef>,
    /// `None` once it has been let go.
    text: Option<String>,
    is_taken: bool,
    /// Whether the log has been read up to it.
    is_passed: bool,
}

impl SummaryLog {
    /// Notes a summary, once. What is kept of it is taken out of the message.
    pub(super) fn note(&mut self, stamp: &Stamp, message: &mut entry::SummaryMessage) {
        if self.by_entry.contains_key(&stamp.entry) {
            return;
        }
        let id = SummaryId(self.all.len());
        let refs = std::mem::take(&mut message.details.tool_call_refs);
        for named in &refs {
            self.by_key.update(key_of(named), |ids| ids.push(id));
        }
        self.by_entry.insert(stamp.entry.clone(), id);
        self.all.push(Summary {
            entry: stamp.entry.clone(),
            at_ms: stamp.at_ms,
            size: Size::of_text(&message.content),
            refs,
            text: Some(std::mem::take(&mut message.content)),
            is_taken: false,
            is_passed: false,
        });
    }

    /// The log has been read up to this summary.
    pub(super) fn pass(&mut self, entry: &EntryId) {
        let id = self.by_entry.get(entry);
        if let Some(summary) = id.and_then(|id| self.all.get_mut(id.0)) {
            summary.is_passed = true;
        }
    }

    pub(super) fn get(&self, id: SummaryId) -> Option<&Summary> {
        self.all.get(id.0)
    }

    pub(super) fn text(&self, entry: &EntryId) -> Option<&str> {
        self.get(*self.by_entry.get(entry)?)?.text.as_deref()
    }

    pub(super) fn release(&mut self, entry: &EntryId) {
        let id = self.by_entry.get(entry);
        if let Some(summary) = id.and_then(|id| self.all.get_mut(id.0)) {
            summary.text = None;
            for named in std::mem::take(&mut summary.refs) {
                self.by_key.remove(&OccurrenceKey {
                    call_id: named.tool_call_id,
                    at_ms: named.result_timestamp,
                });
            }
        }
    }

    /// The newest summary so far that names this call and is not taken yet: a flush that failed may
    /// have left an older one.
    pub(super) fn take_before(&mut self, key: &OccurrenceKey) -> Option<SummaryId> {
        let is_passed = |id: &SummaryId| self.all.get(id.0).is_some_and(|known| known.is_passed);
        let newest = self.by_key.get(key)?.iter().copied().rfind(is_passed)?;
        let summary = self.all.get_mut(newest.0)?;
        (!std::mem::replace(&mut summary.is_taken, true)).then_some(newest)
    }

    /// The oldest summary that names this call and is not taken yet.
    pub(super) fn take_any(&mut self, key: &OccurrenceKey) -> Option<SummaryId> {
        let is_free = |id: &SummaryId| self.all.get(id.0).is_some_and(|known| !known.is_taken);
        let oldest = self.by_key.get(key)?.iter().copied().find(is_free)?;
        self.all.get_mut(oldest.0)?.is_taken = true;
        Some(oldest)
    }
}

fn key_of(named: &entry::SummaryRef) -> OccurrenceKey {
    OccurrenceKey {
        call_id: named.tool_call_id.clone(),
        at_ms: named.result_timestamp,
    }
}
