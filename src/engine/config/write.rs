//! From the settings to a JSON text, in the order of the table.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use serde_json::{Map, Value};

use super::Config;
use super::kind::Kind;
use super::table::{Check, Visitor, visit};

pub(super) fn write(config: &Config) -> String {
    let mut writer = Writer {
        text: String::new(),
        written: BTreeSet::new(),
        unknown: config.unknown.clone(),
    };
    writer.text.push('{');
    visit(&mut config.clone(), &mut writer);
    writer.write_unknown();
    writer.text.push('}');
    writer.text
}

struct Writer {
    text: String,
    /// The keys of the current block so far.
    written: BTreeSet<String>,
    /// What of the current block is no setting.
    unknown: Map<String, Value>,
}

impl Visitor for Writer {
    fn setting<K: Kind>(&mut self, key: &'static str, kind: K, value: &mut K::Value) {
        self.key(key);
        self.text.push_str(&kind.write(value).to_string());
    }

    fn list(&mut self, key: &'static str, _check: Check, value: &mut Vec<String>) {
        self.key(key);
        let list = Value::from(value.as_slice());
        self.text.push_str(&list.to_string());
    }

    fn block(&mut self, key: &'static str, inside: impl FnOnce(&mut Self)) {
        self.key(key);
        let within = match self.unknown.remove(key) {
            Some(Value::Object(unknown)) => unknown,
            _ => Map::new(),
        };
        let outer_unknown = mem::replace(&mut self.unknown, within);
        let outer_written = mem::take(&mut self.written);
        self.text.push('{');
        inside(self);
        self.write_unknown();
        self.text.push('}');
        self.unknown = outer_unknown;
        self.written = outer_written;
    }
}

impl Writer {
    fn key(&mut self, key: &str) {
        if !self.written.is_empty() {
            self.text.push(',');
        }
        self.written.insert(key.to_owned());
        self.text.push_str(&Value::from(key).to_string());
        self.text.push(':');
    }

    fn write_unknown(&mut self) {
        let mut sorted = BTreeMap::new();
        sorted.extend(mem::take(&mut self.unknown));
        for (key, value) in sorted {
            if !self.written.contains(&key) {
                self.key(&key);
                self.text.push_str(&value.to_string());
            }
        }
    }
}
