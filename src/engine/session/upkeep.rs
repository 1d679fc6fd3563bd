//! What is done at every turn's end besides flushing: the accounts of new results, spilling, and
//! archiving what is about to leave the context.

use super::{Position, Session};
use crate::engine::archive::{Blob, Member, Standing};
use crate::engine::blob_name::blob_name;
use crate::engine::config::CachePolicy;
use crate::engine::cut::head_bytes;
use crate::engine::digest::ContentHash;
use crate::engine::entry;
use crate::engine::host::{Host, HostError, Notice};
use crate::engine::ids::Ref;
use crate::engine::query;
use crate::engine::size::utf16_len;
use crate::engine::stub;

/// How many duplicates of an outsized result become stubs: with the original's that makes two stubs,
/// and a model that asks a third time does so because stubs did not help.
///
/// Source: field report H02.
const OUTSIZED_ALIASES: usize = 1;

/// A result that is about to become a record.
pub(super) struct Draft {
    pub(super) at: Position,
    pub(super) name: Ref,
    pub(super) hash: Option<ContentHash>,
    pub(super) standing: Standing,
    pub(super) blob: Option<(Blob, String)>,
    /// Whether the context may show it from the next epoch on only.
    pub(super) is_late: bool,
}

impl Session {
    /// Enters a tool result into the accounts.
    pub(super) fn note_result(&mut self, at: Position) {
        let (Some(result), Some(key)) = (self.transcript.result(at), self.transcript.key_at(at))
        else {
            return;
        };
        if result.ambiguous {
            let detail = format!("occurrence={key}");
            self.undiagnosed
                .push(("ambiguous-result".to_owned(), detail));
            return;
        }
        let member = self.member_at(at);
        let Some(site) = self.site_in_context(at) else {
            let detail = format!("occurrence={key}");
            self.undiagnosed.push(("orphan-result".to_owned(), detail));
            if member.is_none() && result.text_size.chars > 0 {
                self.account.orphans.insert(at);
            }
            return;
        };
        let call = self.transcript.call(site);
        let path = call.and_then(|call| call.path.as_deref());
        let is_recovered = result.tool == query::TOOL_NAME;
        let is_large = call.is_some_and(|call| {
            call.arguments_size.chars >= u64::from(self.config.purge_errors.min_arg_chars)
        });
        let is_archived_only = member.is_some_and(|member| {
            let standing = self.archive.original(member).map(|record| &record.standing);
            matches!(member, Member::Record(_)) && standing == Some(&Standing::Archived)
        });
        let is_open = member.is_none() || is_archived_only;
        let is_protected = self.protection.covers(&result.tool, path);
        let is_untried =
            is_open && !is_recovered && !is_protected && !self.account.skipped.contains(&key);
        let is_error = result.is_error;
        let text_size = result.text_size;
        if is_recovered {
            self.epoch.recovered_waiting.insert(at);
            if member.is_none() {
                self.epoch.recovered_unarchived.insert(at);
            }
        }
        if is_error && is_large {
            self.epoch.purge_waiting.insert(site.assistant);
            if member.is_none() {
                self.epoch.purge_unarchived.insert(site.assistant);
            }
        }
        if is_untried {
            self.account.untried.insert(at, site.assistant, text_size);
            self.account.fresh.push(at);
        } else if member.is_some() && !is_protected {
            self.transcript.release(at);
            self.transcript.release_arguments(site);
        }
        if self.is_unshown(member) {
            self.epoch.unshown.insert(at);
        }
    }

    fn is_unshown(&self, member: Option<Member>) -> bool {
        match member {
            Some(Member::Record(index)) => self
                .archive
                .record(index)
                .is_some_and(|record| !record.shown),
            Some(Member::Alias(index)) => {
                self.archive.alias(index).is_some_and(|alias| !alias.shown)
            }
            None => false,
        }
    }

    /// Does everything that does not wait for a flush.
    pub(super) fn keep_up(&mut self, now_ms: u64, host: &mut dyn Host) {
        self.write_diagnostics(host);
        self.spill_fresh(now_ms, host);
        self.archive_due(now_ms, host);
    }

    /// Writes the diagnostics that are not in the log yet.
    pub(super) fn write_diagnostics(&mut self, host: &mut dyn Host) {
        for (kind, detail) in std::mem::take(&mut self.undiagnosed) {
            let known = (kind.clone(), detail.clone());
            if self.diagnosed.contains(&known) {
                continue;
            }
            let data = entry::Diagnostic { kind, detail };
            if host.append(entry::DIAGNOSTIC, &entry::write(&data)).is_ok() {
                self.diagnosed.insert(known);
            }
        }
    }

