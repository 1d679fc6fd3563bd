//! An entry of the log, read.

use serde::de::DeserializeOwned;

use crate::engine::entry;
use crate::engine::host::{Host, HostError, Stamp};

/// What one entry of the log says.
#[derive(Debug)]
pub enum Fact {
    Summary(entry::SummaryMessage),
    Index(entry::Index),
    Alias(entry::Alias),
    Chain(entry::Chain),
    Frontier(entry::Frontier),
    Epoch(entry::Epoch),
    Undo(entry::Undo),
    Stats(entry::Stats),
    Diagnostic(entry::Diagnostic),
}

impl Fact {
    /// Reads an entry; `None` for one of a kind that says nothing here.
    ///
    /// # Errors
    /// The data is not what entries of this kind have.
    pub fn read(kind: &str, data: &str) -> Result<Option<Self>, serde_json::Error> {
        Ok(Some(match kind {
            entry::SUMMARY => Self::Summary(parse(data)?),
            entry::INDEX => Self::Index(parse(data)?),
            entry::ALIAS => Self::Alias(parse(data)?),
            entry::CHAIN => Self::Chain(parse(data)?),
            entry::FRONTIER => Self::Frontier(parse(data)?),
            entry::EPOCH => Self::Epoch(parse(data)?),
            entry::UNDO => Self::Undo(parse(data)?),
            entry::STATS => Self::Stats(parse(data)?),
            entry::DIAGNOSTIC => Self::Diagnostic(parse(data)?),
            _ => return Ok(None),
        }))
    }

    /// Appends it to the log.
    ///
    /// # Errors
    /// The log cannot be written; nothing was appended.
    pub fn append(&self, host: &mut dyn Host) -> Result<Stamp, HostError> {
        let (kind, data) = match self {
            Self::Summary(message) => {
                let details = entry::write(&message.details);
                return host.append_message(entry::SUMMARY, &message.content, &details);
            }
            Self::Index(index) => (entry::INDEX, entry::write(index)),
            Self::Alias(alias) => (entry::ALIAS, entry::write(alias)),
            Self::Chain(chain) => (entry::CHAIN, entry::write(chain)),
            Self::Frontier(frontier) => (entry::FRONTIER, entry::write(frontier)),
            Self::Epoch(epoch) => (entry::EPOCH, entry::write(epoch)),
            Self::Undo(undo) => (entry::UNDO, entry::write(undo)),
            Self::Stats(stats) => (entry::STATS, entry::write(stats)),
            Self::Diagnostic(diagnostic) => (entry::DIAGNOSTIC, entry::write(diagnostic)),
        };
        host.append(kind, &data)
    }
}

fn parse<T: DeserializeOwned>(data: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(data)
}
