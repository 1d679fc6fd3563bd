//! What is done at every turn's end besides flushing: the accounts of new results, spilling, and
//! archiving what is about to leave the context.

use super::{Position, Session};
use crate::engine::archive::{Alias, Blob, Member, Record, Standing, Stored};
use crate::engine::blob_name::blob_name;
use crate::engine::config::CachePolicy;
use crate::engine::cut::head_bytes;
use crate::engine::digest::{ContentHash, hex};
use crate::engine::entry;
use crate::engine::host::{Host, HostError, Notice};
use crate::engine::ids::{EntryId, OccurrenceKey, Ref};
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
        let entry = host.append(entry::ALIAS, &entry::write(&alias))?;
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
        let entry = host.append(entry::INDEX, &entry::write(&index))?;
        self.admit(&entry, vec![draft], now_ms);
        self.touch(at, late);
        Ok(())
    }

    /// Settles a result that was archived at once: if the model has seen it, at the next epoch.
    fn touch(&mut self, at: Position, late: bool) {
        if late {
            self.epoch.unshown.insert(at);
        } else {
            self.settle(at);
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
                    .is_some_and(|call| call.is_error)
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
        if self.is_covered(at) {
            // A block stands for it, and shows what it has not archived.
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
            Ok(entry) => {
                self.admit(&entry, drafts, now_ms);
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
    /// should have been archived before the last epoch.
    fn is_overdue(&self, at: Position) -> bool {
        let site = self.site_in_context(at);
        let is_recovered = self.epoch.recovered_waiting.contains(&at);
        self.config.cache_policy == CachePolicy::Stable
            && at < self.epoch.end.min(self.epoch.sent)
            && site.is_some_and(|site| {
                self.is_purge_due(site.assistant) || (is_recovered && !self.is_in_grace(at))
            })
    }

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

    /// Old records have no timestamp: each is bound to the one result that it can mean, which is
    /// not newer than the record's entry.
    pub(super) fn bind_legacy(&mut self, at: Position) {
        let Some(slot) = self.transcript.slot(at) else {
            return;
        };
        let Some(result) = slot.as_result() else {
            return;
        };
        if self.archive.member(&result.key(slot.at_ms)).is_some() {
            return;
        }
        let bare = OccurrenceKey {
            call_id: result.call_id.clone(),
            at_ms: None,
        };
        let Some(member) = self.archive.member(&bare) else {
            return;
        };
        let turn_at_ms = result
            .site
            .and_then(|site| self.transcript.slot(site.assistant))
            .map(|turn| turn.at_ms);
        let (written_at_ms, of_turn_ms) = match member {
            Member::Record(index) => match self.archive.record(index) {
                Some(record) => (record.archived_at_ms, record.turn_at_ms),
                None => return,
            },
            Member::Alias(index) => match self.archive.alias(index) {
                Some(alias) => (alias.archived_at_ms, 0),
                None => return,
            },
        };
        let is_exact = turn_at_ms == Some(of_turn_ms);
        let is_bound = self.account.legacy_positions.get(&member).copied();
        if slot.at_ms > written_at_ms || (is_bound.is_some() && !is_exact) {
            return;
        }
        if let Some(before) = is_bound {
            self.account.legacy.remove(&before);
        }
        self.account.legacy.insert(at, member);
        self.account.legacy_positions.insert(member, at);
    }

    /// What an older program's frontier says: every result up to its last attempted call was tried.
    pub(super) fn apply_legacy_frontier(&mut self) {
        let Some((call_id, turn_at_ms)) = self.load.frontier.take() else {
            return;
        };
        let anchor = self
            .transcript
            .results_of(&call_id)
            .filter(|at| {
                let turn = self
                    .transcript
                    .result(*at)
                    .and_then(|result| self.transcript.slot(result.site?.assistant));
                turn.is_some_and(|turn| turn.at_ms <= turn_at_ms)
            })
            .max();
        let Some(anchor) = anchor else {
            return;
        };
        for at in 0..=anchor {
            if self.member_at(at).is_none()
                && let Some(key) = self.transcript.key_at(at)
            {
                self.account.skipped.insert(key);
            }
        }
    }

    /// Where the session's turns go on counting after the host has cut its beginning away: found
    /// from the first result that the archive knows.
    pub(super) fn find_turn_base(&mut self) {
        for at in 0..self.transcript.len() {
            let Some(member) = self.member_at(at) else {
                continue;
            };
            let known = match member {
                Member::Record(index) => self.archive.record(index).map(|record| record.turn_index),
                Member::Alias(index) => self.archive.alias(index).map(|alias| alias.turn_index),
            };
            let here = self.turn_index_at(at);
            if let Some(missing) = known.and_then(|known| known.checked_sub(here)) {
                let base = self.transcript.turn_base() + missing;
                self.transcript.set_turn_base(base);
            }
            return;
        }
    }
}
