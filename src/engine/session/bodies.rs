//! What stands in the place of a span: its summaries, fused or as they are, or an outline.

use super::flush::{Ask, Body, Fate};
use super::spans::Candidate;
use super::spans::OUTLINE_CHARS;
use super::spans::Taken;
use super::{Position, Session};
use crate::engine::archive::Standing;
use crate::engine::block::{Block, Extent, Outline};
use crate::engine::cut::head_chars;
use crate::engine::host::Host;
use crate::engine::ids::BlockId;
use crate::engine::order::sort_by_key;
use crate::engine::prompt::range_prompt;
use crate::engine::summary;

impl Session {
    pub(super) fn body_for(
        &mut self,
        candidate: &Candidate,
        taken: &Taken,
        supersedes: &[BlockId],
        now_ms: u64,
        host: &mut dyn Host,
    ) -> Body {
        let parts = self.parts_of(candidate, taken, supersedes, host);
        let is_open = matches!(candidate.extent, Extent::Turns { .. });
        match parts.as_slice() {
            [] => Body::Own {
                text: self.outline(candidate).write(),
                deterministic: true,
            },
            [only] if supersedes.is_empty() && !is_open => Body::Summaries(only.clone()),
            _ if is_open || !supersedes.is_empty() => {
                // No footers: the block's own list of refs says the same.
                let bodies: Vec<&str> = parts.iter().map(|part| summary::body_of(part)).collect();
                Body::Own {
                    text: bodies.join("\n"),
                    deterministic: false,
                }
            }
            _ => {
                let fallback = parts.join("\n\n");
                if !self.config.chain_compression.fuse_range_summary {
                    return Body::Summaries(fallback);
                }
                let bodies: Vec<&str> = parts.iter().map(|part| summary::body_of(part)).collect();
                let prompt = range_prompt(&bodies);
                let model = self.choose_model(now_ms);
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
        candidate: &Candidate,
        taken: &Taken,
        supersedes: &[BlockId],
        host: &mut dyn Host,
    ) -> Vec<String> {
        let mut parts: Vec<(Position, String)> = Vec::new();
        for id in supersedes {
            if let Some(block) = self.blocks.all.get(id)
                && let Some(first) = block.dropped().next()
            {
                parts.push((first, block.body.clone()));
            }
        }
        let mut archived: Vec<usize> = Vec::new();
        let mut fresh: Vec<usize> = Vec::new();
        for at in self.results_in(candidate) {
            if self.is_covered(at) {
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
            let batch =
                self.record_at(at)
                    .and_then(|index| match self.archive.record(index)?.standing {
                        Standing::Summarized { batch } => Some(batch),
                        Standing::Spilled { .. }
                        | Standing::Recovered { .. }
                        | Standing::Archived => None,
                    });
            if let Some(batch) = batch
                && !archived.contains(&batch)
            {
                archived.push(batch);
                if let Some(content) = self.summary_text(batch, host) {
                    parts.push((at, content));
                }
            }
        }
        sort_by_key(&mut parts, |(at, _)| *at);
        parts.into_iter().map(|(_, text)| text).collect()
    }

    fn fresh_summary(&self, batch: usize) -> Option<String> {
        match &self.flush.as_ref()?.batches.get(batch)?.fate {
            Fate::Summarized { content } => Some(content.clone()),
            Fate::Skipped(_) | Fate::Asked { .. } => None,
        }
    }

    fn outline<'a>(&'a self, candidate: &Candidate) -> Outline<'a> {
        let calls: Vec<(&str, String, bool)> = candidate
            .turns
            .iter()
            .filter_map(|turn| self.transcript.assistant(*turn))
            .flat_map(|turn| &turn.calls)
            .map(|call| {
                let arguments = call.arguments.as_deref().unwrap_or_default();
                let result = call.result.and_then(|at| self.transcript.result(at));
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
            turn.and_then(|at| self.transcript.slot(*at))
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

    /// Positions of the outputs that a block shows verbatim.
    pub(super) fn shown_in(&self, block: &Block) -> Vec<Position> {
        let dropped = block.dropped();
        dropped.filter(|at| self.is_shown_in(block, *at)).collect()
    }

    /// Whether a block shows the result at a position, which it covers.
    pub(super) fn is_shown_in(&self, block: &Block, at: Position) -> bool {
        let key = self.transcript.key_at(at);
        key.is_some_and(|key| block.protects(&key)) && self.member_at(at).is_none()
    }
}
