//! The invariants of the design, checked on real sessions at every model call.
//!
//! | invariant | how |
//! | --- | --- |
//! | pairing | each result in the context answers an open call of the answer before it; no call has lost its result |
//! | nothing lost | each result that is no longer there verbatim is read back through the query tool, page by page, and is the same byte for byte; so are, at the end, all of them, before and after a reload |
//! | stable prefix | under `cachePolicy: stable` the context begins with the one before, but at an epoch |
//! | never larger | the text of the context is not longer than without pruning |
//! | idempotence, determinism | at each epoch and at the end a second session, loaded from the log, renders the same context, and takes it unchanged as its own transcript |
//! | no trap | no context goes out unpruned because the pruner broke down |

mod original;
mod pairing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use decant_host::{Decant, Message, Session, SessionOptions};
use serde_json::{Value, json};

use super::Break;
use super::conversation::{Line, call_ids, is_sent};
use super::host::ReplayHost;
use original::Occurrence;

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub invariant: &'static str,
    /// The model call, counted from 1; one more than there are calls for the end of the session.
    pub call: usize,
    /// The index of the message in the context, where it is about one.
    pub message: Option<usize>,
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: call {}", self.invariant, self.call)?;
        if let Some(message) = self.message {
            write!(f, ", message {message}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl Violation {
    /// For `--json`.
    #[must_use]
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "invariant": self.invariant,
            "call": self.call,
            "message": self.message,
            "what": self.what,
        })
    }
}

/// The state of affairs at a model call.
pub(super) struct Moment<'a> {
    pub(super) call: usize,
    pub(super) now_ms: u64,
    pub(super) is_pruned: bool,
    pub(super) host_changed: bool,
    pub(super) broke: Option<Break>,
    /// What stood in the context before from index `at` on.
    pub(super) old_tail: &'a [Message],
    pub(super) at: usize,
    pub(super) context: &'a [Message],
    pub(super) pruned_text: u64,
    pub(super) unpruned_text: u64,
    pub(super) live: &'a [Line],
}

type Shared = Arc<Mutex<ReplayHost>>;
type Checked = Result<(), Violation>;

/// Checks one session.
pub(super) struct Checker {
    decant: Decant,
    options: SessionOptions,
    is_stable: bool,
    idle_cold_ms: u64,
    /// Results that must not get lost, by occurrence.
    originals: BTreeMap<Occurrence, Message>,
    /// Those that are no longer in the context verbatim.
    gone: BTreeSet<Occurrence>,
    /// Results pushed since the last call.
    fresh: Vec<Occurrence>,
    /// Calls that have no result yet, with the time of their answer.
    open: BTreeMap<String, Vec<u64>>,
    /// Calls that have one, by the time of their answer.
    answered: BTreeSet<(u64, String)>,
    epochs: u64,
    is_cold: bool,
    last_call_ms: Option<u64>,
    checks: u64,
}

impl Checker {
    pub(super) fn new(decant: Decant, options: SessionOptions, session: &mut Session) -> Self {
        let config: Value =
            serde_json::from_str(&session.config().unwrap_or_default()).unwrap_or_default();
        Self {
            decant,
            options,
            is_stable: config["cachePolicy"].as_str() != Some("live"),
            idle_cold_ms: config["idleColdMs"].as_u64().unwrap_or(300_000),
            originals: BTreeMap::new(),
            gone: BTreeSet::new(),
            fresh: Vec::new(),
            open: BTreeMap::new(),
            answered: BTreeSet::new(),
            epochs: 0,
            is_cold: true,
            last_call_ms: None,
            checks: 0,
        }
    }

    pub(super) fn checks(&self) -> u64 {
        self.checks
    }

    /// The provider's cache is cold: what was sent may change at the next call.
    pub(super) fn cache_is_cold(&mut self) {
        self.is_cold = true;
    }

    /// A recorded message has been pushed.
    pub(super) fn pushed(&mut self, message: &Message) {
        match message.role() {
            "assistant" if is_sent(message) => {
                for id in call_ids(message) {
                    let open = self.open.entry(id.to_string()).or_default();
                    open.push(message.at_ms());
                }
            }
            "toolResult" => self.pushed_result(message),
            _ => {}
        }
    }

