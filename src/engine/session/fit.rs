//! Whether a block can stand: its span in the transcript, what is dropped there, and its text.

use super::{Position, Session};
use crate::engine::block::{self, Block, Extent, Placement, ProtectedOutput, Run};
use crate::engine::ids::BlockId;
use crate::engine::size::Size;
use crate::engine::transcript::{Boundary, Kind};

/// A half-open range of positions that a block stands for, and its final reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: Position,
    pub(super) to: Position,
    pub(super) reply: Option<Position>,
}

/// Why a block cannot stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// The host has cut its span away, or it is not there yet.
    Absent,
    /// A boundary is there more than once, or in the wrong order.
    Ambiguous,
    /// A result in its span is in no record.
    Unarchived,
    /// It would not be shorter than what it stands for.
    NotShorter,
}

/// What the frame of a message costs, in characters of the request: its role, its ids, its brackets.
/// A block does away with all frames of its span but one.
///
/// Source: the seed measures `JSON.stringify(messages).length`. A tool call or a result has 85
/// characters and more around its content there, the block's message 51.
const FRAME_CHARS: u64 = 80;

/// What is saved when one message stands in place of `messages`.
pub(super) fn frames(messages: usize) -> u64 {
    (messages as u64).saturating_sub(1) * FRAME_CHARS
}

/// A block's message, with the blocks that it quotes in place of their names and without.
struct BlockText {
    expanded: String,
    plain: String,
}

impl Session {
    /// Where a block stands and what it says, if it can.
    pub(super) fn fit(&self, block: &Block) -> Result<(Placement, String), Misfit> {
        let mut spans = Vec::new();
        for extent in &block.extents {
            spans.push(self.span_of(*extent)?);
        }
        let first = spans.first().ok_or(Misfit::Absent)?;
        let behind = first.from.checked_sub(1).ok_or(Misfit::Absent)?;
        let mut dropped = Vec::new();
        let mut shown = Vec::new();
        for span in &spans {
            self.sort_span(block, *span, &mut dropped, &mut shown)?;
        }
        if dropped.is_empty() {
            // The host sends back what the model was shown: the block stands there already.
            return Err(Misfit::Absent);
        }
        if dropped.iter().any(|at| self.is_covered(*at)) {
            // In a transcript whose messages have changed places a span may reach into another.
            return Err(Misfit::Ambiguous);
        }
        dropped.sort_unstable();
        let mut text = self.block_text(block, &shown)?;
        // Measured on the transcript as it is, not on what else is pruned in it by now: a load must
        // come to the same end.
        let stands = dropped
            .iter()
            .filter(|at| !self.is_summary(**at))
            .filter_map(|at| self.transcript.slot(*at))
            .map(|slot| slot.size.chars)
            .sum::<u64>()
            + frames(dropped.len());
        let is_shorter = |text: &str| Size::of_text(text).chars < stands;
        if !is_shorter(&text.expanded) {
            // A quoted block must not cost this one its place: its name stays as it is.
            text.expanded = text.plain;
        }
        if !is_shorter(&text.expanded) {
            return Err(Misfit::NotShorter);
        }
        let placement = Placement {
            behind,
            runs: Run::join(&dropped),
            replies: spans.iter().filter_map(|span| span.reply).collect(),
        };
        Ok((placement, text.expanded))
    }

    pub(super) fn span_of(&self, extent: Extent) -> Result<Span, Misfit> {
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

    /// Sorts the messages of a span into what is dropped and which of that is shown in the block.
    /// Messages of others stay where they are.
    fn sort_span(
        &self,
        block: &Block,
        span: Span,
        dropped: &mut Vec<Position>,
        shown: &mut Vec<Position>,
    ) -> Result<(), Misfit> {
        for at in span.from..span.to {
            match self.transcript.slot(at).map(|slot| &slot.kind) {
                Some(Kind::Assistant(assistant)) => {
                    dropped.push(at);
                    for result in assistant.calls.iter().filter_map(|call| call.result) {
                        if !self.is_in_record(result)? {
                            let key = self.transcript.key_at(result);
                            let shows = key.is_some_and(|key| block.protects(&key));
                            if !shows && result >= span.to {
                                // It came when its turn was gone from the context.
                                continue;
                            }
                            if !shows {
                                return Err(Misfit::Unarchived);
                            }
                            shown.push(result);
                        }
                        dropped.push(result);
                    }
                }
                Some(Kind::Result(result)) => {
                    if result.site.is_none() {
                        dropped.push(at);
                    }
                }
                // A summary is left out for itself, wherever it stands.
                Some(
                    Kind::Summary { .. } | Kind::User | Kind::Prompt | Kind::Block | Kind::Other,
                )
                | None => {}
            }
        }
        Ok(())
    }

    fn is_in_record(&self, at: Position) -> Result<bool, Misfit> {
        let result = self.transcript.result(at).ok_or(Misfit::Unarchived)?;
        if result.ambiguous {
            return Err(Misfit::Unarchived);
        }
        Ok(self.member_at(at).is_some())
    }

    fn block_text(&self, block: &Block, shown: &[Position]) -> Result<BlockText, Misfit> {
        let mut protected = Vec::new();
        for at in shown {
            let result = self.transcript.result(*at).ok_or(Misfit::Unarchived)?;
            protected.push(ProtectedOutput {
                tool: &result.tool,
                text: result.text.as_deref().ok_or(Misfit::Unarchived)?,
            });
        }
        let body_of = |id: BlockId| {
            let other = self.blocks.all.get(&id)?;
            Some(other.body.clone())
        };
        let body = block::expand(block.id, &block.body, &body_of);
        let write = |body: &str| block::write(block.id, &block.refs, body, &protected);
        Ok(BlockText {
            expanded: write(&body),
            plain: write(&block.body),
        })
    }
}
