//! The invariants of design section 5, looked at from outside at each model call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use decant::engine::config::{CachePolicy, Config};
use decant::engine::delimiter::disarm;
use decant::engine::entry::{self, SUMMARY, SummaryDetails};
use decant::engine::ids::OccurrenceKey;
use decant::engine::message::{Message, Role};
use decant::engine::plan::Edit;
use serde_json::{Value, json};

use super::apply::{Shown, apply, chars};
use super::host::{Disk, FakeHost, Item, Shared, hold};
use super::lane::{EngineLane, Lane};
use super::pairing;
use super::recall::{check_words, original};

/// At least what the engine takes the frame of a message for.
const FRAME_CHARS: u64 = 80;

/// What the host knows at a model call.
pub(crate) struct Situation<'a> {
    pub transcript: &'a [Message],
    pub settings: String,
    pub config: &'a Config,
    pub is_offered: bool,
    pub shows_summaries: bool,
    pub log_fails: bool,
    pub now: u64,
}

/// What has to be remembered from one model call to the next.
#[derive(Default)]
pub(crate) struct Watch {
    /// The context that was sent last, and the length of its transcript.
    sent: Option<(Vec<Shown>, usize)>,
    /// How many items of the session file have been looked at for epochs.
    items_seen: usize,
    last_call: u64,
    /// Whether the model has changed since.
    pub is_cold: bool,
    /// Writes that the host had refused.
    refused: u32,
    /// Everything that was ever put away, and whether it has been asked for since the last load.
    pruned: BTreeMap<OccurrenceKey, (String, bool)>,
    /// Occurrences that two results had: which of them the log means cannot be told once the host has
    /// cut one away.
    shared: BTreeSet<OccurrenceKey>,
    pub has_lost_blobs: bool,
}

impl Watch {
    /// What was sent may change now.
    pub(crate) fn epoch(&mut self) {
        self.sent = None;
        for (_, is_checked) in self.pruned.values_mut() {
            *is_checked = false;
        }
    }

    /// What was put away may never have been.
    pub(crate) fn forget(&mut self) {
        self.pruned.clear();
        self.items_seen = 0;
    }

    /// Looks at a context that is about to be sent.
    ///
    /// # Errors
    /// An invariant that does not hold.
    pub(crate) fn check(
        &mut self,
        edits: &[Edit],
        situation: &Situation<'_>,
        lane: &mut dyn Lane,
        host: &Shared,
    ) -> Result<(), String> {
        let shown = apply(situation.transcript, edits)?;
        let disk = hold(host).disk.clone();
        self.note_epochs(&disk, situation)?;
        check_names(&disk)?;
        check_load(&disk, situation, &shown)?;
        check_idempotence(&disk, situation, &shown)?;
        if situation.config.enabled {
            pairing::check(situation.transcript, &shown)?;
            check_sizes(situation, &shown, lane)?;
            if situation.config.cache_policy == CachePolicy::Stable {
                self.check_prefix(situation, &shown)?;
            }
        } else if !edits.is_empty() {
            return Err(format!("switched off, but {edits:?}"));
        }
        let refused = hold(host).refused;
        let log_works = refused == self.refused;
        self.refused = refused;
        self.check_results(situation, &shown, lane, log_works)?;
        check_words(situation, &shown, lane)?;
        self.sent = Some((shown, situation.transcript.len()));
        self.last_call = self.last_call.max(situation.now);
        self.is_cold = false;
        Ok(())
    }