    /// A result without an open call is left out of the context, as providers demand; there is
    /// nothing in it that the model was ever to see.
    fn pushed_result(&mut self, message: &Message) {
        let occurrence = Occurrence::of(message);
        let Some(answer_ms) = self.open.get_mut(&occurrence.call_id).and_then(Vec::pop) else {
            return;
        };
        self.answered
            .insert((answer_ms, occurrence.call_id.clone()));
        self.fresh.push(occurrence.clone());
        self.originals.insert(occurrence, message.clone());
    }

    /// The host has changed the transcript: what is no longer in it is no longer the pruner's.
    fn begin_anew(&mut self, live: &[Line]) {
        self.originals.clear();
        self.gone.clear();
        self.fresh.clear();
        self.open.clear();
        self.answered.clear();
        for line in live {
            self.pushed(&line.message);
        }
    }

    /// Checks a model call.
    ///
    /// # Errors
    ///
    /// The first invariant that does not hold.
    pub(super) fn call(
        &mut self,
        moment: &Moment<'_>,
        session: &mut Session,
        host: &Shared,
    ) -> Checked {
        if moment.host_changed {
            self.begin_anew(moment.live);
        }
        let violated = |invariant, message, what: String| Violation {
            invariant,
            call: moment.call,
            message,
            what,
        };
        if !moment.is_pruned {
            let what = "the pruner broke down and the context went out unpruned".to_string();
            return Err(violated("no trap", None, what));
        }
        let epochs = host.lock().unwrap_or_else(PoisonError::into_inner).epochs;
        let is_epoch = epochs > self.epochs;
        let idle_ms = self
            .last_call_ms
            .map(|last| moment.now_ms.saturating_sub(last));
        self.is_cold |= idle_ms.is_none_or(|idle| idle >= self.idle_cold_ms);
        let may_break = is_epoch || self.is_cold || moment.host_changed || !self.is_stable;
        self.checks += 4;
        if let Some(broke) = moment
            .broke
            .filter(|_| !may_break && !self.is_late_result(moment))
        {
            let what = format!(
                "what was sent has changed ({}), outside of an epoch",
                broke.cause.name()
            );
            return Err(violated("stable prefix", Some(broke.at), what));
        }
        if moment.pruned_text > moment.unpruned_text {
            let (with, without) = (moment.pruned_text, moment.unpruned_text);
            let what = format!("{with} characters of text, {without} without pruning");
            return Err(violated("never larger", None, what));
        }
        pairing::check(moment.context, moment.at, &self.answered)
            .map_err(|(message, what)| violated("pairing", Some(message), what))?;
        self.newly_gone(moment, session)
            .map_err(|what| violated("nothing lost", None, what))?;
        if is_epoch {
            self.reload(moment.context, moment.live, host, moment.now_ms)
                .map_err(|(message, what)| violated("reload", message, what))?;
        }
        self.epochs = epochs;
        self.is_cold = false;
        self.last_call_ms = Some(moment.now_ms);
        Ok(())
    }

    /// A result that came late takes its place at its call, whatever was sent in its place.
    fn is_late_result(&self, moment: &Moment<'_>) -> bool {
        let first = moment.context.get(moment.at);
        let is_fresh = |message: &Message| self.fresh.contains(&Occurrence::of(message));
        first.is_some_and(|message| message.role() == "toolResult" && is_fresh(message))
    }

    /// Reads back what has disappeared from the context with this call.
    fn newly_gone(&mut self, moment: &Moment<'_>, session: &mut Session) -> Result<(), String> {
        let results = |messages: &[Message]| -> BTreeSet<Occurrence> {
            let results = messages
                .iter()
                .filter(|message| message.role() == "toolResult");
            let verbatim = results.filter(|message| self.is_verbatim(message));
            verbatim.map(Occurrence::of).collect()
        };
        let mut before = results(moment.old_tail);
        before.extend(self.fresh.iter().cloned());
        let after = results(&moment.context[moment.at..]);
        for occurrence in after.difference(&before) {
            self.gone.remove(occurrence);
        }
        for occurrence in before.difference(&after) {
            let original = &self.originals[occurrence];
            self.checks += 1;
            original::read_back(session, occurrence, original, moment.context, moment.now_ms)?;
        }
        self.gone.extend(before.difference(&after).cloned());
        self.fresh.clear();
        Ok(())
    }

