//! What is known of everything that was ever pruned: records, aliases, batches.
//!
//! No text of a tool result is in here: a record says where the session log or a blob keeps it.

use crate::engine::digest::{ContentHash, Hash};
use crate::engine::ids::{BlockId, EntryId, OccurrenceKey, Ref};
use crate::engine::map::{Map, Set};
use crate::engine::row::Row;
use crate::engine::size::Size;

/// Which record of the archive is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordId(usize);

/// Which alias of the archive is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AliasId(usize);

/// Which batch of the archive is meant: they are counted from 0 in the order of their commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BatchId(usize);

impl BatchId {
    /// Its number in the plan.
    #[must_use]
    pub fn number(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    /// The batch that has this number in the plan.
    #[must_use]
    pub fn numbered(number: u32) -> Self {
        Self(number as usize)
    }
}

/// What the archive holds for an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Member {
    Record(RecordId),
    Alias(AliasId),
}

/// One archived occurrence.
#[derive(Clone, Debug)]
pub struct Record {
    pub name: Ref,
    pub key: OccurrenceKey,
    pub tool: String,
    /// The argument that `protectedPaths` looks at.
    pub path: Option<String>,
    pub is_error: bool,
    pub turn_index: u32,
    /// When the assistant message began; 0 where an old entry does not say.
    pub turn_at_ms: u64,
    /// When the entry was written.
    pub archived_at_ms: u64,
    pub stored: Stored,
    pub has_other_parts: bool,
    pub standing: Standing,
    /// Whether the context may show already that it is archived.
    pub shown: bool,
}

/// Where the text of a record is.
#[derive(Clone, Debug)]
pub struct Stored {
    pub entry: EntryId,
    /// Which of the entry's calls, counted from 0.
    pub call: usize,
    pub blob: Option<Blob>,
}

/// A spilled text.
#[derive(Clone, Debug)]
pub struct Blob {
    pub name: String,
    /// Where it is, in words for the model.
    pub location: String,
    pub bytes: u64,
}

/// What a record means for the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A summary covers it.
    Summarized { batch: BatchId },
    /// It went to a blob; the stub is kept since it holds the preview.
    Spilled { stub: String },
    /// An output of `context_tree_query` whose time is over; carries what it had recovered.
    Recovered { refs: Vec<String> },
    /// It is recoverable, and that is all: it stays as it is until its span is compressed.
    Archived,
}

/// An occurrence that shares the text of a record.
#[derive(Clone, Debug)]
pub struct Alias {
    pub key: OccurrenceKey,
    pub original: RecordId,
    /// The entry that holds its own arguments, and its text if that differs in white space.
    pub entry: EntryId,
    pub has_own_text: bool,
    pub is_error: bool,
    pub turn_index: u32,
    pub archived_at_ms: u64,
    /// Whether its stub may stand in the context already.
    pub shown: bool,
}

/// The calls that one summary covers.
#[derive(Clone, Debug)]
pub struct Batch {
    pub records: Vec<RecordId>,
    /// The summary's entry; `None` in a log that has lost it.
    pub summary: Option<EntryId>,
    pub summary_size: Size,
    pub summary_at_ms: u64,
    /// The flush that committed it; older logs do not number theirs.
    pub flush: Option<u32>,
    pub turn_index: u32,
    /// Whether the user has taken it back.
    pub undone: bool,
    /// The block that takes its place.
    pub block: Option<BlockId>,
}

/// The record that repetitions point at.
#[derive(Clone, Copy, Debug)]
struct Original {
    record: RecordId,
    /// As in [`ContentHash`].
    raw: Option<Hash>,
}

/// The archive of a session.
#[derive(Debug, Default)]
pub struct Archive {
    records: Row<Record>,
    aliases: Row<Alias>,
    batches: Row<Batch>,
    members: Map<OccurrenceKey, Member>,
    by_name: Map<Ref, RecordId>,
    /// Originals by normalized hash and status.
    by_hash: Map<(Hash, bool), Original>,
    aliases_of: Map<RecordId, Vec<AliasId>>,
    /// What was archived late and waits for an epoch.
    unshown: Set<Member>,
    last_name: u32,
    /// Whether any key lacks its time, as those of old logs do.
    has_bare_keys: bool,
}

