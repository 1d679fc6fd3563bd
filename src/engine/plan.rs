//! The plan: the edits that turn the transcript into what the model sees, and their differences.
//!
//! What a plan costs depends on what changed since the host's revision, never on its length.

use crate::engine::map::{Map, Set};
use std::collections::VecDeque;

/// A part of an inserted user message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InsertedPart {
    Text(String),
    /// The non-text parts of the tool result at this position.
    Attachments(u32),
}

/// What happens to the message at an edit's position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    ReplaceText(String),
    /// Leaves out this many messages, from the position on.
    Drop(u32),
    /// Moves a tool result up to the turn of the assistant message at the given position.
    MoveUp(u32),
    InsertUser {
        parts: Vec<InsertedPart>,
        at_ms: u64,
    },
    InsertSummary {
        content: String,
        /// A JSON text.
        details: String,
        at_ms: u64,
    },
    StripThinking,
    ReplaceArguments {
        /// Counted from 0 over the message's tool calls.
        call: u32,
        /// A JSON text.
        arguments: String,
    },
}

/// One edit, at a position of the unedited transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub id: u32,
    pub at: u32,
    pub change: Change,
}

/// The difference between two plans, or a whole plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanUpdate {
    pub revision: u64,
    /// `None`: a whole plan.
    pub base: Option<u64>,
    /// Ids of the base's edits that are gone.
    pub removed: Vec<u32>,
    /// In rising order of position, then of id.
    pub added: Vec<Edit>,
}

/// Which of the edits at one position is meant: at most one of each kind stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    Presence,
    Place,
    Text,
    Thinking,
    Arguments(u32),
    /// An insertion, by what it stands for, so that one of them can be withdrawn.
    Insertion(Inserted),
    /// The run of dropped messages of a block that begins here.
    Run,
}

/// What an insertion stands for. Behind one position they stand in this order, so that it does not
/// matter which came first: a summary belongs to the turn that ends there, a block to the next ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inserted {
    /// The summary of a batch, by its number.
    Summary(u32),
    /// A block, by its number.
    Block(u32),
}

/// How many revisions back a host gets a difference; a host further back gets the whole plan.
const HISTORY: usize = 64;

/// The live set of edits.
///
/// Edits are set and withdrawn one by one; [`Plan::publish`] makes a revision of what has changed
/// since the last one.
#[derive(Debug, Default)]
pub struct Plan {
    edits: Map<(u32, Aspect), Edit>,
    by_id: Map<u32, (u32, Aspect)>,
    revision: u64,
    last_id: u32,
    /// Published edits that have been withdrawn since the last revision.
    withdrawn: Vec<u32>,
    /// Highest id of the last revision.
    published_id: u32,
    history: VecDeque<Revision>,
    /// Edits from before the plan was begun anew that have not been set again.
    stale: Set<(u32, Aspect)>,
}

/// What one revision changed.
#[derive(Debug)]
struct Revision {
    number: u64,
    /// Highest id of the revision before.
    base_id: u32,
    withdrawn: Vec<u32>,
}

impl Plan {
    /// Sets one edit, or withdraws it. Does nothing if it stands so already.
    pub fn set(&mut self, at: u32, aspect: Aspect, change: Option<Change>) {
        let key = (at, aspect);
        self.stale.remove(&key);
        if self.edits.get(&key).map(|edit| &edit.change) == change.as_ref() {
            return;
        }
        self.withdraw(key);
        if let Some(change) = change {
            self.add(key, change);
            if matches!(aspect, Aspect::Insertion(_)) {
                self.renew_insertions_after(key);
            }
        }
    }

    /// From here on every edit has to be set again: those that are not are withdrawn by
    /// [`Plan::finish_anew`], and those that are the same keep their ids.
    pub fn begin_anew(&mut self) {
        self.stale.extend(self.edits.keys().copied());
    }

