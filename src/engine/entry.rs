//! What is written into the session log: one type for each kind of entry.
//!
//! The shapes are those of pi-condense 1.x to 2.9, so that either program loads what the other
//! wrote. Every field beyond those is optional, and every field is read leniently: a missing one
//! has its default. A new field may be added at any time if readers without it still reach a
//! consistent state.

mod record;

use serde::Serialize;
use serde_json::value::RawValue;

use record::record;

/// A summary: a message that the model sees.
pub const SUMMARY: &str = "context-prune-summary";
/// The records of one batch.
pub const INDEX: &str = "context-prune-index";
/// A result that shares the text of another.
pub const ALIAS: &str = "context-prune-dedup-alias";
/// A compressed span.
pub const CHAIN: &str = "context-prune-chain";
/// What a flush has tried. Commits the flush.
pub const FRONTIER: &str = "context-prune-frontier";
/// Cumulative use of the summarizer.
pub const STATS: &str = "context-prune-stats";
/// One attempt to flush.
pub const METRICS: &str = "context-prune-flush-metrics";
/// Something odd in the session, named once.
pub const DIAGNOSTIC: &str = "context-prune-diagnostic";
/// An epoch without a frontier. Commits the chains of a compaction.
pub const EPOCH: &str = "context-prune-epoch";
/// A block or a batch that was taken back.
pub const UNDO: &str = "context-prune-undo";

/// Data of an [`INDEX`] entry.
#[derive(Debug, Default)]
pub struct Index {
    pub tool_calls: Vec<IndexCall>,
    /// Archived without a summary.
    pub backfilled: bool,
    /// The refs of backfilled calls, for readers that look for them here.
    pub refs: Vec<SummaryRef>,
    /// The entry counts once the flush of this number has been committed; `None`: at once.
    pub flush: Option<u32>,
    /// The calls are stubbed from the next epoch on only, since the model has seen them whole.
    pub from_next_epoch: bool,
    /// A recovered output: the refs that it had brought back.
    pub recovered: Option<Vec<String>>,
}

record!(Index {
    tool_calls: "toolCalls" always,
    backfilled: "backfilled" set,
    refs: "refs" set,
    flush: "flush" set,
    from_next_epoch: "fromNextEpoch" set,
    recovered: "recovered" set,
});

/// One record of an [`Index`].
#[derive(Debug)]
pub struct IndexCall {
    pub tool_call_id: String,
    pub tool_name: String,
    pub args: Box<RawValue>,
    /// Empty for a spilled result.
    pub result_text: String,
    pub is_error: bool,
    /// -1 in old backfilled entries.
    pub turn_index: i64,
    /// When the assistant message began.
    pub timestamp: u64,
    pub result_timestamp: Option<u64>,
    pub short_id: Option<String>,
    /// SHA-1 over tool, NUL and normalized text, in hex.
    pub content_hash: Option<String>,
    /// SHA-1 of the text, in hex; only where it is not in normal form.
    pub raw_hash: Option<String>,
    /// Where the blob is, in words for the model.
    pub spill_path: Option<String>,
    /// The blob's name for the host.
    pub spill_blob: Option<String>,
    pub spill_bytes: Option<u64>,
    pub result_preview: Option<String>,
    /// Kinds of the parts of the result that are no text.
    pub other_parts: Vec<String>,
}

record!(IndexCall {
    tool_call_id: "toolCallId" always,
    tool_name: "toolName" always,
    args: "args" always,
    result_text: "resultText" always,
    is_error: "isError" always,
    turn_index: "turnIndex" always,
    timestamp: "timestamp" always,
    result_timestamp: "resultTimestamp" set,
    short_id: "shortId" set,
    content_hash: "contentHash" set,
    raw_hash: "rawHash" set,
    spill_path: "spillPath" set,
    spill_blob: "spillBlob" set,
    spill_bytes: "spillBytes" set,
    result_preview: "resultPreview" set,
    other_parts: "otherParts" set,
});