impl Archive {
    /// How many records there are.
    #[must_use]
    pub fn record_count(&self) -> usize {
        self.records.len()
    }

    /// All records, oldest first.
    pub fn records(&self) -> impl Iterator<Item = (RecordId, &Record)> {
        (0..).map(RecordId).zip(self.records.iter())
    }

    /// All aliases, oldest first.
    pub fn aliases(&self) -> impl Iterator<Item = &Alias> {
        self.aliases.iter()
    }

    /// All batches, oldest first.
    pub fn batches(&self) -> impl Iterator<Item = (BatchId, &Batch)> {
        (0..).map(BatchId).zip(self.batches.iter())
    }

    #[must_use]
    pub fn record(&self, id: RecordId) -> Option<&Record> {
        self.records.get(id.0)
    }

    #[must_use]
    pub fn alias(&self, id: AliasId) -> Option<&Alias> {
        self.aliases.get(id.0)
    }

    #[must_use]
    pub fn batch(&self, id: BatchId) -> Option<&Batch> {
        self.batches.get(id.0)
    }

    pub(super) fn batch_mut(&mut self, id: BatchId) -> Option<&mut Batch> {
        self.batches.get_mut(id.0)
    }

    /// The records of a batch, in their order.
    pub fn records_of(&self, id: BatchId) -> impl Iterator<Item = &Record> {
        let batch = self.batch(id).into_iter();
        batch
            .flat_map(|batch| &batch.records)
            .filter_map(|record| self.record(*record))
    }

    /// Whether any record or alias names no time, as old ones do.
    #[must_use]
    pub fn has_bare_keys(&self) -> bool {
        self.has_bare_keys
    }

    /// What the archive holds for exactly this key.
    #[must_use]
    pub fn member(&self, key: &OccurrenceKey) -> Option<Member> {
        self.members.get(key).copied()
    }

    /// Everything archived under a call id, in order of time.
    pub fn members_of(&self, call_id: &str) -> impl Iterator<Item = Member> {
        let from = OccurrenceKey {
            call_id: call_id.to_owned(),
            at_ms: None,
        };
        let call_id = call_id.to_owned();
        self.members
            .range(from..)
            .take_while(move |(key, _)| key.call_id == call_id)
            .map(|(_, member)| *member)
    }

    /// The record that a member is or points at.
    #[must_use]
    pub fn original(&self, member: Member) -> Option<&Record> {
        match member {
            Member::Record(id) => self.record(id),
            Member::Alias(id) => self.record(self.alias(id)?.original),
        }
    }

    #[must_use]
    pub fn key_of(&self, member: Member) -> Option<&OccurrenceKey> {
        match member {
            Member::Record(id) => self.record(id).map(|record| &record.key),
            Member::Alias(id) => self.alias(id).map(|alias| &alias.key),
        }
    }

    #[must_use]
    pub fn named(&self, name: Ref) -> Option<RecordId> {
        self.by_name.get(&name).copied()
    }

    /// The aliases of a record, in the order in which they were made.
    #[must_use]
    pub fn aliases_of(&self, record: RecordId) -> &[AliasId] {
        self.aliases_of.get(&record).map_or(&[], Vec::as_slice)
    }

    /// The record with the same normalized output and status.
    #[must_use]
    pub fn duplicate_of(&self, hash: &ContentHash, is_error: bool) -> Option<RecordId> {
        let original = self.by_hash.get(&(hash.normalized, is_error));
        original.map(|original| original.record)
    }

    /// Whether the record that this output repeats has the same bytes too.
    #[must_use]
    pub fn shares_bytes(&self, hash: &ContentHash, is_error: bool) -> bool {
        let original = self.by_hash.get(&(hash.normalized, is_error));
        original.is_some_and(|original| original.raw == hash.raw)
    }

    /// The names given so far, for a word to a model that asks for an unknown one.
    #[must_use]
    pub fn last_named(&self) -> Option<Ref> {
        self.by_name.keys().next_back().copied()
    }

