//! The same things in the contract's words and in the engine's, both ways.

mod inward;
mod outward;

/// Converts each item of a list.
pub(super) fn each<A: Into<B>, B>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(Into::into).collect()
}
