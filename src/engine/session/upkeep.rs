//! What is done at every turn's end besides flushing: spilling, archiving what is about to leave the
//! context, and the epochs of a cold cache.

use super::Session;
use crate::engine::blob_name::blob_name;
use crate::engine::cut::head_bytes;
use crate::engine::digest::ContentHash;
use crate::engine::draft::Draft;
use crate::engine::entry;
use crate::engine::facts::{Blob, Fact, RecordId};
use crate::engine::hook::Hook;
use crate::engine::host::{Host, HostError, Notice};
use crate::engine::ids::{OccurrenceKey, Ref};
use crate::engine::query;
use crate::engine::size::utf16_len;
use crate::engine::stub;
use crate::engine::transcript::Position;

/// How many duplicates of an outsized result become stubs: with the original's that makes two stubs,
/// and a model that asks a third time does so because stubs did not help.
///
/// Source: field report H02.
const OUTSIZED_ALIASES: usize = 1;

impl Session {
    /// Does everything that does not wait for a flush.
    pub(super) fn keep_up(&mut self, hook: &mut Hook<'_>) {
        self.write_oddities(hook.host);
        self.spill_fresh(hook);
        self.archive_due(hook);
    }

    /// Writes the oddities that are not in the log yet.
    pub(super) fn write_oddities(&mut self, host: &mut dyn Host) {
        for (kind, detail) in self.view.take_oddities() {
            if !self.basis.facts.is_diagnosed(kind, &detail) {
                let kind = kind.to_owned();
                // What cannot be written is found again by the next load.
                let _ = self.write(Fact::Diagnostic(entry::Diagnostic { kind, detail }), host);
            }
        }
    }

    /// The name for a record that is archived now: the occurrence's own, or the next one.
    fn name_for(&self, key: &OccurrenceKey) -> Ref {
        let last = self.basis.facts.archive().last_name();
        let last = self
            .flush
            .as_ref()
            .map_or(last, |flush| last.max(flush.last_name()));
        let known = self.basis.facts.known_name(key);
        known.unwrap_or(Ref(last.0 + 1))
    }

    /// Moves outsized results of the last turns to blobs: protected, then dedup, then spill.
    fn spill_fresh(&mut self, hook: &mut Hook<'_>) {
        let threshold = u64::from(self.basis.rules.config.spill_threshold);
        for at in self.view.take_fresh() {
            let result = self.basis.transcript.result(at);
            let is_outsized =
                result.is_some_and(|result| threshold > 0 && result.text_size.chars >= threshold);
            if !is_outsized || !self.basis.rules.may_replace() || !self.view.untried().contains(at)
            {
                continue;
            }
            if let Err(err) = self.put_away(at, hook) {
                hook.host.notify(&Notice::error(format!(
                    "pruner: an outsized tool result stays in the context, it could not be \
                     stored: {err}"
                )));
            }
        }
    }

    fn put_away(&mut self, at: Position, hook: &mut Hook<'_>) -> Result<(), HostError> {
        let (Some(hash), Some(result)) = (self.basis.hash_at(at), self.basis.transcript.result(at))
        else {
            return Ok(());
        };
        if self.basis.member_at(at).is_some() {
            // A threshold that came down later; the next flush summarizes it.
            return Ok(());
        }
        let archive = self.basis.facts.archive();
        let original = archive
            .duplicate_of(&hash, result.is_error)
            .filter(|_| self.basis.rules.config.dedup_by_content_hash);
        match original {
            Some(original) if archive.aliases_of(original).len() >= OUTSIZED_ALIASES => Ok(()),
            Some(original) => self.alias_now(at, original, &hash, hook),
            None => self.spill(at, hash, hook),
        }
    }

    fn alias_now(
        &mut self,
        at: Position,
        original: RecordId,
        hash: &ContentHash,
        hook: &mut Hook<'_>,
    ) -> Result<(), HostError> {
        let Some(mut alias) = self.basis.alias_entry(at, original, hash) else {
            return Ok(());
        };
        alias.from_next_epoch = self.is_sent(at);
        self.write(Fact::Alias(alias), hook.host)
    }

    /// Whether the model has seen a message, so that it has to stay as it is until an epoch.
    fn is_sent(&self, at: Position) -> bool {
        at < self.basis.epoch.sent && !self.basis.rules.is_live()
    }

    fn spill(
        &mut self,
        at: Position,
        hash: ContentHash,
        hook: &mut Hook<'_>,
    ) -> Result<(), HostError> {
        let transcript = &self.basis.transcript;
        let (Some(key), Some(result)) = (transcript.key_at(at), transcript.result(at)) else {
            return Ok(());
        };
        let text = result.text.as_deref().unwrap_or_default();
        let bytes = text.len() as u64;
        let preview_bytes = self.basis.rules.config.spill_preview_bytes as usize;
        let preview = head_bytes(text, preview_bytes).to_owned();
        let is_shorter = |location: &str, name| {
            let stub = stub::spill_stub(&result.tool, bytes, &preview, location, name);
            utf16_len(&stub) < result.text_size.chars
        };
        if !is_shorter("", Ref(1)) {
            return Ok(());
        }
        // The blob before the entry: a crash in between leaves a file that nobody needs, never an
        // entry without its text.
        let blob = blob_name(&key);
        let location = hook.host.write_blob(&blob, text)?;
        let name = self.name_for(&key);
        if !is_shorter(&location, name) {
            return Ok(());
        }
        let blob = Blob {
            name: blob,
            location,
            bytes,
        };
        let mut draft = Draft::new(at, name, Some(hash));
        draft.blob = Some((blob, preview));
        draft.is_late = self.is_sent(at);
        let index = self.basis.index_entry(&[draft]);
        self.write(Fact::Index(index), hook.host)
    }

