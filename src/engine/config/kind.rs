//! What a setting may be: how it is read, how it is written, and the words for what is allowed.

use std::marker::PhantomData;

use serde_json::Number;

use crate::engine::json::{Json, text_of};

/// Whole numbers from here on are no longer exact in JSON as other programs read it.
const WHOLE_LIMIT: u64 = 9_007_199_254_740_992;

/// One kind of setting. `read` gives back what `write` has written.
pub(super) trait Kind {
    type Value;

    /// `None` for a value of the wrong type or out of range.
    fn read(&self, json: &Json) -> Option<Self::Value>;

    fn write(&self, value: &Self::Value) -> Json;

    /// What is allowed, to follow the word "must be".
    fn allowed(&self) -> String;
}

/// A setting of any kind, with its place.
pub(super) trait Setting {
    /// Whether the value could be used.
    fn read(&mut self, json: &Json) -> bool;

    fn write(&self) -> Json;

    fn allowed(&self) -> String;
}

pub(super) struct Placed<'a, K: Kind> {
    pub(super) kind: K,
    pub(super) value: &'a mut K::Value,
}

impl<K: Kind> Setting for Placed<'_, K> {
    fn read(&mut self, json: &Json) -> bool {
        let read = self.kind.read(json);
        let is_usable = read.is_some();
        if let Some(read) = read {
            *self.value = read;
        }
        is_usable
    }

    fn write(&self) -> Json {
        self.kind.write(self.value)
    }

    fn allowed(&self) -> String {
        self.kind.allowed()
    }
}

/// `true` or `false`.
pub(super) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn read(&self, json: &Json) -> Option<bool> {
        match json {
            Json::Flag(flag) => Some(*flag),
            Json::Null | Json::Number(_) | Json::Text(_) | Json::List(_) | Json::Object(_) => None,
        }
    }

    fn write(&self, value: &bool) -> Json {
        Json::Flag(*value)
    }

    fn allowed(&self) -> String {
        "true or false".to_owned()
    }
}

/// An unsigned integer type that a whole number can have.
pub(super) trait Unsigned: Copy + Into<u64> + TryFrom<u64> {
    const MAX: u64;
}

impl Unsigned for u32 {
    const MAX: u64 = u32::MAX as u64;
}

impl Unsigned for u64 {
    const MAX: u64 = 9_007_199_254_740_991;
}

/// A whole number with a least value. `2.0` is 2.
pub(super) struct Whole<T> {
    min: u64,
    width: PhantomData<T>,
}

impl<T: Unsigned> Whole<T> {
    pub(super) fn from(min: u64) -> Self {
        Self {
            min,
            width: PhantomData,
        }
    }
}

impl<T: Unsigned> Kind for Whole<T> {
    type Value = T;

    fn read(&self, json: &Json) -> Option<T> {
        let number = whole(json.as_number()?)?;
        let number = u64::try_from(number).ok()?;
        if (self.min..=T::MAX).contains(&number) {
            T::try_from(number).ok()
        } else {
            None
        }
    }

    fn write(&self, value: &T) -> Json {
        Json::Number((*value).into().into())
    }

    fn allowed(&self) -> String {
        format!("a whole number from {} to {}", self.min, T::MAX)
    }
}

/// A whole number that is raised to a least value without a word.
///
/// Source: the seed document, on `thinkingStrip.keepLastTurns`.
pub(super) struct RaisedTo(pub(super) u32);

impl Kind for RaisedTo {
    type Value = u32;

    fn read(&self, json: &Json) -> Option<u32> {
        let number = whole(json.as_number()?)?;
        u32::try_from(number.max(i64::from(self.0))).ok()
    }

    fn write(&self, value: &u32) -> Json {
        Json::Number((*value).into())
    }

    fn allowed(&self) -> String {
        format!("a whole number from {} to {}", self.0, u32::MAX)
    }
}

