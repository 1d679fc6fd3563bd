//! Session files that something has damaged: whatever they hold, a session loads and goes on.

use std::sync::{Arc, Mutex};

use decant::engine::config::Config;
use decant::engine::entry;
use decant::engine::host::Outcome;
use decant::engine::session::LogEntry;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::apply::apply;
use super::host::{Disk, FakeHost, Item, Shared, hold};
use super::lane::{EngineLane, Lane};
use super::pairing;
use super::script::{Command, Script};
use super::world;

/// What happens to one line. Lines and values are named by numbers, taken modulo what there is.
#[derive(Clone, Debug)]
pub(crate) enum Harm {
    Lost,
    Twice,
    /// It changes places with another one.
    Swapped(u16),
    /// An entry's data end after this share, in 255ths.
    CutOff(u8),
    /// An entry's data are this text.
    Garbled(String),
    /// An entry is of another kind.
    OtherKind(u8),
    /// One of the values in an entry's data is another one.
    OtherValue(u16, u8),
    /// The timestamp of a message or an entry is another one.
    OtherTime(u64),
}

/// Up to ten of them, each with the line that it befalls.
pub(crate) fn harms() -> impl Strategy<Value = Vec<(u16, Harm)>> {
    let time = prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(u64::MAX - 1),
        any::<u64>()
    ];
    let harm = prop_oneof![
        2 => Just(Harm::Lost),
        2 => Just(Harm::Twice),
        2 => any::<u16>().prop_map(Harm::Swapped),
        2 => any::<u8>().prop_map(Harm::CutOff),
        1 => any::<String>().prop_map(Harm::Garbled),
        2 => any::<u8>().prop_map(Harm::OtherKind),
        9 => (any::<u16>(), any::<u8>()).prop_map(|(at, value)| Harm::OtherValue(at, value)),
        3 => time.prop_map(Harm::OtherTime),
    ];
    vec((any::<u16>(), harm), 1..10)
}

/// Loads what a script leaves behind after some damage, and goes on with it.
///
/// # Errors
/// The request that the model would get is malformed.
pub(crate) fn check(script: &Script, harms: &[(u16, Harm)]) -> Result<(), String> {
    let played = world::play(script, |host| Box::new(EngineLane::plain(host)), false)?;
    let mut items = played.items;
    for (line, harm) in harms {
        befall(&mut items, *line, harm);
    }
    let is_enabled = Config::parse(&script.settings.to_string())?.0.enabled;
    let story = world::story(&items);
    let disk = Disk::of(items, played.blobs);
    let transcript = disk.transcript(script.host.shows_summaries);
    let host = Arc::new(Mutex::new(FakeHost::with(disk)));
    let mut lane = EngineLane::new(Arc::clone(&host));
    lane.open(&script.settings.to_string(), true, 3);
    lane.sync(0, &transcript);
    let call_model = |lane: &mut EngineLane, now: u64| {
        let edits = lane.plan(now)?;
        let shown = apply(&transcript, &edits);
        let checked = shown.and_then(|shown| match is_enabled {
            true => pairing::check(&transcript, &shown),
            false => Ok(()),
        });
        checked.map_err(|why| format!("{why}\nin {edits:?}{story}"))
    };
    for now in [0, u64::MAX] {
        call_model(&mut lane, now)?;
        lane.turn_end(None, now);
        answer_all(&mut lane, &host, now);
        lane.reply_end(None, now);
        let _ = lane.command(Command::Now, now);
        answer_all(&mut lane, &host, now);
        call_model(&mut lane, now)?;
        let _ = lane.command(Command::UndoBlock(0), now);
        let _ = lane.command(Command::UndoRef(0), now);
        lane.account();
        for name in ["t1..t9", "b1", "b2", "call_1", "call_1@0"] {
            let arguments = json!({ "toolCallIds": [name] });
            lane.call("context_tree_query", &arguments.to_string(), now);
        }
    }
    Ok(())
}

fn answer_all(lane: &mut EngineLane, host: &Shared, now: u64) {
    loop {
        let job = hold(host).jobs.pop();
        let Some((job, _)) = job else { break };
        let answer = Outcome::Answered {
            text: "- done `t1`".to_owned(),
            truncated: false,
            usage: None,
        };
        lane.summary_ready(job, answer, now);
    }
}

fn befall(items: &mut Vec<Item>, line: u16, harm: &Harm) {
    let Some(line) = usize::from(line).checked_rem(items.len()) else {
        return;
    };
    match harm {
        Harm::Lost => drop(items.remove(line)),
        Harm::Twice => items.insert(line, items[line].clone()),
        Harm::Swapped(other) => {
            let other = usize::from(*other) % items.len();
            items.swap(line, other);
        }
        Harm::CutOff(share) => change(&mut items[line], |entry| {
            let keep = entry.data.len() * usize::from(*share) / 255;
            let keep = entry.data.floor_char_boundary(keep);
            entry.data.truncate(keep);
        }),
        Harm::Garbled(text) => change(&mut items[line], |entry| entry.data.clone_from(text)),
        Harm::OtherKind(kind) => change(&mut items[line], |entry| {
            KINDS[usize::from(*kind) % KINDS.len()].clone_into(&mut entry.kind);
        }),
        Harm::OtherValue(at, value) => change(&mut items[line], |entry| {
            let Ok(mut data) = serde_json::from_str(&entry.data) else {
                return;
            };
            let n_values = count(&data);
            let value = hostile(*value);
            replace(&mut data, &mut (usize::from(*at) % n_values), &value);
            entry.data = data.to_string();
        }),
        Harm::OtherTime(at_ms) => match &mut items[line] {
            Item::Entry(entry) => entry.at_ms = *at_ms,
            Item::Message(message) | Item::Cut { message, .. } => message.at_ms = *at_ms,
            Item::Summary(entry, message) => {
                entry.at_ms = *at_ms;
                message.at_ms = *at_ms;
            }
        },
    }
}

fn change(item: &mut Item, change: impl FnOnce(&mut LogEntry)) {
    if let Item::Entry(entry) | Item::Summary(entry, _) = item {
        change(entry);
    }
}

const KINDS: [&str; 9] = [
    entry::SUMMARY,
    entry::INDEX,
    entry::ALIAS,
    entry::CHAIN,
    entry::FRONTIER,
    entry::EPOCH,
    entry::UNDO,
    entry::STATS,
    entry::DIAGNOSTIC,
];

fn hostile(which: u8) -> Value {
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(1.5e300),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(u32::MAX),
        json!(""),
        json!("t4294967295"),
        json!("b4294967295"),
        json!("b1"),
        json!("t1"),
        json!("@"),
        json!("call_1@18446744073709551615"),
        json!("../../etc/passwd"),
        json!([]),
        json!({}),
        json!([[["t1"]]]),
        json!({ "toolCallId": "call_1" }),
    ];
    values[usize::from(which) % values.len()].clone()
}

/// How many values a value is made of, itself included.
fn count(value: &Value) -> usize {
    let inner: usize = match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    };
    inner + 1
}

/// Replaces the value that comes `left` values behind this one.
fn replace(value: &mut Value, left: &mut usize, new: &Value) -> bool {
    if *left == 0 {
        value.clone_from(new);
        return true;
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| replace(item, left, new)),
        Value::Object(fields) => fields.values_mut().any(|field| replace(field, left, new)),
        _ => false,
    }
}