    /// Withdraws what has not been set since [`Plan::begin_anew`].
    pub fn finish_anew(&mut self) {
        for key in std::mem::take(&mut self.stale) {
            self.withdraw(key);
        }
    }

    fn add(&mut self, key: (u32, Aspect), change: Change) {
        self.last_id += 1;
        let (id, at) = (self.last_id, key.0);
        self.edits.insert(key, Edit { id, at, change });
        self.by_id.insert(id, key);
    }

    /// Gives the insertions that have to stand behind a new one new ids: what is inserted behind one
    /// position stands in the order of the ids.
    fn renew_insertions_after(&mut self, key: (u32, Aspect)) {
        let later: Vec<_> = self
            .edits
            .range(key..(key.0, Aspect::Run))
            .map(|(key, _)| *key)
            .skip(1)
            .collect();
        for key in later {
            if let Some(edit) = self.withdraw(key) {
                self.add(key, edit.change);
            }
        }
    }

    /// The edit of one aspect at a position.
    #[must_use]
    pub fn get(&self, at: u32, aspect: Aspect) -> Option<&Change> {
        self.edits.get(&(at, aspect)).map(|edit| &edit.change)
    }

    /// The batches whose summaries are inserted behind a position.
    pub fn summaries_behind(&self, at: u32) -> impl Iterator<Item = u32> {
        let summary = |batch| (at, Aspect::Insertion(Inserted::Summary(batch)));
        let inserted = self.edits.range(summary(0)..=summary(u32::MAX));
        inserted.filter_map(|((_, aspect), _)| {
            let Aspect::Insertion(Inserted::Summary(batch)) = aspect else {
                return None;
            };
            Some(*batch)
        })
    }

