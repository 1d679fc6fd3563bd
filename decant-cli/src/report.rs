//! Reports of replays, for people.

mod html;
mod table;

pub(crate) use html::page;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::price::{Amounts, Rates};
use crate::replay::{Call, Replayed, Side, Totals};
use table::{Table, grouped, percent, scaled};

/// What is measured, with and without pruning.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    without: Totals,
    with: Totals,
}

/// The figures of a session, or of several together.
#[derive(Clone, Debug, Default)]
struct Figures {
    calls: usize,
    tokens: Pair,
    chars: Pair,
    requests: u64,
    asked_tokens: u64,
    answer_tokens: u64,
    flushes: BTreeMap<String, u64>,
    refs: u64,
    blocks: u64,
    breaks: BTreeMap<&'static str, u64>,
    /// Count and saved characters.
    strategies: Vec<(String, u64, i64)>,
}

/// The report: a table for each session, and one for all of them if they are several.
#[must_use]
pub(crate) fn text(sessions: &[Replayed], rates: &Rates) -> String {
    let mut out = String::new();
    for session in sessions {
        let figures = Figures::of(session);
        let title = format!("{} ({})", session.name, session.format);
        section(&mut out, &title, &figures, rates);
        remarks(&mut out, session);
        out.push('\n');
    }
    if sessions.len() > 1 {
        let mut total = Figures::default();
        sessions
            .iter()
            .for_each(|session| total.add(Figures::of(session)));
        let title = format!("Total of {} sessions", sessions.len());
        section(&mut out, &title, &total, rates);
        out.push('\n');
    }
    out.pop();
    out
}

fn section(out: &mut String, title: &str, figures: &Figures, rates: &Rates) {
    let calls = figures.calls;
    let _ = writeln!(out, "{title}: {} model calls", grouped(calls as u64));
    let mut table = Table::new(["", "without", "with", "saved"]);
    let Pair { without, with } = figures.tokens;
    let mut row = |label: &str, without: u64, with: u64| {
        table.row([
            label,
            &grouped(without),
            &grouped(with),
            &percent(without, with),
        ]);
    };
    row(
        "context, tokens of all calls",
        without.amounts.sent(),
        with.amounts.sent(),
    );
    row(
        "  from the prefix cache",
        without.amounts.cached,
        with.amounts.cached,
    );
    row("  fresh", without.amounts.fresh, with.amounts.fresh);
    row("  peak", without.peak, with.peak);
    row("  last call", without.last, with.last);
    row("  summarizer prompts", 0, with.amounts.asked);
    let price = |amounts: Amounts| rates.price(amounts);
    for (label, pair) in [
        ("cost, tokens", figures.tokens),
        ("price, characters", figures.chars),
    ] {
        let (without, with) = (price(pair.without.amounts), price(pair.with.amounts));
        let saved = percent(without.round() as u64, with.round() as u64);
        table.row([label, &scaled(without), &scaled(with), &saved]);
    }
    out.push_str(&table.to_string());
    facts(out, figures);
}

fn facts(out: &mut String, figures: &Figures) {
    let count = |n: u64, word: &str| format!("{} {word}", grouped(n));
    let listed = |counts: Vec<String>| match counts.is_empty() {
        true => "none".to_string(),
        false => counts.join(", "),
    };
    let flushes = figures
        .flushes
        .iter()
        .map(|(outcome, n)| count(*n, outcome));
    let breaks = figures.breaks.iter().map(|(cause, n)| count(*n, cause));
    let strategies = figures.strategies.iter().map(|(name, n, saved)| {
        let chars = scaled(saved.unsigned_abs() as f64);
        let sign = if *saved < 0 { "-" } else { "" };
        format!("{name} {} ({sign}{chars})", grouped(*n))
    });
    let summarizer = format!(
        "{} requests, {} tokens read, {} written",
        grouped(figures.requests),
        grouped(figures.asked_tokens),
        grouped(figures.answer_tokens)
    );
    let rows = [
        ("summarizer", summarizer),
        ("flushes", listed(flushes.collect())),
        (
            "archive",
            format!(
                "{}, {}",
                count(figures.refs, "refs"),
                count(figures.blocks, "blocks")
            ),
        ),
        (
            "in force at the end (characters saved)",
            listed(strategies.collect()),
        ),
        ("prefix broken by", listed(breaks.collect())),
    ];
    for (label, value) in rows {
        let _ = writeln!(out, "  {label}: {value}");
    }
}

fn remarks(out: &mut String, session: &Replayed) {
    for note in &session.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for notice in &session.notices {
        match counted.iter_mut().find(|(text, _)| *text == notice.text) {
            Some((_, n)) => *n += 1,
            None => counted.push((&notice.text, 1)),
        }
    }
    for (text, n) in counted {
        let times = if n > 1 {
            format!(" ({n} times)")
        } else {
            String::new()
        };
        let _ = writeln!(out, "  notice: {text}{times}");
    }
    match &session.violation {
        Some(violation) => {
            let _ = writeln!(out, "  check: VIOLATED {violation}");
        }
        None if session.checks > 0 => {
            let _ = writeln!(
                out,
                "  check: all {} checks passed",
                grouped(session.checks)
            );
        }
        None => {}
    }
}

impl Figures {
    fn of(session: &Replayed) -> Self {
        let unpruned: fn(&Call) -> Side = |call| call.unpruned;
        let pruned: fn(&Call) -> Side = |call| call.pruned;
        let strategy =
            |s: &decant_host::Strategy| (s.kind.name().to_owned(), u64::from(s.count), s.saved);
        Self {
            calls: session.calls.len(),
            tokens: Pair {
                without: session.tokens(unpruned, false),
                with: session.tokens(pruned, true),
            },
            chars: Pair {
                without: session.chars(unpruned, false),
                with: session.chars(pruned, true),
            },
            requests: session.requests,
            asked_tokens: session.asked_tokens,
            answer_tokens: session.answer_tokens,
            flushes: session.flushes.clone(),
            refs: session.refs,
            blocks: session.blocks,
            breaks: session
                .breaks()
                .into_iter()
                .map(|(cause, n)| (cause.name(), n))
                .collect(),
            strategies: session.strategies.iter().map(strategy).collect(),
        }
    }

    /// Adds the figures of another session. The peak is the higher one, the last calls add up.
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.tokens.add(other.tokens);
        self.chars.add(other.chars);
        self.requests += other.requests;
        self.asked_tokens += other.asked_tokens;
        self.answer_tokens += other.answer_tokens;
        for (outcome, n) in other.flushes {
            *self.flushes.entry(outcome).or_default() += n;
        }
        self.refs += other.refs;
        self.blocks += other.blocks;
        for (cause, n) in other.breaks {
            *self.breaks.entry(cause).or_default() += n;
        }
        for (name, count, saved) in other.strategies {
            match self.strategies.iter_mut().find(|(own, ..)| *own == name) {
                Some((_, own_count, own_saved)) => {
                    *own_count += count;
                    *own_saved += saved;
                }
                None => self.strategies.push((name, count, saved)),
            }
        }
    }
}

impl Pair {
    fn add(&mut self, other: Self) {
        for (own, other) in [
            (&mut self.without, other.without),
            (&mut self.with, other.with),
        ] {
            own.amounts += other.amounts;
            own.peak = own.peak.max(other.peak);
            own.last += other.last;
        }
    }
}
