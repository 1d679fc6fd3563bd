//! The mirror of the conversation: what each message is, what answers what, and which chains there
//! are.
//!
//! Text is kept only while somebody may still need it; [`Transcript::release`] lets it go. Appending
//! a message costs what that message costs; cutting the transcript back costs one pass.

mod chain;
mod index;
mod slot;

pub use chain::{Chain, ChainEnd, ChainId};
pub use slot::{Assistant, Call, Kind, Slot, ToolResult};

use super::ids::OccurrenceKey;
use super::message::Message;
use super::row::Row;
use super::size::Size;
use crate::engine::map::Map;

/// How far back a mark looks for messages of the same time: hosts without a clock give all of them
/// one.
const MAX_ROW: usize = 64;

/// The position of a message in the transcript, from 0.
pub type Position = usize;

/// One call of one assistant message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallSite {
    pub assistant: Position,
    /// Counted from 0 over the message's tool calls.
    pub call: usize,
}

/// Which messages are found by their timestamp. A prompt and the model's answer to it often have the
/// same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Boundary {
    /// A message that can begin a chain.
    Prompt,
    /// An assistant message.
    Reply,
}

/// The message that a timestamp leads to.
#[derive(Clone, Copy, Debug)]
struct Found {
    at: Position,
    /// Whether no other one of its kind has the timestamp.
    is_only: bool,
}

/// The mirror.
#[derive(Debug, Default)]
pub struct Transcript {
    slots: Row<Slot>,
    /// Positions of all assistant messages.
    assistants: Vec<Position>,
    /// For each of them the thinking of the transcript up to and with it.
    thinking: Vec<Size>,
    /// Positions of all user messages.
    users: Vec<Position>,
    /// The last message of the assistant that stopped by itself and calls no tool.
    last_reply: Option<Position>,
    chains: Vec<Chain>,
    /// The chains that are over: closed or interrupted.
    finished: Vec<ChainId>,
    /// Unanswered calls by id, oldest first; also those of messages that hosts do not send, so that
    /// their results are not taken for answers to older calls.
    unanswered: Map<String, Vec<CallSite>>,
    by_key: Map<OccurrenceKey, Position>,
    /// Positions by timestamp, of messages that can begin or end a span.
    boundaries: Map<(Boundary, u64), Found>,
    /// The end of the run of results directly behind the last assistant message.
    run_end: Position,
    /// Assistant messages of the session before the first one here.
    turn_base: u32,
    size: Size,
}

