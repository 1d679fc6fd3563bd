//! The contract's imports, answered by the session's environment.

use crate::bindings::decant::pruner::{
    blobs, edits, host_types, messages, notices, session_log, summarizer,
};
use crate::instance::State;
use crate::render::custom_message;
use crate::{HostError, Notice, Request, Stamp, TotalCost};

impl messages::Host for State {}
impl edits::Host for State {}
impl host_types::Host for State {}

impl session_log::Host for State {
    fn append(&mut self, kind: String, data: String) -> Result<Stamp, HostError> {
        self.environment.append(&kind, &data, self.now_ms)
    }

    fn append_message(
        &mut self,
        kind: String,
        content: String,
        details: String,
    ) -> Result<Stamp, HostError> {
        let stamp = self
            .environment
            .append_message(&kind, &content, &details, self.now_ms)?;
        self.appended
            .push(custom_message(&kind, &content, &details, stamp.at));
        Ok(stamp)
    }

    fn read(&mut self, entry: String) -> Result<String, HostError> {
        self.environment.read(&entry)
    }
}

impl blobs::Host for State {
    fn write(&mut self, name: String, text: String) -> Result<String, HostError> {
        self.environment.write_blob(&name, &text)
    }

    fn read(&mut self, name: String) -> Result<String, HostError> {
        self.environment.read_blob(&name)
    }
}

impl summarizer::Host for State {
    fn submit(&mut self, request: Request) -> Result<u64, HostError> {
        let job = self.environment.submit(request)?;
        self.running.insert(job);
        Ok(job)
    }

    fn cancel(&mut self, job: u64) {
        self.running.remove(&job);
        self.environment.cancel(job);
    }
}

impl notices::Host for State {
    fn notify(&mut self, notice: Notice) {
        self.environment.notify(notice);
    }

    fn status(&mut self, line: String) {
        self.environment.status(&line);
    }

    fn cost(&mut self, cost: TotalCost) {
        self.environment.cost(cost);
    }
}
