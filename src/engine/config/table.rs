//! Every setting once: its key, what it may be, and where it lives.

use super::kind::{
    Flag, Fraction, Kind, Model, OrNull, Placed, RaisedTo, Setting, ThinkingLevel, Whole, Words,
};
use super::{BatchingMode, CachePolicy, Config, FlushMode, PruneOn};
use crate::engine::glob::Glob;

/// Says what is wrong with an entry of a list.
pub(super) type Check = fn(&str) -> Result<Glob, String>;

/// What is done with each setting, in the order of the table.
pub(super) trait Visitor {
    fn visit(&mut self, key: &'static str, setting: &mut dyn Setting);

    /// A list of names or patterns, each of which `check` must be able to read.
    fn list(&mut self, key: &'static str, check: Check, value: &mut Vec<String>);

    /// Settings inside an object of their own.
    fn block(&mut self, key: &'static str, inside: &mut dyn FnMut(&mut dyn Visitor));
}

impl dyn Visitor + '_ {
    fn setting<K: Kind>(&mut self, key: &'static str, kind: K, value: &mut K::Value) {
        self.visit(key, &mut Placed { kind, value });
    }
}

const PRUNE_ON: Words<PruneOn> = Words(&[
    ("agent-message", PruneOn::AgentMessage),
    ("on-demand", PruneOn::OnDemand),
]);

const BATCHING_MODE: Words<BatchingMode> = Words(&[
    ("turn", BatchingMode::Turn),
    ("agent-message", BatchingMode::AgentMessage),
]);

const FLUSH_MODE: Words<FlushMode> = Words(&[
    ("blocking", FlushMode::Blocking),
    ("background", FlushMode::Background),
]);

const CACHE_POLICY: Words<CachePolicy> =
    Words(&[("stable", CachePolicy::Stable), ("live", CachePolicy::Live)]);

pub(super) fn visit(config: &mut Config, v: &mut dyn Visitor) {
    v.setting("enabled", Flag, &mut config.enabled);
    v.setting("pruneOn", PRUNE_ON, &mut config.prune_on);
    v.setting("batchingMode", BATCHING_MODE, &mut config.batching_mode);
    v.setting("minBatchChars", Whole::from(0), &mut config.min_batch_chars);
    v.setting(
        "dedupByContentHash",
        Flag,
        &mut config.dedup_by_content_hash,
    );
    v.list(
        "protectedTools",
        Glob::for_names,
        &mut config.protected_tools,
    );
    v.list("protectedPaths", Glob::new, &mut config.protected_paths);
    v.setting(
        "spillThreshold",
        Whole::from(0),
        &mut config.spill_threshold,
    );
    v.setting(
        "spillPreviewBytes",
        Whole::from(0),
        &mut config.spill_preview_bytes,
    );
    v.setting(
        "quietOversizedSkips",
        Flag,
        &mut config.quiet_oversized_skips,
    );
    visit_triggers(config, v);
    visit_passes(config, v);
    visit_summarizer(config, v);
    v.setting("compressTool", Flag, &mut config.compress_tool);
    v.setting("showStatusLine", Flag, &mut config.show_status_line);
}

fn visit_triggers(config: &mut Config, v: &mut dyn Visitor) {
    v.setting(
        "autoBudgetThreshold",
        OrNull(Fraction),
        &mut config.auto_budget_threshold,
    );
    v.setting(
        "budgetTurnDelta",
        OrNull(Fraction),
        &mut config.budget_turn_delta,
    );
    v.setting(
        "budgetWindowCap",
        OrNull(Whole::from(1)),
        &mut config.budget_window_cap,
    );
    v.setting(
        "flushWhenSaves",
        OrNull(Whole::from(0)),
        &mut config.flush_when_saves,
    );
    v.setting("flushMode", FLUSH_MODE, &mut config.flush_mode);
    v.setting("cachePolicy", CACHE_POLICY, &mut config.cache_policy);
    v.setting("idleColdMs", Whole::from(0), &mut config.idle_cold_ms);
    v.setting(
        "recoveryGraceTurns",
        Whole::from(0),
        &mut config.recovery_grace_turns,
    );
}

fn visit_passes(config: &mut Config, v: &mut dyn Visitor) {
    let chains = &mut config.chain_compression;
    v.block("chainCompression", &mut |v| {
        v.setting("enabled", Flag, &mut chains.enabled);
        v.setting("rollingWindow", Whole::from(0), &mut chains.rolling_window);
        v.setting("fuseRangeSummary", Flag, &mut chains.fuse_range_summary);
        v.setting(
            "stripFinalAssistantThinking",
            Flag,
            &mut chains.strip_final_assistant_thinking,
        );
        v.setting(
            "mergeAfter",
            OrNull(Whole::from(2)),
            &mut chains.merge_after,
        );
        v.block("openChain", &mut |v| {
            let keep_turns = &mut chains.open_chain.keep_turns;
            v.setting("keepTurns", OrNull(Whole::from(0)), keep_turns);
        });
    });
    let errors = &mut config.purge_errors;
    v.block("purgeErrors", &mut |v| {
        v.setting("enabled", Flag, &mut errors.enabled);
        v.setting("cooldownTurns", Whole::from(0), &mut errors.cooldown_turns);
        v.setting("minArgChars", Whole::from(0), &mut errors.min_arg_chars);
    });
    let thinking = &mut config.thinking_strip;
    v.block("thinkingStrip", &mut |v| {
        v.setting("enabled", Flag, &mut thinking.enabled);
        v.setting("keepLastTurns", RaisedTo(1), &mut thinking.keep_last_turns);
    });
}

fn visit_summarizer(config: &mut Config, v: &mut dyn Visitor) {
    v.setting("summarizerModel", Model, &mut config.summarizer_model);
    v.setting(
        "summarizerThinking",
        ThinkingLevel,
        &mut config.summarizer_thinking,
    );
    v.setting(
        "summarizerIdleTimeoutMs",
        Whole::from(0),
        &mut config.summarizer_idle_timeout_ms,
    );
    v.setting(
        "summarizerMaxTimeoutMs",
        Whole::from(0),
        &mut config.summarizer_max_timeout_ms,
    );
    v.setting(
        "summarizerConcurrency",
        OrNull(Whole::from(1)),
        &mut config.summarizer_concurrency,
    );
}