fn whole(number: &Number) -> Option<i64> {
    let exact = number.as_i64().or_else(|| whole_float(number.as_f64()?))?;
    (exact.unsigned_abs() < WHOLE_LIMIT).then_some(exact)
}

fn whole_float(number: f64) -> Option<i64> {
    let exact = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a whole number below 2^53 fits"
    )]
    exact.then_some(number as i64)
}

/// A number above 0 and up to 1.
pub(super) struct Fraction;

impl Kind for Fraction {
    type Value = f64;

    fn read(&self, json: &Json) -> Option<f64> {
        json.as_number()?
            .as_f64()
            .filter(|share| 0.0 < *share && *share <= 1.0)
    }

    fn write(&self, value: &f64) -> Json {
        Number::from_f64(*value).map_or(Json::Null, Json::Number)
    }

    fn allowed(&self) -> String {
        "a number above 0 and up to 1".to_owned()
    }
}

/// Another kind, or `null`.
pub(super) struct OrNull<K>(pub(super) K);

impl<K: Kind> Kind for OrNull<K> {
    type Value = Option<K::Value>;

    fn read(&self, json: &Json) -> Option<Self::Value> {
        if *json == Json::Null {
            return Some(None);
        }
        self.0.read(json).map(Some)
    }

    fn write(&self, value: &Self::Value) -> Json {
        match value {
            Some(value) => self.0.write(value),
            None => Json::Null,
        }
    }

    fn allowed(&self) -> String {
        format!("{}, or null", self.0.allowed())
    }
}

/// One of some words, each of which stands for a value.
pub(super) struct Words<T: 'static>(pub(super) &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> Kind for Words<T> {
    type Value = T;

    fn read(&self, json: &Json) -> Option<T> {
        let written = json.as_text()?;
        let (_, value) = self.0.iter().find(|(word, _)| *word == written)?;
        Some(*value)
    }

    fn write(&self, value: &T) -> Json {
        let listed = self.0.iter().find(|(_, listed)| listed == value);
        listed.map_or(Json::Null, |(word, _)| Json::Text((*word).to_owned()))
    }

    fn allowed(&self) -> String {
        one_of(self.0.iter().map(|(word, _)| *word))
    }
}

/// How much a model should think.
pub(super) struct ThinkingLevel;

const THINKING_LEVELS: [&str; 7] = [
    "default", "off", "minimal", "low", "medium", "high", "xhigh",
];

impl Kind for ThinkingLevel {
    type Value = String;

    fn read(&self, json: &Json) -> Option<String> {
        let written = json.as_text()?;
        THINKING_LEVELS
            .contains(&written)
            .then(|| written.to_owned())
    }

    fn write(&self, value: &String) -> Json {
        Json::Text(value.clone())
    }

    fn allowed(&self) -> String {
        one_of(THINKING_LEVELS.into_iter())
    }
}

/// `default` or `provider/model`; the name of the model may have slashes of its own.
pub(super) struct Model;

impl Kind for Model {
    type Value = String;

    fn read(&self, json: &Json) -> Option<String> {
        let written = json.as_text()?;
        let named = |(provider, model): (&str, &str)| {
            !provider.trim().is_empty() && !model.trim().is_empty()
        };
        let usable = written == "default" || written.split_once('/').is_some_and(named);
        usable.then(|| written.to_owned())
    }

    fn write(&self, value: &String) -> Json {
        Json::Text(value.clone())
    }

    fn allowed(&self) -> String {
        "\"default\" or \"provider/model\"".to_owned()
    }
}

fn one_of<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    format!("one of {}", quoted.join(", "))
}

/// The JSON text of a value, cut short for a notice.
pub(super) fn excerpt(json: &Json) -> String {
    shortened(&text_of(json))
}

pub(super) fn shortened(text: &str) -> String {
    const KEPT: usize = 60;
    match text.char_indices().nth(KEPT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
