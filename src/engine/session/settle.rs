//! Which edits stand: a function of the log, the transcript, the settings and the epoch.
//!
//! [`Session::settle`] decides for one message and writes what it decided into the plan and the
//! ledger, [`Session::settle_batch`] for the calls that share a summary. Which messages have to be
//! settled, and when, is for the callers to say: `epoch`, `apply`, `blocks`.

use super::ledger::{Effect, Item, Saved, Strategy};
use super::{Position, Session};
use crate::engine::archive::{Member, Standing};
use crate::engine::config::CachePolicy;
use crate::engine::digest::ContentHash;
use crate::engine::plan::{Aspect, Change};
use crate::engine::size::{Size, utf16_len};
use crate::engine::stub;
use crate::engine::transcript::{Assistant, Call, CallSite, ChainEnd, Kind, ToolResult};

/// What should stand in place of one message.
#[derive(Default)]
struct Desired {
    edits: Vec<(Aspect, Change)>,
    effects: Vec<Effect>,
}

impl Session {
    /// Whether anything may be replaced that the model needs the query tool to get back.
    pub(super) fn may_replace(&self) -> bool {
        self.config.enabled && self.query_tool_offered
    }

    /// Decides on one message.
    pub(super) fn settle(&mut self, at: Position) {
        if self.is_covered(at) {
            // The block that covers it has taken its saving over as it was.
            self.plan.clear(plan_position(at));
            return;
        }
        let desired = if self.config.enabled {
            self.desired(at)
        } else {
            Desired::default()
        };
        self.ledger.set(Item::Message(at), desired.effects);
        let position = plan_position(at);
        self.note_share(at, false);
        for aspect in self.aspects_of(at) {
            let change = desired
                .edits
                .iter()
                .find(|(wanted, _)| *wanted == aspect)
                .map(|(_, change)| change.clone());
            self.plan.set(position, aspect, change);
        }
    }

    /// The aspects that a message of its kind can have.
    fn aspects_of(&self, at: Position) -> Vec<Aspect> {
        match self.transcript.slot(at).map(|slot| &slot.kind) {
            Some(Kind::Assistant(assistant)) => {
                let arguments = (0..assistant.calls.len())
                    .filter_map(|call| u32::try_from(call).ok())
                    .map(Aspect::Arguments);
                std::iter::once(Aspect::Thinking).chain(arguments).collect()
            }
            Some(Kind::Result(_)) => vec![Aspect::Presence, Aspect::Place, Aspect::Text],
            Some(Kind::Summary { .. }) => vec![Aspect::Presence],
            Some(Kind::User | Kind::Prompt | Kind::Block | Kind::Other) | None => Vec::new(),
        }
    }

    fn desired(&self, at: Position) -> Desired {
        let mut desired = Desired::default();
        let Some(slot) = self.transcript.slot(at) else {
            return desired;
        };
        match &slot.kind {
            Kind::Result(result) => self.desire_result(at, result, slot.size, &mut desired),
            Kind::Assistant(assistant) => self.desire_assistant(at, assistant, &mut desired),
            Kind::Summary { details } => {
                if !self.shows_summary(at, details) {
                    desired.edits.push((Aspect::Presence, Change::Drop(1)));
                }
            }
            Kind::User | Kind::Prompt | Kind::Block | Kind::Other => {}
        }
        desired
    }

    /// The call that a result answers; `None` if there is none, or if a block has taken its place
    /// before the result came.
    pub(super) fn site_in_context(&self, at: Position) -> Option<CallSite> {
        let site = self.transcript.result(at)?.site?;
        (self.is_covered(at) || !self.is_covered(site.assistant)).then_some(site)
    }

