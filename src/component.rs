//! The engine behind the contract in `wit/`: conversions, and nothing that decides.
//!
//! One instance holds one session. A call that comes before `open`, or from inside an import, is
//! refused: it must not trap.

mod convert;
mod imports;
mod libc;

use std::cell::RefCell;

use bindings::decant::pruner::{edits, messages, notices};
use bindings::exports::decant::pruner::{control, lifecycle, query};
use convert::each;
use imports::Imports;

use crate::engine::hook::Hook;
use crate::engine::ids::JobId;
use crate::engine::session::Session;

#[expect(unsafe_code, reason = "generated: the canonical ABI passes pointers")]
mod bindings {
    wit_bindgen::generate!({ path: "wit", world: "pruner" });

    export!(Pruner);

    use super::Pruner;
}

struct Pruner;

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Why there is no session to be had.
enum Absent {
    NotOpen,
    ReEntered,
}

impl From<Absent> for lifecycle::Error {
    fn from(absent: Absent) -> Self {
        match absent {
            Absent::NotOpen => Self::NotOpen,
            Absent::ReEntered => Self::ReEntered,
        }
    }
}

impl From<Absent> for control::CommandError {
    fn from(absent: Absent) -> Self {
        match absent {
            Absent::NotOpen => Self::NotOpen,
            Absent::ReEntered => Self::ReEntered,
        }
    }
}

/// Makes a call to the session, if there is one to be had.
fn with<T, E: From<Absent>>(call: impl FnOnce(&mut Session) -> T) -> Result<T, E> {
    SESSION.with(|session| {
        let mut session = session.try_borrow_mut().map_err(|_| Absent::ReEntered)?;
        Ok(call(session.as_mut().ok_or(Absent::NotOpen)?))
    })
}

/// As [`with`], for a call that may be refused.
fn attempt<T, E: From<Absent> + From<R>, R>(
    call: impl FnOnce(&mut Session) -> Result<T, R>,
) -> Result<T, E> {
    with(call).and_then(|done| done.map_err(Into::into))
}

impl lifecycle::Guest for Pruner {
    fn open(
        _: lifecycle::SessionInfo,
        config: messages::Json,
    ) -> Result<Vec<notices::Notice>, lifecycle::Error> {
        libc::report_panics();
        let (opened, notices) = Session::open(&config)?;
        SESSION.with(|slot| {
            let mut slot = slot.try_borrow_mut().map_err(|_| Absent::ReEntered)?;
            if slot.is_some() {
                let why = "an instance holds one session";
                return Err(lifecycle::Error::OutOfOrder(why.to_owned()));
            }
            *slot = Some(opened);
            Ok(each(notices))
        })
    }

    fn restore(
        entries: Vec<lifecycle::LogEntry>,
    ) -> Result<Vec<notices::Notice>, lifecycle::Error> {
        attempt(|session| session.restore(each(entries))).map(each)
    }

    fn known_results() -> Result<Vec<messages::Occurrence>, lifecycle::Error> {
        with(Session::known_results).map(each)
    }

    fn sync(at: u32, tail: Vec<messages::Message>) -> Result<(), lifecycle::Error> {
        attempt(|session| session.sync(at, each(tail)))
    }

    fn turn_end(
        usage: Option<lifecycle::Usage>,
        now: u64,
    ) -> Result<lifecycle::Activity, lifecycle::Error> {
        with(|session| session.turn_end(usage.map(Into::into), &mut Hook::new(now, &mut Imports)))
            .map(Into::into)
    }

    fn reply_end(
        closing_at: Option<u64>,
        now: u64,
    ) -> Result<lifecycle::Activity, lifecycle::Error> {
        with(|session| session.reply_end(closing_at, &mut Hook::new(now, &mut Imports)))
            .map(Into::into)
    }

    fn plan(known: Option<u64>, now: u64) -> Result<Option<edits::PlanUpdate>, lifecycle::Error> {
        let update = with(|session| session.plan(known, &mut Hook::new(now, &mut Imports)));
        update.map(|update| update.map(Into::into))
    }

    fn summary_ready(
        job: u64,
        outcome: lifecycle::Outcome,
        now: u64,
    ) -> Result<lifecycle::Activity, lifecycle::Error> {
        with(|session| {
            session.summary_ready(
                JobId(job),
                outcome.into(),
                &mut Hook::new(now, &mut Imports),
            )
        })
        .map(Into::into)
    }

    fn summary_progress(job: u64, chars: u32) -> Result<(), lifecycle::Error> {
        with(|session| session.summary_progress(JobId(job), chars))
    }

    fn model_changed() -> Result<(), lifecycle::Error> {
        with(Session::model_changed)
    }

    fn query_tool_offered(offered: bool) -> Result<(), lifecycle::Error> {
        with(|session| session.query_tool_offered(offered))
    }

    fn shutdown() -> Result<(), lifecycle::Error> {
        with(|session| session.shutdown(&mut Imports))
    }
}

impl query::Guest for Pruner {
    fn tools() -> Result<Vec<query::Tool>, query::Error> {
        with(|session| session.tools()).map(each)
    }

    fn call(
        tool: String,
        arguments: messages::Json,
        now: u64,
    ) -> Result<query::Answer, query::Error> {
        let answer =
            with(|session| session.call(&tool, &arguments, &mut Hook::new(now, &mut Imports)));
        answer.map(Into::into)
    }
}

impl control::Guest for Pruner {
    fn flush(now: u64) -> Result<lifecycle::Activity, control::CommandError> {
        attempt(|session| session.flush(&mut Hook::new(now, &mut Imports))).map(Into::into)
    }

    fn compact(now: u64) -> Result<lifecycle::Activity, control::CommandError> {
        attempt(|session| session.compact(&mut Hook::new(now, &mut Imports))).map(Into::into)
    }

    fn undo(name: String, now: u64) -> Result<String, control::CommandError> {
        attempt(|session| session.undo(&name, &mut Hook::new(now, &mut Imports)))
    }

    fn cancel() -> Result<(), control::CommandError> {
        attempt(|session| session.cancel(&mut Imports))
    }

    fn configure(
        config: messages::Json,
        now: u64,
    ) -> Result<Vec<notices::Notice>, control::CommandError> {
        attempt(|session| session.configure(&config, &mut Hook::new(now, &mut Imports))).map(each)
    }

    fn config() -> Result<messages::Json, control::CommandError> {
        with(|session| session.config())
    }

    fn status() -> Result<control::SessionStatus, control::CommandError> {
        with(Session::status).map(Into::into)
    }

    fn stats() -> Result<control::SummarizerStats, control::CommandError> {
        with(|session| session.stats()).map(Into::into)
    }

    fn progress() -> Result<Vec<control::BatchProgress>, control::CommandError> {
        with(|session| session.progress()).map(each)
    }

    fn tree() -> Result<Vec<control::Node>, control::CommandError> {
        with(|session| session.tree()).map(each)
    }

    fn node_text(index: u32) -> Result<String, control::CommandError> {
        attempt(|session| session.node_text(index, &mut Imports))
    }
}