impl Default for IndexCall {
    fn default() -> Self {
        Self {
            tool_call_id: String::new(),
            tool_name: String::new(),
            args: RawValue::NULL.to_owned(),
            result_text: String::new(),
            is_error: false,
            turn_index: 0,
            timestamp: 0,
            result_timestamp: None,
            short_id: None,
            content_hash: None,
            raw_hash: None,
            spill_path: None,
            spill_blob: None,
            spill_bytes: None,
            result_preview: None,
            other_parts: Vec::new(),
        }
    }
}

/// Arguments as they are written into a record: the JSON text itself, or a JSON string of what is
/// no JSON.
#[must_use]
pub fn raw_arguments(arguments: &str) -> Box<RawValue> {
    if arguments.is_empty() {
        return RawValue::NULL.to_owned();
    }
    RawValue::from_string(arguments.to_owned())
        .or_else(|_| serde_json::value::to_raw_value(arguments))
        .unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Details of a [`SUMMARY`] message.
#[derive(Clone, Debug, Default)]
pub struct SummaryDetails {
    pub tool_call_refs: Vec<SummaryRef>,
    pub tool_names: Vec<String>,
    pub turn_index: i64,
    pub timestamp: u64,
    /// The flush that wrote it: one that was given up half-way leaves its summaries in the
    /// transcript, and the next one speaks of the same calls. Older entries lack it.
    pub flush: Option<u32>,
}

record!(SummaryDetails {
    tool_call_refs: "toolCallRefs" always,
    tool_names: "toolNames" always,
    turn_index: "turnIndex" always,
    timestamp: "timestamp" always,
    flush: "flush" set,
});

/// The occurrence that a ref names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryRef {
    pub short_id: String,
    pub tool_call_id: String,
    pub result_timestamp: Option<u64>,
}

record!(SummaryRef {
    short_id: "shortId" always,
    tool_call_id: "toolCallId" always,
    result_timestamp: "resultTimestamp" set,
});

/// A [`SUMMARY`] message as the log hands it back.
#[derive(Debug, Default)]
pub struct SummaryMessage {
    pub content: String,
    pub details: SummaryDetails,
}

record!(SummaryMessage {
    content: "content" always,
    details: "details" always,
});

/// Data of an [`ALIAS`] entry.
#[derive(Debug, Default)]
pub struct Alias {
    pub new_tool_call_id: String,
    pub original_tool_call_id: String,
    pub new_result_timestamp: Option<u64>,
    pub original_result_timestamp: Option<u64>,
    /// What the duplicate does not share with its original; old entries lack it.
    pub own: Option<IndexCall>,
    pub flush: Option<u32>,
    pub from_next_epoch: bool,
}

record!(Alias {
    new_tool_call_id: "newToolCallId" always,
    original_tool_call_id: "originalToolCallId" always,
    new_result_timestamp: "newResultTimestamp" set,
    original_result_timestamp: "originalResultTimestamp" set,
    own: "own" set,
    flush: "flush" set,
    from_next_epoch: "fromNextEpoch" set,
});

/// Data of a [`CHAIN`] entry.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    pub block_id: String,
    pub start_user_timestamp: u64,
    pub dropped_tool_call_ids: Vec<String>,
    /// Of the final reply; for finished turns of an open chain, of the last of these turns.
    pub final_assistant_timestamp: u64,
    pub tool_refs: Vec<String>,
    pub compressed_at: u64,
    /// The fused summary.
    pub range_summary_text: Option<String>,
    /// `id@ms` of each dropped result.
    pub dropped_occurrence_keys: Option<Vec<String>>,
    pub protected_tool_call_ids: Vec<String>,
    /// The same as `id@ms`, which tells calls of one id apart.
    pub protected_occurrence_keys: Option<Vec<String>>,
    /// `deterministic` for a chain without any summary.
    pub body_source: Option<String>,
    /// The body, where it is neither the fused summary nor the summaries as they stand.
    pub body: Option<String>,
    /// Finished turns of an open chain: when the first of them began.
    pub first_turn_timestamp: Option<u64>,
    /// The chains that this block stands for, where it is more than one.
    pub merged: Vec<MergedChain>,
    /// Blocks whose place this one takes.
    pub supersedes: Vec<String>,
    /// What the dropped assistant messages said, and the calls of theirs that have no record.
    pub dropped_texts: Vec<DroppedText>,
    pub flush: Option<u32>,
}

