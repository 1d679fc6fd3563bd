//! A map and a set in the order of their keys.
//!
//! The library's cost the component some 5 KB for each pair of types that they are used with. Here
//! all that finds its way between keys is in `Order`, which knows no types and is there once.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::iter;
use std::mem;
use std::ops::{Bound, RangeBounds};
use std::{slice, vec};

/// How many entries are next to each other in memory: adding one moves as many at most.
const CHUNK: usize = 64;

/// Where an entry is, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    chunk: usize,
    at: usize,
}

/// The slots of a map in the order of their keys.
#[derive(Clone, Debug, Default)]
struct Order {
    /// No chunk is empty.
    chunks: Vec<Vec<usize>>,
    /// Slots that are no longer used.
    free: Vec<usize>,
    len: usize,
}

impl Order {
    /// The slot with a key, or where it would be; `compare` tells how the key of a slot compares.
    fn find(&self, compare: &dyn Fn(usize) -> Ordering) -> Result<(Place, usize), Place> {
        let is_before = |chunk: &Vec<usize>| {
            let first = chunk.first().copied();
            first.is_some_and(|slot| compare(slot) != Ordering::Greater)
        };
        let chunk = match self.chunks.len() {
            0 | 1 => 0,
            _ => self.chunks.partition_point(is_before).saturating_sub(1),
        };
        let slots = self.chunk(chunk);
        match slots.binary_search_by(|slot| compare(*slot)) {
            Ok(at) => match slots.get(at) {
                Some(slot) => Ok((Place { chunk, at }, *slot)),
                None => Err(Place { chunk, at }),
            },
            Err(at) => Err(Place { chunk, at }),
        }
    }

    /// Makes room for an entry where [`Order::find`] did not find it, and returns its slot.
    fn insert(&mut self, place: Place) -> usize {
        let slot = self.free.pop().unwrap_or(self.len);
        self.len = self.len.saturating_add(1);
        let is_last = place.chunk.saturating_add(1) >= self.chunks.len();
        match self.chunks.get_mut(place.chunk) {
            // Entries come in order mostly, so full chunks are left full.
            Some(slots) if slots.len() >= CHUNK && is_last && place.at >= CHUNK => {
                self.chunks.push(vec![slot]);
            }
            Some(slots) => {
                slots.insert(place.at.min(slots.len()), slot);
                if slots.len() > CHUNK {
                    let rest = slots.split_off(CHUNK / 2);
                    self.chunks.insert(place.chunk.saturating_add(1), rest);
                }
            }
            None => self.chunks.push(vec![slot]),
        }
        slot
    }

    /// Takes out what is there and returns its slot.
    fn remove(&mut self, place: Place) -> Option<usize> {
        let slots = self.chunks.get_mut(place.chunk)?;
        let slot = (place.at < slots.len()).then(|| slots.remove(place.at))?;
        if slots.is_empty() {
            self.chunks.remove(place.chunk);
        }
        self.free.push(slot);
        self.len = self.len.saturating_sub(1);
        Some(slot)
    }

    fn chunk(&self, chunk: usize) -> &[usize] {
        self.chunks.get(chunk).map_or(&[], Vec::as_slice)
    }

    fn end(&self) -> Place {
        Place {
            chunk: self.chunks.len(),
            at: 0,
        }
    }
}

/// The slots between two places: the rest of a chunk, whole chunks, the beginning of a chunk.
#[derive(Clone)]
struct Walk<'a> {
    head: slice::Iter<'a, usize>,
    chunks: slice::Iter<'a, Vec<usize>>,
    tail: slice::Iter<'a, usize>,
}

