//! Loading: from the entries of the log to the state that the process before had.
//!
//! Entries are taken in one pass, their texts are let go at once, and what belongs to a flush that
//! was never committed counts for nothing but the names that it used up.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::LogEntry;
use crate::engine::digest::{ContentHash, parse_hex};
use crate::engine::entry;
use crate::engine::host::Notice;
use crate::engine::ids::{BlockId, EntryId, MAX_NUMBER, OccurrenceKey, Ref};
use crate::engine::transcript::Transcript;

/// What has been read of the log so far.
#[derive(Default)]
pub(super) struct Restoring {
    pub(super) facts: Vec<Fact>,
    /// Facts of flushes that are not committed yet, by the flush's number.
    pub(super) staged: BTreeMap<u32, Vec<Fact>>,
    pub(super) summaries: Vec<Summary>,
    /// Summaries by their entries.
    pub(super) summary_at: BTreeMap<EntryId, usize>,
    /// Summaries by the occurrences that they name, oldest first.
    pub(super) summary_of: BTreeMap<OccurrenceKey, Vec<usize>>,
    pub(super) last_name: u32,
    pub(super) last_block: u32,
    pub(super) last_flush: u32,
    pub(super) stats: entry::Stats,
    pub(super) diagnosed: Vec<entry::Diagnostic>,
}

/// One entry, as far as it has to be kept.
pub(super) enum Fact {
    Records {
        entry: EntryId,
        at_ms: u64,
        index: entry::Index,
        hashes: Vec<ContentHash>,
        /// The summary that was written for it, if that came first.
        summary: Option<usize>,
    },
    Alias {
        entry: EntryId,
        at_ms: u64,
        alias: entry::Alias,
    },
    Chain {
        entry: EntryId,
        chain: entry::Chain,
    },
    Frontier(entry::Frontier),
    Epoch(entry::Epoch),
    Undo(entry::Undo),
}

/// A summary message of the log.
pub(super) struct Summary {
    pub(super) entry: EntryId,
    pub(super) at_ms: u64,
    pub(super) message: entry::SummaryMessage,
    pub(super) is_taken: bool,
}

/// What is still to be settled once the transcript is there.
#[derive(Default)]
pub(super) struct LoadEpoch {
    /// The last message that edits may count; `None` in a log without an epoch.
    pub(super) epoch: Option<EpochMark>,
    /// A frontier of an older program: everything up to this call was tried.
    pub(super) frontier: Option<(String, u64)>,
    /// The transcript that the host has replaced as a whole.
    pub(super) before: Option<Transcript>,
}

/// Follows the mark of an epoch's last message where the agent's final reply came next.
pub(super) const CLOSED: &str = " closed";

/// The last message of an epoch, as the log has it.
pub(super) struct EpochMark {
    pub(super) mark: String,
    /// Whether a final reply came next.
    pub(super) is_closed: bool,
    /// Everything counts in the log of an older program.
    pub(super) at_ms: u64,
    /// Whether the message is in the transcript that is being loaded.
    pub(super) is_found: bool,
}

impl EpochMark {
    pub(super) fn read(mark: Option<String>) -> Self {
        let Some(mark) = mark else {
            return Self {
                mark: String::new(),
                is_closed: false,
                at_ms: u64::MAX,
                is_found: false,
            };
        };
        let (mark, is_closed) = match mark.strip_suffix(CLOSED) {
            Some(message) => (message.to_owned(), true),
            None => (mark, false),
        };
        let written = mark.rsplit('@').next();
        let at_ms = written.and_then(|at| at.split('#').next()?.parse().ok());
        Self {
            // A log with an epoch before the first message covers none.
            at_ms: at_ms.unwrap_or(0),
            is_closed,
            mark,
            is_found: false,
        }
    }
}

impl Restoring {
    /// Takes entries; broken ones are skipped and named.
    pub(super) fn take(&mut self, entries: Vec<LogEntry>) -> Vec<Notice> {
        let mut notices = Vec::new();
        for entry in entries {
            let (id, kind) = (entry.id.0.clone(), entry.kind.clone());
            if let Err(why) = self.take_one(entry) {
                notices.push(Notice::warning(format!(
                    "session log: entry {id} ({kind}) is skipped, it cannot be read: {why}"
                )));
            }
        }
        notices
    }

