//! The summarizer jobs that wait for an answer.

use std::collections::VecDeque;

use crate::Request;

/// Submitted jobs in the order of submission, numbered from 1.
#[derive(Clone, Debug, Default)]
pub struct JobQueue {
    submitted: u64,
    waiting: VecDeque<(u64, Request)>,
}

impl JobQueue {
    /// Adds a job and returns its id.
    pub fn submit(&mut self, request: Request) -> u64 {
        self.submitted += 1;
        self.waiting.push_back((self.submitted, request));
        self.submitted
    }

    /// Drops a job that has not been taken yet.
    pub fn cancel(&mut self, job: u64) {
        self.waiting.retain(|(id, _)| *id != job);
    }

    /// Takes the oldest job out.
    pub fn take(&mut self) -> Option<(u64, Request)> {
        self.waiting.pop_front()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