    fn is_verbatim(&self, message: &Message) -> bool {
        let original = self.originals.get(&Occurrence::of(message));
        original.is_some_and(|original| original == message || original.text() == message.text())
    }

    /// Checks the end of the session: everything that is gone is read back, from this session and
    /// from one that is loaded anew.
    ///
    /// # Errors
    ///
    /// The first invariant that does not hold.
    pub(super) fn end(
        &mut self,
        session: &mut Session,
        host: &Shared,
        live: &[Line],
        (call, now_ms): (usize, u64),
    ) -> Checked {
        let violated = |invariant, message, what: String| Violation {
            invariant,
            call,
            message,
            what,
        };
        let mut reloaded = self
            .load(host, live)
            .map_err(|what| violated("reload", None, what))?;
        let context = reloaded.context(now_ms).messages.to_vec();
        self.reload(&context, live, host, now_ms)
            .map_err(|(message, what)| violated("reload", message, what))?;
        for occurrence in &self.gone {
            let original = &self.originals[occurrence];
            for session in [&mut *session, &mut reloaded] {
                self.checks += 1;
                original::read_back(session, occurrence, original, &context, now_ms)
                    .map_err(|what| violated("nothing lost", None, what))?;
            }
        }
        Ok(())
    }

    fn load(&self, host: &Shared, live: &[Line]) -> Result<Session, String> {
        let messages = live.iter().map(|line| line.message.clone()).collect();
        self.load_with(host, messages)
    }

    fn load_with(&self, host: &Shared, transcript: Vec<Message>) -> Result<Session, String> {
        let host = host
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .snapshot();
        let session = self.decant.open(self.options.clone(), host);
        let mut session = session.map_err(|err| format!("it cannot be opened: {err}"))?;
        session.replace_all(transcript);
        Ok(session)
    }

    /// Another session that is loaded from the log renders the same, and has nothing to add to what
    /// was rendered.
    fn reload(
        &mut self,
        context: &[Message],
        live: &[Line],
        host: &Shared,
        now_ms: u64,
    ) -> Result<(), (Option<usize>, String)> {
        self.checks += 2;
        let words = |what| (None, what);
        let mut reloaded = self.load(host, live).map_err(words)?;
        let again = reloaded.context(now_ms).messages;
        same(
            context,
            again,
            "a session loaded from the log renders another context",
        )?;
        let mut applied = self.load_with(host, context.to_vec()).map_err(words)?;
        let again = applied.context(now_ms).messages;
        same(
            context,
            again,
            "the context, taken as a transcript, is edited again",
        )
    }
}

fn same(one: &[Message], other: &[Message], what: &str) -> Result<(), (Option<usize>, String)> {
    let pairs = one.iter().zip(other);
    let at = pairs.take_while(|(one, other)| is_same(one, other)).count();
    if at == one.len() && at == other.len() {
        return Ok(());
    }
    let show = |message: Option<&Message>| match message {
        Some(message) => short(&message.as_json().to_string()),
        None => "(nothing)".to_string(),
    };
    let what = format!(
        "{what}: {} instead of {}",
        show(other.get(at)),
        show(one.get(at))
    );
    Err((Some(at), what))
}

/// Whether a model sees the same.
fn is_same(one: &Message, other: &Message) -> bool {
    let keys = ["role", "toolCallId", "content"];
    one == other
        || keys
            .iter()
            .all(|key| one.as_json().get(*key) == other.as_json().get(*key))
}

/// A text, cut for a message to the user.
fn short(text: &str) -> String {
    const MAX_CHARS: usize = 160;
    match text.char_indices().nth(MAX_CHARS) {
        None => text.to_string(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