    /// Withdraws all edits at a position but for insertions and runs, which do not belong to its
    /// message alone.
    pub fn clear(&mut self, at: u32) {
        let end = Aspect::Insertion(Inserted::Summary(0));
        let keys: Vec<_> = self
            .edits
            .range((at, Aspect::Presence)..(at, end))
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            self.withdraw(key);
        }
    }

    fn withdraw(&mut self, key: (u32, Aspect)) -> Option<Edit> {
        let edit = self.edits.remove(&key)?;
        self.by_id.remove(&edit.id);
        if edit.id <= self.published_id {
            self.withdrawn.push(edit.id);
        }
        Some(edit)
    }

    /// Makes a revision of what has changed, if anything has. The first plan has revision 1 even if
    /// it is empty.
    pub fn publish(&mut self) {
        let unchanged = self.last_id == self.published_id && self.withdrawn.is_empty();
        if unchanged && self.revision > 0 {
            return;
        }
        self.revision += 1;
        let withdrawn = std::mem::take(&mut self.withdrawn);
        self.history.push_back(Revision {
            number: self.revision,
            base_id: self.published_id,
            withdrawn,
        });
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
        self.published_id = self.last_id;
    }

    /// What brings a host from revision `known` to the last one; `None` if it is there already.
    #[must_use]
    pub fn update(&self, known: Option<u64>) -> Option<PlanUpdate> {
        if known == Some(self.revision) {
            return None;
        }
        let since = known.and_then(|known| self.since(known));
        Some(match since {
            Some(update) => update,
            None => PlanUpdate {
                revision: self.revision,
                base: None,
                removed: Vec::new(),
                added: self.edits.values().cloned().collect(),
            },
        })
    }

    fn since(&self, known: u64) -> Option<PlanUpdate> {
        let later = self.history.iter().filter(|past| past.number > known);
        let base_id = self
            .history
            .iter()
            .find(|past| past.number == known + 1)?
            .base_id;
        let removed = later
            .flat_map(|past| past.withdrawn.iter().copied())
            .filter(|id| *id <= base_id)
            .collect();
        // Position and id in one number: the order of the edits.
        let mut order: Vec<u64> = self
            .by_id
            .range(base_id + 1..)
            .map(|(id, (at, _))| u64::from(*at) << 32 | u64::from(*id))
            .collect();
        order.sort_unstable();
        let id = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        let added = order
            .into_iter()
            .filter_map(|number| self.edits.get(self.by_id.get(&id(number))?).cloned())
            .collect();
        Some(PlanUpdate {
            revision: self.revision,
            base: Some(known),
            removed,
            added,
        })
    }

    /// All edits, in rising order of position.
    pub fn edits(&self) -> impl Iterator<Item = &Edit> {
        self.edits.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stub(text: &str) -> Option<Change> {
        Some(Change::ReplaceText(text.to_owned()))
    }

    fn ids(update: &PlanUpdate) -> (Option<u64>, Vec<u32>, Vec<u32>) {
        let added = update.added.iter().map(|edit| edit.id).collect();
        (update.base, update.removed.clone(), added)
    }

    #[test]
    fn a_host_gets_only_what_changed_since_its_revision() {
        let mut plan = Plan::default();
        plan.publish();
        assert_eq!(plan.update(Some(1)), None);
        plan.set(4, Aspect::Text, stub("a"));
        plan.set(2, Aspect::Text, stub("b"));
        plan.publish();
        plan.set(4, Aspect::Text, None);
        plan.set(9, Aspect::Thinking, Some(Change::StripThinking));
        plan.publish();

        let from_first = plan.update(Some(1)).map(|update| ids(&update));
        assert_eq!(from_first, Some((Some(1), vec![], vec![2, 3])));
        let from_second = plan.update(Some(2)).map(|update| ids(&update));
        assert_eq!(from_second, Some((Some(2), vec![1], vec![3])));
        let from_nothing = plan.update(None).map(|update| ids(&update));
        assert_eq!(from_nothing, Some((None, vec![], vec![2, 3])));
        assert_eq!(plan.update(Some(3)), None);
    }

    #[test]
    fn setting_what_stands_already_makes_no_revision() {
        let mut plan = Plan::default();
        plan.set(1, Aspect::Text, stub("a"));
        plan.publish();
        plan.set(1, Aspect::Text, stub("a"));
        plan.publish();
        assert_eq!(plan.update(Some(1)), None);
    }

    #[test]
    fn an_unknown_revision_gets_the_whole_plan() {
        let mut plan = Plan::default();
        plan.publish();
        for _ in 0..=HISTORY {
            let change = plan.get(0, Aspect::Thinking).is_none();
            plan.set(0, Aspect::Thinking, change.then_some(Change::StripThinking));
            plan.publish();
        }
        for known in [None, Some(1), Some(9999)] {
            let base = plan.update(known).map(|update| update.base);
            assert_eq!(base, Some(None), "known {known:?}");
        }
    }

    #[test]
    fn insertions_behind_one_position_have_one_order_whichever_comes_first() {
        let order = |first: Inserted, second: Inserted| {
            let mut plan = Plan::default();
            plan.set(1, Aspect::Insertion(first), stub(&format!("{first:?}")));
            plan.publish();
            plan.set(1, Aspect::Insertion(second), stub(&format!("{second:?}")));
            plan.publish();
            let mut edits: Vec<Edit> = plan.edits().cloned().collect();
            edits.sort_by_key(|edit| edit.id);
            edits
                .into_iter()
                .map(|edit| edit.change)
                .collect::<Vec<_>>()
        };
        let (summary, block) = (Inserted::Summary(7), Inserted::Block(1));
        assert_eq!(order(summary, block), order(block, summary));
    }

    #[test]
    fn clearing_a_position_leaves_what_is_inserted_behind_it() {
        let mut plan = Plan::default();
        plan.set(1, Aspect::Presence, Some(Change::Drop(1)));
        plan.set(
            1,
            Aspect::Insertion(Inserted::Block(1)),
            Some(Change::StripThinking),
        );
        plan.clear(1);
        assert_eq!(plan.edits().count(), 1);
    }
}
