//! The report as one HTML file: charts are inline SVG, and nothing is loaded from elsewhere.

use std::fmt::Write as _;

use super::table::{grouped, percent, scaled};
use super::{Figures, text};
use crate::price::Rates;
use crate::replay::{Call, Replayed};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 24.0;

/// More points than this are thinned out: a chart has no more columns than this to show them in.
const MAX_POINTS: usize = 1_600;

const STYLE: &str = "
  :root { color-scheme: light dark; --ink: #1c2430; --dim: #68727f; --rule: #d9dee5; --paper: #fff;
    --without: #b8860b; --with: #1f6f8b; --asked: #8b4a8b; }
  @media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --dim: #98a2b0; --rule: #39424e;
    --paper: #161b22; --without: #e0b040; --with: #5cb8d6; --asked: #c88ac8; } }
  body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
    max-width: 900px; margin: 2rem auto; padding: 0 1rem; }
  h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .3rem; }
  svg { width: 100%; height: auto; display: block; margin: .6rem 0; }
  svg text { font: 11px system-ui, sans-serif; fill: var(--dim); }
  .rule { stroke: var(--rule); } .line { fill: none; stroke-width: 1.6; }
  .without { stroke: var(--without); } .with { stroke: var(--with); }
  .f-without { fill: var(--without); } .f-with { fill: var(--with); } .f-asked { fill: var(--asked); }
  .soft { opacity: .45; } .broke { stroke: var(--with); opacity: .35; stroke-dasharray: 2 3; }
  pre { overflow-x: auto; font-size: 12.5px; line-height: 1.45; border-top: 1px solid var(--rule);
    padding-top: .6rem; }
  .big { font-size: 1.05rem; } .dim { color: var(--dim); }
";

/// Writes the page.
#[must_use]
pub(crate) fn page(sessions: &[Replayed], rates: &Rates) -> String {
    let mut out = String::from("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n");
    let _ = writeln!(out, "<title>Decant replay</title>\n<style>{STYLE}</style>");
    out.push_str("<h1>Decant replay</h1>\n");
    let _ = writeln!(
        out,
        "<p class=\"dim\">Cost: {} per fresh, {} per cached and {} per summarizer token, relative \
         to a plain input token. Dotted lines: the prefix broke there.</p>",
        rates.fresh, rates.cached, rates.asked
    );
    if sessions.len() > 1 {
        let mut total = Figures::default();
        sessions
            .iter()
            .for_each(|session| total.add(Figures::of(session)));
        headline(&mut out, "All sessions", &total, rates);
        bars(&mut out, &total, rates);
    }
    for session in sessions {
        let figures = Figures::of(session);
        headline(&mut out, &session.name, &figures, rates);
        chart(&mut out, &session.calls);
        bars(&mut out, &figures, rates);
        let table = text(std::slice::from_ref(session), rates);
        let _ = writeln!(out, "<pre>{}</pre>", escaped(&table));
    }
    out.push_str("</html>\n");
    out
}

fn headline(out: &mut String, title: &str, figures: &Figures, rates: &Rates) {
    let (without, with) = (figures.tokens.without.amounts, figures.tokens.with.amounts);
    let costs = (
        rates.price(without).round() as u64,
        rates.price(with).round() as u64,
    );
    let _ = writeln!(out, "<h2>{}</h2>", escaped(title));
    let _ = writeln!(
        out,
        "<p class=\"big\">{} model calls. Context: {} instead of {} tokens ({} less). Cost: {} less.</p>",
        grouped(figures.calls as u64),
        scaled(with.sent() as f64),
        scaled(without.sent() as f64),
        percent(without.sent(), with.sent()),
        percent(costs.0, costs.1)
    );
}

/// Size of the context at each call.
fn chart(out: &mut String, calls: &[Call]) {
    let peak = calls.iter().map(|call| {
        call.tokens(call.unpruned.all)
            .max(call.tokens(call.pruned.all))
    });
    let peak = peak.max().unwrap_or(0).max(1);
    let x = |index: usize| {
        let last = calls.len().saturating_sub(1).max(1) as f64;
        LEFT + (WIDTH - LEFT - 8.0) * index as f64 / last
    };
    let y = |tokens: u64| 8.0 + (HEIGHT - BOTTOM - 8.0) * (1.0 - tokens as f64 / peak as f64);
    let _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Tokens of the context at each model call\">"
    );
    for part in 0..=4 {
        let tokens = peak * part / 4;
        let _ = writeln!(
            out,
            "<line class=\"rule\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/>\
             <text x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\">{3}</text>",
            y(tokens),
            LEFT - 6.0,
            y(tokens) + 4.0,
            scaled(tokens as f64)
        );
    }
    for (index, _) in calls
        .iter()
        .enumerate()
        .filter(|(_, call)| call.broke.is_some())
    {
        let _ = writeln!(
            out,
            "<line class=\"broke\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"8\" y2=\"{1}\"/>",
            x(index),
            HEIGHT - BOTTOM
        );
    }
    let step = calls.len().div_ceil(MAX_POINTS).max(1);
    for (class, side) in [
        ("without", (|call: &Call| call.unpruned) as fn(&Call) -> _),
        ("with", |call: &Call| call.pruned),
    ] {
        let points = calls.iter().enumerate().step_by(step);
        let points = points
            .map(|(index, call)| format!("{:.1},{:.1}", x(index), y(call.tokens(side(call).all))));
        let points: Vec<String> = points.collect();
        let _ = writeln!(
            out,
            "<polyline class=\"line {class}\" points=\"{}\"/>",
            points.join(" ")
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{0}\">call 1</text><text x=\"{WIDTH}\" y=\"{0}\" text-anchor=\"end\">call {1}</text>\n\
         <text x=\"{2}\" y=\"20\" class=\"f-without\">without pruning</text>\
         <text x=\"{2}\" y=\"36\" class=\"f-with\">with pruning</text>\n</svg>",
        HEIGHT - 6.0,
        calls.len(),
        LEFT + 10.0
    );
}

/// What the calls cost: fresh, cached and summarizer tokens, weighed.
fn bars(out: &mut String, figures: &Figures, rates: &Rates) {
    let all = rates
        .price(figures.tokens.without.amounts)
        .max(rates.price(figures.tokens.with.amounts));
    let room = WIDTH - LEFT - 150.0;
    let _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} 62\" role=\"img\" aria-label=\"Cost with and without pruning\">"
    );
    for (row, label, class, totals) in [
        (0.0, "without", "f-without", figures.tokens.without),
        (1.0, "with", "f-with", figures.tokens.with),
    ] {
        let y = 6.0 + row * 28.0;
        let amounts = totals.amounts;
        let parts = [
            (
                class.to_string(),
                "fresh",
                rates.fresh * amounts.fresh as f64,
            ),
            (
                format!("{class} soft"),
                "cached",
                rates.cached * amounts.cached as f64,
            ),
            (
                "f-asked".to_string(),
                "summarizer",
                rates.asked * amounts.asked as f64,
            ),
        ];
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{label}</text>",
            LEFT - 6.0,
            y + 14.0
        );
        let mut x = LEFT;
        for (class, name, cost) in parts {
            let width = room * cost / all.max(1.0);
            let _ = writeln!(
                out,
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"20\"><title>{name}: {}</title></rect>",
                scaled(cost)
            );
            x += width;
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{}\">{}</text>",
            x + 6.0,
            y + 14.0,
            scaled(rates.price(amounts))
        );
    }
    out.push_str("</svg>\n");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
