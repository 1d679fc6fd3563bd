//! Where the span of a block stands in the transcript.

use super::Basis;
use crate::engine::block::Extent;
use crate::engine::transcript::{Boundary, Position};

/// A half-open range of positions that a block stands for, and its final reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: Position,
    pub to: Position,
    pub reply: Option<Position>,
}

/// Why a block cannot stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The host has cut its span away, or it is not there yet.
    Absent,
    /// A boundary is there more than once, or in the wrong order.
    Ambiguous,
    /// A result in its span is in no record.
    Unarchived,
    /// It would not be shorter than what it stands for.
    NotShorter,
}

impl Basis {
    /// # Errors
    /// Why no block can stand for it.
    pub fn span_of(&self, extent: Extent) -> Result<Span, Misfit> {
        let only = |kind, at_ms| match self.transcript.boundary_at(kind, at_ms) {
            Some(at) => Ok(at),
            None if self.transcript.has_boundary_at(kind, at_ms) => Err(Misfit::Ambiguous),
            None => Err(Misfit::Absent),
        };
        match extent {
            Extent::Chain {
                anchor_at_ms,
                reply_at_ms,
            } => {
                let anchor = only(Boundary::Prompt, anchor_at_ms)?;
                let reply = only(Boundary::Reply, reply_at_ms)?;
                if anchor >= reply {
                    return Err(Misfit::Ambiguous);
                }
                Ok(Span {
                    from: anchor + 1,
                    to: reply,
                    reply: Some(reply),
                })
            }
            Extent::Turns {
                first_at_ms,
                last_at_ms,
            } => {
                let first = only(Boundary::Reply, first_at_ms)?;
                let last = only(Boundary::Reply, last_at_ms)?;
                if first > last {
                    return Err(Misfit::Ambiguous);
                }
                Ok(Span {
                    from: first,
                    to: self.transcript.turn_end(last),
                    reply: None,
                })
            }
        }
    }
}