impl<'a> Walk<'a> {
    fn new(order: &'a Order, front: Place, back: Place) -> Self {
        let (first, last) = (order.chunk(front.chunk), order.chunk(back.chunk));
        let chunks = order.chunks.get(front.chunk.saturating_add(1)..back.chunk);
        let (head, tail) = if front.chunk == back.chunk {
            (first.get(front.at..back.at), None)
        } else if front < back {
            (first.get(front.at..), last.get(..back.at))
        } else {
            (None, None)
        };
        Self {
            head: head.unwrap_or_default().iter(),
            chunks: chunks.unwrap_or_default().iter(),
            tail: tail.unwrap_or_default().iter(),
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            if let Some(slot) = self.head.next() {
                return Some(*slot);
            }
            match self.chunks.next() {
                Some(chunk) => self.head = chunk.iter(),
                None => return self.tail.next().copied(),
            }
        }
    }
}

impl DoubleEndedIterator for Walk<'_> {
    fn next_back(&mut self) -> Option<usize> {
        loop {
            if let Some(slot) = self.tail.next_back() {
                return Some(*slot);
            }
            match self.chunks.next_back() {
                Some(chunk) => self.tail = chunk.iter(),
                None => return self.head.next_back().copied(),
            }
        }
    }
}

/// A map that is iterated in the order of its keys.
#[derive(Clone)]
pub struct Map<K, V> {
    order: Order,
    slots: Vec<Option<(K, V)>>,
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Map<K, V> {
    #[must_use]
    pub fn new() -> Self {
        Self {
            order: Order::default(),
            slots: Vec::new(),
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn clear(&mut self) {
        *self = Self::new();
    }

    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.between(Place::default(), self.order.end())
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    pub fn into_values(self) -> impl Iterator<Item = V> {
        self.into_iter().map(|(_, value)| value)
    }

    #[must_use]
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next_back()
    }

    fn between(&self, front: Place, back: Place) -> Iter<'_, K, V> {
        Iter {
            walk: Walk::new(&self.order, front, back),
            slots: &self.slots,
        }
    }

    /// Puts an entry where there is none of its key.
    fn put(&mut self, place: Place, key: K, value: V) {
        let entry = Some((key, value));
        let slot = self.order.insert(place);
        match self.slots.get_mut(slot) {
            Some(free) => *free = entry,
            None => self.slots.push(entry),
        }
    }
}

impl<K: Ord, V> Map<K, V> {
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (_, slot) = self.find(key).ok()?;
        let (_, value) = self.slots.get(slot)?.as_ref()?;
        Some(value)
    }

    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (_, slot) = self.find(key).ok()?;
        self.value_mut(slot)
    }

    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Returns the value that was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok((_, slot)) => Some(mem::replace(self.value_mut(slot)?, value)),
            Err(place) => {
                self.put(place, key, value);
                None
            }
        }
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (place, _) = self.find(key).ok()?;
        let slot = self.order.remove(place)?;
        let (_, value) = self.slots.get_mut(slot)?.take()?;
        Some(value)
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let mut kept = Self::new();
        for (key, mut value) in mem::take(self) {
            if keep(&key, &mut value) {
                kept.insert(key, value);
            }
        }
        *self = kept;
    }

    /// Changes the value of a key, or the default where there is none.
    pub fn update(&mut self, key: K, change: impl FnOnce(&mut V))
    where
        V: Default,
    {
        match self.get_mut(&key) {
            Some(value) => change(value),
            None => {
                let mut value = V::default();
                change(&mut value);
                self.insert(key, value);
            }
        }
    }

    /// Leaves the value of a key as it is where there is one.
    pub fn insert_new(&mut self, key: K, value: V) {
        if let Err(place) = self.find(&key) {
            self.put(place, key, value);
        }
    }

    /// The entries whose keys are in a range.
    pub fn range(&self, range: impl RangeBounds<K>) -> Iter<'_, K, V> {
        let front = match range.start_bound() {
            Bound::Unbounded => Place::default(),
            Bound::Included(key) => self.place(key, false),
            Bound::Excluded(key) => self.place(key, true),
        };
        let back = match range.end_bound() {
            Bound::Unbounded => self.order.end(),
            Bound::Included(key) => self.place(key, true),
            Bound::Excluded(key) => self.place(key, false),
        };
        self.between(front, back)
    }

    /// Where the keys from this one on begin, or those behind it.
    fn place(&self, key: &K, behind: bool) -> Place {
        match self.find(key) {
            Ok((place, _)) => Place {
                at: place.at.saturating_add(usize::from(behind)),
                ..place
            },
            Err(place) => place,
        }
    }

    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<(Place, usize), Place>
    where
        K: Borrow<Q>,
    {
        self.order.find(&|slot| match self.slots.get(slot) {
            Some(Some((other, _))) => other.borrow().cmp(key),
            Some(None) | None => Ordering::Equal,
        })
    }

    fn value_mut(&mut self, slot: usize) -> Option<&mut V> {
        let (_, value) = self.slots.get_mut(slot)?.as_mut()?;
        Some(value)
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for Map<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other)
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<K: Ord, V> Extend<(K, V)> for Map<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