    /// Moves outsized results of the last turns to blobs: protected, then dedup, then spill.
    fn spill_fresh(&mut self, now_ms: u64, host: &mut dyn Host) {
        let threshold = u64::from(self.config.spill_threshold);
        for at in std::mem::take(&mut self.account.fresh) {
            let is_outsized = self
                .transcript
                .result(at)
                .is_some_and(|result| threshold > 0 && result.text_size.chars >= threshold);
            if !is_outsized || !self.may_replace() || !self.account.untried.contains(at) {
                continue;
            }
            if let Err(err) = self.put_away(at, now_ms, host) {
                host.notify(&Notice::error(format!(
                    "pruner: an outsized tool result stays in the context, it could not be \
                     stored: {err}"
                )));
            }
        }
    }

    fn put_away(
        &mut self,
        at: Position,
        now_ms: u64,
        host: &mut dyn Host,
    ) -> Result<(), HostError> {
        let Some(hash) = self.hash_at(at) else {
            return Ok(());
        };
        let is_error = self
            .transcript
            .result(at)
            .is_some_and(|result| result.is_error);
        if self.member_at(at).is_some() {
            // A threshold that came down later; the next flush summarizes it.
            return Ok(());
        }
        let original = self
            .config
            .dedup_by_content_hash
            .then(|| self.archive.duplicate_of(&hash, is_error))
            .flatten();
        match original {
            Some(original) if self.archive.aliases_of(original).len() >= OUTSIZED_ALIASES => Ok(()),
            Some(original) => self.alias_now(at, original, hash, now_ms, host),
            None => self.spill(at, hash, now_ms, host),
        }
    }

    fn alias_now(
        &mut self,
        at: Position,
        original: usize,
        hash: ContentHash,
        now_ms: u64,
        host: &mut dyn Host,
    ) -> Result<(), HostError> {
        let late = at < self.epoch.sent;
        let Some(mut alias) = self.alias_entry(at, original, &hash) else {
            return Ok(());
        };
        alias.from_next_epoch = late;
        let entry = host.append(entry::ALIAS, &entry::write(&alias))?.entry;
        self.admit_alias(at, original, entry, &alias, now_ms);
        self.touch(at, late);
        Ok(())
    }

    fn spill(
        &mut self,
        at: Position,
        hash: ContentHash,
        now_ms: u64,
        host: &mut dyn Host,
    ) -> Result<(), HostError> {
        let (Some(key), Some(result)) = (self.transcript.key_at(at), self.transcript.result(at))
        else {
            return Ok(());
        };
        let text = result.text.clone().unwrap_or_default();
        let bytes = text.len() as u64;
        let preview = head_bytes(&text, self.config.spill_preview_bytes as usize).to_owned();
        let written =
            |location: &str, name| stub::spill_stub(&result.tool, bytes, &preview, location, name);
        let shortest = utf16_len(&written("", Ref(1)));
        if shortest >= result.text_size.chars {
            return Ok(());
        }
        // The blob before the entry: a crash in between leaves a file that nobody needs, never an
        // entry without its text.
        let blob = blob_name(&key);
        let location = host.write_blob(&blob, &text)?;
        // The name counts as given out once the record is in the log and in the archive.
        let next = Ref(self.archive.last_name().0 + 1);
        let name = self.known_name(&key).unwrap_or(next);
        let stub = written(&location, name);
        if utf16_len(&stub) >= result.text_size.chars {
            return Ok(());
        }
        let late = at < self.epoch.sent;
        let draft = Draft {
            at,
            name,
            hash: Some(hash),
            standing: Standing::Spilled { stub },
            is_late: late,
            blob: Some((
                Blob {
                    name: blob,
                    location,
                    bytes,
                },
                preview,
            )),
        };
        let index = self.index_entry(std::slice::from_ref(&draft));
        let entry = host.append(entry::INDEX, &entry::write(&index))?.entry;
        self.admit(&entry, vec![draft], now_ms);
        self.touch(at, late);
        Ok(())
    }

    /// Settles a result that was archived at once, and the call whose arguments it has held up: if
    /// the model has seen it, at the next epoch.
    fn touch(&mut self, at: Position, late: bool) {
        if late {
            self.epoch.unshown.insert(at);
            return;
        }
        self.settle(at);
        if let Some(site) = self.site_in_context(at) {
            self.settle(site.assistant);
        }
    }

