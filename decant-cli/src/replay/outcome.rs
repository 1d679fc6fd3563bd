//! What a replay comes to.

use std::collections::BTreeMap;
use std::path::Path;

use decant_host::{JobUsage, Message, Notice, Outcome, Strategy};
use serde_json::{Value, json};

use super::{Cause, Side, Size, Violation};
use crate::formats::Recording;
use crate::price::{Amounts, Rates, utf16_len};
use crate::tokens;

/// One model call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The number of the step of the recording that holds the answer.
    pub step: usize,
    pub at_ms: u64,
    /// Billed over counted tokens: what a counted token stands for.
    pub scale: f64,
    pub unpruned: Side,
    pub pruned: Side,
    /// Set if the context does not begin with the one before.
    pub broke: Option<Break>,
}

/// A broken prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Break {
    pub cause: Cause,
    /// The index in the context of the first message that is not what it was.
    pub at: usize,
}

/// Sums over the model calls of one or several sessions, in scaled tokens or in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    pub amounts: Amounts,
    /// The largest context.
    pub peak: u64,
    /// The context of the last call.
    pub last: u64,
}

/// A replayed session.
#[derive(Clone, Debug)]
pub(crate) struct Replayed {
    pub name: String,
    pub format: &'static str,
    /// What the reader tolerated.
    pub notes: Vec<String>,
    pub calls: Vec<Call>,
    /// Requests to the summarizer.
    pub requests: u64,
    /// Tokens of its prompts and of its answers.
    pub asked_tokens: u64,
    pub answer_tokens: u64,
    /// Characters of its prompts and of its answers.
    pub asked_chars: u64,
    pub answer_chars: u64,
    /// How many attempts to flush ended in which way.
    pub flushes: BTreeMap<String, u64>,
    /// Records of the archive at the end: as many refs as were given.
    pub refs: u64,
    pub blocks: u64,
    pub strategies: Vec<Strategy>,
    /// What the pruner had to say, apart from what went as it should.
    pub notices: Vec<Notice>,
    /// The first invariant that did not hold, if they were checked.
    pub violation: Option<Violation>,
    /// How many checks were made.
    pub checks: u64,
    /// The context that the next call would send.
    pub context: Vec<Message>,
}

impl Call {
    /// The part of the context that the pruner leaves.
    pub(super) fn pruned_share(&self) -> f64 {
        match self.unpruned.all.tokens {
            0 => 1.0,
            all => self.pruned.all.tokens as f64 / all as f64,
        }
    }

    /// A size in tokens as they are billed.
    #[must_use]
    pub(crate) fn tokens(&self, size: Size) -> u64 {
        (size.tokens as f64 * self.scale).round() as u64
    }
}

impl Replayed {
    pub(super) fn new(path: &Path, recording: &Recording) -> Self {
        Self {
            name: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            format: recording.format.name(),
            notes: recording.notes.clone(),
            calls: Vec::new(),
            requests: 0,
            asked_tokens: 0,
            answer_tokens: 0,
            asked_chars: 0,
            answer_chars: 0,
            flushes: BTreeMap::new(),
            refs: 0,
            blocks: 0,
            strategies: Vec::new(),
            notices: Vec::new(),
            violation: None,
            checks: 0,
            context: Vec::new(),
        }
    }

    /// Accounts for a request, and fills in what the summarizer does not say of its usage.
    pub(super) fn asked(&mut self, prompt: &str, outcome: &mut Outcome) {
        self.requests += 1;
        // Providers do not bill a request that they refuse.
        let Outcome::Answered(answer) = outcome else {
            return;
        };
        let usage = answer.usage.get_or_insert_with(|| JobUsage {
            input: tokens::of_text(prompt),
            output: tokens::of_text(&answer.text),
            cost: None,
        });
        self.asked_tokens += usage.input;
        self.answer_tokens += usage.output;
        self.asked_chars += utf16_len(prompt);
        self.answer_chars += utf16_len(&answer.text);
    }

    /// Scaled tokens of all calls.
    #[must_use]
    pub(crate) fn tokens(&self, side: impl Fn(&Call) -> Side, is_pruned: bool) -> Totals {
        let asked = if is_pruned { self.asked_tokens } else { 0 };
        self.totals(side, Call::tokens, asked)
    }

