//! The command `decant`, and what of it tests use: readers of recorded sessions and scenarios.

pub mod cli;
pub mod formats;
mod price;
mod replay;
mod report;
pub mod scenario;
mod summarizer;
mod tokens;
