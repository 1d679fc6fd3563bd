//! What the commands of a scenario print.

use decant_host::{CommandError, CommandFailure, Node, NodeKind, SessionStatus, SummarizerStats};

pub(super) fn refusal(error: &CommandError) -> String {
    CommandFailure::Refused(error.clone()).to_string()
}

pub(super) fn printed_status(status: &SessionStatus) -> String {
    let mut lines = vec![
        status.line.clone(),
        format!("enabled: {}", status.enabled),
        format!("before: {} chars", status.before.chars),
        format!("after: {} chars", status.after.chars),
        format!("pending turns: {}", status.pending_turns),
        format!("running jobs: {}", status.running_jobs),
        format!("records: {}", status.records),
        format!("blocks: {}", status.blocks),
    ];
    let strategies = status.strategies.iter();
    lines.extend(
        strategies
            .map(|done| format!("{}: {}, saved {}", done.kind.name(), done.count, done.saved)),
    );
    lines.join("\n")
}

pub(super) fn printed_stats(stats: &SummarizerStats) -> String {
    let lines = [
        format!("calls: {}", stats.calls),
        format!("input tokens: {}", stats.input_tokens),
        format!("output tokens: {}", stats.output_tokens),
        format!("cost: {}", stats.cost),
        format!("chains compressed: {}", stats.chains_compressed),
        format!("ranges summarized: {}", stats.ranges_summarized),
    ];
    lines.join("\n")
}

/// One line for each node, indented below its parent.
pub(super) fn printed_tree(nodes: &[Node]) -> String {
    let lines = nodes.iter().map(|node| {
        let kind = match node.kind {
            NodeKind::Block => "block",
            NodeKind::Summary => "summary",
            NodeKind::Call => "call",
            NodeKind::Alias => "alias",
        };
        let indent = "  ".repeat(depth(node, nodes));
        let words = [kind, &node.name, &node.label].map(str::trim);
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        format!("{indent}{}", words.join(" "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn depth(node: &Node, nodes: &[Node]) -> usize {
    let parent_of = |node: &&Node| node.parent.and_then(|parent| nodes.get(parent as usize));
    std::iter::successors(parent_of(&node), parent_of)
        .take(nodes.len())
        .count()
}
