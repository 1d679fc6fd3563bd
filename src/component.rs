//! The engine behind the contract in `wit/`: conversions, and nothing that decides.
//!
//! One instance holds one session. A call that comes before `open`, or from inside an import, is
//! refused or answered with nothing: it must not trap.

mod convert;
mod imports;
mod libc;

use std::cell::RefCell;

use bindings::decant::pruner::{edits, messages, notices};
use bindings::exports::decant::pruner::{control, lifecycle, query};
use convert::each;
use imports::Imports;

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

/// Why a call found no session.
const NO_SESSION: &str = "no session is open, or a call is in progress";

/// Makes a call to the session; `None` if there is none to be had.
fn with<T>(call: impl FnOnce(&mut Session) -> T) -> Option<T> {
    SESSION.with(|session| session.try_borrow_mut().ok()?.as_mut().map(call))
}

fn hook<T>(
    call: impl FnOnce(&mut Session) -> Result<T, crate::engine::session::SessionError>,
) -> Result<T, lifecycle::Error> {
    let refused = || Err(lifecycle::Error::OutOfOrder(NO_SESSION.to_owned()));
    with(call).map_or_else(refused, |done| done.map_err(Into::into))
}

fn command<T>(
    call: impl FnOnce(&mut Session) -> Result<T, crate::engine::session::CommandError>,
) -> Result<T, control::CommandError> {
    let refused = || Err(control::CommandError::NothingToDo(NO_SESSION.to_owned()));
    with(call).map_or_else(refused, |done| done.map_err(Into::into))
}

fn activity(
    call: impl FnOnce(&mut Session) -> crate::engine::session::Activity,
) -> lifecycle::Activity {
    with(call).unwrap_or_default().into()
}

impl lifecycle::Guest for Pruner {
    fn open(
        session: lifecycle::SessionInfo,
        config: messages::Json,
    ) -> Result<Vec<notices::Notice>, lifecycle::Error> {
        libc::report_panics();
        let (opened, notices) = Session::open(session.into(), &config)?;
        SESSION.with(|slot| match slot.try_borrow_mut() {
            Ok(mut slot) if slot.is_none() => {
                *slot = Some(opened);
                Ok(each(notices))
            }
            _ => {
                let why = "an instance holds one session";
                Err(lifecycle::Error::OutOfOrder(why.to_owned()))
            }
        })
    }

    fn restore(
        entries: Vec<lifecycle::LogEntry>,
    ) -> Result<Vec<notices::Notice>, lifecycle::Error> {
        hook(|session| session.restore(each(entries))).map(each)
    }

    fn sync(at: u32, tail: Vec<messages::Message>) -> Result<(), lifecycle::Error> {
        hook(|session| session.sync(at, each(tail)))
    }

    fn turn_end(usage: Option<lifecycle::Usage>, now: u64) -> lifecycle::Activity {
        activity(|session| session.turn_end(usage.map(Into::into), now, &mut Imports))
    }

    fn reply_end(closing_at: Option<u64>, now: u64) -> lifecycle::Activity {
        activity(|session| session.reply_end(closing_at, now, &mut Imports))
    }

    fn plan(known: Option<u64>, now: u64) -> Option<edits::PlanUpdate> {
        with(|session| session.plan(known, now, &mut Imports))
            .flatten()
            .map(Into::into)
    }

    fn summary_ready(job: u64, outcome: lifecycle::Outcome, now: u64) -> lifecycle::Activity {
        activity(|session| session.summary_ready(JobId(job), outcome.into(), now, &mut Imports))
    }

    fn summary_progress(job: u64, chars: u32) {
        with(|session| session.summary_progress(JobId(job), chars));
    }

    fn model_changed() {
        with(Session::model_changed);
    }

    fn query_tool_offered(offered: bool) {
        with(|session| session.query_tool_offered(offered));
    }

    fn shutdown() {
        with(|session| session.shutdown(&mut Imports));
    }
}

impl query::Guest for Pruner {
    fn tools() -> Vec<query::Tool> {
        each(with(|session| session.tools()).unwrap_or_default())
    }

    fn call(tool: String, arguments: messages::Json, now: u64) -> query::Reply {
        let reply = with(|session| session.call(&tool, &arguments, now, &mut Imports));
        reply.map_or_else(
            || query::Reply {
                text: NO_SESSION.to_owned(),
                is_error: true,
                attachments: Vec::new(),
            },
            Into::into,
        )
    }
}

impl control::Guest for Pruner {
    fn flush(now: u64) -> Result<lifecycle::Activity, control::CommandError> {
        command(|session| session.flush(now, &mut Imports)).map(Into::into)
    }

    fn compact(now: u64) -> Result<lifecycle::Activity, control::CommandError> {
        command(|session| session.compact(now, &mut Imports)).map(Into::into)
    }

    fn undo(name: String, now: u64) -> Result<String, control::CommandError> {
        command(|session| session.undo(&name, now, &mut Imports))
    }

    fn cancel() -> Result<(), control::CommandError> {
        command(|session| session.cancel(&mut Imports))
    }

    fn configure(
        config: messages::Json,
        now: u64,
    ) -> Result<Vec<notices::Notice>, control::CommandError> {
        command(|session| session.configure(&config, now, &mut Imports)).map(each)
    }

    fn config() -> messages::Json {
        with(|session| session.config()).unwrap_or_else(|| "{}".to_owned())
    }

    fn status() -> control::SessionStatus {
        with(Session::status).unwrap_or_default().into()
    }

    fn stats() -> control::SummarizerStats {
        with(|session| session.stats()).unwrap_or_default().into()
    }

    fn progress() -> Vec<control::BatchProgress> {
        each(with(|session| session.progress()).unwrap_or_default())
    }

    fn tree() -> Vec<control::Node> {
        each(with(|session| session.tree()).unwrap_or_default())
    }

    fn node_text(index: u32) -> Result<String, control::CommandError> {
        command(|session| session.node_text(index, &mut Imports))
    }
}
