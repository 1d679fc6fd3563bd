//! Which edits stand: a function of the facts, the transcript, the rules and the epoch.
//!
//! [`Settling`] decides for one message or one batch, and changes nothing. What it is told besides
//! the basis, [`Layout`], follows from the basis as well: which blocks stand, where the summaries
//! are, which batches are worth it.

use super::ledger::{Effect, Saved, Strategy};
use super::placement::Placements;
use crate::engine::basis::Basis;
use crate::engine::entry::SummaryDetails;
use crate::engine::facts::{Batch, BatchId, Member, Standing};
use crate::engine::map::{Map, Set};
use crate::engine::plan::{Aspect, Change};
use crate::engine::size::{Size, utf16_len};
use crate::engine::stub;
use crate::engine::transcript::{Assistant, Call, CallSite, Kind, Position, ToolResult};

/// What was found out of the basis as a whole.
#[derive(Debug, Default)]
pub struct Layout {
    pub blocks: Placements,
    /// Where the summaries stand in the transcript that are there.
    pub summaries: Map<BatchId, Position>,
    /// Batches whose stubs and summary stand in the context.
    pub active: Set<BatchId>,
}

/// What should stand in place of one message, and what that saves.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settled {
    pub edits: Vec<(Aspect, Change)>,
    pub effects: Vec<Effect>,
}

/// Decides.
#[derive(Clone, Copy)]
pub struct Settling<'a> {
    pub basis: &'a Basis,
    pub layout: &'a Layout,
}

impl Layout {
    #[must_use]
    pub fn is_covered(&self, at: Position) -> bool {
        self.blocks.covering(at).is_some()
    }

    /// Whether the block that takes a batch's place stands.
    #[must_use]
    pub fn is_in_placed_block(&self, batch: &Batch) -> bool {
        batch.block.is_some_and(|id| self.blocks.is_placed(id))
    }
}