    /// Epochs that the log tells of: flushes, and cold caches if the cache is cold.
    fn note_epochs(&mut self, disk: &Disk, situation: &Situation<'_>) -> Result<(), String> {
        let new = self.items_seen.min(disk.items.len());
        let mut is_epoch = false;
        for entry in disk.items[new..].iter().filter_map(Item::entry) {
            let data: Value = serde_json::from_str(&entry.data).unwrap_or_default();
            match entry.kind.as_str() {
                entry::FRONTIER => is_epoch |= data.get("epochEnd").is_some(),
                entry::EPOCH => {
                    let is_free = data.get("flush").is_none() && self.sent.is_some();
                    if is_free && !self.is_cold_now(situation) {
                        return Err("an epoch of a cold cache, but it is warm".to_owned());
                    }
                    is_epoch = true;
                }
                _ => {}
            }
        }
        self.items_seen = disk.items.len();
        if is_epoch {
            self.epoch();
        }
        Ok(())
    }

    fn is_cold_now(&self, situation: &Situation<'_>) -> bool {
        let replies = situation.transcript.iter().rev();
        let last_reply = replies
            .filter(|message| matches!(message.role, Role::Assistant { .. }))
            .map(|message| message.at_ms)
            .next();
        let idle = situation.config.idle_cold_ms;
        let last = self.last_call.max(last_reply.unwrap_or(0));
        self.is_cold || (idle > 0 && situation.now >= last + idle)
    }

    /// Invariant 3. One thing changes what was sent between epochs: a result that comes after
    /// another message moves up to its call, and everything behind this call moves with it.
    fn check_prefix(&self, situation: &Situation<'_>, shown: &[Shown]) -> Result<(), String> {
        let Some((before, len)) = &self.sent else {
            return Ok(());
        };
        let answered = pairing::answered(situation.transcript);
        let late = answered
            .range(*len..)
            .filter_map(|(_, assistant)| *assistant)
            .filter(|assistant| assistant < len)
            .min();
        let limit = late.map_or(before.len(), |late| {
            let behind = |one: &Shown| one.origin.is_some_and(|origin| origin > late);
            before.iter().position(behind).unwrap_or(before.len())
        });
        for (index, old) in before.iter().enumerate().take(limit) {
            let new = shown.get(index).map(|one| &one.message);
            if new != Some(&old.message) {
                return Err(format!(
                    "stable prefix: message {index} was sent as\n{:?}\nand is now\n{new:?}",
                    old.message
                ));
            }
        }
        Ok(())
    }

    /// Invariant 2 for results. `log_works` says that no write was refused since the last call.
    fn check_results(
        &mut self,
        situation: &Situation<'_>,
        shown: &[Shown],
        lane: &mut dyn Lane,
        log_works: bool,
    ) -> Result<(), String> {
        let answered = pairing::answered(situation.transcript);
        let shared = shared_keys(situation.transcript);
        self.shared.extend(shared.iter().cloned());
        let mut known = BTreeSet::new();
        for (at, site) in &answered {
            let message = &situation.transcript[*at];
            let (Some(key), text) = (key_of(message), message.text().expect("it is whole")) else {
                continue;
            };
            let is_first = known.insert(key.clone());
            if text.is_empty() || is_verbatim(*at, &text, shown) {
                continue;
            }
            let has_call =
                site.is_some_and(|site| shown.iter().any(|one| one.origin == Some(site)));
            if !(has_call || is_first && log_works) {
                // A result without a call in the context cannot be sent at all. In a log it cannot be told apart
                // from one that has the same id and the same timestamp, and a log that refuses it
                // is asked again at the next call.
                continue;
            }
            if !is_first {
                return Err(format!(
                    "{key} is there twice, and the second one is pruned"
                ));
            }
            let is_left_of_two = self.shared.contains(&key) && !shared.contains(&key);
            if !is_left_of_two {
                self.pruned.entry(key).or_insert((text, false));
            }
        }
        let has_lost_blobs = self.has_lost_blobs;
        for (key, (text, is_checked)) in &mut self.pruned {
            if std::mem::replace(is_checked, true) {
                continue;
            }
            let answer = original(lane, &key.to_string(), text, situation.now);
            let is_lost = has_lost_blobs && answer.contains("cannot be read");
            if answer != *text && !is_lost {
                return Err(format!(
                    "nothing lost: {key} was\n{:?}\nand is answered\n{:?}",
                    head(text),
                    head(&answer)
                ));
            }
        }
        Ok(())
    }

