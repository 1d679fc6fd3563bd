//! When a turn's end sets a flush off.

use super::{Session, Usage};
use crate::engine::flush::Trigger;
use crate::engine::size::utf16_len;
use crate::engine::summary;
use crate::engine::transcript::Position;

/// The part of the text that a summary is taken to keep, for an estimate: one part in this many.
///
/// Source: summaries of the sessions in `tests/sessions` are a tenth of what they replace.
const SUMMARY_PART: u64 = 10;

/// What the budget triggers remember.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// The part of the window that the last turn used.
    previous: Option<f64>,
    /// Where the last prompt stands that has set off a flush of what it interrupted: once is enough,
    /// what fails waits for the next reply.
    interrupted_by: Option<Position>,
    /// The model has asked for its finished turns to be compressed.
    pub(super) compress_asked: bool,
}

impl Session {
    /// What the end of this turn sets off, if anything.
    pub(super) fn turn_trigger(&mut self, usage: Option<Usage>) -> Option<Trigger> {
        let fraction = usage.and_then(|usage| self.fraction(usage));
        let previous = self.budget.previous;
        if fraction.is_some() {
            // A turn without figures, as after a compaction, must not look like an empty context.
            self.budget.previous = fraction;
        }
        if std::mem::take(&mut self.budget.compress_asked) {
            return Some(Trigger::Tool);
        }
        if let (Some(now), Some(limit)) = (fraction, self.basis.rules.config.auto_budget_threshold)
            && now >= limit
        {
            return Some(Trigger::Budget);
        }
        if let (Some(now), Some(before), Some(delta)) = (
            fraction,
            previous,
            self.basis.rules.config.budget_turn_delta,
        ) && now - before >= delta
        {
            return Some(Trigger::Delta);
        }
        if self.scene().has_interrupted_work()
            && self.budget.interrupted_by != Some(self.scene().last_chain_start())
        {
            self.budget.interrupted_by = Some(self.scene().last_chain_start());
            return Some(Trigger::Interrupted);
        }
        let least = self.basis.rules.config.flush_when_saves?;
        (self.would_save() >= least).then_some(Trigger::Savings)
    }

    fn fraction(&self, usage: Usage) -> Option<f64> {
        let tokens = usage.tokens?;
        let cap = self
            .basis
            .rules
            .config
            .budget_window_cap
            .unwrap_or(u64::MAX);
        let window = usage.context_window.min(cap);
        (window > 0).then(|| ratio(tokens, window))
    }

    /// An estimate of what a flush would save now, in characters.
    fn would_save(&self) -> u64 {
        let ripe = self.view.untried().sums_before(self.scene().ripe_before());
        let footer = utf16_len(&summary::content("", &[]));
        let summaries = ripe.text.chars / SUMMARY_PART + u64::from(ripe.n_turns) * footer;
        ripe.stubs_save.saturating_sub(summaries) + self.scene().spans_would_save()
    }
}

/// Both are far below 2^52, so nothing is lost.
#[expect(clippy::cast_precision_loss, reason = "token counts are small")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
