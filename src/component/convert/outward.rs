//! What goes to the host.

use super::each;
use crate::component::bindings::decant::pruner::{edits, messages, notices, summarizer};
use crate::component::bindings::exports::decant::pruner::{control, lifecycle, query};
use crate::engine::entry::Stats;
use crate::engine::host::{Cost, JobKind, Level, ModelChoice, Notice, Request};
use crate::engine::ids::OccurrenceKey;
use crate::engine::plan::{Change, Edit, InsertedPart, PlanUpdate};
use crate::engine::session::{
    Activity, Answer, BatchProgress, BatchState, CommandError, Node, NodeKind, SessionError,
    Status, StrategyReport, Tool,
};
use crate::engine::size::Size;
use crate::engine::view::ledger::Strategy;

impl From<PlanUpdate> for edits::PlanUpdate {
    fn from(update: PlanUpdate) -> Self {
        Self {
            revision: update.revision,
            base: update.base,
            removed: update.removed,
            added: each(update.added),
        }
    }
}

impl From<Edit> for edits::Edit {
    fn from(edit: Edit) -> Self {
        Self {
            id: edit.id,
            at: edit.at,
            change: edit.change.into(),
        }
    }
}

impl From<Change> for edits::Change {
    fn from(change: Change) -> Self {
        match change {
            Change::ReplaceText(text) => Self::ReplaceText(text),
            Change::Drop(n) => Self::Drop(n),
            Change::MoveUp(to) => Self::MoveUp(to),
            Change::InsertUser { parts, at_ms } => Self::InsertUser(edits::InsertedUser {
                parts: each(parts),
                at: at_ms,
            }),
            Change::InsertSummary {
                content,
                details,
                at_ms,
            } => Self::InsertSummary(edits::InsertedSummary {
                content,
                details,
                at: at_ms,
            }),
            Change::StripThinking => Self::StripThinking,
            Change::ReplaceArguments { call, arguments } => {
                Self::ReplaceArguments(edits::ReplacedArguments { call, arguments })
            }
        }
    }
}

impl From<InsertedPart> for edits::InsertedPart {
    fn from(part: InsertedPart) -> Self {
        match part {
            InsertedPart::Text(text) => Self::Text(text),
            InsertedPart::Attachments(at) => Self::Attachments(at),
        }
    }
}

impl From<Request> for summarizer::Request {
    fn from(request: Request) -> Self {
        Self {
            kind: match request.kind {
                JobKind::Batch => summarizer::JobKind::Batch,
                JobKind::Range => summarizer::JobKind::Range,
            },
            index: request.index,
            prompt: request.prompt,
            model: match request.model {
                ModelChoice::Configured => summarizer::ModelChoice::Configured,
                ModelChoice::Session => summarizer::ModelChoice::Session,
            },
            model_name: request.model_name,
            thinking: request.thinking,
            idle_timeout_ms: request.idle_timeout_ms,
            total_timeout_ms: request.total_timeout_ms,
        }
    }
}

impl From<Notice> for notices::Notice {
    fn from(notice: Notice) -> Self {
        Self {
            level: match notice.level {
                Level::Info => notices::Level::Info,
                Level::Warning => notices::Level::Warning,
                Level::Error => notices::Level::Error,
            },
            text: notice.text,
        }
    }
}

impl From<Cost> for notices::TotalCost {
    fn from(cost: Cost) -> Self {
        Self {
            input: cost.input_tokens,
            output: cost.output_tokens,
            total: cost.total,
        }
    }
}

impl From<SessionError> for lifecycle::Error {
    fn from(err: SessionError) -> Self {
        match err {
            SessionError::OutOfOrder(why) => Self::OutOfOrder(why),
            SessionError::PositionOutOfRange(len) => Self::PositionOutOfRange(len),
            SessionError::MalformedConfig(why) => Self::MalformedConfig(why),
        }
    }
}

impl From<Activity> for lifecycle::Activity {
    fn from(activity: Activity) -> Self {
        Self {
            pending_turns: activity.pending_turns,
            running_jobs: activity.running_jobs,
            blocking: activity.blocking,
        }
    }
}