    fn desire_result(&self, at: Position, result: &ToolResult, size: Size, desired: &mut Desired) {
        let Some(site) = self.site_in_context(at) else {
            desired.edits.push((Aspect::Presence, Change::Drop(1)));
            desired.effects.push(Effect {
                strategy: Strategy::Pairing,
                saved: Saved::between(size, Size::default()),
                counts: true,
            });
            return;
        };
        if result.displaced {
            let turn = Change::MoveUp(plan_position(site.assistant));
            desired.edits.push((Aspect::Place, turn));
        }
        if let Some((text, strategy)) = self.replacement(at, result) {
            let opaque = Size {
                chars: 0,
                tokens: size.tokens.saturating_sub(result.text_size.tokens),
            };
            desired.effects.push(Effect {
                strategy,
                saved: Saved::between(size, Size::of_text(&text) + opaque),
                counts: true,
            });
            desired
                .edits
                .push((Aspect::Text, Change::ReplaceText(text)));
        }
    }

    /// What stands in place of a result's text, if it is shorter.
    fn replacement(&self, at: Position, result: &ToolResult) -> Option<(String, Strategy)> {
        if !self.may_replace() {
            return None;
        }
        let member = self.member_at(at)?;
        let (text, strategy) = match member {
            Member::Record(_) => self.stub_for(at, member)?,
            Member::Alias(index) => {
                let alias = self.archive.alias(index)?;
                if !alias.shown || !self.stands_pruned(member) {
                    return None;
                }
                let original = self.archive.record(alias.original)?;
                (stub::stub(original.name), Strategy::Dedup)
            }
        };
        (utf16_len(&text) < result.text_size.chars).then_some((text, strategy))
    }

    fn stub_for(&self, at: Position, member: Member) -> Option<(String, Strategy)> {
        let record = self.archive.original(member)?;
        match &record.standing {
            Standing::Summarized { batch } => {
                let active = self.archive.batch(*batch)?.active;
                (active && self.stands_pruned(member))
                    .then(|| (stub::stub(record.name), Strategy::Stub))
            }
            Standing::Spilled { stub } => (record.shown && self.stands_pruned(member))
                .then(|| (stub.clone(), Strategy::Spill)),
            Standing::Recovered { refs } => {
                let is_due = record.shown && !self.is_in_grace(at);
                is_due.then(|| (stub::recovered_stub(refs), Strategy::Stub))
            }
            Standing::Archived => None,
        }
    }

    /// Whether nothing holds a member's text in the context: protection that came later, or an undo.
    fn stands_pruned(&self, member: Member) -> bool {
        let Some(record) = self.archive.original(member) else {
            return false;
        };
        let undone = match record.standing {
            Standing::Summarized { batch } => {
                self.archive.batch(batch).is_none_or(|batch| batch.undone)
            }
            Standing::Spilled { .. } | Standing::Recovered { .. } | Standing::Archived => false,
        };
        !undone && !self.protection.covers(&record.tool, record.path.as_deref())
    }

    fn desire_assistant(&self, at: Position, assistant: &Assistant, desired: &mut Desired) {
        if assistant.thinking.chars > 0 && !assistant.is_pinned {
            let strategy = if self.strips_reply(at) {
                Some(Strategy::Chain)
            } else {
                self.strips_thinking(at).then_some(Strategy::Thinking)
            };
            if let Some(strategy) = strategy {
                desired
                    .edits
                    .push((Aspect::Thinking, Change::StripThinking));
                desired.effects.push(Effect {
                    strategy,
                    saved: Saved::between(assistant.thinking, Size::default()),
                    counts: strategy == Strategy::Thinking,
                });
            }
        }
        for (index, call) in (0..).zip(&assistant.calls) {
            if let Some(arguments) = self.purged(at, assistant, call) {
                desired.effects.push(Effect {
                    strategy: Strategy::Purge,
                    saved: Saved::between(call.arguments_size, Size::of_text(&arguments)),
                    counts: true,
                });
                let change = Change::ReplaceArguments {
                    call: index,
                    arguments,
                };
                desired.edits.push((Aspect::Arguments(index), change));
            }
        }
    }