    /// Archives results without a call: they are left out at once.
    pub(super) fn archive_orphans(&mut self, hook: &mut Hook<'_>) -> bool {
        while let Some(at) = self.view.first_orphan() {
            if !self.archive_one(at, None, hook) {
                return false;
            }
            self.view.forget_orphan(at);
        }
        true
    }

    /// Archives what is about to leave the context by other ways than a summary: results without a
    /// call, recovered outputs whose time is over, failed calls whose arguments are to go.
    pub(super) fn archive_due(&mut self, hook: &mut Hook<'_>) {
        if !self.archive_orphans(hook) {
            return;
        }
        for at in self.view.recovered_to_archive(&self.basis) {
            let refs = self.recovered_refs(at);
            if !self.archive_one(at, Some(refs), hook) {
                return;
            }
            self.view.forget_unarchived(at);
        }
        for assistant in self.view.purges_to_archive(&self.basis) {
            for at in self.basis.failed_calls(assistant) {
                if !self.archive_one(at, None, hook) {
                    return;
                }
            }
            self.view.forget_unarchived(assistant);
        }
    }

    /// The names that a call of the query tool asked for.
    fn recovered_refs(&self, at: Position) -> Vec<String> {
        let transcript = &self.basis.transcript;
        let call = transcript
            .result(at)
            .and_then(|result| transcript.call(result.site?));
        let arguments = call.and_then(|call| call.arguments.as_deref());
        arguments
            .and_then(|arguments| query::Request::parse(arguments).ok())
            .map(|request| request.names)
            .unwrap_or_default()
    }

    /// Archives one result without a summary. `false` if the log could not be written.
    fn archive_one(
        &mut self,
        at: Position,
        recovered: Option<Vec<String>>,
        hook: &mut Hook<'_>,
    ) -> bool {
        let is_in_context = self
            .view
            .settling(&self.basis)
            .site_in_context(at)
            .is_some();
        if self.view.layout().is_covered(at) && is_in_context {
            // A block stands for its turn, and shows what it has not archived.
            return true;
        }
        let has_text = |at| self.basis.transcript.result(at)?.text.as_ref().map(|_| ());
        let (Some(key), Some(())) = (self.basis.transcript.key_at(at), has_text(at)) else {
            return true;
        };
        let mut draft = Draft::new(at, self.name_for(&key), self.basis.hash_at(at));
        draft.recovered = recovered;
        draft.is_late = self.view.is_overdue(&self.basis, at);
        let index = self.basis.backfill_entry(&[draft], None);
        match self.write(Fact::Index(index), hook.host) {
            Ok(()) => true,
            Err(err) => {
                hook.host.notify(&Notice::warning(format!(
                    "pruner: the session log cannot be written ({err}); nothing was pruned, and \
                     the next turn tries again"
                )));
                false
            }
        }
    }

    /// Before a model call: an epoch, if what was sent need not stay as it was.
    pub(super) fn meet_epoch(&mut self, hook: &mut Hook<'_>) {
        let is_live = self.basis.rules.is_live();
        if !is_live && !self.is_cold(hook.now_ms) {
            return;
        }
        // Before the epoch is in the log, so that a load shows it from there on as well.
        self.archive_due(hook);
        if is_live {
            self.basis.advance_epoch();
            self.view.advance_epoch(&self.basis);
            self.let_go();
        } else {
            self.write_cold_epoch(hook);
        }
    }

    /// Whether the provider's cache has gone cold: long after the last model call, or on another
    /// model.
    fn is_cold(&self, now_ms: u64) -> bool {
        let epoch = &self.basis.epoch;
        let replied_ms = self.basis.transcript.last_reply_at_ms().unwrap_or(0);
        let last = replied_ms.max(epoch.last_call_ms);
        let idle = self.basis.rules.config.idle_cold_ms;
        epoch.is_model_new || (idle > 0 && now_ms >= last.saturating_add(idle))
    }

    /// Writes the epoch of a cold cache, if it would change anything.
    fn write_cold_epoch(&mut self, hook: &mut Hook<'_>) {
        let (end, is_closed) = (self.basis.epoch.end, self.basis.epoch.is_closed);
        self.basis.advance_epoch();
        let has_due_edits = self.view.has_due_edits(&self.basis);
        (self.basis.epoch.end, self.basis.epoch.is_closed) = (end, is_closed);
        if !has_due_edits {
            return;
        }
        let epoch = entry::Epoch {
            epoch_end: self.basis.end_mark(),
            flush: None,
        };
        if let Err(err) = self.write(Fact::Epoch(epoch), hook.host) {
            hook.host.notify(&Notice::warning(format!(
                "pruner: the session log cannot be written ({err}); due edits wait"
            )));
        }
    }
}
