//! A flush in progress: what it has collected, which summaries it waits for, how far it is.
//!
//! A flush goes through three stages: summaries of batches, fused summaries of spans, and then it
//! is ready and waits for a safe boundary to be committed at. Nothing of it is in the log or in the
//! context before that.

mod bodies;
mod collect;
mod commit;
mod jobs;
mod merge;
mod models;
mod report;
mod spans;
#[cfg(test)]
mod tests;
mod worth;

pub use commit::{Entries, Tally, texts_of_block};
pub use jobs::Step;
pub use models::Models;

use super::basis::Basis;
use super::block::Extent;
use super::digest::ContentHash;
use super::facts::RecordId;
use super::host::ModelChoice;
use super::ids::{BlockId, JobId, OccurrenceKey, Ref};
use super::transcript::{CallSite, Position};
use super::view::View;

/// What set a flush off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
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
    pub fn name(self) -> &'static str {
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

/// Why a batch was passed over. In rising order of what is told of a flush that summarized nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// All of it is known already.
    Deduped,
    /// It is too small.
    Trivial,
    /// Its summary would not be shorter.
    Oversized,
}

/// How far a flush is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Summarizing,
    Fusing,
    Ready,
}

/// Where a summary that is asked for stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
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
pub struct Captured {
    pub site: CallSite,
    pub at: Position,
    pub key: OccurrenceKey,
    pub hash: Option<ContentHash>,
    /// UTF-16 code units of the result's text.
    pub chars: u64,
    /// Given once the batch is answered.
    pub name: Option<Ref>,
}

/// A call whose output is known already.
#[derive(Clone, Debug)]
pub struct Duplicate {
    pub call: Captured,
    pub of: Original,
}

/// What a duplicate repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Original {
    Record(RecordId),
    /// A call of this flush, by batch and place in it.
    Within {
        batch: usize,
        call: usize,
    },
}

/// What becomes of a batch.
#[derive(Clone, Debug)]
pub enum Fate {
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
pub struct Batch {
    pub calls: Vec<Captured>,
    pub duplicates: Vec<Duplicate>,
    /// UTF-16 code units of the summary message, also of one that was too long.
    pub summary_chars: u64,
    pub fate: Fate,
}

impl Batch {
    /// UTF-16 code units of the outputs that are not known already.
    pub fn raw_chars(&self) -> u64 {
        self.calls.iter().map(|call| call.chars).sum()
    }

