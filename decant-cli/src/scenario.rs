//! Scenarios: scripted sessions as small JSON files, and what they come to.
//!
//! A scenario is run through a [`Lane`], one way to the pruner. The driver plays the host: it keeps
//! the session log, the blob folder and the clock, and answers for the summarizer. Whatever the
//! lane, the outcome is the same, byte for byte.

mod command;
mod component_lane;
mod driver;
mod error;
mod file;
mod host;
mod json;
mod lane;
mod message;
mod outcome;
mod summarizer;

pub use component_lane::ComponentLane;
pub use driver::run;
pub use error::ScenarioError;
pub use file::Scenario;
pub use host::{ScenarioHost, SharedHost};
pub use lane::Lane;
pub use outcome::Outcome;
