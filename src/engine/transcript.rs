//! The mirror of the conversation: what each message is, what answers what, and which chains there
//! are.
//!
//! Text is kept only while somebody may still need it; [`Transcript::release`] lets it go. Appending
//! a message costs what that message costs; cutting the transcript back costs one pass.

use std::collections::BTreeMap;

use super::block::is_block;
use super::entry::SUMMARY;
use super::ids::{OccurrenceKey, Ref};
use super::message::{Block, Message, Role, StopReason};
use super::protect::path_argument;
use super::row::Row;
use super::size::Size;
use super::stub::{are_purged, ref_of_stub};

/// The position of a message in the transcript, from 0.
pub type Position = usize;

/// One call of one assistant message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallSite {
    pub assistant: Position,
    /// Counted from 0 over the message's tool calls.
    pub call: usize,
}

/// What the mirror keeps of a message.
#[derive(Clone, Debug)]
pub struct Slot {
    pub at_ms: u64,
    pub size: Size,
    pub kind: Kind,
}

/// What only one role has.
#[derive(Clone, Debug)]
pub enum Kind {
    User,
    Assistant(Assistant),
    Result(ToolResult),
    /// A `context-prune-summary` message; carries its details, a JSON text.
    Summary {
        details: String,
    },
    /// A custom message of another kind, or a host's summary of what it cut away: it can begin a
    /// chain.
    Prompt,
    /// A block that the host sends back: left alone.
    Block,
    /// Any other role: left alone.
    Other,
}

/// What the mirror keeps of an assistant message.
#[derive(Clone, Debug)]
pub struct Assistant {
    pub stop: StopReason,
    pub calls: Vec<Call>,
    /// Its text blocks, joined with line ends; empty once released.
    pub text: String,
    pub thinking: Size,
    /// Whether it holds a provider's encrypted reasoning, which the next request has to repeat.
    pub is_pinned: bool,
    /// Counted over the assistant messages of the session.
    pub turn_index: u32,
}

/// What the mirror keeps of a tool call.
#[derive(Clone, Debug)]
pub struct Call {
    pub id: String,
    pub tool: String,
    /// A JSON text; `None` once released.
    pub arguments: Option<String>,
    pub arguments_size: Size,
    /// Whether the arguments are the marker of purged ones already.
    pub is_purged: bool,
    /// The argument that `protectedPaths` looks at.
    pub path: Option<String>,
    pub result: Option<Position>,
}

/// What the mirror keeps of a tool result.
#[derive(Clone, Debug)]
pub struct ToolResult {
    pub call_id: String,
    pub tool: String,
    pub is_error: bool,
    /// Its text blocks, joined with line ends; `None` once released.
    pub text: Option<String>,
    pub text_size: Size,
    /// The ref that the text is the stub of.
    pub stub_of: Option<Ref>,
    /// Kinds of the parts that are no text.
    pub other_parts: Vec<String>,
    /// The call that it answers; `None`: it answers none.
    pub site: Option<CallSite>,
    /// Whether another message stands between it and its turn.
    pub displaced: bool,
    /// Whether an earlier result has the same occurrence key: it can never be told apart in a log.
    pub ambiguous: bool,
}

impl Slot {
    #[must_use]
    pub fn as_result(&self) -> Option<&ToolResult> {
        match &self.kind {
            Kind::Result(result) => Some(result),
            Kind::User
            | Kind::Assistant(_)
            | Kind::Summary { .. }
            | Kind::Prompt
            | Kind::Block
            | Kind::Other => None,
        }
    }

    #[must_use]
    pub fn as_assistant(&self) -> Option<&Assistant> {
        match &self.kind {
            Kind::Assistant(assistant) => Some(assistant),
            Kind::User
            | Kind::Result(_)
            | Kind::Summary { .. }
            | Kind::Prompt
            | Kind::Block
            | Kind::Other => None,
        }
    }
}

impl ToolResult {
    #[must_use]
    pub fn key(&self, at_ms: u64) -> OccurrenceKey {
        OccurrenceKey::new(self.call_id.clone(), at_ms)
    }
}