    /// Archives results without a call: they are left out at once.
    pub(super) fn archive_orphans(&mut self, now_ms: u64, host: &mut dyn Host) -> bool {
        while let Some(at) = self.account.orphans.first().copied() {
            if !self.archive_one(at, Standing::Archived, now_ms, host) {
                return false;
            }
            self.account.orphans.remove(&at);
        }
        true
    }

    /// Archives what is about to leave the context by other ways than a summary: results without a
    /// call, recovered outputs whose time is over, failed calls whose arguments are to go.
    pub(super) fn archive_due(&mut self, now_ms: u64, host: &mut dyn Host) {
        if !self.archive_orphans(now_ms, host) {
            return;
        }
        for at in self.recovered_due() {
            let refs = self.recovered_refs(at);
            if !self.archive_one(at, Standing::Recovered { refs }, now_ms, host) {
                return;
            }
            self.epoch.recovered_unarchived.remove(&at);
        }
        for assistant in self.purge_due() {
            for at in self.failed_calls(assistant) {
                if !self.archive_one(at, Standing::Archived, now_ms, host) {
                    return;
                }
            }
            self.epoch.purge_unarchived.remove(&assistant);
        }
    }

    fn recovered_due(&self) -> Vec<Position> {
        let len = self.transcript.len();
        let is_over = self.is_user_turn_over();
        let waiting = self.epoch.recovered_unarchived.iter().copied();
        waiting
            .take_while(|at| !self.is_in_grace_until(*at, len, is_over))
            .collect()
    }

    /// Assistant messages with failed calls that have cooled down and are in no record yet.
    fn purge_due(&self) -> Vec<Position> {
        let settings = &self.config.purge_errors;
        if !settings.enabled {
            return Vec::new();
        }
        let len = self.transcript.len();
        let cooled = |at: &Position| {
            self.transcript.assistants_between(at + 1, len) >= settings.cooldown_turns as usize
        };
        let waiting = self.epoch.purge_unarchived.iter().copied();
        // What a block shows verbatim must not become a record: the block would lose it.
        waiting
            .take_while(cooled)
            .filter(|at| !self.is_covered(*at))
            .collect()
    }

    /// Results of the failed calls of an assistant message whose arguments are large.
    fn failed_calls(&self, assistant: Position) -> Vec<Position> {
        let least = u64::from(self.config.purge_errors.min_arg_chars);
        let calls = self.transcript.assistant(assistant);
        calls
            .iter()
            .flat_map(|assistant| &assistant.calls)
            .filter(|call| call.arguments_size.chars >= least)
            .filter_map(|call| call.result)
            .filter(|at| {
                self.transcript
                    .result(*at)
                    .is_some_and(|call| call.is_error && !call.ambiguous)
            })
            .filter(|at| self.member_at(*at).is_none())
            .collect()
    }

    /// The names that a call of the query tool asked for.
    fn recovered_refs(&self, at: Position) -> Vec<String> {
        let call = self
            .transcript
            .result(at)
            .and_then(|result| self.transcript.call(result.site?));
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
        standing: Standing,
        now_ms: u64,
        host: &mut dyn Host,
    ) -> bool {
        if self.is_covered(at) && self.site_in_context(at).is_some() {
            // A block stands for its turn, and shows what it has not archived.
            return true;
        }
        let last_name = self.archive.last_name();
        let Some(mut draft) = self.draft(at, standing) else {
            return true;
        };
        let late = self.is_overdue(at);
        draft.is_late = late;
        let drafts = vec![draft];
        let index = self.backfill_entry(&drafts, None);
        match host.append(entry::INDEX, &entry::write(&index)) {
            Ok(stamp) => {
                self.admit(&stamp.entry, drafts, now_ms);
                self.touch(at, late);
                true
            }
            Err(err) => {
                self.archive.take_back(last_name);
                host.notify(&Notice::warning(format!(
                    "pruner: the session log cannot be written ({err}); nothing was pruned, and \
                     the next turn tries again"
                )));
                false
            }
        }
    }

    /// Whether what the archiving of a result makes possible would change what was sent, at once: it
    /// should have been archived before the last epoch. A result that came late stands with its call.
    fn is_overdue(&self, at: Position) -> bool {
        let Some(site) = self.site_in_context(at) else {
            return false;
        };
        let sent = self.epoch.end.min(self.epoch.sent);
        let is_recovered = self.epoch.recovered_waiting.contains(&at);
        let may_be_purged = self.epoch.purge_waiting.contains(&site.assistant);
        self.config.cache_policy == CachePolicy::Stable
            && ((may_be_purged && site.assistant < sent && self.is_purge_due(site.assistant))
                || (is_recovered && at < sent && !self.is_in_grace(at)))
    }
}
