//! Compressed spans: what a block stands for, and how it is written.

use super::delimiter::disarm;
use super::facts::Member;
use super::ids::{BlockId, EntryId, OccurrenceKey, Ref};

/// A span of whole turns that one user message stands for.
#[derive(Clone, Debug)]
pub struct Block {
    pub id: BlockId,
    pub entry: EntryId,
    /// What it stands for, rising; more than one where chains were merged.
    pub extents: Vec<Extent>,
    pub refs: Vec<Ref>,
    /// The results that are shown inside the block, verbatim: in its span they are the ones without a
    /// record. Old logs have their call ids only.
    pub protected: Vec<OccurrenceKey>,
    /// The archived results that it takes out of the context, sorted; `None` where an old log does
    /// not say, and all in its span count. A result of its turns that came later is not of these.
    pub dropped: Option<Vec<Member>>,
    pub body: String,
    pub compressed_at_ms: u64,
    pub validity: Validity,
}

/// Which turns a block stands for, by timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// A closed chain: everything between its first message and its final reply.
    Chain { anchor_at_ms: u64, reply_at_ms: u64 },
    /// Finished turns of a chain that goes on.
    Turns { first_at_ms: u64, last_at_ms: u64 },
}

impl Extent {
    /// When its first message began.
    #[must_use]
    pub fn start_ms(&self) -> u64 {
        match self {
            Self::Chain { anchor_at_ms, .. } => *anchor_at_ms,
            Self::Turns { first_at_ms, .. } => *first_at_ms,
        }
    }

    /// When its last message began.
    #[must_use]
    pub fn end_ms(&self) -> u64 {
        match self {
            Self::Chain { reply_at_ms, .. } => *reply_at_ms,
            Self::Turns { last_at_ms, .. } => *last_at_ms,
        }
    }
}

/// What the log says of a block since it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// It stands in the context wherever its span is found.
    InForce,
    /// A later block stands in its place.
    Superseded,
    /// The user has taken it back.
    Undone,
}

impl Block {
    /// Whether it takes an archived result of its span out of the context.
    #[must_use]
    pub fn drops(&self, member: Member) -> bool {
        let dropped = self.dropped.as_ref();
        dropped.is_none_or(|dropped| dropped.binary_search(&member).is_ok())
    }

    /// Whether a result is one of those that are shown.
    #[must_use]
    pub fn protects(&self, result: &OccurrenceKey) -> bool {
        self.protected.iter().any(|shown| {
            shown.call_id == result.call_id && (shown.at_ms.is_none() || shown == result)
        })
    }
}

/// A protected output inside a block.
pub struct ProtectedOutput<'a> {
    pub tool: &'a str,
    pub text: &'a str,
}

/// Writes the message that stands for a span.
///
/// `body` is written as it is: what the summarizer wrote was disarmed when it was taken in.
/// Protected outputs are disarmed here, so that none of them can close the element.
///
/// Source: the seed's synthetic message format; line ends around protected output as pi-condense
/// writes them.
#[must_use]
pub fn write(id: BlockId, refs: &[Ref], body: &str, protected: &[ProtectedOutput<'_>]) -> String {
    let tools: Vec<String> = refs.iter().map(Ref::to_string).collect();
    let mut text = format!(
        "<compressed-chain id=\"{id}\" tools=\"{}\">\n{body}",
        tools.join(",")
    );
    for output in protected {
        let tool = output.tool.replace('"', "'");
        text.push_str(&format!(
            "\n\n<protected-output tool=\"{}\">\n{}\n</protected-output>",
            disarm(&tool),
            disarm(output.text)
        ));
    }
    text.push_str("\n</compressed-chain>");
    text
}

/// Whether a user message is nothing but a block that [`write()`] has written.
#[must_use]
pub fn is_block(text: &str) -> bool {
    let behind_name = text
        .strip_prefix("<compressed-chain id=\"")
        .and_then(|rest| rest.split_once("\" tools=\""))
        .filter(|(name, _)| BlockId::parse(name).is_some());
    behind_name.is_some_and(|(_, rest)| rest.ends_with("\n</compressed-chain>"))
}

/// Puts the bodies of other blocks in the place of their names in braces, once; `{bN}` of the block
/// itself and of unknown blocks stays.
#[must_use]
pub fn expand(id: BlockId, body: &str, body_of: &dyn Fn(BlockId) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(body.len());
    let mut rest = body;
    while let Some((before, from_brace)) = rest.split_once('{') {
        expanded.push_str(before);
        let named = from_brace
            .split_once('}')
            .and_then(|(name, after)| Some((BlockId::parse(name)?, after)))
            .filter(|(named, _)| *named != id)
            .and_then(|(named, after)| Some((body_of(named)?, after)));
        match named {
            Some((other, after)) => {
                expanded.push_str(&other);
                rest = after;
            }
            None => {
                expanded.push('{');
                rest = from_brace;
            }
        }
    }
    expanded.push_str(rest);
    expanded
}

/// The blocks that a body names in braces.
#[must_use]
pub fn mentions(body: &str) -> Vec<BlockId> {
    body.split('{')
        .skip(1)
        .filter_map(|after| BlockId::parse(after.split_once('}')?.0))
        .collect()
}

/// What a chain without any summary says of itself.
pub struct Outline<'a> {
    pub turns: usize,
    /// Tool names with how often each was called, in order of first use.
    pub tools: Vec<(&'a str, usize)>,
    pub errors: usize,
    pub from_ms: u64,
    pub to_ms: u64,
    /// The first and the last call: tool and the head of its arguments.
    pub first: String,
    pub last: String,
}

impl Outline<'_> {
    /// The deterministic body. The refs are not in it: the block's element names them.
    #[must_use]
    pub fn write(&self) -> String {
        let n_calls: usize = self.tools.iter().map(|(_, n)| n).sum();
        let tools: Vec<String> = self
            .tools
            .iter()
            .map(|(tool, n)| format!("{tool} x{n}"))
            .collect();
        let failed = match self.errors {
            0 => String::new(),
            n => format!(", {n} failed"),
        };
        if n_calls == 1 {
            return format!("1 call{failed}: {}", self.first);
        }
        let seconds = self.to_ms.saturating_sub(self.from_ms) / 1000;
        format!(
            "{} in {} turns, {seconds} s{failed}. First: {}\nLast: {}",
            tools.join(", "),
            self.turns,
            self.first,
            self.last
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_braces_become_bodies_once() {
        let body_of = |id: BlockId| (id.0 == 1).then(|| "one {b2}".to_owned());
        for (body, expanded) in [
            (
                "two after {b1} not {b2} nor {b9}",
                "two after one {b2} not {b2} nor {b9}",
            ),
            ("{ {b1", "{ {b1"),
            ("{x}{b1}", "{x}one {b2}"),
        ] {
            assert_eq!(expand(BlockId(2), body, &body_of), expanded);
        }
        assert_eq!(mentions("{b1} {x} {b12} {b0}"), [BlockId(1), BlockId(12)]);
    }
}
