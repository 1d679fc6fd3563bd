//! What comes out of the engine, in the contract's types.

use decant::engine::entry::Stats;
use decant::engine::host::{Cost, JobKind, Level, ModelChoice, Notice, Request};
use decant::engine::plan::{Change, Edit, InsertedPart, PlanUpdate};
use decant::engine::session::{
    Activity, Answer, CommandError, Node, NodeKind, Status, StrategyReport,
};
use decant::engine::size::Size;
use decant::engine::view::ledger::Strategy;

pub(super) fn plan_update(update: PlanUpdate) -> decant_host::PlanUpdate {
    decant_host::PlanUpdate {
        revision: update.revision,
        base: update.base,
        removed: update.removed,
        added: update.added.into_iter().map(edit).collect(),
    }
}

fn edit(edit: Edit) -> decant_host::Edit {
    decant_host::Edit {
        id: edit.id,
        at: edit.at,
        change: change(edit.change),
    }
}

fn change(change: Change) -> decant_host::Change {
    match change {
        Change::ReplaceText(text) => decant_host::Change::ReplaceText(text),
        Change::Drop(count) => decant_host::Change::Drop(count),
        Change::MoveUp(to) => decant_host::Change::MoveUp(to),
        Change::InsertUser { parts, at_ms } => {
            decant_host::Change::InsertUser(decant_host::InsertedUser {
                parts: parts.into_iter().map(part).collect(),
                at: at_ms,
            })
        }
        Change::InsertSummary {
            content,
            details,
            at_ms,
        } => decant_host::Change::InsertSummary(decant_host::InsertedSummary {
            content,
            details,
            at: at_ms,
        }),
        Change::StripThinking => decant_host::Change::StripThinking,
        Change::ReplaceArguments { call, arguments } => {
            let replaced = decant_host::ReplacedArguments { call, arguments };
            decant_host::Change::ReplaceArguments(replaced)
        }
    }
}

fn part(part: InsertedPart) -> decant_host::InsertedPart {
    match part {
        InsertedPart::Text(text) => decant_host::InsertedPart::Text(text),
        InsertedPart::Attachments(of) => decant_host::InsertedPart::Attachments(of),
    }
}

pub(super) fn request(request: &Request) -> decant_host::Request {
    decant_host::Request {
        kind: match request.kind {
            JobKind::Batch => decant_host::JobKind::Batch,
            JobKind::Range => decant_host::JobKind::Range,
        },
        index: request.index,
        prompt: request.prompt.clone(),
        model: match request.model {
            ModelChoice::Configured => decant_host::ModelChoice::Configured,
            ModelChoice::Session => decant_host::ModelChoice::Session,
        },
        model_name: request.model_name.clone(),
        thinking: request.thinking.clone(),
        idle_timeout_ms: request.idle_timeout_ms,
        total_timeout_ms: request.total_timeout_ms,
    }
}

pub(super) fn notice(notice: &Notice) -> decant_host::Notice {
    decant_host::Notice {
        level: match notice.level {
            Level::Info => decant_host::Level::Info,
            Level::Warning => decant_host::Level::Warning,
            Level::Error => decant_host::Level::Error,
        },
        text: notice.text.clone(),
    }
}

pub(super) fn cost(cost: Cost) -> decant_host::TotalCost {
    decant_host::TotalCost {
        input: cost.input_tokens,
        output: cost.output_tokens,
        total: cost.total,
    }
}

pub(super) fn activity(activity: Activity) -> decant_host::Activity {
    decant_host::Activity {
        pending_turns: activity.pending_turns,
        running_jobs: activity.running_jobs,
        blocking: activity.blocking,
    }
}

pub(super) fn answer(answer: Answer) -> decant_host::Answer {
    let attachments = answer.attachments.into_iter();
    let attachments = attachments.map(|key| decant_host::Occurrence {
        call_id: key.call_id,
        at: key.at_ms,
    });
    decant_host::Answer {
        text: answer.text,
        is_error: answer.is_error,
        attachments: attachments.collect(),
    }
}

pub(super) fn command_error(error: CommandError) -> decant_host::CommandError {
    match error {
        CommandError::Disabled => decant_host::CommandError::Disabled,
        CommandError::SwitchedOff(key) => decant_host::CommandError::SwitchedOff(key),
        CommandError::Busy => decant_host::CommandError::Busy,
        CommandError::NothingToDo(why) => decant_host::CommandError::NothingToDo(why),
        CommandError::NotFound(what) => decant_host::CommandError::NotFound(what),
        CommandError::LogFailed(why) => decant_host::CommandError::LogFailed(why),
        CommandError::Malformed(allowed) => decant_host::CommandError::Malformed(allowed),
        CommandError::Unreadable(why) => decant_host::CommandError::Unreadable(why),
    }
}

pub(super) fn status(status: Status) -> decant_host::SessionStatus {
    decant_host::SessionStatus {
        enabled: status.enabled,
        line: status.line,
        before: size(status.before),
        after: size(status.after),
        pending_turns: status.pending_turns,
        running_jobs: status.running_jobs,
        records: status.records,
        blocks: status.blocks,
        strategies: status.strategies.iter().map(strategy).collect(),
        open_cycle_thinking: size(status.open_cycle_thinking),
        largest_chain_percent: status.largest_chain_percent,
        frontier_gap: size(status.frontier_gap),
    }
}

fn strategy(strategy: &StrategyReport) -> decant_host::Strategy {
    decant_host::Strategy {
        kind: match strategy.kind {
            Strategy::Stub => decant_host::StrategyKind::Stub,
            Strategy::Dedup => decant_host::StrategyKind::Dedup,
            Strategy::Spill => decant_host::StrategyKind::Spill,
            Strategy::Chain => decant_host::StrategyKind::Chain,
            Strategy::Purge => decant_host::StrategyKind::Purge,
            Strategy::Thinking => decant_host::StrategyKind::Thinking,
            Strategy::Pairing => decant_host::StrategyKind::Pairing,
        },
        count: strategy.count,
        saved: strategy.saved,
    }
}

fn size(size: Size) -> decant_host::Size {
    decant_host::Size {
        chars: size.chars,
        tokens: size.tokens,
    }
}

pub(super) fn stats(stats: &Stats) -> decant_host::SummarizerStats {
    decant_host::SummarizerStats {
        input_tokens: stats.total_input_tokens,
        output_tokens: stats.total_output_tokens,
        cost: stats.total_cost,
        calls: stats.call_count,
        chains_compressed: stats.chains_compressed,
        ranges_summarized: stats.ranges_summarized,
    }
}

pub(super) fn node(node: Node) -> decant_host::Node {
    decant_host::Node {
        kind: match node.kind {
            NodeKind::Block => decant_host::NodeKind::Block,
            NodeKind::Summary => decant_host::NodeKind::Summary,
            NodeKind::Call => decant_host::NodeKind::Call,
            NodeKind::Alias => decant_host::NodeKind::Alias,
        },
        name: node.name,
        label: node.label,
        parent: node.parent,
        call_id: node.call_id,
    }
}
