//! The account of what each strategy saves.

use crate::engine::facts::BatchId;
use crate::engine::ids::BlockId;
use crate::engine::map::Map;
use crate::engine::size::Size;
use crate::engine::transcript::Position;

/// What can make the context smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strategy {
    Stub,
    Dedup,
    Spill,
    Chain,
    Purge,
    Thinking,
    /// Not a strategy of ours: results without a call are left out.
    Pairing,
}

impl Strategy {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 7] = [
        Self::Stub,
        Self::Dedup,
        Self::Spill,
        Self::Chain,
        Self::Purge,
        Self::Thinking,
        Self::Pairing,
    ];

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stub => "stub",
            Self::Dedup => "dedup",
            Self::Spill => "spill",
            Self::Chain => "chain",
            Self::Purge => "purge",
            Self::Thinking => "thinking",
            Self::Pairing => "pairing",
        }
    }
}

/// Characters and tokens saved; negative where something was inserted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    pub chars: i64,
    pub tokens: i64,
}

impl Saved {
    /// What is saved when `after` stands in place of `before`.
    #[must_use]
    pub fn between(before: Size, after: Size) -> Self {
        Self {
            chars: signed(before.chars) - signed(after.chars),
            tokens: signed(before.tokens) - signed(after.tokens),
        }
    }

    fn add(&mut self, other: Self, sign: i64) {
        self.chars += sign * other.chars;
        self.tokens += sign * other.tokens;
    }
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// One entry of the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    pub strategy: Strategy,
    pub saved: Saved,
    /// Whether it counts as one more piece of work, besides what it saves.
    pub counts: bool,
}

/// What an entry of the account belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    Message(Position),
    /// The summary of a batch.
    Summary(BatchId),
    Block(BlockId),
}

/// Totals of one strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    pub count: u32,
    pub saved: Saved,
}

/// The account. Setting an item's effects costs what these effects are.
#[derive(Debug, Default)]
pub struct Ledger {
    effects: Map<Item, Vec<Effect>>,
    totals: Map<Strategy, Total>,
}

impl Ledger {
    /// Puts `effects` in the place of what the item had.
    pub fn set(&mut self, item: Item, effects: Vec<Effect>) {
        for effect in &effects {
            self.book(*effect, 1);
        }
        let before = if effects.is_empty() {
            self.effects.remove(&item)
        } else {
            self.effects.insert(item, effects)
        };
        for effect in before.unwrap_or_default() {
            self.book(effect, -1);
        }
    }

    fn book(&mut self, effect: Effect, sign: i64) {
        self.totals.update(effect.strategy, |total| {
            total.saved.add(effect.saved, sign);
            if effect.counts {
                let count = i64::from(total.count) + sign;
                total.count = u32::try_from(count).unwrap_or(0);
            }
        });
    }

    /// What one item saves.
    #[must_use]
    pub fn saved_by(&self, item: Item) -> Saved {
        let mut sum = Saved::default();
        for effect in self.effects.get(&item).map_or(&[][..], Vec::as_slice) {
            sum.add(effect.saved, 1);
        }
        sum
    }

    #[must_use]
    pub fn total(&self, strategy: Strategy) -> Total {
        self.totals.get(&strategy).copied().unwrap_or_default()
    }

    /// What all strategies save together.
    #[must_use]
    pub fn saved(&self) -> Saved {
        let mut sum = Saved::default();
        for total in self.totals.values() {
            sum.add(total.saved, 1);
        }
        sum
    }
}

/// What is left of a size after a saving.
#[must_use]
pub fn rest(before: Size, saved: Saved) -> Size {
    let left = |before: u64, saved: i64| u64::try_from(signed(before) - saved).unwrap_or(0);
    Size {
        chars: left(before.chars, saved.chars),
        tokens: left(before.tokens, saved.tokens),
    }
}
