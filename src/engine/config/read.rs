//! From what the user wrote to the settings, with a word about everything that could not be used.

use std::mem;

use super::Config;
use super::kind::{Setting, excerpt, shortened};
use super::table::{Check, Visitor, visit};
use crate::engine::host::Notice;
use crate::engine::json::{Json, text_of};
use crate::engine::map::Map;

/// How many names or entries one notice lists.
const LISTED: usize = 20;

/// A key that editors want and that is no setting.
const SCHEMA: &str = "$schema";

pub(super) fn read(object: Map<String, Json>) -> (Config, Vec<Notice>) {
    let mut config = Config::default();
    let mut reader = Reader {
        left: object,
        path: String::new(),
        unknown: Map::new(),
        unknown_paths: Vec::new(),
        notices: Vec::new(),
    };
    visit(&mut config, &mut reader);
    reader.keep_the_rest();
    config.unknown = mem::take(&mut reader.unknown);
    let notices = reader.into_notices();
    (config, notices)
}

struct Reader {
    /// What of the current block is not read yet.
    left: Map<String, Json>,
    /// The current block: its path and a full stop, or nothing.
    path: String,
    /// What of the current block is no setting.
    unknown: Map<String, Json>,
    unknown_paths: Vec<String>,
    notices: Vec<Notice>,
}

impl Visitor for Reader {
    fn visit(&mut self, key: &'static str, setting: &mut dyn Setting) {
        let Some(json) = self.left.remove(key) else {
            return;
        };
        if !setting.read(&json) {
            let default = text_of(&setting.write());
            self.refuse(key, &json, &setting.allowed(), &default);
        }
    }

    fn list(&mut self, key: &'static str, check: Check, value: &mut Vec<String>) {
        let Some(json) = self.left.remove(key) else {
            return;
        };
        if let Json::List(entries) = json {
            *value = self.entries(key, check, &entries);
        } else {
            let default = text_of(value);
            self.refuse(key, &json, "a list of strings", &default);
        }
    }

    fn block(&mut self, key: &'static str, inside: &mut dyn FnMut(&mut dyn Visitor)) {
        let Some(json) = self.left.remove(key) else {
            return;
        };
        let Json::Object(object) = json else {
            self.refuse(key, &json, "an object", "for each of its keys");
            return;
        };
        let outer_path_len = self.path.len();
        let outer_left = mem::replace(&mut self.left, object);
        let outer_unknown = mem::take(&mut self.unknown);
        self.path.push_str(key);
        self.path.push('.');
        inside(self);
        self.keep_the_rest();
        self.path.truncate(outer_path_len);
        self.left = outer_left;
        let unknown = mem::replace(&mut self.unknown, outer_unknown);
        if !unknown.is_empty() {
            self.unknown.insert(key.to_owned(), Json::Object(unknown));
        }
    }
}

impl Reader {
    fn refuse(&mut self, key: &str, json: &Json, allowed: &str, default: &str) {
        let (path, found) = (&self.path, excerpt(json));
        self.notices.push(Notice::warning(format!(
            "Setting `{path}{key}` is {found} but must be {allowed}. The default is used: {default}."
        )));
    }

    /// The usable entries of a list.
    fn entries(&mut self, key: &str, check: Check, entries: &[Json]) -> Vec<String> {
        let mut usable = Vec::new();
        let mut refused = Vec::new();
        for entry in entries {
            match usable_entry(entry, check) {
                Ok(text) => usable.push(text.to_owned()),
                Err(reason) => refused.push(format!("{} ({reason})", excerpt(entry))),
            }
        }
        if !refused.is_empty() {
            let (path, refused) = (&self.path, listed(&refused));
            self.notices.push(Notice::warning(format!(
                "Setting `{path}{key}` has entries that are left out: {refused}. \
                 Each must be a name or a pattern with * and ?."
            )));
        }
        usable
    }

    /// Keeps what is left of the current block: it is no setting.
    fn keep_the_rest(&mut self) {
        for (key, value) in mem::take(&mut self.left) {
            if !(self.path.is_empty() && key == SCHEMA) {
                let name = shortened(&key.escape_debug().to_string());
                self.unknown_paths.push(format!("`{}{name}`", self.path));
            }
            self.unknown.insert(key, value);
        }
    }

    fn into_notices(mut self) -> Vec<Notice> {
        if !self.unknown_paths.is_empty() {
            let names = listed(&self.unknown_paths);
            self.notices.push(Notice::info(format!(
                "These settings are not known, so they are kept but do nothing: {names}."
            )));
        }
        self.notices
    }
}

fn usable_entry(entry: &Json, check: Check) -> Result<&str, String> {
    let text = entry.as_text().ok_or("no string")?;
    check(text)?;
    Ok(text)
}

fn listed(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(LISTED).map(String::as_str).collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