record!(Chain {
    block_id: "blockId" always,
    start_user_timestamp: "startUserTimestamp" always,
    dropped_tool_call_ids: "droppedToolCallIds" always,
    final_assistant_timestamp: "finalAssistantTimestamp" always,
    tool_refs: "toolRefs" always,
    compressed_at: "compressedAt" always,
    range_summary_text: "rangeSummaryText" set,
    dropped_occurrence_keys: "droppedOccurrenceKeys" set,
    protected_tool_call_ids: "protectedToolCallIds" set,
    protected_occurrence_keys: "protectedOccurrenceKeys" set,
    body_source: "bodySource" set,
    body: "body" set,
    first_turn_timestamp: "firstTurnTimestamp" set,
    merged: "merged" set,
    supersedes: "supersedes" set,
    dropped_texts: "droppedTexts" set,
    flush: "flush" set,
});

/// The boundaries of one of several chains that share a block.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergedChain {
    pub start_user_timestamp: u64,
    pub final_assistant_timestamp: u64,
}

record!(MergedChain {
    start_user_timestamp: "startUserTimestamp" always,
    final_assistant_timestamp: "finalAssistantTimestamp" always,
});

/// A text of a dropped assistant message, or a call of its as `tool(arguments)`.
#[derive(Clone, Debug, Default)]
pub struct DroppedText {
    pub turn_index: u32,
    pub text: String,
}

record!(DroppedText {
    turn_index: "turnIndex" always,
    text: "text" always,
});

/// How a flush ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlushOutcome {
    Summarized,
    /// No summary would have been shorter.
    SkippedOversized,
    /// There was too little to summarize.
    SkippedTrivial,
    /// All of it was known already.
    SkippedDeduped,
    /// The summarizer failed, or the log.
    Error,
    /// There was nothing to try; and whatever other programs write.
    #[default]
    Empty,
}

impl FlushOutcome {
    const ALL: [Self; 6] = [
        Self::Summarized,
        Self::SkippedOversized,
        Self::SkippedTrivial,
        Self::SkippedDeduped,
        Self::Error,
        Self::Empty,
    ];
}

impl record::Word for FlushOutcome {
    fn word(&self) -> &'static str {
        match self {
            Self::Summarized => "summarized",
            Self::SkippedOversized => "skipped-oversized",
            Self::SkippedTrivial => "skipped-trivial",
            Self::SkippedDeduped => "skipped-deduped",
            Self::Error => "error",
            Self::Empty => "empty",
        }
    }

    fn set(&mut self, word: &str) {
        let known = Self::ALL.into_iter().find(|outcome| outcome.word() == word);
        *self = known.unwrap_or_default();
    }
}

/// Data of a [`FRONTIER`] entry.
#[derive(Clone, Debug, Default)]
pub struct Frontier {
    pub last_attempted_tool_call_id: String,
    pub last_attempted_tool_name: String,
    pub last_attempted_turn_index: i64,
    pub last_attempted_timestamp: u64,
    pub attempted_batch_count: u32,
    pub attempted_tool_call_count: u32,
    pub raw_char_count: u64,
    pub summary_char_count: u64,
    pub outcome: FlushOutcome,
    /// `id@ms` of each result that was tried and left as it is; `None` in older entries, where all
    /// results up to the last attempted one were tried.
    pub skipped: Option<Vec<String>>,
    /// The flush that this entry commits.
    pub flush: Option<u32>,
    /// The transcript's last message at this epoch, as `Transcript::mark` writes it; `None` if the
    /// flush has pruned nothing, and in older entries.
    pub epoch_end: Option<String>,
}

