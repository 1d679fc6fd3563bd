//! The basis of every decision: the facts, the transcript, the rules and the epoch.
//!
//! All that is asked of it here is a question; what follows from the answers is the [`View`]'s.
//!
//! [`View`]: super::view::View

mod due;
mod legacy;
mod span;

pub use span::{Misfit, Span};

use super::config::{CachePolicy, Config};
use super::digest::ContentHash;
use super::entry;
use super::facts::{BatchId, CLOSED, EpochMark, Facts, Member, RecordId, Standing};
use super::host::Host;
use super::ids::Ref;
use super::protect::Protection;
use super::stub;
use super::transcript::{Kind, Position, Transcript};
use legacy::Bindings;

/// What everything is decided by.
pub struct Basis {
    pub facts: Facts,
    pub transcript: Transcript,
    pub rules: Rules,
    pub epoch: Epoch,
    /// What old records, which name no time, mean in the transcript.
    bindings: Bindings,
    /// What the archive holds for each position, while everything is looked at anew and neither of
    /// them changes.
    members: Option<Vec<Option<Member>>>,
    /// The transcript that the host has replaced as a whole, until the next pass over the new one.
    replaced: Option<Transcript>,
}

/// The settings in force, and what is made of them.
pub struct Rules {
    pub config: Config,
    pub protection: Protection,
    /// Whether the model is offered `context_tree_query`.
    pub query_tool_offered: bool,
}

/// Which part of the transcript has been sent, and which part due edits may look at.
#[derive(Debug, Default)]
pub struct Epoch {
    /// Edits become due by counting messages before this position only.
    pub end: Position,
    /// Whether it ended a user turn: the agent's final reply came next.
    pub is_closed: bool,
    /// The transcript's length at the last model call.
    pub sent: Position,
    pub last_call_ms: u64,
    /// Whether the session runs on another model since the last call.
    pub is_model_new: bool,
    /// Whether the final reply is there that the mirror does not have yet.
    pub is_closing: bool,
    /// What is looked for while the transcript comes in anew.
    sought: Option<Sought>,
}

/// The epoch of the log, while its place in the transcript is looked for.
#[derive(Debug)]
struct Sought {
    mark: EpochMark,
    is_found: bool,
}

impl Rules {
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            protection: Protection::new(&config),
            config,
            query_tool_offered: true,
        }
    }

    /// Whether anything may be replaced that the model needs the query tool to get back.
    #[must_use]
    pub fn may_replace(&self) -> bool {
        self.config.enabled && self.query_tool_offered
    }

    #[must_use]
    pub fn is_live(&self) -> bool {
        self.config.cache_policy == CachePolicy::Live
    }
}

