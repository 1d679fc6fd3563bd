//! Whether compressing a span is worth it, and whether it pays for a break of the prefix.

use super::{Fate, Flush, Scene, SpanWork, Trigger};
use crate::engine::block::{self, ProtectedOutput};
use crate::engine::map::Set;
use crate::engine::size::utf16_len;
use crate::engine::view;

impl Scene<'_> {
    /// Whether compressing spans is worth a break of the prefix. With `flushWhenSaves` it has to save
    /// that much, unless the user or the model has asked for it; without, any saving will do.
    pub fn pays(self, saved: u64) -> bool {
        let is_asked_for = match self.trigger {
            Some(Trigger::Manual | Trigger::Compact | Trigger::Tool) => true,
            Some(
                Trigger::Reply
                | Trigger::Interrupted
                | Trigger::Budget
                | Trigger::Delta
                | Trigger::Savings,
            )
            | None => false,
        };
        let least = self.basis.rules.config.flush_when_saves.unwrap_or(0);
        is_asked_for || saved >= least
    }

    /// An estimate of what compressing finished turns would save now, in characters.
    pub fn spans_would_save(self) -> u64 {
        self.open_candidates(self.basis.transcript.len())
            .iter()
            .map(|candidate| {
                (candidate.from..candidate.to)
                    .map(|at| self.view.rendered(self.basis, at).chars)
                    .sum::<u64>()
            })
            .sum::<u64>()
            / 2
    }
}

impl Flush {
    /// What a span saves, in characters, counted as it will stand once the flush is committed.
    /// Nothing: it is left alone (B2).
    pub(super) fn span_saves(&self, scene: Scene<'_>, span: &SpanWork) -> u64 {
        let protected: Vec<ProtectedOutput<'_>> = span
            .protected
            .iter()
            .filter_map(|at| scene.basis.transcript.result(*at))
            .map(|result| ProtectedOutput {
                tool: &result.tool,
                text: result.text.as_deref().unwrap_or_default(),
            })
            .collect();
        let text = block::write(span.id, &span.refs, span.body.text(), &protected);
        self.replaced_chars(scene, span)
            .saturating_sub(utf16_len(&text))
    }

    /// What a block would replace: messages as they will be rendered, and the summaries whose place
    /// it takes, wherever they stand.
    fn replaced_chars(&self, scene: Scene<'_>, span: &SpanWork) -> u64 {
        let (basis, view) = (scene.basis, scene.view);
        let mut chars = 0;
        let mut messages = 0;
        for at in span.from..span.to {
            let Some(turn) = basis.transcript.assistant(at) else {
                continue;
            };
            let results = turn.calls.iter().filter_map(|call| call.result);
            for at in std::iter::once(at).chain(results) {
                chars += view.rendered(basis, at).chars;
                messages += 1;
            }
        }
        chars += view::frames(messages);
        for batch in &self.batches {
            if let Fate::Summarized { content } = &batch.fate {
                let named = || batch.calls.iter().filter_map(|call| call.name);
                if !named().all(|name| span.refs.contains(&name)) {
                    continue;
                }
                chars += utf16_len(content);
                chars = chars.saturating_sub(super::collect::stubs_save(batch, named()));
            }
        }
        let archive = basis.facts.archive();
        let mut batches = Set::new();
        let named = span.refs.iter();
        batches.extend(named.filter_map(|name| archive.batch_named(*name)));
        for id in batches {
            let is_inside = archive
                .records_of(id)
                .all(|record| span.refs.contains(&record.name));
            if is_inside && view.layout().active.contains(&id) {
                let batch = archive.batch(id);
                chars += batch.map_or(0, |batch| batch.summary_size.chars);
            }
        }
        chars
    }
}