    /// What is asked for while nothing can be read is answered with words that say so.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn check_unreadable(&self, lane: &mut dyn Lane, now: u64) -> Result<(), String> {
        for key in self.pruned.keys().take(5) {
            let arguments = json!({ "toolCallIds": [key.to_string()] });
            let answer = lane.call("context_tree_query", &arguments.to_string(), now);
            if !answer.contains("cannot be read") {
                return Err(format!("{key} cannot be read, but the answer is {answer}"));
            }
        }
        Ok(())
    }

    /// Invariant 6: a load after a crash makes the context of the last commit, as if what a flush
    /// had begun to write were not there.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn check_crash(&self, disk: &Disk, situation: &Situation<'_>) -> Result<(), String> {
        check_names(disk)?;
        if !situation.config.enabled {
            // Nothing is edited, so what the host appended is there as it is.
            return Ok(());
        }
        let committed = disk.committed();
        let shows = situation.shows_summaries;
        let (after, before) = (disk.transcript(shows), committed.transcript(shows));
        let after = load(disk, &after, situation)?;
        let before = load(&committed, &before, situation)?;
        if messages(&after) != messages(&before) {
            return Err(format!(
                "crash safety: what was not committed counts\n{before:?}\n{after:?}"
            ));
        }
        Ok(())
    }
}

/// The context that a new session makes.
fn load(
    disk: &Disk,
    transcript: &[Message],
    situation: &Situation<'_>,
) -> Result<Vec<Shown>, String> {
    let host = Arc::new(Mutex::new(FakeHost {
        log_fails: situation.log_fails,
        ..FakeHost::with(disk.clone())
    }));
    let mut lane = EngineLane::new(host);
    lane.open(&situation.settings, situation.is_offered, usize::MAX);
    lane.sync(0, transcript);
    // At the beginning of time no cache is cold.
    apply(transcript, &lane.plan(0)?)
}

fn messages(shown: &[Shown]) -> Vec<&Message> {
    shown.iter().map(|one| &one.message).collect()
}

/// Invariant 5, first half: the same transcript and log give the same plan.
fn check_load(disk: &Disk, situation: &Situation<'_>, shown: &[Shown]) -> Result<(), String> {
    let loaded = load(disk, situation.transcript, situation)?;
    first_difference(&loaded, shown).map_err(|difference| {
        format!("idempotence: a load makes another context: loaded, live: {difference}")
    })
}

/// Invariant 5, second half: the context as a transcript asks for no further edit.
fn check_idempotence(
    disk: &Disk,
    situation: &Situation<'_>,
    shown: &[Shown],
) -> Result<(), String> {
    let transcript: Vec<Message> = shown.iter().map(|one| one.message.clone()).collect();
    let again = load(disk, &transcript, situation)?;
    first_difference(&again, shown).map_err(|difference| {
        format!("idempotence: the context as a transcript changes again: again, once: {difference}")
    })
}

fn first_difference(left: &[Shown], right: &[Shown]) -> Result<(), String> {
    for index in 0..left.len().max(right.len()) {
        let (l, r) = (left.get(index), right.get(index));
        if l.map(|one| &one.message) != r.map(|one| &one.message) {
            return Err(format!("message {index}:\n{l:?}\n{r:?}"));
        }
    }
    Ok(())
}