/// The entries of a map, or some of them.
#[derive(Clone)]
pub struct Iter<'a, K, V> {
    walk: Walk<'a>,
    slots: &'a [Option<(K, V)>],
}

impl<'a, K, V> Iter<'a, K, V> {
    fn entry(&self, slot: usize) -> Option<(&'a K, &'a V)> {
        let (key, value) = self.slots.get(slot)?.as_ref()?;
        Some((key, value))
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let slot = self.walk.next()?;
        self.entry(slot)
    }
}

impl<K, V> DoubleEndedIterator for Iter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let slot = self.walk.next_back()?;
        self.entry(slot)
    }
}

impl<'a, K, V> IntoIterator for &'a Map<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The entries of a map that is used up.
pub struct IntoIter<K, V> {
    order: iter::Flatten<vec::IntoIter<Vec<usize>>>,
    slots: Vec<Option<(K, V)>>,
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<Self::Item> {
        let slot = self.order.next()?;
        self.slots.get_mut(slot)?.take()
    }
}

impl<K, V> IntoIterator for Map<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> Self::IntoIter {
        IntoIter {
            order: self.order.chunks.into_iter().flatten(),
            slots: self.slots,
        }
    }
}

/// A set that is iterated in order.
#[derive(Clone)]
pub struct Set<T>(Map<T, ()>);

impl<T> Default for Set<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Set<T> {
    #[must_use]
    pub fn new() -> Self {
        Self(Map::new())
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    #[must_use]
    pub fn iter(&self) -> Items<'_, T> {
        Items(self.0.iter())
    }

    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.iter().next()
    }

    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.iter().next_back()
    }
}

impl<T: Ord> Set<T> {
    pub fn contains<Q: Ord + ?Sized>(&self, item: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.contains_key(item)
    }

    /// Whether the item was not there.
    pub fn insert(&mut self, item: T) -> bool {
        self.0.insert(item, ()).is_none()
    }

    /// Whether the item was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, item: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.remove(item).is_some()
    }

    /// The items in a range.
    pub fn range(&self, range: impl RangeBounds<T>) -> Items<'_, T> {
        Items(self.0.range(range))
    }
}

impl<T: fmt::Debug> fmt::Debug for Set<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

impl<T: Ord> Extend<T> for Set<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            self.insert(item);
        }
    }
}

impl<T: Ord> FromIterator<T> for Set<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut set = Self::new();
        set.extend(items);
        set
    }
}

/// The items of a set, or some of them.
#[derive(Clone)]
pub struct Items<'a, T>(Iter<'a, T, ()>);

impl<'a, T> Iterator for Items<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        self.0.next().map(|(item, ())| item)
    }
}

impl<T> DoubleEndedIterator for Items<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(item, ())| item)
    }
}

impl<'a, T> IntoIterator for &'a Set<T> {
    type Item = &'a T;
    type IntoIter = Items<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The items of a set that is used up.
pub struct IntoItems<T>(IntoIter<T, ()>);

impl<T> Iterator for IntoItems<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.next().map(|(item, ())| item)
    }
}

impl<T> IntoIterator for Set<T> {
    type Item = T;
    type IntoIter = IntoItems<T>;

