//! Facts: what the session log says, and nothing else.
//!
//! [`Facts`] changes through one function, [`Facts::apply`], which takes one entry of the log. A
//! session that lives applies an entry once it has been appended; a load applies the entries that
//! are there. So both come to the same state, whatever the rest of the engine does.
//!
//! What belongs to a flush is staged, and counts once the frontier or the epoch that names the
//! flush's number has been applied. A flush that broke off leaves nothing but the names that it
//! used up.

mod archive;
mod blocks;
mod chains;
mod epoch_mark;
mod fact;
mod records;
mod summaries;

pub use archive::{
    Alias, AliasId, Archive, Batch, BatchId, Blob, Member, Record, RecordId, Standing, Stored,
};
pub use blocks::{Blocks, Dropped};
pub use epoch_mark::{CLOSED, EpochMark};
pub use fact::Fact;

use super::digest::ContentHash;
use super::entry;
use super::host::Stamp;
use super::ids::{BlockId, MAX_NUMBER, OccurrenceKey, Ref};
use crate::engine::map::{Map, Set};
use summaries::{SummaryId, SummaryLog};

/// What the log says.
#[derive(Debug, Default)]
pub struct Facts {
    archive: Archive,
    blocks: Blocks,
    summaries: SummaryLog,
    /// Results that were tried and left as they are.
    skipped: Set<OccurrenceKey>,
    /// A frontier of an older program: everything up to this call, of a turn that began at this time,
    /// was tried.
    tried_up_to: Option<(String, u64)>,
    epoch: Option<EpochMark>,
    stats: entry::Stats,
    diagnosed: Set<(String, String)>,
    /// The number of the last flush in the log, committed or not.
    last_flush: u32,
    /// What flushes have written that are not committed yet, by the flush's number.
    staged: Map<u32, Vec<Staged>>,
    /// The hash of an empty output, by tool.
    of_nothing: Map<String, ContentHash>,
}

/// An entry that waits for the commit of its flush.
#[derive(Debug)]
enum Staged {
    Index(Stamp, Indexed),
    Alias(Stamp, entry::Alias),
    Chain(Stamp, entry::Chain),
}

/// An index entry with what can be said of it when it is read.
#[derive(Debug)]
struct Indexed {
    index: entry::Index,
    hashes: Vec<ContentHash>,
    /// The summary that was written for it, if that came first.
    summary: Option<SummaryId>,
}

/// What an entry has changed.
#[derive(Debug, Default)]
pub struct Changes {
    /// Records that are new, or stand in another light.
    pub records: Vec<RecordId>,
    pub aliases: Vec<AliasId>,
    /// Batches that are new.
    pub batches: Vec<BatchId>,
    /// Batches that the user has taken back, or whose block is gone.
    pub reopened: Vec<BatchId>,
    pub blocks: Vec<BlockId>,
    /// Blocks that stand no more: superseded, or taken back.
    pub retired: Vec<BlockId>,
    /// Results that were tried and are left as they are.
    pub skipped: Vec<OccurrenceKey>,
    /// Whether what was sent may change here.
    pub is_epoch: bool,
}

impl Changes {
    /// Adds what came after.
    pub fn extend(&mut self, later: Self) {
        self.records.extend(later.records);
        self.aliases.extend(later.aliases);
        self.batches.extend(later.batches);
        self.reopened.extend(later.reopened);
        self.blocks.extend(later.blocks);
        self.retired.extend(later.retired);
        self.skipped.extend(later.skipped);
        self.is_epoch |= later.is_epoch;
    }
}

impl Facts {
    /// What is known of everything that was ever pruned.
    #[must_use]
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// The compressed spans.
    #[must_use]
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Whether a result was tried and left as it is.
    #[must_use]
    pub fn is_skipped(&self, key: &OccurrenceKey) -> bool {
        self.skipped.contains(key)
    }

    /// The last call that an older program has tried, and when its turn began: everything up to it
    /// was tried.
    #[must_use]
    pub fn tried_up_to(&self) -> Option<(&str, u64)> {
        let (call_id, at_ms) = self.tried_up_to.as_ref()?;
        Some((call_id, *at_ms))
    }

