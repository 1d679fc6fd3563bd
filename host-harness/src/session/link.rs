//! The life of a session's instance: made from the log, lost by a trap, made again.

use std::borrow::Cow;

use crate::bindings::exports::decant::pruner::lifecycle::SessionInfo;
use crate::instance::{Call, Instance, State};
use crate::lean::lean;
use crate::sync::Known;
use crate::{Decant, Level, Limits, LogEntry, Message, Notice, OpenError, SessionOptions};

/// After this many faults in a row the session stays unpruned: whatever it is will happen again.
const MAX_FAULTS: u32 = 3;

/// After this many calls without a fault, the faults before are forgotten.
const CALM_CALLS: u32 = 100;

/// How much crosses in one call, in bytes. The component's memory never shrinks, so what is large
/// comes in pieces.
const PIECE_BYTES: usize = 256 << 10;

pub(super) struct Link {
    end: End,
    /// How many messages of the transcript the mirror has.
    synced: usize,
    /// How many messages the mirror has in all; those behind `synced` are gone.
    mirrored: usize,
    /// Results whose texts need not cross; nothing once the mirror has a message.
    known: Known,
    faults: u32,
    calm_calls: u32,
    pub(super) query_tool_offered: bool,
}

/// What is at the other end.
enum End {
    Live(Box<Instance>),
    Lost(Box<State>),
    /// While the state passes from one to the other, within one function.
    Changing,
}

impl Link {
    pub(super) fn open(
        decant: &Decant,
        options: &SessionOptions,
        state: State,
    ) -> Result<Self, OpenError> {
        let instance = Instance::new(decant, state, options.limits);
        let mut instance = instance.map_err(|(_, err)| OpenError::Broken(err))?;
        let known = load(&mut instance, options)?;
        Ok(Self {
            end: End::Live(Box::new(instance)),
            synced: 0,
            mirrored: 0,
            known,
            faults: 0,
            calm_calls: 0,
            query_tool_offered: true,
        })
    }

    pub(super) fn state(&mut self) -> &mut State {
        match &mut self.end {
            End::Live(instance) => instance.state(),
            End::Lost(state) => state,
            End::Changing => unreachable!("no function ends in this state"),
        }
    }

    /// Whether there is an instance.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.end, End::Live(_))
    }

    pub(super) fn fuel_spent(&self) -> u64 {
        match &self.end {
            End::Live(instance) => instance.fuel_spent(),
            End::Lost(_) | End::Changing => 0,
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match &self.end {
            End::Live(instance) => instance.memory_bytes(),
            End::Lost(_) | End::Changing => 0,
        }
    }

    /// The transcript is no longer the same from this position on.
    pub(super) fn transcript_changed(&mut self, from: usize) {
        self.synced = self.synced.min(from);
    }

    /// Sends what the mirror lacks and makes a call. `None` while there is no instance; an error
    /// means that it is lost.
    pub(super) fn call<T>(
        &mut self,
        limits: Limits,
        transcript: &[Message],
        call: impl FnOnce(&mut Call<'_>) -> wasmtime::Result<T>,
    ) -> Option<wasmtime::Result<T>> {
        let End::Live(instance) = &mut self.end else {
            return None;
        };
        let synced = self.synced.min(transcript.len());
        let answer = sync(
            instance,
            limits,
            transcript,
            synced,
            self.mirrored,
            &mut self.known,
        )
        .and_then(|()| instance.call(limits, call));
        self.synced = transcript.len();
        self.mirrored = transcript.len();
        if self.mirrored > 0 {
            self.known.forget();
        }
        if answer.is_ok() {
            self.calm_calls += 1;
            if self.calm_calls >= CALM_CALLS {
                self.faults = 0;
            }
        }
        Some(answer)
    }

    /// The instance is lost: its jobs are cancelled and the user is told.
    pub(super) fn lose(&mut self, call: &str, err: &wasmtime::Error) {
        self.end = match std::mem::replace(&mut self.end, End::Changing) {
            End::Live(instance) => End::Lost(Box::new(instance.into_state())),
            lost => lost,
        };
        self.synced = 0;
        self.mirrored = 0;
        let state = self.state();
        for job in std::mem::take(&mut state.running) {
            state.environment.cancel(job);
        }
        self.count_fault(&format!(
            "the pruner broke down in `{call}`: {}",
            words(err)
        ));
    }

    /// Makes a new instance from the log if there is none.
    pub(super) fn revive(&mut self, decant: &Decant, options: &SessionOptions) {
        if self.faults >= MAX_FAULTS || !matches!(self.end, End::Lost(_)) {
            return;
        }
        let End::Lost(state) = std::mem::replace(&mut self.end, End::Changing) else {
            return;
        };
        let mut instance = match Instance::new(decant, *state, options.limits) {
            Ok(instance) => instance,
            Err((state, err)) => {
                self.end = End::Lost(state);
                return self.count_fault(&format!("the pruner cannot be started: {}", words(&err)));
            }
        };
        let loaded = load(&mut instance, options).and_then(|known| {
            self.known = known;
            let offered = self.query_tool_offered;
            let tell = |call: &mut Call<'_>| {
                let lifecycle = call.lifecycle;
                lifecycle.call_query_tool_offered(&mut *call.store, offered)
            };
            instance
                .call(options.limits, tell)
                .map_err(OpenError::Broken)?
                .map_err(OpenError::Refused)
        });
        match loaded {
            Ok(()) => self.end = End::Live(Box::new(instance)),
            Err(err) => {
                self.end = End::Lost(Box::new(instance.into_state()));
                self.count_fault(&format!("the session cannot be loaded again: {err}"));
            }
        }
    }

    fn count_fault(&mut self, what: &str) {
        self.faults += 1;
        self.calm_calls = 0;
        let then = if self.faults < MAX_FAULTS {
            "This context goes out unpruned, and the session is loaded again from its log."
        } else {
            "The session goes on unpruned until it is opened again."
        };
        let text = format!("{what}. {then} Nothing is lost.");
        let level = Level::Error;
        self.state().environment.notify(Notice { level, text });
    }
}

