//! Why a scenario could not be run.

/// Why a scenario could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error("the scenario is no JSON")]
    NoJson(#[from] serde_json::Error),
    /// A part of the file is not what the format asks for.
    #[error("{0}")]
    Malformed(String),
    /// The pruner refused a hook, or its instance was lost.
    #[error("step {step}: {message}")]
    Failed { step: usize, message: String },
}
