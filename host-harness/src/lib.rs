//! Embeds the Decant pruner in a Rust agent.
//!
//! [`Decant`] is the loaded component, shared by all sessions of a process. [`Session`] is one
//! conversation: it keeps the transcript, brings the pruner's mirror of it up to date, and renders
//! the context to send. Whatever the pruner asks of its surroundings (the session log, blobs,
//! summaries, notices) is an [`Environment`]; [`MemoryHost`] and [`FileHost`] are ready-made.
//!
//! A session outlives its component instance. When a call traps or passes its limits, the context
//! goes out unpruned, the environment is told so, and a new instance is loaded from the log.
//!
//! ```
#![doc = include_str!("../examples/embed.rs")]
//! ```

#[cfg_attr(
    feature = "embed",
    expect(dead_code, reason = "the build script has built it")
)]
mod artifact;
mod bindings;
mod cache;
mod component;
mod decant;
mod environment;
mod file_host;
mod imports;
mod instance;
mod jobs;
mod lean;
mod memory_host;
mod message;
mod render;
mod session;
mod surrogates;
mod sync;
mod time;

pub use artifact::BuildError;
pub use bindings::decant::pruner::edits::{
    Change, Edit, InsertedPart, InsertedSummary, InsertedUser, PlanUpdate, ReplacedArguments,
};
pub use bindings::decant::pruner::host_types::HostError;
pub use bindings::decant::pruner::messages::Occurrence;
pub use bindings::decant::pruner::notices::{Level, Notice, TotalCost};
pub use bindings::decant::pruner::session_log::Stamp;
pub use bindings::decant::pruner::summarizer::{JobKind, ModelChoice, Request};
pub use bindings::exports::decant::pruner::control::{
    BatchProgress, BatchState, CommandError, Node, NodeKind, SessionStatus, Size, Strategy,
    StrategyKind, SummarizerStats,
};
pub use bindings::exports::decant::pruner::lifecycle::{
    Activity, Error as SessionError, Failure, FailureKind, JobUsage, LogEntry, Outcome, Summary,
    Usage,
};
pub use bindings::exports::decant::pruner::query::{Answer, Tool};
pub use cache::Cache;
pub use component::{ComponentSource, Interfaces, SourceError};
pub use decant::{Decant, DecantBuilder, LoadError};
pub use environment::Environment;
pub use file_host::FileHost;
pub use instance::Limits;
pub use jobs::JobQueue;
pub use lean::lean;
pub use memory_host::MemoryHost;
pub use message::{Message, NotAMessage};
pub use render::{Plan, apply};
pub use session::{CommandFailure, Context, OpenError, OutOfRange, Session, SessionOptions};
pub use surrogates::repair_surrogates;
pub use time::{iso_from_ms, ms_from_iso};

/// The exports of the component one by one, for what plays a host hook by hook, as scenarios do. An
/// agent wants a [`Session`].
pub mod exports {
    pub use crate::bindings::decant::pruner::messages;
    pub use crate::bindings::exports::decant::pruner::lifecycle::SessionInfo;
    pub use crate::instance::{Call, Instance, State};
    pub use crate::sync::to_wit;
}
