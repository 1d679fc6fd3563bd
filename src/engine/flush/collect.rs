//! What a flush takes up: batches of untried results, without duplicates, and what becomes of them.

use super::{Ask, Batch, Captured, Duplicate, Fate, Flush, Original, Scene, Skip, Trigger};
use crate::engine::basis::Basis;
use crate::engine::config::{BatchingMode, PruneOn};
use crate::engine::digest::Hash;
use crate::engine::host::{Host, ModelChoice, Notice};
use crate::engine::ids::Ref;
use crate::engine::map::Map;
use crate::engine::order::sort_by_key;
use crate::engine::prompt::{PromptCall, batch_prompt};
use crate::engine::size::utf16_len;
use crate::engine::transcript::{Chain, ChainEnd, Position};
use crate::engine::{stub, summary};

impl Scene<'_> {
    /// Untried results by batch, oldest first, and whether each batch is to be summarized.
    pub(super) fn collect(self, trigger: Trigger) -> Vec<Batch> {
        let mut groups: Map<Position, Vec<Captured>> = Map::new();
        let before = match trigger {
            Trigger::Savings => self.ripe_before(),
            Trigger::Interrupted => self.last_chain_start(),
            Trigger::Reply
            | Trigger::Manual
            | Trigger::Compact
            | Trigger::Budget
            | Trigger::Delta
            | Trigger::Tool => Position::MAX,
        };
        for at in self.view.untried().before(before) {
            if let Some(captured) = self.capture(at) {
                let group = self.group_of(captured.site.assistant);
                groups.update(group, |calls| calls.push(captured));
            }
        }
        let mut seen: Map<(Hash, bool), (usize, usize)> = Map::new();
        let mut batches = Vec::new();
        for (index, mut calls) in groups.into_values().enumerate() {
            sort_by_key(&mut calls, |call| call.site);
            batches.push(self.batch(index, calls, &mut seen));
        }
        batches
    }

    /// Whether the last prompt has interrupted a chain that waits.
    pub fn has_interrupted_work(self) -> bool {
        let before = self.basis.transcript.last_chain_but_one();
        let interrupted = before.filter(|chain| matches!(chain.end, ChainEnd::Interrupted(_)));
        self.basis.rules.config.prune_on == PruneOn::AgentMessage
            && interrupted.is_some_and(|chain| {
                let waiting = self.view.untried().before(self.last_chain_start());
                waiting.last().is_some_and(|last| last >= chain.start())
            })
    }

    pub fn last_chain_start(self) -> Position {
        let last = self.basis.transcript.last_chain();
        last.map_or(0, |(_, chain)| chain.start())
    }

    /// A flush for the sake of savings leaves alone what the model has not seen yet, and the turns
    /// that `chainCompression.openChain.keepTurns` keeps.
    pub fn ripe_before(self) -> Position {
        let keep = self
            .basis
            .rules
            .config
            .chain_compression
            .open_chain
            .keep_turns;
        let kept_from = keep.map_or(Position::MAX, |keep| self.kept_from(keep as usize));
        kept_from.min(self.basis.epoch.sent)
    }

    fn capture(self, at: Position) -> Option<Captured> {
        let result = self.basis.transcript.result(at)?;
        result.text.as_ref()?;
        Some(Captured {
            site: result.site?,
            at,
            key: self.basis.transcript.key_at(at)?,
            hash: self.basis.hash_at(at),
            chars: result.text_size.chars,
            name: None,
        })
    }

    /// What a turn is batched under: itself, or the chain that it belongs to.
    fn group_of(self, assistant: Position) -> Position {
        match self.basis.rules.config.batching_mode {
            BatchingMode::Turn => assistant,
            BatchingMode::AgentMessage => {
                let last = self.basis.transcript.chain_before(assistant + 1);
                let own = last.and_then(|id| self.basis.transcript.chain(id));
                own.map_or(assistant, Chain::start)
            }
        }
    }

    fn batch(
        self,
        index: usize,
        captured: Vec<Captured>,
        seen: &mut Map<(Hash, bool), (usize, usize)>,
    ) -> Batch {
        let mut calls: Vec<Captured> = Vec::new();
        let mut duplicates = Vec::new();
        for call in captured {
            match self.original_of(&call, seen) {
                Some(of) => duplicates.push(Duplicate { call, of }),
                None => calls.push(call),
            }
        }
        let mut batch = Batch {
            calls,
            duplicates,
            summary_chars: 0,
            fate: Fate::Skipped(Skip::Deduped),
        };
        batch.fate = self.fate_of(&batch);
        if matches!(batch.fate, Fate::Asked { .. }) {
            // Only what is summarized can serve as an original: what is passed over here leaves its
            // repetitions to be looked at for themselves.
            self.fold_repetitions(index, &mut batch, seen);
        }
        batch
    }

    fn fold_repetitions(
        self,
        index: usize,
        batch: &mut Batch,
        seen: &mut Map<(Hash, bool), (usize, usize)>,
    ) {
        let mut calls: Vec<Captured> = Vec::new();
        for call in std::mem::take(&mut batch.calls) {
            match self.original_of(&call, seen) {
                Some(of) => batch.duplicates.push(Duplicate { call, of }),
                None => {
                    if let Some(key) = self.hash_key(&call) {
                        seen.insert(key, (index, calls.len()));
                    }
                    calls.push(call);
                }
            }
        }
        batch.calls = calls;
        let written = self.prompt_for(batch);
        if let Fate::Asked { prompt, .. } = &mut batch.fate {
            *prompt = written;
        }
    }

    fn hash_key(self, call: &Captured) -> Option<(Hash, bool)> {
        let is_error = self.basis.transcript.result(call.at)?.is_error;
        Some((call.hash.as_ref()?.normalized, is_error))
    }

    fn original_of(
        self,
        call: &Captured,
        seen: &Map<(Hash, bool), (usize, usize)>,
    ) -> Option<Original> {
        // A result that has a record of its own is no duplicate, whatever it says.
        if !self.basis.rules.config.dedup_by_content_hash || self.basis.member_at(call.at).is_some()
        {
            return None;
        }
        let key = self.hash_key(call)?;
        let hash = call.hash.as_ref()?;
        if let Some(record) = self.basis.facts.archive().duplicate_of(hash, key.1) {
            return Some(Original::Record(record));
        }
        let (batch, call) = *seen.get(&key)?;
        Some(Original::Within { batch, call })
    }

    fn fate_of(self, batch: &Batch) -> Fate {
        let raw = batch.raw_chars();
        if batch.calls.is_empty() {
            return Fate::Skipped(Skip::Deduped);
        }
        if raw == 0 || raw < u64::from(self.basis.rules.config.min_batch_chars) {
            return Fate::Skipped(Skip::Trivial);
        }
        if self.most_saved(batch) == 0 {
            return Fate::Skipped(Skip::Oversized);
        }
        Fate::Asked {
            prompt: String::new(),
            ask: Ask::Queued {
                model: ModelChoice::Session,
            },
        }
    }

    /// What stubs and a summary of no length at all would save: nothing is asked of the summarizer
    /// where that is nothing.
    fn most_saved(self, batch: &Batch) -> u64 {
        let last = self
            .basis
            .facts
            .archive()
            .last_named()
            .map_or(0, |name| name.0);
        let names: Vec<Ref> = (1..)
            .zip(&batch.calls)
            .map(|(n, _)| Ref(last + n))
            .collect();
        let footer = utf16_len(&summary::content("", &names));
        stubs_save(batch, names).saturating_sub(footer)
    }

    fn prompt_for(self, batch: &Batch) -> String {
        let mut words: Vec<&str> = Vec::new();
        let mut last = None;
        let mut calls = Vec::new();
        for captured in &batch.calls {
            if last != Some(captured.site.assistant)
                && let Some(turn) = self.basis.transcript.assistant(captured.site.assistant)
            {
                words.push(&turn.text);
                last = Some(captured.site.assistant);
            }
            let (Some(result), Some(call)) = (
                self.basis.transcript.result(captured.at),
                self.basis.transcript.call(captured.site),
            ) else {
                continue;
            };
            calls.push(PromptCall {
                tool: &call.tool,
                arguments: call.arguments.as_deref().unwrap_or_default(),
                is_error: result.is_error,
                text: result.text.as_deref().unwrap_or_default(),
                other_parts: &result.other_parts,
            });
        }
        batch_prompt(&words, &calls)
    }
}