impl Settling<'_> {
    /// What should stand in place of a message, were no block over it.
    #[must_use]
    pub fn message(self, at: Position) -> Settled {
        let mut settled = Settled::default();
        let Some(slot) = self.basis.transcript.slot(at) else {
            return settled;
        };
        if !self.basis.rules.config.enabled {
            return settled;
        }
        match &slot.kind {
            Kind::Result(result) => self.desire_result(at, result, slot.size, &mut settled),
            Kind::Assistant(assistant) => self.desire_assistant(at, assistant, &mut settled),
            Kind::Summary { details } => {
                if !self.shows_summary(at, details) {
                    settled.edits.push((Aspect::Presence, Change::Drop(1)));
                }
            }
            Kind::User | Kind::Prompt | Kind::Block | Kind::Other => {}
        }
        settled
    }

    /// The aspects that a message of its kind can have.
    #[must_use]
    pub fn aspects(self, at: Position) -> Vec<Aspect> {
        match self.basis.transcript.slot(at).map(|slot| &slot.kind) {
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

    /// The call that a result answers; `None` if there is none, or if a block has taken its place
    /// before the result came.
    #[must_use]
    pub fn site_in_context(self, at: Position) -> Option<CallSite> {
        let site = self.basis.transcript.result(at)?.site?;
        let is_there = self.layout.is_covered(at) || !self.layout.is_covered(site.assistant);
        is_there.then_some(site)
    }

    /// Whether a summary message in the transcript stays.
    fn shows_summary(self, at: Position, details: &SummaryDetails) -> bool {
        let batch = self
            .basis
            .facts
            .batch_of_details(details)
            .filter(|batch| self.layout.summaries.get(batch) == Some(&at))
            .filter(|batch| self.layout.active.contains(batch));
        batch
            .and_then(|batch| self.basis.facts.archive().batch(batch))
            .is_some_and(|batch| !self.layout.is_in_placed_block(batch))
    }

    fn desire_result(self, at: Position, result: &ToolResult, size: Size, settled: &mut Settled) {
        let Some(site) = self.site_in_context(at) else {
            settled.edits.push((Aspect::Presence, Change::Drop(1)));
            settled.effects.push(Effect {
                strategy: Strategy::Pairing,
                saved: Saved::between(size, Size::default()),
                counts: true,
            });
            return;
        };
        if result.displaced {
            let turn = Change::MoveUp(plan_position(site.assistant));
            settled.edits.push((Aspect::Place, turn));
        }
        if let Some((text, strategy)) = self.replacement(at, result) {
            let opaque = Size {
                chars: 0,
                tokens: size.tokens.saturating_sub(result.text_size.tokens),
            };
            settled.effects.push(Effect {
                strategy,
                saved: Saved::between(size, Size::of_text(&text) + opaque),
                counts: true,
            });
            settled
                .edits
                .push((Aspect::Text, Change::ReplaceText(text)));
        }
    }

    /// What stands in place of a result's text, if it is shorter.
    fn replacement(self, at: Position, result: &ToolResult) -> Option<(String, Strategy)> {
        if !self.basis.rules.may_replace() {
            return None;
        }
        let member = self.basis.member_at(at)?;
        let (text, strategy) = match member {
            Member::Record(_) => self.stub_for(at, member)?,
            Member::Alias(id) => {
                let alias = self.basis.facts.archive().alias(id)?;
                if !self.basis.is_shown(member) || !self.basis.stands_pruned(member) {
                    return None;
                }
                let original = self.basis.facts.archive().record(alias.original)?;
                (stub::stub(original.name), Strategy::Dedup)
            }
        };
        (utf16_len(&text) < result.text_size.chars).then_some((text, strategy))
    }

    fn stub_for(self, at: Position, member: Member) -> Option<(String, Strategy)> {
        let record = self.basis.facts.archive().original(member)?;
        match &record.standing {
            Standing::Summarized { batch } => {
                let is_active = self.layout.active.contains(batch);
                (is_active && self.basis.stands_pruned(member))
                    .then(|| (stub::stub(record.name), Strategy::Stub))
            }
            Standing::Spilled { stub } => (self.basis.is_shown(member)
                && self.basis.stands_pruned(member))
            .then(|| (stub.clone(), Strategy::Spill)),
            Standing::Recovered { refs } => {
                let is_due = self.basis.is_shown(member) && !self.basis.is_in_grace(at);
                is_due.then(|| (stub::recovered_stub(refs), Strategy::Stub))
            }
            Standing::Archived => None,
        }
    }

    fn desire_assistant(self, at: Position, assistant: &Assistant, settled: &mut Settled) {
        if assistant.thinking.chars > 0 && !assistant.is_pinned {
            let strategy = if self.strips_reply(at) {
                Some(Strategy::Chain)
            } else {
                self.basis.strips_thinking(at).then_some(Strategy::Thinking)
            };
            if let Some(strategy) = strategy {
                settled
                    .edits
                    .push((Aspect::Thinking, Change::StripThinking));
                settled.effects.push(Effect {
                    strategy,
                    saved: Saved::between(assistant.thinking, Size::default()),
                    counts: strategy == Strategy::Thinking,
                });
            }
        }
        for (index, call) in (0..).zip(&assistant.calls) {
            if let Some(arguments) = self.purged(at, assistant, call) {
                settled.effects.push(Effect {
                    strategy: Strategy::Purge,
                    saved: Saved::between(call.arguments_size, Size::of_text(&arguments)),
                    counts: true,
                });
                let change = Change::ReplaceArguments {
                    call: index,
                    arguments,
                };
                settled.edits.push((Aspect::Arguments(index), change));
            }
        }
    }

    /// The final reply of a compressed chain loses its thinking.
    fn strips_reply(self, at: Position) -> bool {
        self.basis
            .rules
            .config
            .chain_compression
            .strip_final_assistant_thinking
            && self.layout.blocks.closed_by(at).is_some()
    }

    /// The marker that stands for a failed call's arguments, if they are due and longer than it.
    fn purged(self, at: Position, assistant: &Assistant, call: &Call) -> Option<String> {
        if !self.basis.rules.may_replace()
            || !self.basis.is_purge_due(at)
            || !assistant.stop.is_sent()
        {
            return None;
        }
        if call.is_purged {
            return None;
        }
        let result = call.result.filter(|at| self.basis.is_put_away(*at))?;
        let is_error = self
            .basis
            .facts
            .archive()
            .is_error(self.basis.member_at(result)?);
        let size = call.arguments_size.chars;
        let marker = stub::purged_arguments(size);
        let is_large = size >= u64::from(self.basis.rules.config.purge_errors.min_arg_chars);
        (is_error && is_large && utf16_len(&marker) < size).then_some(marker)
    }

    /// B2 for a batch, counting only results that are in the transcript. A summary is all that is left
    /// of results that the host has cut away, or sends back as stubs, and stays.
    #[must_use]
    pub fn is_worth_it(self, id: BatchId) -> bool {
        let Some(batch) = self.basis.facts.archive().batch(id) else {
            return false;
        };
        if batch.undone || !self.basis.rules.may_replace() {
            return false;
        }
        let is_sent = self.layout.summaries.contains_key(&id);
        let mut n_found = 0;
        let mut saved: u64 = 0;
        for &record in &batch.records {
            let member = Member::Record(record);
            let Some(at) = self.basis.position_of(member) else {
                continue;
            };
            n_found += 1;
            if self.basis.is_stubbed(at, record) {
                return true;
            }
            let (Some(result), Some(record)) = (
                self.basis.transcript.result(at),
                self.basis.facts.archive().record(record),
            ) else {
                continue;
            };
            let stub = utf16_len(&stub::stub(record.name));
            if result.site.is_some() && self.basis.stands_pruned(member) {
                saved += result.text_size.chars.saturating_sub(stub);
            }
        }
        let is_last_trace = n_found == 0 || (is_sent && n_found < batch.records.len());
        is_last_trace || saved > batch.summary_size.chars
    }
}

/// A position as the plan has it.
#[must_use]
pub fn plan_position(at: Position) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
