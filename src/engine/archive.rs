//! What is known of everything that was ever pruned: records, aliases, batches.
//!
//! No text of a tool result is in here: a record says where the session log or a blob keeps it.

use std::collections::{BTreeMap, BTreeSet};

use super::digest::{ContentHash, Hash};
use super::ids::{BlockId, EntryId, OccurrenceKey, Ref};
use super::row::Row;
use super::size::Size;

/// Where a record, an alias or a batch stands in the archive.
pub type Index = usize;

/// What the archive holds for an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Member {
    Record(Index),
    Alias(Index),
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
    Summarized { batch: Index },
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
    pub original: Index,
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
    pub records: Vec<Index>,
    /// The summary's entry; `None` in a log that has lost it.
    pub summary: Option<EntryId>,
    pub summary_size: Size,
    pub summary_at_ms: u64,
    /// The flush that committed it; older logs do not number theirs.
    pub flush: Option<u32>,
    pub turn_index: u32,
    pub undone: bool,
    /// Whether its stubs and summary stand in the context: settled by the session.
    pub active: bool,
    /// The block that stands for it.
    pub block: Option<BlockId>,
}

/// The record that repetitions point at.
#[derive(Clone, Copy, Debug)]
struct Original {
    record: Index,
    /// As in [`ContentHash`].
    raw: Option<Hash>,
}

/// The archive of a session.
#[derive(Debug, Default)]
pub struct Archive {
    records: Row<Record>,
    aliases: Row<Alias>,
    batches: Row<Batch>,
    members: BTreeMap<OccurrenceKey, Member>,
    by_name: BTreeMap<Ref, Index>,
    /// Originals by normalized hash and status.
    by_hash: BTreeMap<(Hash, bool), Original>,
    aliases_of: BTreeMap<Index, Vec<Index>>,
    /// What was archived late and waits for an epoch.
    unshown: BTreeSet<Member>,
    last_name: u32,
}

impl Archive {
    #[must_use]
    pub fn records(&self) -> &Row<Record> {
        &self.records
    }

    #[must_use]
    pub fn batches(&self) -> &Row<Batch> {
        &self.batches
    }

    #[must_use]
    pub fn record(&self, index: Index) -> Option<&Record> {
        self.records.get(index)
    }

    #[must_use]
    pub fn alias(&self, index: Index) -> Option<&Alias> {
        self.aliases.get(index)
    }

    #[must_use]
    pub fn batch(&self, index: Index) -> Option<&Batch> {
        self.batches.get(index)
    }

    pub fn batch_mut(&mut self, index: Index) -> Option<&mut Batch> {
        self.batches.get_mut(index)
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
            Member::Record(index) => self.record(index),
            Member::Alias(index) => self.record(self.alias(index)?.original),
        }
    }

    #[must_use]
    pub fn key_of(&self, member: Member) -> Option<&OccurrenceKey> {
        match member {
            Member::Record(index) => self.record(index).map(|record| &record.key),
            Member::Alias(index) => self.alias(index).map(|alias| &alias.key),
        }
    }

    #[must_use]
    pub fn named(&self, name: Ref) -> Option<Index> {
        self.by_name.get(&name).copied()
    }

    /// The aliases of a record, in the order in which they were made.
    #[must_use]
    pub fn aliases_of(&self, record: Index) -> &[Index] {
        self.aliases_of.get(&record).map_or(&[], Vec::as_slice)
    }

    /// The record with the same normalized output and status.
    #[must_use]
    pub fn duplicate_of(&self, hash: &ContentHash, is_error: bool) -> Option<Index> {
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

    /// Gives out the next name. A name that is given out and not used is lost, never given again.
    pub fn next_name(&mut self) -> Ref {
        self.last_name += 1;
        Ref(self.last_name)
    }

    /// The last name that was given out; `t0` if none was.
    #[must_use]
    pub fn last_name(&self) -> Ref {
        Ref(self.last_name)
    }

    /// Takes back the names given out after `last` but for those that a record has got meanwhile:
    /// the others have not been written anywhere.
    pub fn take_back(&mut self, last: Ref) {
        let used = self.last_named().map_or(0, |name| name.0);
        self.last_name = self.last_name.min(last.0.max(used));
    }

    /// The names that will be given out next, in order; none is given out by looking.
    pub fn upcoming_names(&self) -> impl Iterator<Item = Ref> + use<> {
        (self.last_name + 1..).map(Ref)
    }

    /// Makes sure that a name seen in the log is never given out again.
    pub fn reserve_name(&mut self, name: Ref) {
        self.last_name = self.last_name.max(name.0);
    }

    /// Adds a record, or replaces the one of the same occurrence. `hash` makes it an original for
    /// later duplicates.
    pub fn insert(&mut self, record: Record, hash: Option<ContentHash>) -> Index {
        self.reserve_name(record.name);
        let index = match self.members.get(&record.key) {
            Some(Member::Record(index)) => *index,
            Some(Member::Alias(_)) | None => self.records.len(),
        };
        if let Some(ContentHash { normalized, raw }) = hash {
            self.by_hash
                .entry((normalized, record.is_error))
                .or_insert(Original { record: index, raw });
        }
        if !record.shown {
            self.unshown.insert(Member::Record(index));
        }
        self.by_name.insert(record.name, index);
        self.members
            .insert(record.key.clone(), Member::Record(index));
        match self.records.get_mut(index) {
            Some(known) => *known = record,
            None => self.records.push(record),
        }
        index
    }

    pub fn insert_alias(&mut self, alias: Alias) -> Index {
        let index = self.aliases.len();
        self.members.insert(alias.key.clone(), Member::Alias(index));
        if !alias.shown {
            self.unshown.insert(Member::Alias(index));
        }
        self.aliases_of
            .entry(alias.original)
            .or_default()
            .push(index);
        self.aliases.push(alias);
        index
    }

    /// Marks what was archived late as fit to be shown.
    pub fn show(&mut self, member: Member) {
        self.unshown.remove(&member);
        match member {
            Member::Record(index) => {
                if let Some(record) = self.records.get_mut(index) {
                    record.shown = true;
                }
            }
            Member::Alias(index) => {
                if let Some(alias) = self.aliases.get_mut(index) {
                    alias.shown = true;
                }
            }
        }
    }

    /// Marks everything that was archived late as fit to be shown.
    pub fn show_everything(&mut self) {
        for member in std::mem::take(&mut self.unshown) {
            self.show(member);
        }
    }

    pub fn insert_batch(&mut self, batch: Batch) -> Index {
        self.batches.push(batch);
        self.batches.len() - 1
    }
}
