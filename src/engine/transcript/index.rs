//! Appending a message: what it answers, which chain it belongs to, by what it is found.

use super::chain::{Chain, ChainEnd, ChainId};
use super::slot::Kind;
use super::{Boundary, CallSite, Found, Position, Transcript, count};
use crate::engine::message::StopReason;
use crate::engine::size::Size;

impl Transcript {
    pub(super) fn reindex(&mut self) {
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

    pub(super) fn index(&mut self, at: Position) {
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
        match self.boundaries.get_mut(&(kind, at_ms)) {
            Some(found) => found.is_only = false,
            None => {
                let found = Found { at, is_only: true };
                self.boundaries.insert((kind, at_ms), found);
            }
        }
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
                    self.finished.push(ChainId(index));
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
                .update(named.id.clone(), |sites| sites.push(site));
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
                    self.finished.push(ChainId(last));
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
        self.by_key.insert_new(key, at);
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
