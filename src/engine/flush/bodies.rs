//! What stands in the place of a span: its summaries, fused or as they are, or an outline.

use super::spans::{Candidate, OUTLINE_CHARS, Taken};
use super::{Ask, Body, Fate, Flush, Models, Scene};
use crate::engine::block::{Extent, Outline};
use crate::engine::cut::head_chars;
use crate::engine::facts::{BatchId, Standing};
use crate::engine::hook::Hook;
use crate::engine::host::Host;
use crate::engine::ids::BlockId;
use crate::engine::order::sort_by_key;
use crate::engine::prompt::range_prompt;
use crate::engine::summary;
use crate::engine::transcript::Position;

impl Flush {
    pub(super) fn body_for(
        &self,
        scene: Scene<'_>,
        candidate: &Candidate,
        taken: &Taken,
        supersedes: &[BlockId],
        models: &mut Models,
        hook: &mut Hook<'_>,
    ) -> Body {
        let parts = self.parts_of(scene, candidate, taken, supersedes, hook.host);
        let is_open = matches!(candidate.extent, Extent::Turns { .. });
        // No footers: the block's own list of refs says the same.
        let bodies = || parts.iter().map(|part| summary::body_of(part));
        match parts.as_slice() {
            [] => Body::Own {
                text: scene.outline(candidate).write(),
                deterministic: true,
            },
            [only] if supersedes.is_empty() && !is_open => Body::Summaries(only.clone()),
            _ if is_open || !supersedes.is_empty() => Body::Own {
                text: bodies().collect::<Vec<_>>().join("\n"),
                deterministic: false,
            },
            _ => {
                let fallback = parts.join("\n\n");
                if !scene
                    .basis
                    .rules
                    .config
                    .chain_compression
                    .fuse_range_summary
                {
                    return Body::Summaries(fallback);
                }
                let prompt = range_prompt(&bodies().collect::<Vec<_>>());
                let model = models.choose(&scene.basis.rules, hook.now_ms);
                Body::Fused {
                    prompt,
                    ask: Ask::Queued { model },
                    fallback,
                }
            }
        }
    }

    /// The texts that a block is made of, oldest first: bodies of the blocks that it supersedes and
    /// the summaries of the batches that none of them covers.
    fn parts_of(
        &self,
        scene: Scene<'_>,
        candidate: &Candidate,
        taken: &Taken,
        supersedes: &[BlockId],
        host: &mut dyn Host,
    ) -> Vec<String> {
        let layout = scene.view.layout();
        let mut parts: Vec<(Position, String)> = Vec::new();
        for id in supersedes {
            if let Some(block) = scene.basis.facts.blocks().get(*id)
                && let Some(first) = layout.blocks.dropped(*id).next()
            {
                parts.push((first, block.body.clone()));
            }
        }
        let mut archived: Vec<BatchId> = Vec::new();
        let mut fresh: Vec<usize> = Vec::new();
        for at in scene.results_in(candidate) {
            if layout.is_covered(at) {
                continue;
            }
            if let Some(batch) = taken.batch_of.get(&at)
                && !fresh.contains(batch)
            {
                fresh.push(*batch);
                if let Some(content) = self.fresh_summary(*batch) {
                    parts.push((at, content));
                }
            }
            if let Some(Standing::Summarized { batch }) = scene.basis.standing_at(at)
                && !archived.contains(batch)
            {
                archived.push(*batch);
                if let Some(content) = scene.basis.summary_text(*batch, host) {
                    parts.push((at, content));
                }
            }
        }
        sort_by_key(&mut parts, |(at, _)| *at);
        parts.into_iter().map(|(_, text)| text).collect()
    }

    fn fresh_summary(&self, batch: usize) -> Option<String> {
        match &self.batches.get(batch)?.fate {
            Fate::Summarized { content } => Some(content.clone()),
            Fate::Skipped(_) | Fate::Asked { .. } => None,
        }
    }
}

impl<'a> Scene<'a> {
    fn outline(self, candidate: &Candidate) -> Outline<'a> {
        let calls: Vec<(&str, String, bool)> = candidate
            .turns
            .iter()
            .filter_map(|turn| self.basis.transcript.assistant(*turn))
            .flat_map(|turn| &turn.calls)
            .map(|call| {
                let arguments = call.arguments.as_deref().unwrap_or_default();
                let result = call.result.and_then(|at| self.basis.transcript.result(at));
                (
                    call.tool.as_str(),
                    format!("{} {}", call.tool, head_chars(arguments, OUTLINE_CHARS)),
                    result.is_some_and(|result| result.is_error),
                )
            })
            .collect();
        let mut tools: Vec<(&str, usize)> = Vec::new();
        for (tool, _, _) in &calls {
            match tools.iter_mut().find(|(known, _)| known == tool) {
                Some((_, n)) => *n += 1,
                None => tools.push((tool, 1)),
            }
        }
        let at_ms = |turn: Option<&Position>| {
            turn.and_then(|at| self.basis.transcript.slot(*at))
                .map_or(0, |slot| slot.at_ms)
        };
        let named = |call: Option<&(&str, String, bool)>| {
            let head = call.map(|(_, head, _)| head.replace('\n', " "));
            crate::engine::delimiter::disarm(&head.unwrap_or_default()).into_owned()
        };
        Outline {
            turns: candidate.turns.len(),
            errors: calls.iter().filter(|(_, _, failed)| *failed).count(),
            tools,
            from_ms: at_ms(candidate.turns.first()),
            to_ms: at_ms(candidate.turns.last()),
            first: named(calls.first()),
            last: named(calls.last()),
        }
    }
}