    /// The last epoch; `None` in a log without one.
    #[must_use]
    pub fn epoch(&self) -> Option<&EpochMark> {
        self.epoch.as_ref()
    }

    /// What the summarizer did, as last written.
    #[must_use]
    pub fn stats(&self) -> entry::Stats {
        self.stats
    }

    #[must_use]
    pub fn is_diagnosed(&self, kind: &str, detail: &str) -> bool {
        self.diagnosed
            .contains(&(kind.to_owned(), detail.to_owned()))
    }

    /// The number that the next flush has.
    #[must_use]
    pub fn next_flush(&self) -> u32 {
        self.last_flush + 1
    }

    /// The name that an occurrence has already: a backfilled result may be summarized later.
    #[must_use]
    pub fn known_name(&self, key: &OccurrenceKey) -> Option<Ref> {
        let member = self.archive.member(key)?;
        self.archive.original(member).map(|record| record.name)
    }

    /// The committed batch that a summary message speaks of.
    #[must_use]
    pub fn batch_of_details(&self, details: &entry::SummaryDetails) -> Option<BatchId> {
        let first = details.tool_call_refs.first()?;
        let id = self.archive.batch_named(Ref::parse(&first.short_id)?)?;
        let batch = self.archive.batch(id)?;
        let names_record = |(named, record): (&entry::SummaryRef, &Record)| {
            Ref::parse(&named.short_id) == Some(record.name)
                && record.key.call_id == named.tool_call_id
                && record.key.at_ms == named.result_timestamp
        };
        let refs = &details.tool_call_refs;
        let is_whole = refs.len() == batch.records.len()
            && refs
                .iter()
                .zip(self.archive.records_of(id))
                .all(names_record);
        let is_from_it = details.flush.is_none() || details.flush == batch.flush;
        (is_whole && is_from_it).then_some(id)
    }

    /// The text of a batch's summary, as long as it is held; the log has it for good.
    #[must_use]
    pub fn summary_text(&self, batch: BatchId) -> Option<&str> {
        let entry = self.archive.batch(batch)?.summary.as_ref()?;
        self.summaries.text(entry)
    }

    /// Lets the text of a batch's summary go. No fact is lost by it: the log has the text.
    pub fn release_summary(&mut self, batch: BatchId) {
        let entry = self.archive.batch(batch);
        if let Some(entry) = entry.and_then(|batch| batch.summary.as_ref()) {
            self.summaries.release(entry);
        }
    }

    /// Applies the entries of a log, oldest first.
    ///
    /// What old programs wrote can be read only with what comes later: records whose names are given
    /// nowhere must get none that is, and summaries may be written behind their records.
    pub fn load(&mut self, mut entries: Vec<(Stamp, Fact)>) {
        for (stamp, fact) in &mut entries {
            self.foresee(stamp, fact);
        }
        for (stamp, fact) in entries {
            self.apply_foreseen(stamp, fact);
        }
    }

    /// Applies one entry of the log, which bears this stamp there. Says what has changed: nothing
    /// yet, if the entry waits for the commit of its flush.
    pub fn apply(&mut self, stamp: Stamp, mut fact: Fact) -> Changes {
        self.foresee(&stamp, &mut fact);
        self.apply_foreseen(stamp, fact)
    }

    fn apply_foreseen(&mut self, stamp: Stamp, fact: Fact) -> Changes {
        let mut changes = Changes::default();
        match fact {
            Fact::Summary(_) => self.summaries.pass(&stamp.entry),
            Fact::Index(index) => {
                let flush = index.flush;
                let staged = Staged::Index(stamp, self.indexed(index));
                self.stage(flush, staged, &mut changes);
            }
            Fact::Alias(alias) => {
                let flush = alias.flush;
                self.stage(flush, Staged::Alias(stamp, alias), &mut changes);
            }
            Fact::Chain(chain) => {
                let flush = chain.flush;
                self.stage(flush, Staged::Chain(stamp, chain), &mut changes);
            }
            Fact::Frontier(frontier) => {
                self.commit(frontier.flush, &mut changes);
                self.apply_frontier(frontier, &mut changes);
            }
            Fact::Epoch(epoch) => {
                self.commit(epoch.flush, &mut changes);
                self.apply_epoch(Some(epoch.epoch_end), &mut changes);
            }
            Fact::Undo(undo) => self.apply_undo(&undo, &mut changes),
            Fact::Stats(stats) => self.stats = stats,
            Fact::Diagnostic(diagnostic) => {
                self.diagnosed.insert((diagnostic.kind, diagnostic.detail));
            }
        }
        changes
    }

