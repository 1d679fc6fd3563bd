//! A flush in progress: what it has collected, which summaries it waits for, how far it is.
//!
//! A flush goes through three stages: summaries of batches, fused summaries of spans, and then it
//! is ready and waits for a safe boundary to be committed at. Nothing of it is in the log or in the
//! context before that.

use super::Position;
use crate::engine::digest::ContentHash;
use crate::engine::host::ModelChoice;
use crate::engine::ids::{BlockId, JobId, OccurrenceKey, Ref};
use crate::engine::transcript::CallSite;

/// What set a flush off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// The agent's final reply.
    Reply,
    /// Another prompt has interrupted a chain, so no reply will come that could flush it.
    Interrupted,
    /// The user's word.
    Manual,
    /// The user's word, with all closed chains.
    Compact,
    /// The context has reached `autoBudgetThreshold`.
    Budget,
    /// The context has grown by `budgetTurnDelta`.
    Delta,
    /// `flushWhenSaves`.
    Savings,
    /// The model's word, through the compress tool.
    Tool,
}

impl Trigger {
    /// The name in metrics entries.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Reply => "message-end",
            Self::Interrupted => "interrupted",
            Self::Manual => "manual",
            Self::Compact => "compact",
            Self::Budget => "budget",
            Self::Delta => "delta",
            Self::Savings => "savings",
            Self::Tool => "tool",
        }
    }
}

/// Why a batch was passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Skip {
    /// All of it is known already.
    Deduped,
    /// It is too small.
    Trivial,
    /// Its summary would not be shorter.
    Oversized,
}

/// How far a flush is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Summarizing,
    Fusing,
    Ready,
}

/// Where a summary that is asked for stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Queued {
        model: ModelChoice,
    },
    Running {
        job: JobId,
        model: ModelChoice,
        /// UTF-16 code units that have arrived.
        chars: u32,
    },
    Answered(String),
    Failed(String),
}

impl Ask {
    fn is_unfinished(&self) -> bool {
        matches!(self, Self::Queued { .. } | Self::Running { .. })
    }
}

/// A tool call of a batch.
#[derive(Clone, Debug)]
pub(super) struct Captured {
    pub(super) site: CallSite,
    pub(super) at: Position,
    pub(super) key: OccurrenceKey,
    pub(super) hash: Option<ContentHash>,
    /// UTF-16 code units of the result's text.
    pub(super) chars: u64,
    /// Given once the batch is answered.
    pub(super) name: Option<Ref>,
}

/// A call whose output is known already.
#[derive(Clone, Debug)]
pub(super) struct Duplicate {
    pub(super) call: Captured,
    pub(super) of: Original,
}

/// What a duplicate repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Original {
    Record(usize),
    /// A call of this flush, by batch and place in it.
    Within {
        batch: usize,
        call: usize,
    },
}

/// What becomes of a batch.
#[derive(Clone, Debug)]
pub(super) enum Fate {
    Skipped(Skip),
    Asked {
        prompt: String,
        ask: Ask,
    },
    /// Its summary is worth it; carries the message that the model will see.
    Summarized {
        content: String,
    },
}

/// The calls that one summary covers.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) calls: Vec<Captured>,
    pub(super) duplicates: Vec<Duplicate>,
    /// UTF-16 code units of the summary message, also of one that was too long.
    pub(super) summary_chars: u64,
    pub(super) fate: Fate,
}

impl Batch {
    /// UTF-16 code units of the outputs that are not known already.
    pub(super) fn raw_chars(&self) -> u64 {
        self.calls.iter().map(|call| call.chars).sum()
    }

    pub(super) fn is_failed(&self) -> bool {
        matches!(
            &self.fate,
            Fate::Asked {
                ask: Ask::Failed(_),
                ..
            }
        )
    }
}

/// A span that the flush compresses.
#[derive(Clone, Debug)]
pub(super) struct SpanWork {
    pub(super) id: BlockId,
    pub(super) extents: Vec<crate::engine::block::Extent>,
    pub(super) from: Position,
    pub(super) to: Position,
    pub(super) refs: Vec<Ref>,
    /// Results to be archived without a summary.
    pub(super) backfill: Vec<(Position, Ref)>,
    pub(super) protected: Vec<Position>,
    pub(super) supersedes: Vec<BlockId>,
    pub(super) body: Body,
}

impl SpanWork {
    /// Whether it fuses blocks instead of compressing turns.
    pub(super) fn is_merge(&self) -> bool {
        self.extents.len() > 1
    }
}

/// Where a block's body comes from.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// The summaries as they stand.
    Summaries(String),
    /// A text that the entry has to hold.
    Own { text: String, deterministic: bool },
    /// A fused summary that is asked for; `fallback` are the summaries as they stand.
    Fused {
        prompt: String,
        ask: Ask,
        fallback: String,
    },
}