impl Flush {
    /// Names the calls of answered batches, and passes over those whose summary is not worth it.
    pub(super) fn judge_batches(&mut self, basis: &Basis, host: &mut dyn Host) {
        let failures: Vec<String> = self
            .asks()
            .filter_map(|(_, ask)| match ask {
                Ask::Failed(why) => Some(why.clone()),
                Ask::Queued { .. } | Ask::Running { .. } | Ask::Answered(_) => None,
            })
            .collect();
        report_failures(&failures, host);
        self.catch_up(basis);
        for batch in &mut self.batches {
            if let Fate::Asked {
                ask: Ask::Answered(answer),
                ..
            } = &batch.fate
            {
                let answer = answer.clone();
                judge(batch, &answer, basis, &mut self.last_name);
            }
        }
    }
}

/// Names the calls of one answered batch, or passes over it.
fn judge(batch: &mut Batch, answer: &str, basis: &Basis, last_name: &mut Ref) {
    // Names are given out for what is kept only: a batch that is passed over must not leave a hole
    // in the row of refs.
    let mut last = *last_name;
    let names: Vec<Ref> = batch
        .calls
        .iter()
        .map(|call| {
            basis.facts.known_name(&call.key).unwrap_or_else(|| {
                last = Ref(last.0 + 1);
                last
            })
        })
        .collect();
    let labels: Vec<(&str, Ref)> = batch
        .calls
        .iter()
        .filter_map(|call| basis.transcript.call(call.site))
        .map(|call| call.tool.as_str())
        .zip(names.iter().copied())
        .collect();
    let text = summary::label_refs(answer, &labels);
    let content = summary::content(&text, &names);
    batch.summary_chars = utf16_len(&content);
    if stubs_save(batch, names.iter().copied()) <= batch.summary_chars {
        batch.fate = Fate::Skipped(Skip::Oversized);
        return;
    }
    for (call, name) in batch.calls.iter_mut().zip(&names) {
        call.name = Some(*name);
    }
    batch.fate = Fate::Summarized { content };
    *last_name = last;
}

/// Names the failures of a stage, once each.
fn report_failures(failures: &[String], host: &mut dyn Host) {
    let mut named: Vec<&String> = Vec::new();
    for failure in failures {
        if !named.contains(&failure) {
            named.push(failure);
            host.notify(&Notice::error(format!(
                "pruner: summarization failed: {failure}; nothing is lost, the next flush tries \
                 again"
            )));
        }
    }
}

/// What the stubs of a batch save, without its summary.
pub(super) fn stubs_save(batch: &Batch, names: impl IntoIterator<Item = Ref>) -> u64 {
    batch
        .calls
        .iter()
        .zip(names)
        .map(|(call, name)| call.chars.saturating_sub(utf16_len(&stub::stub(name))))
        .sum()
}