    /// The last name that was given out; `t0` if none was.
    #[must_use]
    pub fn last_name(&self) -> Ref {
        Ref(self.last_name)
    }

    /// The name that comes next.
    #[must_use]
    pub(super) fn next_name(&self) -> Ref {
        Ref(self.last_name + 1)
    }

    /// Makes sure that a name seen in the log is never given out again.
    pub(super) fn reserve_name(&mut self, name: Ref) {
        self.last_name = self.last_name.max(name.0);
    }

    /// Adds a record, or replaces the one of the same occurrence. `hash` makes it an original for
    /// later duplicates.
    pub(super) fn insert(&mut self, record: Record, hash: Option<ContentHash>) -> RecordId {
        self.reserve_name(record.name);
        self.has_bare_keys |= record.key.at_ms.is_none();
        let id = match self.members.get(&record.key) {
            Some(Member::Record(id)) => *id,
            Some(Member::Alias(_)) | None => RecordId(self.records.len()),
        };
        if let Some(ContentHash { normalized, raw }) = hash {
            let original = Original { record: id, raw };
            self.by_hash
                .insert_new((normalized, record.is_error), original);
        }
        if !record.shown {
            self.unshown.insert(Member::Record(id));
        }
        self.by_name.insert(record.name, id);
        self.members.insert(record.key.clone(), Member::Record(id));
        match self.records.get_mut(id.0) {
            Some(known) => *known = record,
            None => self.records.push(record),
        }
        id
    }

    pub(super) fn insert_alias(&mut self, alias: Alias) -> AliasId {
        let id = AliasId(self.aliases.len());
        self.has_bare_keys |= alias.key.at_ms.is_none();
        self.members.insert(alias.key.clone(), Member::Alias(id));
        if !alias.shown {
            self.unshown.insert(Member::Alias(id));
        }
        self.aliases_of
            .update(alias.original, |aliases| aliases.push(id));
        self.aliases.push(alias);
        id
    }

    /// Marks everything that was archived late as fit to be shown.
    pub(super) fn show_everything(&mut self) {
        for member in std::mem::take(&mut self.unshown) {
            match member {
                Member::Record(id) => {
                    if let Some(record) = self.records.get_mut(id.0) {
                        record.shown = true;
                    }
                }
                Member::Alias(id) => {
                    if let Some(alias) = self.aliases.get_mut(id.0) {
                        alias.shown = true;
                    }
                }
            }
        }
    }

    /// The batch that the next [`Archive::insert_batch`] adds.
    pub(super) fn next_batch(&self) -> BatchId {
        BatchId(self.batches.len())
    }

    pub(super) fn insert_batch(&mut self, batch: Batch) -> BatchId {
        let id = self.next_batch();
        self.batches.push(batch);
        id
    }

    /// The batch whose summary covers a record.
    #[must_use]
    pub fn batch_named(&self, name: Ref) -> Option<BatchId> {
        match self.record(self.named(name)?)?.standing {
            Standing::Summarized { batch } => Some(batch),
            Standing::Spilled { .. } | Standing::Recovered { .. } | Standing::Archived => None,
        }
    }

    /// Whether a record or an alias may be shown as archived.
    #[must_use]
    pub fn is_shown(&self, member: Member) -> bool {
        match member {
            Member::Record(id) => self.record(id).is_some_and(|record| record.shown),
            Member::Alias(id) => self.alias(id).is_some_and(|alias| alias.shown),
        }
    }

    /// Whether the tool had failed, as the log has it.
    #[must_use]
    pub fn is_error(&self, member: Member) -> bool {
        match member {
            Member::Record(id) => self.record(id).is_some_and(|record| record.is_error),
            Member::Alias(id) => self.alias(id).is_some_and(|alias| alias.is_error),
        }
    }

    /// The turn that a member belongs to, counted over the session.
    #[must_use]
    pub fn turn_index(&self, member: Member) -> Option<u32> {
        match member {
            Member::Record(id) => self.record(id).map(|record| record.turn_index),
            Member::Alias(id) => self.alias(id).map(|alias| alias.turn_index),
        }
    }
}
