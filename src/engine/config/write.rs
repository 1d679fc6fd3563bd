//! From the settings to a JSON text, in the order of the table.

use std::mem;

use super::Config;
use super::kind::Setting;
use super::table::{Check, Visitor, visit};
use crate::engine::json::{Json, text_of};
use crate::engine::map::{Map, Set};

pub(super) fn write(config: &Config) -> String {
    let mut writer = Writer {
        text: String::new(),
        written: Set::new(),
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
    written: Set<String>,
    /// What of the current block is no setting.
    unknown: Map<String, Json>,
}

impl Visitor for Writer {
    fn visit(&mut self, key: &'static str, setting: &mut dyn Setting) {
        self.key(key);
        self.text.push_str(&text_of(&setting.write()));
    }

    fn list(&mut self, key: &'static str, _check: Check, value: &mut Vec<String>) {
        self.key(key);
        self.text.push_str(&text_of(value));
    }

    fn block(&mut self, key: &'static str, inside: &mut dyn FnMut(&mut dyn Visitor)) {
        self.key(key);
        let within = match self.unknown.remove(key) {
            Some(Json::Object(unknown)) => unknown,
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
        self.text.push_str(&text_of(key));
        self.text.push(':');
    }

    fn write_unknown(&mut self) {
        for (key, value) in mem::take(&mut self.unknown) {
            if !self.written.contains(&key) {
                self.key(&key);
                self.text.push_str(&text_of(&value));
            }
        }
    }
}
