//! A JSON value.

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;

use super::map::Map;

/// `serde_json`'s, but with the map that the component has anyway.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Flag(bool),
    Number(Number),
    Text(String),
    List(Vec<Json>),
    /// Of several values of one key the last one.
    Object(Map<String, Json>),
}

impl Json {
    /// # Errors
    /// The text is no JSON. Carries the parser's words.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|err| err.to_string())
    }

    /// The value of a key, if this is an object that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(object) => object.get(key),
            Self::Null | Self::Flag(_) | Self::Number(_) | Self::Text(_) | Self::List(_) => None,
        }
    }

    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Flag(_) | Self::Number(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    #[must_use]
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Self::Number(number) => Some(number),
            Self::Null | Self::Flag(_) | Self::Text(_) | Self::List(_) | Self::Object(_) => None,
        }
    }
}

/// The JSON text of a value that always has one.
pub fn text_of<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(entries) => serializer.collect_map(entries),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Json, E> {
        Ok(Json::Flag(flag))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Json, E> {
        Ok(Number::from_f64(number).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key()? {
            object.insert(key, entries.next_value()?);
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_serde_json_does() {
        let texts = [
            "null",
            r#"{"a":{"\u00e9\n":""},"b":[1,-2,1.50,1e300,18446744073709551615,true],"b":2}"#,
            " [ {} , [] ] ",
        ];
        for text in texts {
            let theirs: serde_json::Value = serde_json::from_str(text).unwrap();
            let ours = Json::parse(text).unwrap();
            assert_eq!(text_of(&ours), theirs.to_string());
        }
        for text in ["", "{", "[1,]", "{} {}", &"[".repeat(200)] {
            let theirs = serde_json::from_str::<serde_json::Value>(text).unwrap_err();
            assert_eq!(Json::parse(text), Err(theirs.to_string()));
        }
    }
}