impl Body {
    /// The body as far as it is known: until a fused summary is there, its parts.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Summaries(text)
            | Self::Own { text, .. }
            | Self::Fused {
                ask: Ask::Answered(text),
                ..
            } => text,
            Self::Fused { fallback, .. } => fallback,
        }
    }
}

/// Which request of a flush is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    Batch(usize),
    Span(usize),
}

/// A flush in progress.
#[derive(Debug)]
pub(super) struct Flush {
    pub(super) number: u32,
    pub(super) trigger: Trigger,
    /// The timestamp of a final reply that is not in the mirror yet.
    pub(super) closing_at_ms: Option<u64>,
    /// The transcript's length when it was begun.
    pub(super) len: Position,
    pub(super) batches: Vec<Batch>,
    pub(super) spans: Vec<SpanWork>,
    pub(super) stage: Stage,
    /// Requests that were answered or failed.
    pub(super) requests: u32,
    /// The last name and the last block that were given out before.
    pub(super) last_name: Ref,
    pub(super) last_block: u32,
}

impl Flush {
    pub(super) fn asks(&self) -> impl Iterator<Item = (Row, &Ask)> {
        let batches = self
            .batches
            .iter()
            .enumerate()
            .filter_map(|(index, batch)| match &batch.fate {
                Fate::Asked { ask, .. } => Some((Row::Batch(index), ask)),
                Fate::Skipped(_) | Fate::Summarized { .. } => None,
            });
        let spans = self
            .spans
            .iter()
            .enumerate()
            .filter_map(|(index, span)| match &span.body {
                Body::Fused { ask, .. } => Some((Row::Span(index), ask)),
                Body::Summaries(_) | Body::Own { .. } => None,
            });
        batches.chain(spans)
    }

    pub(super) fn ask_mut(&mut self, row: Row) -> Option<&mut Ask> {
        match row {
            Row::Batch(index) => match &mut self.batches.get_mut(index)?.fate {
                Fate::Asked { ask, .. } => Some(ask),
                Fate::Skipped(_) | Fate::Summarized { .. } => None,
            },
            Row::Span(index) => match &mut self.spans.get_mut(index)?.body {
                Body::Fused { ask, .. } => Some(ask),
                Body::Summaries(_) | Body::Own { .. } => None,
            },
        }
    }

    pub(super) fn prompt(&self, row: Row) -> Option<&str> {
        match row {
            Row::Batch(index) => match &self.batches.get(index)?.fate {
                Fate::Asked { prompt, .. } => Some(prompt),
                Fate::Skipped(_) | Fate::Summarized { .. } => None,
            },
            Row::Span(index) => match &self.spans.get(index)?.body {
                Body::Fused { prompt, .. } => Some(prompt),
                Body::Summaries(_) | Body::Own { .. } => None,
            },
        }
    }

    pub(super) fn row_of(&self, job: JobId) -> Option<(Row, ModelChoice)> {
        self.asks().find_map(|(row, ask)| match ask {
            Ask::Running {
                job: own, model, ..
            } if *own == job => Some((row, *model)),
            Ask::Running { .. } | Ask::Queued { .. } | Ask::Answered(_) | Ask::Failed(_) => None,
        })
    }

    pub(super) fn running(&self) -> Vec<JobId> {
        self.asks()
            .filter_map(|(_, ask)| match ask {
                Ask::Running { job, .. } => Some(*job),
                Ask::Queued { .. } | Ask::Answered(_) | Ask::Failed(_) => None,
            })
            .collect()
    }

    pub(super) fn next_queued(&self) -> Option<(Row, ModelChoice)> {
        self.asks().find_map(|(row, ask)| match ask {
            Ask::Queued { model } => Some((row, *model)),
            Ask::Running { .. } | Ask::Answered(_) | Ask::Failed(_) => None,
        })
    }

    /// Jobs that are running or queued.
    pub(super) fn unfinished_jobs(&self) -> u32 {
        let unfinished = self.asks().filter(|(_, ask)| ask.is_unfinished()).count();
        u32::try_from(unfinished).unwrap_or(u32::MAX)
    }

    /// Whether a user waits for it.
    pub(super) fn is_manual(&self) -> bool {
        matches!(self.trigger, Trigger::Manual | Trigger::Compact)
    }

    pub(super) fn progressed(&mut self, job: JobId, chars: u32) {
        if let Some((row, _)) = self.row_of(job)
            && let Some(Ask::Running { chars: known, .. }) = self.ask_mut(row)
        {
            *known = chars;
        }
    }

    /// Whether it looks at messages from this position on.
    pub(super) fn reaches(&self, at: Position) -> bool {
        at < self.len
    }
}