/// A user message and the tool-using turns after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The message that began it; `None` where the transcript begins in its middle.
    pub anchor: Option<Position>,
    /// The first block that the host sends back in place of turns of it.
    pub block: Option<Position>,
    /// Its tool-using assistant messages, rising.
    pub turns: Vec<Position>,
    pub end: ChainEnd,
}

impl Chain {
    /// Where it begins.
    #[must_use]
    pub fn start(&self) -> Position {
        self.anchor.or(self.first_turn()).unwrap_or(0)
    }

    /// Where its first turn stands, or a block in place of it; `None`: the model has not begun to
    /// work on it.
    #[must_use]
    pub fn first_turn(&self) -> Option<Position> {
        let turns = self.turns.first().copied();
        self.block.into_iter().chain(turns).min()
    }
}

/// How a chain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainEnd {
    /// Not yet.
    Open,
    /// With the final reply at this position.
    Closed(Position),
    /// With another prompt at this position, before any final reply.
    Interrupted(Position),
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
    /// Indexes of the chains that are over: closed or interrupted.
    finished: Vec<usize>,
    /// Unanswered calls by id, oldest first; also those of messages that hosts do not send, so that
    /// their results are not taken for answers to older calls.
    unanswered: BTreeMap<String, Vec<CallSite>>,
    by_key: BTreeMap<OccurrenceKey, Position>,
    /// Positions by timestamp, of messages that can begin or end a span.
    boundaries: BTreeMap<(Boundary, u64), Found>,
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

    #[must_use]
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }

    /// Indexes of the chains that are over, rising: a final reply has closed them, or another prompt
    /// has interrupted them.
    #[must_use]
    pub fn finished_chains(&self) -> &[usize] {
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
        let mark = mark_of(slot);
        let namesakes = (0..at)
            .rev()
            .filter_map(|before| self.slot(before))
            .take_while(|before| before.at_ms == slot.at_ms)
            .filter(|before| mark_of(before) == mark)
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

    /// The index of the last chain that begins before a position.
    #[must_use]
    pub fn chain_before(&self, at: Position) -> Option<usize> {
        self.chains
            .partition_point(|chain| chain.start() < at)
            .checked_sub(1)
    }

    /// The index of the chain that a message belongs to.
    #[must_use]
    pub fn chain_at(&self, at: Position) -> Option<usize> {
        let index = self.chain_before(at + 1)?;
        let belongs = match self.chains.get(index)?.end {
            ChainEnd::Open => true,
            ChainEnd::Closed(reply) => at <= reply,
            ChainEnd::Interrupted(next) => at < next,
        };
        belongs.then_some(index)
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
        let slot = slot_of(message);
        self.slots.push(slot);
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

    /// Lets text and arguments of an assistant message go.
    pub fn release_assistant(&mut self, at: Position) {
        if let Some(Kind::Assistant(assistant)) = self.slots.get_mut(at).map(|slot| &mut slot.kind)
        {
            assistant.text = String::new();
            for call in &mut assistant.calls {
                call.arguments = None;
            }
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

    fn reindex(&mut self) {
        self.assistants.clear();
        self.thinking.clear();
        self.users.clear();
        self.last_reply = None;
        self.chains.clear();
        self.finished.clear();
        self.unanswered.clear();
        self.by_key.clear();
        self.boundaries.clear();
        self.run_end = 0;
        self.size = Size::default();
        for at in 0..self.slots.len() {
            self.index(at);
        }
    }

    fn index(&mut self, at: Position) {
        let Some(slot) = self.slots.get(at) else {
            return;
        };
        let (at_ms, size) = (slot.at_ms, slot.size);
        match &slot.kind {
            Kind::User => {
                self.users.push(at);
                self.note_boundary(Boundary::Prompt, at_ms, at);
                self.begin_chain(at, true);
            }
            Kind::Prompt => {
                self.note_boundary(Boundary::Prompt, at_ms, at);
                self.begin_chain(at, false);
            }
            Kind::Assistant(_) => self.index_assistant(at),
            Kind::Result(_) => self.index_result(at),
            Kind::Block => self.index_block(at),
            Kind::Other => {}
            Kind::Summary { .. } => return,
        }
        self.size = self.size + size;
    }

    fn note_boundary(&mut self, kind: Boundary, at_ms: u64, at: Position) {
        self.boundaries
            .entry((kind, at_ms))
            .and_modify(|found| found.is_only = false)
            .or_insert(Found { at, is_only: true });
    }

    /// A user message always begins a chain; another prompt does where no chain is open.
    fn begin_chain(&mut self, at: Position, by_user: bool) {
        let chain = Chain {
            anchor: Some(at),
            block: None,
            turns: Vec::new(),
            end: ChainEnd::Open,
        };
        let index = self.chains.len().saturating_sub(1);
        match self.chains.last_mut() {
            Some(last) if last.end == ChainEnd::Open && last.first_turn().is_some() => {
                if by_user {
                    last.end = ChainEnd::Interrupted(at);
                    self.finished.push(index);
                    self.chains.push(chain);
                }
            }
            Some(last) if last.end == ChainEnd::Open => *last = chain,
            Some(_) | None => self.chains.push(chain),
        }
    }

    fn index_assistant(&mut self, at: Position) {
        let turn_index = self.turn_base + count(self.assistants.len());
        self.assistants.push(at);
        if let Some(at_ms) = self.slots.get(at).map(|slot| slot.at_ms) {
            self.note_boundary(Boundary::Reply, at_ms, at);
        }
        let Some(slot) = self.slots.get_mut(at) else {
            return;
        };
        let Kind::Assistant(assistant) = &mut slot.kind else {
            return;
        };
        let before = self.thinking.last().copied().unwrap_or_default();
        self.thinking.push(before + assistant.thinking);
        assistant.turn_index = turn_index;
        for call in &mut assistant.calls {
            call.result = None;
        }
        for (call, named) in assistant.calls.iter().enumerate() {
            let site = CallSite {
                assistant: at,
                call,
            };
            self.unanswered
                .entry(named.id.clone())
                .or_default()
                .push(site);
        }
        if !assistant.stop.is_sent() {
            return;
        }
        self.run_end = at + 1;
        let (uses_tools, stop) = (!assistant.calls.is_empty(), assistant.stop);
        if !uses_tools && stop == StopReason::Stop {
            self.last_reply = Some(at);
        }
        self.extend_chain(at, uses_tools, stop);
    }

    fn extend_chain(&mut self, at: Position, uses_tools: bool, stop: StopReason) {
        let last = self.chains.len().saturating_sub(1);
        let open = self
            .chains
            .last_mut()
            .filter(|last| last.end == ChainEnd::Open);
        match open {
            Some(chain) if uses_tools => chain.turns.push(at),
            Some(chain) if stop == StopReason::Stop => {
                if chain.first_turn().is_none() {
                    self.chains.pop();
                } else {
                    chain.end = ChainEnd::Closed(at);
                    self.finished.push(last);
                }
            }
            None if uses_tools => self.chains.push(Chain {
                anchor: None,
                block: None,
                turns: vec![at],
                end: ChainEnd::Open,
            }),
            Some(_) | None => {}
        }
    }

    /// A block stands for turns of the chain that it stands in.
    fn index_block(&mut self, at: Position) {
        match self.chains.last_mut() {
            Some(last) if last.end == ChainEnd::Open => {
                last.block.get_or_insert(at);
            }
            Some(_) | None => self.chains.push(Chain {
                anchor: None,
                block: Some(at),
                turns: Vec::new(),
                end: ChainEnd::Open,
            }),
        }
    }

    fn index_result(&mut self, at: Position) {
        let Some(slot) = self.slots.get(at) else {
            return;
        };
        let Some(key) = slot.as_result().map(|result| result.key(slot.at_ms)) else {
            return;
        };
        let ambiguous = self.by_key.contains_key(&key);
        let site = self.take_unanswered(&key.call_id);
        let follows = site.is_some_and(|site| {
            self.run_end == at && self.assistants.last() == Some(&site.assistant)
        });
        if follows {
            self.run_end = at + 1;
        }
        self.by_key.entry(key).or_insert(at);
        if let Some(Kind::Result(result)) = self.slots.get_mut(at).map(|slot| &mut slot.kind) {
            result.site = site;
            result.displaced = site.is_some() && !follows;
            result.ambiguous = ambiguous;
        }
        if let Some(site) = site
            && let Some(Kind::Assistant(assistant)) = self
                .slots
                .get_mut(site.assistant)
                .map(|slot| &mut slot.kind)
            && let Some(call) = assistant.calls.get_mut(site.call)
        {
            call.result = Some(at);
        }
    }

    /// The unanswered call of this id in the latest message that has one, first come first served.
    fn take_unanswered(&mut self, call_id: &str) -> Option<CallSite> {
        let sites = self.unanswered.get_mut(call_id)?;
        let latest = sites.last()?.assistant;
        let first = sites.partition_point(|site| site.assistant < latest);
        let site = (first < sites.len()).then(|| sites.remove(first))?;
        if sites.is_empty() {
            self.unanswered.remove(call_id);
        }
        let is_sent = self
            .assistant(site.assistant)
            .is_some_and(|assistant| assistant.stop.is_sent());
        is_sent.then_some(site)
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn count_between(sorted: &[Position], from: Position, to: Position) -> usize {
    let until = |limit: Position| sorted.partition_point(|at| *at < limit);
    until(to).saturating_sub(until(from))
}

fn mark_of(slot: &Slot) -> String {
    let kind = match &slot.kind {
        Kind::User => "user",
        Kind::Assistant(_) => "assistant",
        Kind::Result(result) => return format!("result@{}", result.key(slot.at_ms)),
        Kind::Summary { .. } => "summary",
        Kind::Prompt => "prompt",
        Kind::Block | Kind::Other => "other",
    };
    format!("{kind}@{}", slot.at_ms)
}

fn slot_of(message: Message) -> Slot {
    let size = Size::of_message(&message);
    let at_ms = message.at_ms;
    let kind = match message.role {
        Role::User if is_block(&message.text()) => Kind::Block,
        Role::User => Kind::User,
        Role::Assistant { stop } => Kind::Assistant(assistant_of(stop, message.content)),
        Role::ToolResult {
            ref call_id,
            ref tool,
            is_error,
        } => Kind::Result(result_of(call_id, tool, is_error, &message)),
        Role::Custom { kind, details } if kind == SUMMARY => Kind::Summary { details },
        Role::Custom { .. } => Kind::Prompt,
        Role::Other { role } if role == "compactionSummary" || role == "branchSummary" => {
            Kind::Prompt
        }
        Role::Other { .. } => Kind::Other,
    };
    Slot { at_ms, size, kind }
}

fn assistant_of(stop: StopReason, content: Vec<Block>) -> Assistant {
    let mut assistant = Assistant {
        stop,
        calls: Vec::new(),
        text: String::new(),
        thinking: Size::default(),
        is_pinned: false,
        turn_index: 0,
    };
    for block in content {
        match block {
            Block::Text(text) => {
                if !assistant.text.is_empty() {
                    assistant.text.push('\n');
                }
                assistant.text.push_str(&text);
            }
            Block::Thinking(chars) => {
                assistant.thinking = assistant.thinking + Size::of_chars(u64::from(chars));
            }
            Block::ToolCall(call) => assistant.calls.push(Call {
                arguments_size: Size::of_text(&call.arguments),
                is_purged: are_purged(&call.arguments),
                path: path_argument(&call.arguments),
                id: call.id,
                tool: call.name,
                arguments: Some(call.arguments),
                result: None,
            }),
            Block::Opaque(opaque) => assistant.is_pinned |= opaque.kind == "reasoning",
        }
    }
    // Most have one call, and a vector begins with room for four.
    assistant.calls.shrink_to_fit();
    assistant
}

fn result_of(call_id: &str, tool: &str, is_error: bool, message: &Message) -> ToolResult {
    let text = message.text();
    let other_parts = message
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Opaque(opaque) => Some(opaque.kind.clone()),
            Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) => None,
        })
        .collect();
    ToolResult {
        call_id: call_id.to_owned(),
        tool: tool.to_owned(),
        is_error,
        text_size: Size::of_text(&text),
        stub_of: ref_of_stub(&text),
        text: Some(text),
        other_parts,
        site: None,
        displaced: false,
        ambiguous: false,
    }
}