impl Transcript {
    #[must_use]
    pub fn len(&self) -> Position {
        self.slots.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The size of all messages but our own summaries: the context if nothing were pruned.
    #[must_use]
    pub fn size(&self) -> Size {
        self.size
    }

    #[must_use]
    pub fn slot(&self, at: Position) -> Option<&Slot> {
        self.slots.get(at)
    }

    #[must_use]
    pub fn result(&self, at: Position) -> Option<&ToolResult> {
        self.slot(at).and_then(Slot::as_result)
    }

    #[must_use]
    pub fn assistant(&self, at: Position) -> Option<&Assistant> {
        self.slot(at).and_then(Slot::as_assistant)
    }

    #[must_use]
    pub fn call(&self, site: CallSite) -> Option<&Call> {
        self.assistant(site.assistant)?.calls.get(site.call)
    }

    /// The chains, oldest first.
    pub fn chains(&self) -> impl DoubleEndedIterator<Item = (ChainId, &Chain)> {
        let chains = self.chains.iter().enumerate();
        chains.map(|(index, chain)| (ChainId(index), chain))
    }

    #[must_use]
    pub fn chain(&self, id: ChainId) -> Option<&Chain> {
        self.chains.get(id.0)
    }

    #[must_use]
    pub fn last_chain(&self) -> Option<(ChainId, &Chain)> {
        let last = self.chains.len().checked_sub(1)?;
        Some((ChainId(last), self.chains.get(last)?))
    }

    /// The chain before the last one.
    #[must_use]
    pub fn last_chain_but_one(&self) -> Option<&Chain> {
        self.chains.get(self.chains.len().checked_sub(2)?)
    }

    /// The chains that are over, rising: a final reply has closed them, or another prompt has
    /// interrupted them.
    #[must_use]
    pub fn finished_chains(&self) -> &[ChainId] {
        &self.finished
    }

    #[must_use]
    pub fn assistants(&self) -> &[Position] {
        &self.assistants
    }

    /// Where the first result of this occurrence stands.
    #[must_use]
    pub fn position_of(&self, key: &OccurrenceKey) -> Option<Position> {
        self.by_key.get(key).copied()
    }

    /// The occurrence key of the result at a position.
    #[must_use]
    pub fn key_at(&self, at: Position) -> Option<OccurrenceKey> {
        let slot = self.slot(at)?;
        Some(slot.as_result()?.key(slot.at_ms))
    }

    /// Names a message so that it can be found again in another transcript of the session: its kind,
    /// its call id if it has one, and its timestamp behind the last `@`. Of several in a row that
    /// would have the same name, the second one has `#2` behind it, and so on. Empty for no message.
    #[must_use]
    pub fn mark(&self, at: Position) -> String {
        let Some(slot) = self.slot(at) else {
            return String::new();
        };
        let mark = slot.mark();
        let namesakes = (0..at)
            .rev()
            .take(MAX_ROW)
            .filter_map(|before| self.slot(before))
            .take_while(|before| before.at_ms == slot.at_ms)
            .filter(|before| before.mark() == mark)
            .count();
        if namesakes == 0 {
            return mark;
        }
        format!("{mark}#{}", namesakes + 1)
    }

    /// Results that have this call id, in order of their keys.
    pub fn results_of(&self, call_id: &str) -> impl Iterator<Item = Position> {
        let from = OccurrenceKey {
            call_id: call_id.to_owned(),
            at_ms: None,
        };
        let call_id = call_id.to_owned();
        self.by_key
            .range(from..)
            .take_while(move |(key, _)| key.call_id == call_id)
            .map(|(_, at)| *at)
    }

    /// How many assistant messages stand in `from..to`.
    #[must_use]
    pub fn assistants_between(&self, from: Position, to: Position) -> usize {
        count_between(&self.assistants, from, to)
    }

    /// The thinking of the assistant messages from a position on.
    #[must_use]
    pub fn thinking_from(&self, from: Position) -> Size {
        let before = self.assistants.partition_point(|at| *at < from);
        let all = self.thinking.last().copied().unwrap_or_default();
        let older = before
            .checked_sub(1)
            .and_then(|last| self.thinking.get(last));
        all - older.copied().unwrap_or_default()
    }

    /// The last chain that begins before a position.
    #[must_use]
    pub fn chain_before(&self, at: Position) -> Option<ChainId> {
        self.chains
            .partition_point(|chain| chain.start() < at)
            .checked_sub(1)
            .map(ChainId)
    }

    /// The chain that a message belongs to.
    #[must_use]
    pub fn chain_at(&self, at: Position) -> Option<ChainId> {
        let id = self.chain_before(at + 1)?;
        let belongs = match self.chain(id)?.end {
            ChainEnd::Open => true,
            ChainEnd::Closed(reply) => at <= reply,
            ChainEnd::Interrupted(next) => at < next,
        };
        belongs.then_some(id)
    }

    /// How many user messages stand in `from..to`.
    #[must_use]
    pub fn users_between(&self, from: Position, to: Position) -> usize {
        count_between(&self.users, from, to)
    }

    /// The only message of this kind with this timestamp.
    #[must_use]
    pub fn boundary_at(&self, kind: Boundary, at_ms: u64) -> Option<Position> {
        let found = self.boundaries.get(&(kind, at_ms))?;
        found.is_only.then_some(found.at)
    }

    /// Whether any message of this kind has this timestamp.
    #[must_use]
    pub fn has_boundary_at(&self, kind: Boundary, at_ms: u64) -> bool {
        self.boundaries.contains_key(&(kind, at_ms))
    }

    /// Assistant messages of the session before the transcript's first one.
    #[must_use]
    pub fn turn_base(&self) -> u32 {
        self.turn_base
    }

    /// Assistant messages of the session up to here.
    #[must_use]
    pub fn turn_count(&self) -> u32 {
        self.turn_base + count(self.assistants.len())
    }

    /// When the last assistant message began: the last model call as far as the transcript knows.
    #[must_use]
    pub fn last_reply_at_ms(&self) -> Option<u64> {
        let last = self.assistants.last()?;
        Some(self.slot(*last)?.at_ms)
    }

    /// The first position behind the turn of an assistant message: its results, where they follow it
    /// directly.
    #[must_use]
    pub fn turn_end(&self, assistant: Position) -> Position {
        let site = |at: &Position| self.result(*at).map(|result| result.site);
        // A result without a call is left out, so it does not end the turn.
        let in_turn = |at: &Position| match site(at) {
            Some(Some(site)) => site.assistant == assistant,
            Some(None) => true,
            None => false,
        };
        (assistant + 1..self.len())
            .take_while(in_turn)
            .filter(|at| site(at).flatten().is_some())
            .last()
            .unwrap_or(assistant)
            + 1
    }

    /// The first position behind the row of results that follows an assistant message, whatever they
    /// answer: what moves up to this message stands there.
    #[must_use]
    pub fn row_end(&self, assistant: Position) -> Position {
        let is_result = |at: &Position| self.result(*at).is_some();
        let row = (assistant + 1..self.len()).take_while(is_result);
        row.last().unwrap_or(assistant) + 1
    }

    /// Whether a final reply has come since the last user message.
    #[must_use]
    pub fn is_replied(&self) -> bool {
        self.last_reply.is_some() && self.last_reply.as_ref() > self.users.last()
    }

    /// Sets how many assistant messages of the session came before the transcript's first one.
    pub fn set_turn_base(&mut self, base: u32) {
        if base != self.turn_base {
            self.turn_base = base;
            self.reindex();
        }
    }

    /// Appends a message.
    pub fn push(&mut self, message: Message) {
        self.slots.push(Slot::of(message));
        self.index(self.slots.len() - 1);
    }

    /// Cuts everything from a position on.
    pub fn truncate(&mut self, at: Position) {
        if at < self.slots.len() {
            self.slots.truncate(at);
            self.reindex();
        }
    }

    /// Lets the text of a tool result go.
    pub fn release(&mut self, at: Position) {
        if let Some(Kind::Result(result)) = self.slots.get_mut(at).map(|slot| &mut slot.kind) {
            result.text = None;
        }
    }

    /// Lets the arguments of one call go.
    pub fn release_arguments(&mut self, site: CallSite) {
        if let Some(Kind::Assistant(assistant)) = self
            .slots
            .get_mut(site.assistant)
            .map(|slot| &mut slot.kind)
            && let Some(call) = assistant.calls.get_mut(site.call)
        {
            call.arguments = None;
        }
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn count_between(sorted: &[Position], from: Position, to: Position) -> usize {
    let until = |limit: Position| sorted.partition_point(|at| *at < limit);
    until(to).saturating_sub(until(from))
}