    pub fn is_failed(&self) -> bool {
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
pub struct SpanWork {
    pub id: BlockId,
    pub extents: Vec<Extent>,
    pub from: Position,
    pub to: Position,
    pub refs: Vec<Ref>,
    /// Results to be archived without a summary.
    pub backfill: Vec<(Position, Ref)>,
    pub protected: Vec<Position>,
    pub supersedes: Vec<BlockId>,
    pub body: Body,
}

impl SpanWork {
    /// Whether it fuses blocks instead of compressing turns.
    pub fn is_merge(&self) -> bool {
        self.extents.len() > 1
    }
}

/// Where a block's body comes from.
#[derive(Clone, Debug)]
pub enum Body {
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
    pub fn text(&self) -> &str {
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

/// What a flush looks at, and what it is for.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    pub basis: &'a Basis,
    pub view: &'a View,
    /// `None` while nobody has asked for a flush.
    pub trigger: Option<Trigger>,
    /// The timestamp of a final reply that is not in the mirror yet.
    pub closing_at_ms: Option<u64>,
}

/// Which request of a flush is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    Batch(usize),
    Span(usize),
}

/// A flush in progress.
#[derive(Debug)]
pub struct Flush {
    /// Given when it is written.
    number: u32,
    pub trigger: Trigger,
    /// The timestamp of a final reply that is not in the mirror yet.
    pub closing_at_ms: Option<u64>,
    /// The transcript's length when it was begun.
    len: Position,
    pub batches: Vec<Batch>,
    pub spans: Vec<SpanWork>,
    stage: Stage,
    /// Requests that were answered or failed.
    requests: u32,
    /// The last name and the last block that it has given out.
    last_name: Ref,
    last_block: BlockId,
    /// Spans that it has found not to be worth a block.
    unworthy: Vec<Extent>,
}

impl<'a> Scene<'a> {
    /// What is looked at while nobody has asked for a flush.
    #[must_use]
    pub fn idle(basis: &'a Basis, view: &'a View) -> Self {
        Self {
            basis,
            view,
            trigger: None,
            closing_at_ms: None,
        }
    }
}

impl Flush {
    /// Begins a flush: collects what waits. `None` if there is nothing to do.
    #[must_use]
    pub fn begin(scene: Scene<'_>, trigger: Trigger) -> Option<Self> {
        let batches = scene.collect(trigger);
        if batches.is_empty() && !scene.has_span_to_compress() {
            return None;
        }
        Some(Self {
            number: 0,
            trigger,
            closing_at_ms: scene.closing_at_ms,
            len: scene.basis.transcript.len(),
            batches,
            spans: Vec::new(),
            stage: Stage::Summarizing,
            requests: 0,
            last_name: scene.basis.facts.archive().last_name(),
            last_block: scene.basis.facts.blocks().last_id(),
            unworthy: Vec::new(),
        })
    }

    /// What this flush looks at.
    #[must_use]
    pub fn scene<'a>(&self, basis: &'a Basis, view: &'a View) -> Scene<'a> {
        Scene {
            basis,
            view,
            trigger: Some(self.trigger),
            closing_at_ms: self.closing_at_ms,
        }
    }

    /// The last name that it has given out: whoever else needs one takes a later one.
    #[must_use]
    pub fn last_name(&self) -> Ref {
        self.last_name
    }

    /// Makes up for names that were given out elsewhere since.
    fn catch_up(&mut self, basis: &Basis) {
        self.last_name = self.last_name.max(basis.facts.archive().last_name());
    }

    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    /// Whether it has used the summarizer or compressed anything, so that the totals have changed.
    #[must_use]
    pub fn has_used(&self) -> bool {
        self.requests > 0 || !self.spans.is_empty()
    }

    /// Spans that it has found not to be worth a block.
    #[must_use]
    pub fn unworthy(&self) -> &[Extent] {
        &self.unworthy
    }

    pub fn asks(&self) -> impl Iterator<Item = (Row, &Ask)> {
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

    pub fn ask_mut(&mut self, row: Row) -> Option<&mut Ask> {
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

    pub fn prompt(&self, row: Row) -> Option<&str> {
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

    pub fn row_of(&self, job: JobId) -> Option<(Row, ModelChoice)> {
        self.asks().find_map(|(row, ask)| match ask {
            Ask::Running {
                job: own, model, ..
            } if *own == job => Some((row, *model)),
            Ask::Running { .. } | Ask::Queued { .. } | Ask::Answered(_) | Ask::Failed(_) => None,
        })
    }

    pub fn running(&self) -> Vec<JobId> {
        self.asks()
            .filter_map(|(_, ask)| match ask {
                Ask::Running { job, .. } => Some(*job),
                Ask::Queued { .. } | Ask::Answered(_) | Ask::Failed(_) => None,
            })
            .collect()
    }

    pub fn next_queued(&self) -> Option<(Row, ModelChoice)> {
        self.asks().find_map(|(row, ask)| match ask {
            Ask::Queued { model } => Some((row, *model)),
            Ask::Running { .. } | Ask::Answered(_) | Ask::Failed(_) => None,
        })
    }

    /// Jobs that are running or queued.
    pub fn unfinished_jobs(&self) -> u32 {
        let unfinished = self.asks().filter(|(_, ask)| ask.is_unfinished()).count();
        u32::try_from(unfinished).unwrap_or(u32::MAX)
    }

    /// Whether a user waits for it.
    pub fn is_manual(&self) -> bool {
        matches!(self.trigger, Trigger::Manual | Trigger::Compact)
    }

    pub fn progressed(&mut self, job: JobId, chars: u32) {
        if let Some((row, _)) = self.row_of(job)
            && let Some(Ask::Running { chars: known, .. }) = self.ask_mut(row)
        {
            *known = chars;
        }
    }

    /// Whether it looks at messages from this position on.
    pub fn reaches(&self, at: Position) -> bool {
        at < self.len
    }
}