impl Basis {
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            facts: Facts::default(),
            transcript: Transcript::default(),
            rules,
            epoch: Epoch::default(),
            bindings: Bindings::default(),
            members: None,
            replaced: None,
        }
    }

    /// What the archive holds for the result at a position.
    #[must_use]
    pub fn member_at(&self, at: Position) -> Option<Member> {
        if let Some(members) = &self.members {
            return members.get(at).copied().flatten();
        }
        let slot = self.transcript.slot(at)?;
        let result = slot.as_result()?;
        if result.ambiguous {
            return None;
        }
        self.facts
            .archive()
            .member(&result.key(slot.at_ms))
            .or_else(|| self.bindings.member_at(at))
    }

    /// Where the result of a member stands.
    #[must_use]
    pub fn position_of(&self, member: Member) -> Option<Position> {
        let key = self.facts.archive().key_of(member)?;
        self.transcript
            .position_of(key)
            .or_else(|| self.bindings.position_of(member))
    }

    /// What the archive holds for a position, in words of its ref; an alias has its original's.
    #[must_use]
    pub fn name_at(&self, at: Position) -> Option<Ref> {
        let member = self.member_at(at)?;
        let record = self.facts.archive().original(member);
        record.map(|record| record.name)
    }

    /// How the record stands that a position has for its own.
    #[must_use]
    pub fn standing_at(&self, at: Position) -> Option<&Standing> {
        match self.member_at(at)? {
            Member::Record(id) => self
                .facts
                .archive()
                .record(id)
                .map(|record| &record.standing),
            Member::Alias(_) => None,
        }
    }

    /// Whether a result was tried and is left as it is.
    #[must_use]
    pub fn is_skipped(&self, at: Position) -> bool {
        let key = self.transcript.key_at(at);
        key.is_some_and(|key| self.facts.is_skipped(&key)) || self.bindings.was_tried(at)
    }

    /// Whether protection covers the call that a result answers.
    #[must_use]
    pub fn is_protected(&self, at: Position) -> bool {
        let Some(result) = self.transcript.result(at) else {
            return false;
        };
        let call = result.site.and_then(|site| self.transcript.call(site));
        let path = call.and_then(|call| call.path.as_deref());
        self.rules.protection.covers(&result.tool, path)
    }

    /// Whether nothing holds a member's text in the context: protection that came later, or an undo.
    #[must_use]
    pub fn stands_pruned(&self, member: Member) -> bool {
        let Some(record) = self.facts.archive().original(member) else {
            return false;
        };
        let undone = match record.standing {
            Standing::Summarized { batch } => self
                .facts
                .archive()
                .batch(batch)
                .is_none_or(|batch| batch.undone),
            Standing::Spilled { .. } | Standing::Recovered { .. } | Standing::Archived => false,
        };
        let protection = &self.rules.protection;
        !undone && !protection.covers(&record.tool, record.path.as_deref())
    }

    /// Whether the context may show already that a member is archived.
    #[must_use]
    pub fn is_shown(&self, member: Member) -> bool {
        // Nothing waits for an epoch where what was sent may change at any time.
        self.rules.is_live() || self.facts.archive().is_shown(member)
    }

    /// Whether the host sends a result back as the model was shown it: the transcript has its stub,
    /// and that is not what the tool returned.
    #[must_use]
    pub fn is_stubbed(&self, at: Position, id: RecordId) -> bool {
        let archive = self.facts.archive();
        let (Some(result), Some(record)) = (self.transcript.result(at), archive.record(id)) else {
            return false;
        };
        let returned_it = || {
            let stub = ContentHash::of(&record.tool, &stub::stub(record.name));
            archive.duplicate_of(&stub, record.is_error) == Some(id)
        };
        result.stub_of == Some(record.name) && !returned_it()
    }

    /// The content hash of a result; `None` for an empty one, which is never a duplicate.
    #[must_use]
    pub fn hash_at(&self, at: Position) -> Option<ContentHash> {
        let result = self.transcript.result(at)?;
        let text = result.text.as_deref().filter(|text| !text.is_empty())?;
        Some(ContentHash::of(&result.tool, text))
    }

    /// The turn that a result belongs to, counted over the session.
    #[must_use]
    pub fn turn_index_at(&self, at: Position) -> u32 {
        let turn = self
            .transcript
            .result(at)
            .and_then(|result| self.transcript.assistant(result.site?.assistant));
        turn.map_or_else(
            || self.transcript.turn_count().saturating_sub(1),
            |assistant| assistant.turn_index,
        )
    }

    /// Whether the agent has given its final reply since the last prompt, or is about to.
    #[must_use]
    pub fn is_user_turn_over(&self) -> bool {
        self.epoch.is_closing || self.transcript.is_replied()
    }

    /// What stands in the log for an epoch at the present end of the transcript.
    ///
    /// It names the last message that every context has: the plan may leave out a summary, and a
    /// result without a call.
    #[must_use]
    pub fn end_mark(&self) -> String {
        let last = (0..self.transcript.len())
            .rev()
            .find(|at| self.may_mark(*at));
        let mut mark = last.map_or_else(String::new, |last| self.transcript.mark(last));
        if self.is_user_turn_over() {
            mark.push_str(CLOSED);
        }
        mark
    }

    fn may_mark(&self, at: Position) -> bool {
        match self.transcript.slot(at).map(|slot| &slot.kind) {
            Some(Kind::Summary { .. }) => false,
            Some(Kind::Result(result)) => result.site.is_some(),
            Some(_) | None => true,
        }
    }

    /// The epoch covers the transcript as it is.
    pub fn advance_epoch(&mut self) {
        self.epoch.end = self.transcript.len();
        self.epoch.is_closed = self.is_user_turn_over();
    }

    /// The messages from a position on are gone. Where that is before the end of the epoch, the
    /// messages that come back belong to it as they did before.
    pub fn cut_back(&mut self, at: Position) {
        if at > 0 {
            self.transcript.truncate(at);
        } else {
            let before = std::mem::take(&mut self.transcript);
            // What is replaced before any hook has looked at it says nothing of the session.
            self.replaced.get_or_insert(before);
        }
        if at < self.epoch.end {
            self.epoch.end = at;
            self.seek_epoch();
        }
        self.epoch.sent = self.epoch.sent.min(at);
    }

    /// From here on the place of the log's epoch is looked for in the messages that come.
    pub fn seek_epoch(&mut self) {
        let mark = self.facts.epoch().cloned();
        self.epoch.is_closed = mark.as_ref().is_some_and(|mark| mark.is_closed);
        self.epoch.sought = mark.map(|mark| Sought {
            mark,
            is_found: false,
        });
    }

    /// A message has come while the transcript comes in anew: the epoch covers the messages up to the
    /// one that it was taken at. Where that one is gone, the ones that are not newer stand for it.
    pub fn note_epoch(&mut self, at: Position) {
        let Some(sought) = &mut self.epoch.sought else {
            return;
        };
        let at_ms = self.transcript.slot(at).map_or(u64::MAX, |slot| slot.at_ms);
        let is_last = at_ms == sought.mark.at_ms && self.transcript.mark(at) == sought.mark.mark;
        let is_old = at_ms <= sought.mark.at_ms;
        if is_last || (is_old && !sought.is_found) {
            self.epoch.end = at + 1;
        }
        sought.is_found |= is_last;
    }

    /// The transcript is there: what only a pass over all of it can tell is found out.
    pub fn settle_in(&mut self) {
        self.epoch.sought = None;
        if self.rules.is_live() {
            self.advance_epoch();
        }
        self.find_turn_base();
        self.bindings = Bindings::of(&self.facts, &self.transcript);
    }

    /// Until [`Basis::open_up`] facts and messages stay as they are: each is looked up once.
    pub fn hold_still(&mut self) {
        let members = (0..self.transcript.len()).map(|at| self.member_at(at));
        self.members = Some(members.collect());
    }

    /// From here on facts and messages come.
    pub fn open_up(&mut self) {
        self.members = None;
    }

    /// The text of a batch's summary, as it was appended.
    #[must_use]
    pub fn summary_text(&self, batch: BatchId, host: &mut dyn Host) -> Option<String> {
        if let Some(text) = self.facts.summary_text(batch) {
            return Some(text.to_owned());
        }
        let entry = self.facts.archive().batch(batch)?.summary.as_ref()?;
        let data = host.read(entry).ok()?;
        let message: entry::SummaryMessage = serde_json::from_str(&data).ok()?;
        Some(message.content)
    }
}