    fn take_one(&mut self, log: LogEntry) -> Result<(), serde_json::Error> {
        let LogEntry {
            id,
            kind,
            data,
            at_ms,
        } = log;
        match kind.as_str() {
            entry::INDEX => self.take_index(id, at_ms, parse(&data)?),
            entry::SUMMARY => self.take_summary(id, at_ms, parse(&data)?),
            entry::ALIAS => {
                let alias: entry::Alias = parse(&data)?;
                let flush = alias.flush;
                self.put(
                    flush,
                    Fact::Alias {
                        entry: id,
                        at_ms,
                        alias,
                    },
                );
            }
            entry::CHAIN => {
                let chain: entry::Chain = parse(&data)?;
                if let Some(block) = BlockId::parse(&chain.block_id) {
                    self.last_block = self.last_block.max(block.0);
                }
                let flush = chain.flush;
                self.put(flush, Fact::Chain { entry: id, chain });
            }
            entry::FRONTIER => {
                let frontier: entry::Frontier = parse(&data)?;
                self.commit(frontier.flush);
                self.facts.push(Fact::Frontier(frontier));
            }
            entry::EPOCH => {
                let epoch: entry::Epoch = parse(&data)?;
                self.commit(epoch.flush);
                self.facts.push(Fact::Epoch(epoch));
            }
            entry::UNDO => self.facts.push(Fact::Undo(parse(&data)?)),
            entry::STATS => self.stats = parse(&data)?,
            entry::DIAGNOSTIC => self.diagnosed.push(parse(&data)?),
            _ => {}
        }
        Ok(())
    }

    fn put(&mut self, flush: Option<u32>, fact: Fact) {
        match flush {
            Some(number) => {
                self.note_flush(number);
                self.staged.entry(number).or_default().push(fact);
            }
            None => self.facts.push(fact),
        }
    }

    fn note_flush(&mut self, number: u32) {
        if number <= MAX_NUMBER {
            self.last_flush = self.last_flush.max(number);
        }
    }

    fn commit(&mut self, flush: Option<u32>) {
        if let Some(number) = flush {
            self.note_flush(number);
            let staged = self.staged.remove(&number);
            self.facts.extend(staged.unwrap_or_default());
        }
    }

    fn take_index(&mut self, id: EntryId, at_ms: u64, mut index: entry::Index) {
        let mut hashes = Vec::with_capacity(index.tool_calls.len());
        for call in &mut index.tool_calls {
            self.reserve(call.short_id.as_deref());
            hashes.push(hash_of(call));
            call.result_text = String::new();
        }
        for named in &index.refs {
            self.reserve(Some(&named.short_id));
        }
        let summary = index
            .tool_calls
            .first()
            .filter(|_| !index.backfilled)
            .and_then(|first| self.summary_before(&key_of(first)));
        let flush = index.flush;
        let entry = id;
        self.put(
            flush,
            Fact::Records {
                entry,
                at_ms,
                index,
                hashes,
                summary,
            },
        );
    }

    fn take_summary(&mut self, id: EntryId, at_ms: u64, message: entry::SummaryMessage) {
        let index = self.summaries.len();
        self.note_flush(message.details.flush.unwrap_or(0));
        for named in &message.details.tool_call_refs {
            self.reserve(Some(&named.short_id));
            let key = OccurrenceKey {
                call_id: named.tool_call_id.clone(),
                at_ms: named.result_timestamp,
            };
            self.summary_of.entry(key).or_default().push(index);
        }
        self.summary_at.insert(id.clone(), index);
        self.summaries.push(Summary {
            entry: id,
            at_ms,
            message,
            is_taken: false,
        });
    }

    fn reserve(&mut self, name: Option<&str>) {
        if let Some(name) = name.and_then(Ref::parse) {
            self.last_name = self.last_name.max(name.0);
        }
    }

    /// The newest summary so far that names this call and is not taken yet: a flush that failed may
    /// have left an older one.
    fn summary_before(&mut self, key: &OccurrenceKey) -> Option<usize> {
        let newest = self.summary_of.get(key)?.last().copied()?;
        let summary = self.summaries.get_mut(newest)?;
        (!std::mem::replace(&mut summary.is_taken, true)).then_some(newest)
    }

    /// The oldest summary that names these calls and is not taken yet.
    pub(super) fn summary_for(&mut self, keys: &[OccurrenceKey]) -> Option<usize> {
        let first = keys.first()?;
        let index = self.summary_of.get(first)?.iter().copied().find(|index| {
            self.summaries
                .get(*index)
                .is_some_and(|known| !known.is_taken)
        })?;
        self.summaries.get_mut(index)?.is_taken = true;
        Some(index)
    }
}

/// Reads an entry's data. A missing value is an empty entry, as old programs wrote some.
fn parse<T: DeserializeOwned>(data: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(data)
}

pub(super) fn hash_of(call: &entry::IndexCall) -> ContentHash {
    let written = call.content_hash.as_deref().and_then(parse_hex);
    match written {
        Some(normalized) => ContentHash {
            normalized,
            raw: call.raw_hash.as_deref().and_then(parse_hex),
        },
        None => ContentHash::of(&call.tool_name, &call.result_text),
    }
}

pub(super) fn key_of(call: &entry::IndexCall) -> OccurrenceKey {
    OccurrenceKey {
        call_id: call.tool_call_id.clone(),
        at_ms: call.result_timestamp,
    }
}
