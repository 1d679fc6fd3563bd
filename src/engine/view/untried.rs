//! The results that wait for a flush, with their sums: whoever asks how much waits does not count.

use crate::engine::ids::Ref;
use crate::engine::map::Map;
use crate::engine::size::{Size, utf16_len};
use crate::engine::stub;
use crate::engine::transcript::Position;

/// Results that are answered, unprotected and untried.
#[derive(Debug, Default)]
pub struct Untried {
    results: Map<Position, Waiting>,
    /// How many results of each turn wait, by the position of its assistant message.
    turns: Map<Position, u32>,
    total: Sums,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    turn: Position,
    size: Size,
}

/// How much waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub text: Size,
    /// UTF-16 code units that stubs would save.
    pub stubs_save: u64,
    /// How many turns it belongs to.
    pub n_turns: u32,
}

impl Untried {
    /// Adds the result at a position, of the turn whose assistant message is at `turn`.
    pub fn insert(&mut self, at: Position, turn: Position, size: Size) {
        self.remove(at);
        self.results.insert(at, Waiting { turn, size });
        self.turns.update(turn, |n| *n += 1);
        self.total.add(size);
    }

    pub fn remove(&mut self, at: Position) {
        let Some(Waiting { turn, size }) = self.results.remove(&at) else {
            return;
        };
        if let Some(n) = self.turns.get_mut(&turn) {
            *n = n.saturating_sub(1);
            if *n == 0 {
                self.turns.remove(&turn);
            }
        }
        self.total.take_away(size);
    }

    pub fn contains(&self, at: Position) -> bool {
        self.results.contains_key(&at)
    }

    /// Those before a position, oldest first.
    pub fn before(&self, end: Position) -> impl Iterator<Item = Position> {
        self.results.range(..end).map(|(at, _)| *at)
    }

    /// How much waits in all.
    pub fn sums(&self) -> Sums {
        Sums {
            n_turns: count(self.turns.len()),
            ..self.total
        }
    }

    /// The same for what waits before a position. Costs what waits behind it.
    pub fn sums_before(&self, end: Position) -> Sums {
        let mut sums = self.sums();
        let newer = count(self.turns.range(end..).count());
        sums.n_turns = sums.n_turns.saturating_sub(newer);
        for waiting in self.results.range(end..).map(|(_, waiting)| waiting) {
            sums.take_away(waiting.size);
        }
        sums
    }
}

impl Sums {
    fn add(&mut self, size: Size) {
        self.text = self.text + size;
        self.stubs_save += stub_saves(size);
    }

    fn take_away(&mut self, size: Size) {
        self.text = self.text - size;
        self.stubs_save = self.stubs_save.saturating_sub(stub_saves(size));
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn stub_saves(size: Size) -> u64 {
    size.chars.saturating_sub(utf16_len(&stub::stub(Ref(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(untried: &Untried, end: Position, chars: u64, n_saved: u64, n_turns: u32) {
        let saved = 1_000 - utf16_len(&stub::stub(Ref(1)));
        let sums = untried.sums_before(end);
        assert_eq!(
            (sums.text.chars, sums.stubs_save, sums.n_turns),
            (chars, n_saved * saved, n_turns),
            "before {end}"
        );
    }

    #[test]
    fn sums_follow_what_comes_and_goes() {
        let mut untried = Untried::default();
        for (at, turn) in [(2, 1), (3, 1), (5, 4)] {
            untried.insert(at, turn, Size::of_chars(1_000));
        }
        // A stub would be longer than this one.
        untried.insert(7, 6, Size::of_chars(1));
        check(&untried, Position::MAX, 3_001, 3, 3);
        check(&untried, 6, 3_000, 3, 2);
        check(&untried, 4, 2_000, 2, 1);

        untried.remove(3);
        untried.remove(3);
        check(&untried, 4, 1_000, 1, 1);
        untried.remove(2);
        check(&untried, 4, 0, 0, 0);
        untried.remove(5);
        untried.remove(7);
        assert_eq!(untried.sums(), Sums::default());
    }
}
