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

#[cfg(test)]
mod tests {
    use super::sort_by_key;

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