impl From<Tool> for query::Tool {
    fn from(tool: Tool) -> Self {
        Self {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters,
        }
    }
}

impl From<Answer> for query::Answer {
    fn from(answer: Answer) -> Self {
        Self {
            text: answer.text,
            is_error: answer.is_error,
            attachments: each(answer.attachments),
        }
    }
}

impl From<OccurrenceKey> for messages::Occurrence {
    fn from(key: OccurrenceKey) -> Self {
        Self {
            call_id: key.call_id,
            at: key.at_ms,
        }
    }
}

impl From<CommandError> for control::CommandError {
    fn from(err: CommandError) -> Self {
        match err {
            CommandError::Disabled => Self::Disabled,
            CommandError::SwitchedOff(key) => Self::SwitchedOff(key),
            CommandError::Busy => Self::Busy,
            CommandError::NothingToDo(why) => Self::NothingToDo(why),
            CommandError::NotFound(what) => Self::NotFound(what),
            CommandError::LogFailed(why) => Self::LogFailed(why),
            CommandError::Malformed(allowed) => Self::Malformed(allowed),
            CommandError::Unreadable(why) => Self::Unreadable(why),
        }
    }
}

impl From<Size> for control::Size {
    fn from(size: Size) -> Self {
        Self {
            chars: size.chars,
            tokens: size.tokens,
        }
    }
}

impl From<Status> for control::SessionStatus {
    fn from(status: Status) -> Self {
        Self {
            enabled: status.enabled,
            line: status.line,
            before: status.before.into(),
            after: status.after.into(),
            pending_turns: status.pending_turns,
            running_jobs: status.running_jobs,
            records: status.records,
            blocks: status.blocks,
            strategies: each(status.strategies),
            open_cycle_thinking: status.open_cycle_thinking.into(),
            largest_chain_percent: status.largest_chain_percent,
            frontier_gap: status.frontier_gap.into(),
        }
    }
}

impl From<StrategyReport> for control::Strategy {
    fn from(strategy: StrategyReport) -> Self {
        Self {
            kind: match strategy.kind {
                Strategy::Stub => control::StrategyKind::Stub,
                Strategy::Dedup => control::StrategyKind::Dedup,
                Strategy::Spill => control::StrategyKind::Spill,
                Strategy::Chain => control::StrategyKind::Chain,
                Strategy::Purge => control::StrategyKind::Purge,
                Strategy::Thinking => control::StrategyKind::Thinking,
                Strategy::Pairing => control::StrategyKind::Pairing,
            },
            count: strategy.count,
            saved: strategy.saved,
        }
    }
}

impl From<Stats> for control::SummarizerStats {
    fn from(stats: Stats) -> Self {
        Self {
            input_tokens: stats.total_input_tokens,
            output_tokens: stats.total_output_tokens,
            cost: stats.total_cost,
            calls: stats.call_count,
            chains_compressed: stats.chains_compressed,
            ranges_summarized: stats.ranges_summarized,
        }
    }
}

impl From<BatchProgress> for control::BatchProgress {
    fn from(batch: BatchProgress) -> Self {
        Self {
            label: batch.label,
            state: match batch.state {
                BatchState::Queued => control::BatchState::Queued,
                BatchState::Running => control::BatchState::Running,
                BatchState::Answered => control::BatchState::Answered,
                BatchState::Failed => control::BatchState::Failed,
            },
            chars: batch.chars,
        }
    }
}

impl From<Node> for control::Node {
    fn from(node: Node) -> Self {
        Self {
            kind: match node.kind {
                NodeKind::Block => control::NodeKind::Block,
                NodeKind::Summary => control::NodeKind::Summary,
                NodeKind::Call => control::NodeKind::Call,
                NodeKind::Alias => control::NodeKind::Alias,
            },
            name: node.name,
            label: node.label,
            parent: node.parent,
            call_id: node.call_id,
        }
    }
}
