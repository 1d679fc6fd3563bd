//! Order for short lists.
//!
//! The library's sorts cost the component some 8 KB for each type that they are used on. The lists
//! here are short, or in order but for a few.

/// Sorts by a key, stable, by insertion.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    for next in 1..items.len() {
        for at in (1..=next).rev() {
            let is_in_order = match (items.get(at - 1), items.get(at)) {
                (Some(before), Some(after)) => key(before) <= key(after),
                (None, _) | (_, None) => true,
            };
            if is_in_order {
                break;
            }
            items.swap(at - 1, at);
        }
    }
}

/// Sorts a list of any length; equal items must be the same.
pub fn sort<T: Ord>(items: &mut [T]) {
    let len = items.len();
    heap_sort(&mut Items(items), len);
}

/// What is sorted, without its type, so that the sorting itself is there once.
trait Heap {
    fn is_less(&self, one: usize, other: usize) -> bool;

    fn swap(&mut self, one: usize, other: usize);
}

struct Items<'a, T>(&'a mut [T]);

impl<T: Ord> Heap for Items<'_, T> {
    fn is_less(&self, one: usize, other: usize) -> bool {
        self.0.get(one) < self.0.get(other)
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.0.swap(one, other);
    }
}

fn heap_sort(heap: &mut dyn Heap, len: usize) {
    for root in (0..len / 2).rev() {
        sift_down(heap, root, len);
    }
    for end in (1..len).rev() {
        heap.swap(0, end);
        sift_down(heap, 0, end);
    }
}

fn sift_down(heap: &mut dyn Heap, mut root: usize, len: usize) {
    loop {
        let mut largest = root;
        for child in [2 * root + 1, 2 * root + 2] {
            if child < len && heap.is_less(largest, child) {
                largest = child;
            }
        }
        if largest == root {
            return;
        }
        heap.swap(root, largest);
        root = largest;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{sort, sort_by_key};

    proptest! {
        #[test]
        fn any_list_is_sorted(items in prop::collection::vec(any::<u8>(), 0..100)) {
            let (mut ours, mut theirs) = (items.clone(), items);
            sort(&mut ours);
            theirs.sort_unstable();
            prop_assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn equal_keys_keep_their_order() {
        for (items, sorted) in [
            (vec![], vec![]),
            (vec![(1, 'a')], vec![(1, 'a')]),
            (
                vec![(2, 'a'), (1, 'b'), (2, 'c'), (0, 'd'), (1, 'e')],
                vec![(0, 'd'), (1, 'b'), (1, 'e'), (2, 'a'), (2, 'c')],
            ),
        ] {
            let mut items = items;
            sort_by_key(&mut items, |(key, _)| *key);
            assert_eq!(items, sorted);
        }
    }
}