/// The cause alone: the frames of a trap are of no use to the user.
fn words(err: &wasmtime::Error) -> String {
    err.root_cause().to_string()
}

/// Hands the log over, and learns which texts it need not hand over with the transcript.
fn load(instance: &mut Instance, options: &SessionOptions) -> Result<Known, OpenError> {
    let info = SessionInfo {
        id: options.id.clone(),
    };
    let notices = instance
        .call(options.limits, |call| {
            call.lifecycle
                .call_open(&mut *call.store, &info, &options.config)
        })
        .map_err(OpenError::Broken)?
        .map_err(OpenError::Refused)?;
    show(instance, notices);
    let mut loaded = 0;
    loop {
        let environment = &mut instance.state().environment;
        let mut entries = environment.entries(loaded).map_err(OpenError::Log)?;
        if entries.is_empty() {
            break;
        }
        loaded += entries.len();
        for entry in &mut entries {
            if let Cow::Owned(data) = lean(&entry.kind, &entry.data) {
                entry.data = data;
            }
        }
        for piece in pieces(&entries, |entry: &LogEntry| entry.data.len()) {
            let notices = instance
                .call(options.limits, |call| {
                    call.lifecycle.call_restore(&mut *call.store, piece)
                })
                .map_err(OpenError::Broken)?
                .map_err(OpenError::Refused)?;
            show(instance, notices);
        }
    }
    let known = instance.call(options.limits, |call| {
        call.lifecycle.call_known_results(&mut *call.store)
    });
    let known = known
        .map_err(OpenError::Broken)?
        .map_err(OpenError::Refused)?;
    Ok(Known::new(known))
}

fn show(instance: &mut Instance, notices: Vec<Notice>) {
    for notice in notices {
        instance.state().environment.notify(notice);
    }
}

/// Makes the mirror equal to the transcript, of which it has `synced` messages.
fn sync(
    instance: &mut Instance,
    limits: Limits,
    transcript: &[Message],
    synced: usize,
    mirrored: usize,
    known: &mut Known,
) -> wasmtime::Result<()> {
    let mut at = synced;
    if at == transcript.len() && mirrored > at {
        return sync_piece(instance, limits, at, &[]);
    }
    while at < transcript.len() {
        let mut piece = Vec::new();
        let mut bytes = 0;
        while bytes < PIECE_BYTES && at + piece.len() < transcript.len() {
            let message = known.wit_of(&transcript[at + piece.len()]);
            bytes += crate::sync::size_bytes(&message);
            piece.push(message);
        }
        sync_piece(instance, limits, at, &piece)?;
        at += piece.len();
    }
    Ok(())
}

fn sync_piece(
    instance: &mut Instance,
    limits: Limits,
    at: usize,
    piece: &[crate::bindings::decant::pruner::messages::Message],
) -> wasmtime::Result<()> {
    let at = u32::try_from(at)?;
    let answer = instance.call(limits, |call| {
        call.lifecycle.call_sync(&mut *call.store, at, piece)
    })?;
    answer.map_err(|refused| wasmtime::Error::msg(format!("`sync` was refused: {refused}")))
}

/// Cuts a list so that no piece is much larger than [`PIECE_BYTES`].
fn pieces<T>(items: &[T], size_bytes: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let mut pieces = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (index, item) in items.iter().enumerate() {
        bytes += size_bytes(item);
        if bytes >= PIECE_BYTES {
            pieces.push(&items[start..=index]);
            (start, bytes) = (index + 1, 0);
        }
    }
    if start < items.len() {
        pieces.push(&items[start..]);
    }
    pieces
}
