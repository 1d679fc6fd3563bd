//! The pruning logic: pure passes, and the [`session::Session`] that drives them.
//!
//! Nothing in here can panic: a panic traps, and a trap costs the host the component instance.

#![cfg_attr(
    not(test),
    warn(
        // A panic is a trap, and a trap kills the instance.
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::string_slice,
        clippy::unreachable,
        // A cast that loses something changes a decision silently.
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        // A new case has to be thought through everywhere.
        clippy::wildcard_enum_match_arm,
        // Only the host talks to the user.
        clippy::print_stdout,
        clippy::print_stderr,
    )
)]

pub mod arguments;
pub mod basis;
pub mod blob_name;
pub mod block;
pub mod config;
pub mod cut;
pub mod delimiter;
pub mod digest;
pub mod draft;
pub mod entry;
pub mod facts;
pub mod flush;
pub mod glob;
pub mod hook;
pub mod host;
pub mod ids;
pub mod json;
pub mod map;
pub mod message;
pub mod order;
pub mod plan;
pub mod prompt;
pub mod protect;
pub mod query;
pub mod row;
pub mod session;
pub mod size;
pub mod stub;
pub mod summary;
pub mod transcript;
pub mod view;