    fn into_iter(self) -> Self::IntoIter {
        IntoItems(self.0.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u16),
        InsertNew(u16),
        Update(u16),
        Remove(u16),
        RemoveRange(u16, u16),
        Retain(u16),
    }

    fn step() -> impl Strategy<Value = Step> {
        let key = || 0_u16..400;
        prop_oneof![
            8 => key().prop_map(Step::Insert),
            1 => key().prop_map(Step::InsertNew),
            2 => key().prop_map(Step::Update),
            4 => key().prop_map(Step::Remove),
            1 => (key(), 0_u16..150).prop_map(|(from, n)| Step::RemoveRange(from, from + n)),
            1 => (2_u16..9).prop_map(Step::Retain),
        ]
    }

    /// The same as the library's map.
    fn check(map: &Map<u16, usize>, expected: &BTreeMap<u16, usize>) {
        assert_eq!(map.len(), expected.len());
        assert_eq!(map.is_empty(), expected.is_empty());
        assert!(map.iter().eq(expected));
        assert!(map.iter().rev().eq(expected.iter().rev()));
        assert!(map.keys().eq(expected.keys()));
        assert!(map.values().eq(expected.values()));
        assert!(map.clone().into_iter().eq(expected.clone()));
        assert_eq!(map.last_key_value(), expected.last_key_value());
        for key in (0..400).step_by(7) {
            assert_eq!(map.get(&key), expected.get(&key));
            assert!(map.range(key..).eq(expected.range(key..)));
            assert!(map.range(..=key).rev().eq(expected.range(..=key).rev()));
            assert!(
                map.range(key..key + 50)
                    .rev()
                    .eq(expected.range(key..key + 50).rev())
            );
            let (mut ours, mut theirs) = (map.range(key..=400), expected.range(key..=400));
            while let Some(next) = theirs.next() {
                assert_eq!(ours.next(), Some(next));
                assert_eq!(ours.next_back(), theirs.next_back());
            }
            assert_eq!(ours.next(), None);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn does_what_the_librarys_does(
            filled in 0_u16..400,
            steps in prop::collection::vec(step(), 0..300),
        ) {
            let mut map: Map<u16, usize> = (0..filled).map(|key| (key, 0)).collect();
            let mut expected: BTreeMap<u16, usize> = (0..filled).map(|key| (key, 0)).collect();
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Insert(key) => assert_eq!(map.insert(key, n), expected.insert(key, n)),
                    Step::InsertNew(key) => {
                        map.insert_new(key, n);
                        expected.entry(key).or_insert(n);
                    }
                    Step::Update(key) => {
                        map.update(key, |value| *value += n);
                        *expected.entry(key).or_default() += n;
                    }
                    Step::Remove(key) => assert_eq!(map.remove(&key), expected.remove(&key)),
                    Step::RemoveRange(from, to) => {
                        for key in from..to {
                            assert_eq!(map.remove(&key), expected.remove(&key));
                        }
                    }
                    Step::Retain(n) => {
                        map.retain(|key, _| key % n != 0);
                        expected.retain(|key, _| key % n != 0);
                    }
                }
            }
            check(&map, &expected);
        }
    }

    #[test]
    fn slots_are_used_again() {
        let mut map = Map::new();
        for key in 0..10_000 {
            map.insert(key, key);
            if key >= 100 {
                map.remove(&(key - 100));
            }
        }
        assert_eq!(map.len(), 100);
        assert!(map.slots.len() <= 101, "{}", map.slots.len());
        assert!(map.order.chunks.len() < 5, "{}", map.order.chunks.len());
    }

    #[test]
    fn sets_are_in_order() {
        let mut set: Set<&str> = ["b", "a", "c", "a"].into_iter().collect();
        assert!(set.iter().eq(&["a", "b", "c"]));
        assert!(!set.insert("b") && set.remove("b") && !set.remove("b"));
        assert_eq!(
            (set.first(), set.last(), set.len()),
            (Some(&"a"), Some(&"c"), 2)
        );
        assert_eq!(format!("{set:?}"), r#"{"a", "c"}"#);
    }
}