/// Invariant 4, and the accounts.
fn check_sizes(
    situation: &Situation<'_>,
    shown: &[Shown],
    lane: &mut dyn Lane,
) -> Result<(), String> {
    let is_summary =
        |message: &&Message| matches!(&message.role, Role::Custom { kind, .. } if kind == SUMMARY);
    let before = chars(situation.transcript.iter().filter(|m| !is_summary(m)));
    let after = chars(shown.iter().map(|one| &one.message));
    let account = lane.account();
    let saved: i64 = account.saved.iter().map(|(_, saved)| saved).sum();
    if (account.before, account.after) != (before, after) {
        return Err(format!(
            "accounts: {account:?}, but it is {before} and {after}"
        ));
    }
    if i64::try_from(before - after.min(before)) != Ok(saved) && after <= before {
        return Err(format!("accounts: {account:?} do not add up to {saved}"));
    }
    // A summary is all that is left of results that the host has cut away: it stays, though there is
    // nothing in the transcript that it is shorter than.
    let keys: BTreeSet<OccurrenceKey> = situation.transcript.iter().filter_map(key_of).collect();
    let is_last_trace = |message: &&Message| match &message.role {
        Role::Custom { kind, details } if kind == SUMMARY => names_others(details, &keys),
        _ => false,
    };
    let traces = chars(shown.iter().map(|one| &one.message).filter(is_last_trace));
    // A block does away with messages, each of which costs a frame of brackets, ids and a role.
    let frames = |messages: usize| FRAME_CHARS * messages as u64;
    let messages = situation.transcript.iter().filter(|m| !is_summary(m));
    let before = before + frames(messages.count());
    let messages = shown.iter().filter(|one| !is_summary(&&one.message));
    let after = after - traces + frames(messages.count());
    if after > before {
        return Err(format!(
            "never larger: {after} characters instead of {before}"
        ));
    }
    Ok(())
}

/// Whether a summary speaks of a result that is not in the transcript.
fn names_others(details: &str, keys: &BTreeSet<OccurrenceKey>) -> bool {
    let details: SummaryDetails = serde_json::from_str(details).unwrap_or_default();
    details.tool_call_refs.into_iter().any(|named| {
        !keys.contains(&OccurrenceKey {
            call_id: named.tool_call_id,
            at_ms: named.result_timestamp,
        })
    })
}

/// No ref names two occurrences, committed or not.
fn check_names(disk: &Disk) -> Result<(), String> {
    let mut named: BTreeMap<String, (Value, Value)> = BTreeMap::new();
    for entry in disk.entries() {
        let data: Value = serde_json::from_str(&entry.data).unwrap_or_default();
        let calls = match entry.kind.as_str() {
            entry::INDEX => data["toolCalls"].as_array().cloned(),
            entry::SUMMARY => data["details"]["toolCallRefs"].as_array().cloned(),
            _ => None,
        };
        for call in calls.unwrap_or_default() {
            let Some(name) = call["shortId"].as_str() else {
                continue;
            };
            let key = (call["toolCallId"].clone(), call["resultTimestamp"].clone());
            if let Some(before) = named.insert(name.to_owned(), key.clone())
                && before != key
            {
                return Err(format!("{name} names {before:?} and {key:?}"));
            }
        }
    }
    Ok(())
}

/// Occurrences that more than one result has.
fn shared_keys(transcript: &[Message]) -> BTreeSet<OccurrenceKey> {
    let mut known = BTreeSet::new();
    let keys = transcript.iter().filter_map(key_of);
    keys.filter(|key| !known.insert(key.clone())).collect()
}

pub(crate) fn key_of(message: &Message) -> Option<OccurrenceKey> {
    match &message.role {
        Role::ToolResult { call_id, .. } => Some(OccurrenceKey::new(call_id, message.at_ms)),
        _ => None,
    }
}

/// Whether a result's text stands in the context, in its place or in a block.
fn is_verbatim(at: usize, text: &str, shown: &[Shown]) -> bool {
    let in_place = shown
        .iter()
        .any(|one| one.origin == Some(at) && one.message.text().expect("it is whole") == text);
    let in_block = || {
        let element = format!("\">\n{}\n</protected-output>", disarm(text));
        let inserted = shown.iter().filter(|one| one.origin.is_none());
        inserted
            .into_iter()
            .any(|one| one.message.text().expect("it is whole").contains(&element))
    };
    in_place || in_block()
}

fn head(text: &str) -> String {
    text.chars().take(300).collect()
}
