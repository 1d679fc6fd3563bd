//! `decant query`, `decant tree` and `decant status`: what a session's log holds.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use decant_host::{Decant, Node, NodeKind};
use serde_json::json;

use super::Exit;
use super::settings::Settings;
use crate::replay::Stored;

#[derive(Args, Debug)]
pub(super) struct Target {
    /// A session's log, as a replay with --log or pi wrote it
    #[arg(value_name = "SESSION")]
    session: PathBuf,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Args, Debug)]
pub(super) struct Query {
    #[command(flatten)]
    target: Target,
    /// What to read back: refs such as t3, blocks such as b1, tool call ids
    #[arg(required = true, value_name = "REF")]
    refs: Vec<String>,
    /// Lines (or matches) to leave out
    #[arg(long)]
    offset: Option<u32>,
    /// Lines (or matches) to print
    #[arg(long)]
    limit: Option<u32>,
    /// Prints only lines that match this regular expression, with context
    #[arg(long, value_name = "REGEX")]
    pattern: Option<String>,
}

impl Target {
    fn open(&self) -> Result<Stored> {
        let config = self.settings.read()?;
        let decant = Decant::new().context("cannot load the component")?;
        Stored::open(&decant, &self.session, &config)
    }
}

pub(super) fn query(arguments: &Query, out: &mut dyn Write) -> Result<Exit> {
    let mut stored = arguments.target.open()?;
    let mut call = json!({"toolCallIds": arguments.refs});
    for (key, value) in [("offset", arguments.offset), ("limit", arguments.limit)] {
        if let Some(value) = value {
            call[key] = json!(value);
        }
    }
    if let Some(pattern) = &arguments.pattern {
        call["pattern"] = json!(pattern);
    }
    let answer = stored
        .session
        .answer("context_tree_query", &call.to_string(), stored.at_ms);
    writeln!(out, "{}", answer.text)?;
    match answer.is_error {
        true => Ok(Exit::Found),
        false => Ok(Exit::Success),
    }
}

pub(super) fn tree(target: &Target, out: &mut dyn Write) -> Result<Exit> {
    let mut stored = target.open()?;
    let nodes = stored.session.tree()?;
    if nodes.is_empty() {
        writeln!(out, "nothing has been pruned in this session")?;
    }
    let mut children = vec![Vec::new(); nodes.len()];
    let mut roots = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        match node
            .parent
            .and_then(|parent| children.get_mut(parent as usize))
        {
            Some(siblings) => siblings.push(index),
            None => roots.push(index),
        }
    }
    let mut waiting: Vec<(usize, usize)> = roots.into_iter().rev().map(|root| (root, 0)).collect();
    while let Some((index, depth)) = waiting.pop() {
        writeln!(
            out,
            "{:indent$}{}",
            "",
            words(&nodes[index]),
            indent = depth * 2
        )?;
        let below = std::mem::take(&mut children[index]).into_iter().rev();
        waiting.extend(below.map(|child| (child, depth + 1)));
    }
    Ok(Exit::Success)
}

fn words(node: &Node) -> String {
    let kind = match node.kind {
        NodeKind::Block => "block",
        NodeKind::Summary => "summary",
        NodeKind::Call => "call",
        NodeKind::Alias => "alias",
    };
    let words = [kind, &node.name, &node.label];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

pub(super) fn status(target: &Target, out: &mut dyn Write) -> Result<Exit> {
    let mut stored = target.open()?;
    // Positions and sizes are those of a context, so there has to be one.
    stored.session.context(stored.at_ms);
    let status = stored.session.status()?;
    let stats = stored.session.stats()?;
    writeln!(out, "{}", status.line)?;
    let size = |size: &decant_host::Size| {
        format!("{} characters, about {} tokens", size.chars, size.tokens)
    };
    writeln!(out, "without pruning: {}", size(&status.before))?;
    writeln!(out, "with pruning:    {}", size(&status.after))?;
    writeln!(
        out,
        "archive: {} refs, {} blocks",
        status.records, status.blocks
    )?;
    writeln!(
        out,
        "waiting: {} turns; not tried yet: {}",
        status.pending_turns,
        size(&status.frontier_gap)
    )?;
    writeln!(
        out,
        "thinking of the open tool cycle: {}",
        size(&status.open_cycle_thinking)
    )?;
    writeln!(
        out,
        "largest chain: {}% of the context",
        status.largest_chain_percent
    )?;
    for strategy in &status.strategies {
        writeln!(
            out,
            "{}: {} in force, {} characters saved",
            strategy.kind.name(),
            strategy.count,
            strategy.saved
        )?;
    }
    writeln!(
        out,
        "summarizer: {} calls, {} tokens read, {} written, ${:.4}; {} chains compressed, {} ranges fused",
        stats.calls,
        stats.input_tokens,
        stats.output_tokens,
        stats.cost,
        stats.chains_compressed,
        stats.ranges_summarized
    )?;
    Ok(Exit::Success)
}