    /// Characters of all calls, as the price counts them.
    #[must_use]
    pub(crate) fn chars(&self, side: impl Fn(&Call) -> Side, is_pruned: bool) -> Totals {
        let asked = if is_pruned { self.asked_chars } else { 0 };
        self.totals(side, |_, size| size.chars, asked)
    }

    fn totals(
        &self,
        side: impl Fn(&Call) -> Side,
        measure: impl Fn(&Call, Size) -> u64,
        asked: u64,
    ) -> Totals {
        let mut totals = Totals::default();
        totals.amounts.asked = asked;
        for call in &self.calls {
            let side = side(call);
            let (all, shared) = (measure(call, side.all), measure(call, side.shared));
            totals.amounts.cached += shared;
            totals.amounts.fresh += all - shared;
            totals.peak = totals.peak.max(all);
            totals.last = all;
        }
        totals
    }

    /// How often the prefix of the pruned context broke, by cause.
    #[must_use]
    pub(crate) fn breaks(&self) -> BTreeMap<Cause, u64> {
        let mut breaks = BTreeMap::new();
        for broke in self.calls.iter().filter_map(|call| call.broke) {
            *breaks.entry(broke.cause).or_default() += 1;
        }
        breaks
    }

    /// The session as JSON, with a row per model call.
    #[must_use]
    pub(crate) fn to_json(&self, rates: &Rates) -> Value {
        let (unpruned, pruned) = (|call: &Call| call.unpruned, |call: &Call| call.pruned);
        let breaks: BTreeMap<&str, u64> = self
            .breaks()
            .into_iter()
            .map(|(cause, n)| (cause.name(), n))
            .collect();
        let totals = |tokens: Totals, chars: Totals| {
            json!({
                "tokens": totals_json(&tokens, rates),
                "chars": totals_json(&chars, rates),
            })
        };
        json!({
            "session": self.name,
            "format": self.format,
            "notes": self.notes,
            "modelCalls": self.calls.len(),
            "unpruned": totals(self.tokens(unpruned, false), self.chars(unpruned, false)),
            "pruned": totals(self.tokens(pruned, true), self.chars(pruned, true)),
            "summarizer": {
                "requests": self.requests,
                "promptTokens": self.asked_tokens,
                "answerTokens": self.answer_tokens,
                "promptChars": self.asked_chars,
                "answerChars": self.answer_chars,
            },
            "flushes": self.flushes,
            "refs": self.refs,
            "blocks": self.blocks,
            "strategies": self.strategies.iter().map(strategy_json).collect::<Vec<_>>(),
            "breaks": breaks,
            "notices": self.notices.iter().map(notice_json).collect::<Vec<_>>(),
            "violation": self.violation.as_ref().map(Violation::to_json),
            "calls": self.calls.iter().enumerate().map(call_json).collect::<Vec<_>>(),
        })
    }
}

fn totals_json(totals: &Totals, rates: &Rates) -> Value {
    json!({
        "all": totals.amounts.sent(),
        "peak": totals.peak,
        "last": totals.last,
        "fresh": totals.amounts.fresh,
        "cached": totals.amounts.cached,
        "asked": totals.amounts.asked,
        "price": rates.price(totals.amounts).round(),
    })
}

fn strategy_json(strategy: &Strategy) -> Value {
    json!({"name": strategy.kind.name(), "count": strategy.count, "savedChars": strategy.saved})
}

fn notice_json(notice: &Notice) -> Value {
    json!(notice.text)
}

fn call_json((index, call): (usize, &Call)) -> Value {
    let side = |side: &Side| {
        json!({
            "messages": side.all.messages,
            "tokens": call.tokens(side.all),
            "chars": side.all.chars,
            "sharedMessages": side.shared.messages,
            "sharedTokens": call.tokens(side.shared),
            "sharedChars": side.shared.chars,
        })
    };
    json!({
        "call": index + 1,
        "step": call.step,
        "at": call.at_ms,
        "scale": (call.scale * 1e4).round() / 1e4,
        "unpruned": side(&call.unpruned),
        "pruned": side(&call.pruned),
        "broke": call.broke.map(|broke| json!({"cause": broke.cause.name(), "message": broke.at})),
    })
}
