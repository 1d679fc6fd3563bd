//! Rows that get long.

/// Makes room for one more, an eighth at a time: the component's memory never shrinks, so the twice
/// as much that a vector takes by itself would be taken for good.
pub(crate) fn make_room<T>(row: &mut Vec<T>) {
    if row.len() == row.capacity() {
        row.reserve_exact((row.len() / 8).max(64));
    }
}
