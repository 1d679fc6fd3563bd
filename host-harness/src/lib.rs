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

pub mod artifact;
mod bindings;
mod cache;
pub mod cli;
mod component;
mod decant;
mod environment;
mod file_host;
pub mod formats;
mod imports;
mod instance;
mod jobs;
mod lean;
mod memory_host;
mod message;
pub mod price;
mod render;
pub mod replay;
pub mod report;
pub mod scenario;
mod session;
pub mod summarizer;
mod sync;
mod time;
pub mod tokens;

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
pub use memory_host::MemoryHost;
pub use message::{Message, NotAMessage};
pub use render::{Plan, apply};
pub use session::{CommandFailure, Context, OpenError, OutOfRange, Session, SessionOptions};
pub use time::{iso_from_ms, ms_from_iso};