    /// The final reply of a compressed chain loses its thinking.
    fn strips_reply(&self, at: Position) -> bool {
        self.config.chain_compression.strip_final_assistant_thinking
            && self.blocks.replies.contains_key(&at)
    }

    pub(super) fn strips_thinking(&self, at: Position) -> bool {
        let keep = self.config.thinking_strip.keep_last_turns as usize;
        self.config.thinking_strip.enabled
            && at < self.thinking_limit()
            && self.transcript.assistants_between(at, self.epoch.end) > keep
    }

    /// Thinking of an open tool cycle is left alone under `stable`: providers reject a cycle that
    /// has lost some of it, or bill it anew.
    fn thinking_limit(&self) -> Position {
        match self.config.cache_policy {
            CachePolicy::Live => self.epoch.end,
            CachePolicy::Stable => self.open_cycle_start(self.epoch.end).min(self.epoch.end),
        }
    }

    /// Where the tool cycle begins that is open at a position, with its first turn; the position
    /// itself if none is. Nothing that comes behind the position changes the answer.
    pub(super) fn open_cycle_start(&self, at: Position) -> Position {
        let last = self.transcript.chain_before(at);
        let Some(chain) = last.and_then(|index| self.transcript.chains().get(index)) else {
            return at;
        };
        match chain.end {
            ChainEnd::Closed(reply) if reply < at => at,
            ChainEnd::Interrupted(next) if next < at => at,
            ChainEnd::Closed(_) | ChainEnd::Open | ChainEnd::Interrupted(_) => {
                chain.first_turn().map_or(at, |first| first.min(at))
            }
        }
    }

    /// The marker that stands for a failed call's arguments, if they are due and longer than it.
    fn purged(&self, at: Position, assistant: &Assistant, call: &Call) -> Option<String> {
        if !self.may_replace() || !self.is_purge_due(at) || !assistant.stop.is_sent() {
            return None;
        }
        if call.is_purged {
            return None;
        }
        let result = call.result.filter(|at| self.is_put_away(*at))?;
        let is_error = match self.member_at(result)? {
            Member::Record(index) => self.archive.record(index)?.is_error,
            Member::Alias(index) => self.archive.alias(index)?.is_error,
        };
        let size = call.arguments_size.chars;
        let marker = stub::purged_arguments(size);
        let is_large = size >= u64::from(self.config.purge_errors.min_arg_chars);
        (is_error && is_large && utf16_len(&marker) < size).then_some(marker)
    }

    pub(super) fn is_purge_due(&self, at: Position) -> bool {
        let cooldown = self.config.purge_errors.cooldown_turns as usize;
        self.config.purge_errors.enabled
            && self.transcript.assistants_between(at + 1, self.epoch.end) >= cooldown
            && at < self.epoch.end
    }

    /// Whether nothing that is not in a record yet holds up the purge of a message's failed calls.
    pub(super) fn can_purge_all(&self, at: Position) -> bool {
        let least = u64::from(self.config.purge_errors.min_arg_chars);
        let calls = self.transcript.assistant(at).map(|turn| &turn.calls);
        calls.into_iter().flatten().all(|call| {
            let result = call.result.filter(|_| call.arguments_size.chars >= least);
            result.is_none_or(|at| {
                let result = self.transcript.result(at);
                result.is_some_and(|result| !result.is_error || result.ambiguous)
                    || self.is_put_away(at)
            })
        })
    }

    /// Whether a result is in a record that counts since the last epoch.
    fn is_put_away(&self, at: Position) -> bool {
        let shown = match self.member_at(at) {
            Some(Member::Record(index)) => self.archive.record(index).map(|record| record.shown),
            Some(Member::Alias(index)) => self.archive.alias(index).map(|alias| alias.shown),
            None => None,
        };
        at < self.epoch.end && shown == Some(true)
    }

