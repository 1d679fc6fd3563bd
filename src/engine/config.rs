//! The settings: their types, their defaults, and the JSON object that a user writes.
//!
//! `table` lists every setting once; reading and writing both walk it.

mod kind;
mod read;
mod table;
mod write;

#[cfg(test)]
mod tests;

use super::host::Notice;
use super::json::Json;
use super::map::Map;

/// When pending turns are flushed without being asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneOn {
    /// At the final text-only reply.
    AgentMessage,
    /// Only by command or by a budget trigger.
    OnDemand,
}

/// How many summaries a flush writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchingMode {
    /// One for each turn.
    Turn,
    /// One for all pending turns.
    AgentMessage,
}

/// Whether the next model call waits for the summaries of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushMode {
    Blocking,
    Background,
}

/// When edits that are due may change what was already sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePolicy {
    /// At an epoch only.
    Stable,
    /// As soon as they are due.
    Live,
}

/// Block `chainCompression`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainCompression {
    pub enabled: bool,
    /// How many of the last closed chains stay as they are.
    pub rolling_window: u32,
    /// Whether the summaries of a chain are fused into one by the summarizer.
    pub fuse_range_summary: bool,
    pub strip_final_assistant_thinking: bool,
    /// How many adjacent compressed chains become one block, 2 or more.
    pub merge_after: Option<u32>,
    pub open_chain: OpenChain,
}

/// Block `chainCompression.openChain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenChain {
    /// How many of the last finished turns of an open chain stay as they are; `None` leaves open
    /// chains alone.
    pub keep_turns: Option<u32>,
}

/// Block `purgeErrors`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeErrors {
    pub enabled: bool,
    /// How many turns after the error its arguments are purged.
    pub cooldown_turns: u32,
    /// The least length of arguments to purge, in UTF-16 code units.
    pub min_arg_chars: u32,
}

/// Block `thinkingStrip`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThinkingStrip {
    pub enabled: bool,
    /// How many of the last assistant messages keep their thinking. Never 0.
    pub keep_last_turns: u32,
}

/// All settings.
///
/// Lengths called "chars" are UTF-16 code units.
///
/// Source: the seed document, which also gives the defaults, and design section 4.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub enabled: bool,
    pub prune_on: PruneOn,
    pub batching_mode: BatchingMode,
    /// A batch with less text than this is not summarized.
    pub min_batch_chars: u32,
    pub dedup_by_content_hash: bool,
    /// Exact names, or globs with `*` and `?`. No entry is blank.
    pub protected_tools: Vec<String>,
    /// Globs for the argument `path`. No entry is blank.
    pub protected_paths: Vec<String>,
    /// A result of this length is spilled; 0 spills none.
    pub spill_threshold: u32,
    pub spill_preview_bytes: u32,
    pub quiet_oversized_skips: bool,
    /// Share of the window in use that makes a flush, above 0 and up to 1.
    pub auto_budget_threshold: Option<f64>,
    /// Growth of that share within one turn that makes a flush, above 0 and up to 1.
    pub budget_turn_delta: Option<f64>,
    /// The largest window, in tokens, that both shares are taken of. Never 0.
    pub budget_window_cap: Option<u64>,
    /// How many characters a flush at the end of a turn must save to be made.
    pub flush_when_saves: Option<u64>,
    pub flush_mode: FlushMode,
    pub cache_policy: CachePolicy,
    /// After this long without a model call the provider's cache counts as cold.
    pub idle_cold_ms: u64,
    /// For how many user turns the output of a query stays as it is.
    pub recovery_grace_turns: u32,
    pub chain_compression: ChainCompression,
    pub purge_errors: PurgeErrors,
    pub thinking_strip: ThinkingStrip,
    /// `default` for the session's model, else `provider/model`.
    pub summarizer_model: String,
    /// `default` leaves it to the provider.
    pub summarizer_thinking: String,
    /// 0: no limit.
    pub summarizer_idle_timeout_ms: u32,
    /// 0: no limit.
    pub summarizer_max_timeout_ms: u32,
    /// How many requests may run at a time; `None` for any number. Never 0.
    pub summarizer_concurrency: Option<u32>,
    pub compress_tool: bool,
    pub show_status_line: bool,
    /// What the user wrote that is no setting, by key; what stands inside a block is inside an
    /// object of the block's key. Written back as it was read.
    pub unknown: Map<String, Json>,
}

impl Config {
    /// Reads the settings from a JSON object. What is absent has its default.
    ///
    /// A value that cannot be used is replaced by the default and named in a warning; of a list
    /// only the bad entries are left out, so that one typing error does not take the protection
    /// off the rest. Keys that are no setting are kept and named in one notice.
    ///
    /// # Errors
    /// The text is no JSON object. Carries the parser's words.
    pub fn parse(json: &str) -> Result<(Self, Vec<Notice>), String> {
        let settings = Json::parse(json)?;
        let Json::Object(object) = settings else {
            let found = kind::excerpt(&settings);
            return Err(format!("expected an object, found {found}"));
        };
        Ok(read::read(object))
    }

    /// Writes every setting, in a fixed order, and behind the settings of each block what else the
    /// user wrote there. [`Config::parse`] reads it back as it was.
    #[must_use]
    pub fn to_json(&self) -> String {
        write::write(self)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            prune_on: PruneOn::AgentMessage,
            batching_mode: BatchingMode::Turn,
            min_batch_chars: 1_000,
            dedup_by_content_hash: true,
            protected_tools: Vec::new(),
            protected_paths: vec!["**/skills/**/*.md".to_owned()],
            spill_threshold: 65_536,
            spill_preview_bytes: 2_048,
            quiet_oversized_skips: false,
            auto_budget_threshold: None,
            budget_turn_delta: None,
            budget_window_cap: Some(300_000),
            flush_when_saves: None,
            flush_mode: FlushMode::Blocking,
            cache_policy: CachePolicy::Stable,
            idle_cold_ms: 300_000,
            recovery_grace_turns: 3,
            chain_compression: ChainCompression::default(),
            purge_errors: PurgeErrors::default(),
            thinking_strip: ThinkingStrip::default(),
            summarizer_model: "default".to_owned(),
            summarizer_thinking: "default".to_owned(),
            summarizer_idle_timeout_ms: 20_000,
            summarizer_max_timeout_ms: 180_000,
            summarizer_concurrency: None,
            compress_tool: false,
            show_status_line: true,
            unknown: Map::new(),
        }
    }
}

impl Default for ChainCompression {
    fn default() -> Self {
        Self {
            enabled: true,
            rolling_window: 3,
            fuse_range_summary: true,
            strip_final_assistant_thinking: true,
            merge_after: None,
            open_chain: OpenChain { keep_turns: None },
        }
    }
}

impl Default for PurgeErrors {
    fn default() -> Self {
        Self {
            enabled: true,
            cooldown_turns: 2,
            min_arg_chars: 500,
        }
    }
}

impl Default for ThinkingStrip {
    fn default() -> Self {
        Self {
            enabled: true,
            keep_last_turns: 16,
        }
    }
}
