//! A long row whose elements never move.
//!
//! The component's memory never shrinks: a vector that doubles takes room for elements that may never
//! come, and leaves holes where it has been.

const CHUNK: usize = 256;

/// Elements in the order in which they were pushed.
#[derive(Clone, Debug)]
pub struct Row<T> {
    /// All are full but the last, and none is empty.
    chunks: Vec<Vec<T>>,
}

impl<T> Default for Row<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<T> Row<T> {
    #[must_use]
    pub fn len(&self) -> usize {
        let full = self.chunks.len().saturating_sub(1);
        full * CHUNK + self.chunks.last().map_or(0, Vec::len)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)
    }

    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.chunks.get_mut(index / CHUNK)?.get_mut(index % CHUNK)
    }

    pub fn push(&mut self, element: T) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(element),
            Some(_) | None => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(element);
                self.chunks.push(chunk);
            }
        }
    }

    /// Leaves the first `len` elements.
    pub fn truncate(&mut self, len: usize) {
        self.chunks.truncate(len.div_ceil(CHUNK));
        let full = self.chunks.len().saturating_sub(1) * CHUNK;
        if let Some(last) = self.chunks.last_mut() {
            last.truncate(len.saturating_sub(full));
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_vector_in_pieces() {
        let mut row = Row::default();
        let mut plain = Vec::new();
        for n in 0..3 * CHUNK {
            assert_eq!((row.len(), row.is_empty()), (n, n == 0));
            row.push(n);
            plain.push(n);
        }
        for len in [3 * CHUNK, 2 * CHUNK + 1, 2 * CHUNK, CHUNK - 1, 1, 0] {
            row.truncate(len);
            plain.truncate(len);
            assert!(row.iter().eq(&plain), "{len}");
            assert_eq!(row.len(), len);
            assert_eq!(row.get(len), None);
            assert_eq!(row.get(len.saturating_sub(1)), plain.last());
        }
        row.push(7);
        if let Some(first) = row.get_mut(0) {
            *first = 8;
        }
        assert_eq!(row.get(0), Some(&8));
    }
}
