//! What is written into the session log: one type for each kind of entry.
//!
//! The shapes are those of pi-condense 1.x to 2.9, so that either program loads what the other
//! wrote. Every field beyond those is optional, and every field is read leniently: a missing one
//! has its default. A new field may be added at any time if readers without it still reach a
//! consistent state.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

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
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Index {
    pub tool_calls: Vec<IndexCall>,
    /// Archived without a summary.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub backfilled: bool,
    /// The refs of backfilled calls, for readers that look for them here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<SummaryRef>,
    /// The entry counts once the flush of this number has been committed; `None`: at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<u32>,
    /// The calls are stubbed from the next epoch on only, since the model has seen them whole.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_next_epoch: bool,
    /// A recovered output: the refs that it had brought back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered: Option<Vec<String>>,
}

/// One record of an [`Index`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_timestamp: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_id: Option<String>,
    /// SHA-1 over tool, NUL and normalized text, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
    /// SHA-1 of the text, in hex; only where it is not in normal form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_hash: Option<String>,
    /// Where the blob is, in words for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill_path: Option<String>,
    /// The blob's name for the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill_blob: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_preview: Option<String>,
    /// Kinds of the parts of the result that are no text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_parts: Vec<String>,
}

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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SummaryDetails {
    pub tool_call_refs: Vec<SummaryRef>,
    pub tool_names: Vec<String>,
    pub turn_index: i64,
    pub timestamp: u64,
    /// The flush that wrote it: one that was given up half-way leaves its summaries in the
    /// transcript, and the next one speaks of the same calls. Older entries lack it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<u32>,
}

/// The occurrence that a ref names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SummaryRef {
    pub short_id: String,
    pub tool_call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_timestamp: Option<u64>,
}

/// A [`SUMMARY`] message as the log hands it back.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SummaryMessage {
    pub content: String,
    pub details: SummaryDetails,
}

/// Data of an [`ALIAS`] entry.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Alias {
    pub new_tool_call_id: String,
    pub original_tool_call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_result_timestamp: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_result_timestamp: Option<u64>,
    /// What the duplicate does not share with its original; old entries lack it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<IndexCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_next_epoch: bool,
}

/// Data of a [`CHAIN`] entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Chain {
    pub block_id: String,
    pub start_user_timestamp: u64,
    pub dropped_tool_call_ids: Vec<String>,
    /// Of the final reply; for finished turns of an open chain, of the last of these turns.
    pub final_assistant_timestamp: u64,
    pub tool_refs: Vec<String>,
    pub compressed_at: u64,
    /// The fused summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_summary_text: Option<String>,
    /// `id@ms` of each dropped result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_occurrence_keys: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protected_tool_call_ids: Vec<String>,
    /// The same as `id@ms`, which tells calls of one id apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected_occurrence_keys: Option<Vec<String>>,
    /// `deterministic` for a chain without any summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_source: Option<String>,
    /// The body, where it is neither the fused summary nor the summaries as they stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Finished turns of an open chain: when the first of them began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_turn_timestamp: Option<u64>,
    /// The chains that this block stands for, where it is more than one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<MergedChain>,
    /// Blocks whose place this one takes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supersedes: Vec<String>,
    /// What the dropped assistant messages said, and the calls of theirs that have no record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped_texts: Vec<DroppedText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<u32>,
}

/// The boundaries of one of several chains that share a block.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MergedChain {
    pub start_user_timestamp: u64,
    pub final_assistant_timestamp: u64,
}

/// A text of a dropped assistant message, or a call of its as `tool(arguments)`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DroppedText {
    pub turn_index: u32,
    pub text: String,
}

/// How a flush ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    #[serde(other)]
    Empty,
}

/// Data of a [`FRONTIER`] entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Vec<String>>,
    /// The flush that this entry commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<u32>,
    /// The transcript's last message at this epoch, as `Transcript::mark` writes it; `None` if the
    /// flush has pruned nothing, and in older entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch_end: Option<String>,
}

/// Data of an [`EPOCH`] entry.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Epoch {
    /// The transcript's last message, as `Transcript::mark` writes it; empty for none.
    pub epoch_end: String,
    /// The compaction that this entry commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<u32>,
}

/// Data of a [`STATS`] entry: totals over the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Stats {
    pub total_input_tokens: u64,
    pub total_output_tokens: u64,
    /// US dollars.
    pub total_cost: f64,
    pub call_count: u32,
    pub chains_compressed: u32,
    pub ranges_summarized: u32,
}

impl Stats {
    /// These totals and what came since. Any of them may come from a damaged log or a careless host.
    #[must_use]
    pub fn plus(self, since: Self) -> Self {
        Self {
            total_input_tokens: self
                .total_input_tokens
                .saturating_add(since.total_input_tokens),
            total_output_tokens: self
                .total_output_tokens
                .saturating_add(since.total_output_tokens),
            total_cost: self.total_cost + since.total_cost,
            call_count: self.call_count.saturating_add(since.call_count),
            chains_compressed: self
                .chains_compressed
                .saturating_add(since.chains_compressed),
            ranges_summarized: self
                .ranges_summarized
                .saturating_add(since.ranges_summarized),
        }
    }
}

/// Data of a [`METRICS`] entry.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlushMetrics {
    /// Unix milliseconds.
    pub ts: u64,
    pub trigger: String,
    pub captured_batches: u32,
    pub processed_batches: u32,
    pub outcome: FlushOutcome,
    pub metrics: Gauges,
}

/// What a flush left behind.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gauges {
    pub open_cycle_thinking_tokens: u64,
    pub largest_chain_share_pct: u32,
    pub frontier_gap_tokens: u64,
}

/// Data of a [`DIAGNOSTIC`] entry.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Diagnostic {
    pub kind: String,
    pub detail: String,
}

/// Data of an [`UNDO`] entry.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Undo {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_id: Option<String>,
    /// The refs of a batch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch_end: Option<String>,
}

/// Writes an entry's data. Our own types always have a JSON form, so a failure cannot happen; an
/// empty object then does no harm when it is loaded.
#[must_use]
pub fn write<T: Serialize>(data: &T) -> String {
    serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned())
}