record!(Frontier {
    last_attempted_tool_call_id: "lastAttemptedToolCallId" always,
    last_attempted_tool_name: "lastAttemptedToolName" always,
    last_attempted_turn_index: "lastAttemptedTurnIndex" always,
    last_attempted_timestamp: "lastAttemptedTimestamp" always,
    attempted_batch_count: "attemptedBatchCount" always,
    attempted_tool_call_count: "attemptedToolCallCount" always,
    raw_char_count: "rawCharCount" always,
    summary_char_count: "summaryCharCount" always,
    outcome: "outcome" always,
    skipped: "skipped" set,
    flush: "flush" set,
    epoch_end: "epochEnd" set,
});

/// Data of an [`EPOCH`] entry.
#[derive(Debug, Default)]
pub struct Epoch {
    /// The transcript's last message, as `Transcript::mark` writes it; empty for none.
    pub epoch_end: String,
    /// The compaction that this entry commits.
    pub flush: Option<u32>,
}

record!(Epoch {
    epoch_end: "epochEnd" always,
    flush: "flush" set,
});

/// Data of a [`STATS`] entry: totals over the session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    pub total_input_tokens: u64,
    pub total_output_tokens: u64,
    /// US dollars.
    pub total_cost: f64,
    pub call_count: u32,
    pub chains_compressed: u32,
    pub ranges_summarized: u32,
}

record!(Stats {
    total_input_tokens: "totalInputTokens" always,
    total_output_tokens: "totalOutputTokens" always,
    total_cost: "totalCost" always,
    call_count: "callCount" always,
    chains_compressed: "chainsCompressed" always,
    ranges_summarized: "rangesSummarized" always,
});

impl Stats {
    /// These totals and what came since. Any of them may come from a damaged log or a careless host.
    #[must_use]
    pub fn plus(self, since: Self) -> Self {
        let sum = |before: u64, more: u64| before.saturating_add(more);
        let count = |before: u32, more: u32| before.saturating_add(more);
        Self {
            total_input_tokens: sum(self.total_input_tokens, since.total_input_tokens),
            total_output_tokens: sum(self.total_output_tokens, since.total_output_tokens),
            total_cost: self.total_cost + since.total_cost,
            call_count: count(self.call_count, since.call_count),
            chains_compressed: count(self.chains_compressed, since.chains_compressed),
            ranges_summarized: count(self.ranges_summarized, since.ranges_summarized),
        }
    }
}

/// Data of a [`METRICS`] entry.
#[derive(Debug, Default)]
pub struct FlushMetrics {
    /// Unix milliseconds.
    pub ts: u64,
    pub trigger: String,
    pub captured_batches: u32,
    pub processed_batches: u32,
    pub outcome: FlushOutcome,
    pub metrics: Gauges,
}

record!(FlushMetrics {
    ts: "ts" always,
    trigger: "trigger" always,
    captured_batches: "capturedBatches" always,
    processed_batches: "processedBatches" always,
    outcome: "outcome" always,
    metrics: "metrics" always,
});

/// What a flush left behind.
#[derive(Debug, Default)]
pub struct Gauges {
    pub open_cycle_thinking_tokens: u64,
    pub largest_chain_share_pct: u32,
    pub frontier_gap_tokens: u64,
}

record!(Gauges {
    open_cycle_thinking_tokens: "openCycleThinkingTokens" always,
    largest_chain_share_pct: "largestChainSharePct" always,
    frontier_gap_tokens: "frontierGapTokens" always,
});

/// Data of a [`DIAGNOSTIC`] entry.
#[derive(Debug, Default)]
pub struct Diagnostic {
    pub kind: String,
    pub detail: String,
}

record!(Diagnostic {
    kind: "kind" always,
    detail: "detail" always,
});

/// Data of an [`UNDO`] entry.
#[derive(Debug, Default)]
pub struct Undo {
    pub block_id: Option<String>,
    /// The refs of a batch.
    pub refs: Vec<String>,
    pub epoch_end: Option<String>,
}

record!(Undo {
    block_id: "blockId" set,
    refs: "refs" set,
    epoch_end: "epochEnd" set,
});

/// Writes an entry's data. Our own types always have a JSON form, so a failure cannot happen; an
/// empty object then does no harm when it is loaded.
#[must_use]
pub fn write<T: Serialize>(data: &T) -> String {
    serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned())
}