    /// Whether an output of `context_tree_query` has to stand as it is.
    pub(super) fn is_in_grace(&self, at: Position) -> bool {
        self.is_in_grace_until(at, self.epoch.end, self.epoch.is_closed)
    }

    /// The user turn in which an output was recovered counts as the first of its grace, and is never
    /// cut short. A turn is over with the final reply, or when the next prompt is there.
    pub(super) fn is_in_grace_until(&self, at: Position, end: Position, is_closed: bool) -> bool {
        let grace = self.config.recovery_grace_turns.max(1) as usize;
        at >= end || self.transcript.users_between(at, end) + usize::from(is_closed) < grace
    }

    /// What the archive holds for the result at a position.
    pub(super) fn member_at(&self, at: Position) -> Option<Member> {
        let slot = self.transcript.slot(at)?;
        let result = slot.as_result()?;
        if result.ambiguous {
            return None;
        }
        self.archive
            .member(&result.key(slot.at_ms))
            .or_else(|| self.account.legacy.get(&at).copied())
    }

    /// Where the result of a member stands.
    pub(super) fn position_of(&self, member: Member) -> Option<Position> {
        let key = self.archive.key_of(member)?;
        self.transcript
            .position_of(key)
            .or_else(|| self.account.legacy_positions.get(&member).copied())
    }

    /// Settles a batch: whether its summary and stubs are shorter than what they replace, and with
    /// it all of its results.
    pub(super) fn settle_batch(&mut self, batch: usize) {
        let worth = self.is_worth_it(batch);
        if let Some(batch) = self.archive.batch_mut(batch) {
            batch.active = worth;
        }
        for at in self.positions_of_batch(batch) {
            self.settle(at);
        }
        self.settle_summary(batch);
    }

    pub(super) fn positions_of_batch(&self, batch: usize) -> Vec<Position> {
        let records = self.archive.batch(batch).map(|batch| batch.records.clone());
        records
            .unwrap_or_default()
            .into_iter()
            .filter_map(|index| self.position_of(Member::Record(index)))
            .collect()
    }

    /// B2 for a batch, counting only results that are in the transcript. A summary is all that is left
    /// of results that the host has cut away, or sends back as stubs, and stays.
    pub(super) fn is_worth_it(&self, index: usize) -> bool {
        let Some(batch) = self.archive.batch(index) else {
            return false;
        };
        if batch.undone || !self.may_replace() {
            return false;
        }
        let is_sent = self.account.summaries.contains_key(&index);
        let mut n_found = 0;
        let mut saved: u64 = 0;
        for &record in &batch.records {
            let member = Member::Record(record);
            let Some(at) = self.position_of(member) else {
                continue;
            };
            n_found += 1;
            if self.is_stubbed(at, record) {
                return true;
            }
            let (Some(result), Some(record)) =
                (self.transcript.result(at), self.archive.record(record))
            else {
                continue;
            };
            let stub = utf16_len(&stub::stub(record.name));
            if result.site.is_some() && self.stands_pruned(member) {
                saved += result.text_size.chars.saturating_sub(stub);
            }
        }
        let is_last_trace = n_found == 0 || (is_sent && n_found < batch.records.len());
        is_last_trace || saved > batch.summary_size.chars
    }

    /// Whether the host sends a result back as the model was shown it: the transcript has its stub,
    /// and that is not what the tool returned.
    fn is_stubbed(&self, at: Position, index: usize) -> bool {
        let (Some(result), Some(record)) = (self.transcript.result(at), self.archive.record(index))
        else {
            return false;
        };
        let returned_it = || {
            let stub = ContentHash::of(&record.tool, &stub::stub(record.name));
            self.archive.duplicate_of(&stub, record.is_error) == Some(index)
        };
        result.stub_of == Some(record.name) && !returned_it()
    }
}

pub(super) fn plan_position(at: Position) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

pub(super) fn summary_number(batch: usize) -> u32 {
    u32::try_from(batch).unwrap_or(u32::MAX)
}
