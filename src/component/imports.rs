//! The engine's way out, over the contract's imports.

use super::bindings::decant::pruner::{blobs, notices, session_log, summarizer};
use crate::engine::host::{Cost, Host, HostError, Notice, Request, Stamp};
use crate::engine::ids::{EntryId, JobId};

pub(super) struct Imports;

impl Host for Imports {
    fn append(&mut self, kind: &str, data: &str) -> Result<Stamp, HostError> {
        let appended = session_log::append(kind, data);
        appended.map(Into::into).map_err(Into::into)
    }

    fn append_message(
        &mut self,
        kind: &str,
        content: &str,
        details: &str,
    ) -> Result<Stamp, HostError> {
        let appended = session_log::append_message(kind, content, details);
        appended.map(Into::into).map_err(Into::into)
    }

    fn read(&mut self, entry: &EntryId) -> Result<String, HostError> {
        session_log::read(&entry.0).map_err(Into::into)
    }

    fn write_blob(&mut self, name: &str, text: &str) -> Result<String, HostError> {
        blobs::write(name, text).map_err(Into::into)
    }

    fn read_blob(&mut self, name: &str) -> Result<String, HostError> {
        blobs::read(name).map_err(Into::into)
    }

    fn submit(&mut self, request: &Request) -> Result<JobId, HostError> {
        let submitted = summarizer::submit(&request.clone().into());
        submitted.map(JobId).map_err(Into::into)
    }

    fn cancel(&mut self, job: JobId) {
        summarizer::cancel(job.0);
    }

    fn notify(&mut self, notice: &Notice) {
        notices::notify(&notice.clone().into());
    }

    fn status(&mut self, line: &str) {
        notices::status(line);
    }

    fn cost(&mut self, cost: &Cost) {
        notices::cost((*cost).into());
    }
}