    /// Notes the names that an entry uses, and the summary that it is: that is taken out of it.
    fn foresee(&mut self, stamp: &Stamp, fact: &mut Fact) {
        let number = |flush: Option<u32>| flush.filter(|number| *number <= MAX_NUMBER).unwrap_or(0);
        let flush = match fact {
            Fact::Summary(message) => {
                for named in &message.details.tool_call_refs {
                    self.reserve(&named.short_id);
                }
                self.summaries.note(stamp, message);
                message.details.flush
            }
            Fact::Index(index) => {
                let calls = index.tool_calls.iter();
                for name in calls.filter_map(|call| call.short_id.as_deref()) {
                    self.reserve(name);
                }
                for named in &index.refs {
                    self.reserve(&named.short_id);
                }
                index.flush
            }
            Fact::Chain(chain) => {
                if let Some(id) = BlockId::parse(&chain.block_id) {
                    self.blocks.reserve(id);
                }
                chain.flush
            }
            Fact::Alias(alias) => alias.flush,
            Fact::Frontier(frontier) => frontier.flush,
            Fact::Epoch(epoch) => epoch.flush,
            Fact::Undo(_) | Fact::Stats(_) | Fact::Diagnostic(_) => None,
        };
        self.last_flush = self.last_flush.max(number(flush));
    }

    fn reserve(&mut self, name: &str) {
        if let Some(name) = Ref::parse(name) {
            self.archive.reserve_name(name);
        }
    }

    fn stage(&mut self, flush: Option<u32>, staged: Staged, changes: &mut Changes) {
        match flush {
            Some(number) => self.staged.update(number, |all| all.push(staged)),
            None => self.make(staged, changes),
        }
    }

    fn commit(&mut self, flush: Option<u32>, changes: &mut Changes) {
        let staged = flush.and_then(|number| self.staged.remove(&number));
        for staged in staged.into_iter().flatten() {
            self.make(staged, changes);
        }
    }

    fn make(&mut self, staged: Staged, changes: &mut Changes) {
        match staged {
            Staged::Index(stamp, indexed) => self.apply_index(&stamp, indexed, changes),
            Staged::Alias(stamp, alias) => self.apply_alias(stamp, alias, changes),
            Staged::Chain(stamp, chain) => self.apply_chain(stamp.entry, &chain, changes),
        }
    }

    fn apply_frontier(&mut self, frontier: entry::Frontier, changes: &mut Changes) {
        let is_old = frontier.skipped.is_none();
        for key in frontier.skipped.iter().flatten() {
            let key = OccurrenceKey::parse(key);
            changes.skipped.push(key.clone());
            self.skipped.insert(key);
        }
        if is_old && !frontier.last_attempted_tool_call_id.is_empty() {
            self.tried_up_to = Some((
                frontier.last_attempted_tool_call_id,
                frontier.last_attempted_timestamp,
            ));
        }
        if is_old || frontier.epoch_end.is_some() {
            self.apply_epoch(frontier.epoch_end, changes);
        }
    }

    fn apply_epoch(&mut self, mark: Option<String>, changes: &mut Changes) {
        self.epoch = Some(EpochMark::read(mark));
        self.archive.show_everything();
        changes.is_epoch = true;
    }

    fn apply_undo(&mut self, undo: &entry::Undo, changes: &mut Changes) {
        if let Some(id) = undo.block_id.as_deref().and_then(BlockId::parse) {
            self.undo_block(id, changes);
        }
        for name in undo.refs.iter().filter_map(|name| Ref::parse(name)) {
            let Some(id) = self.archive.batch_named(name) else {
                continue;
            };
            if let Some(batch) = self.archive.batch_mut(id).filter(|batch| !batch.undone) {
                batch.undone = true;
                changes.reopened.push(id);
            }
        }
        if undo.epoch_end.is_some() {
            self.apply_epoch(undo.epoch_end.clone(), changes);
        }
    }
}
