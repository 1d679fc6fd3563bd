//! Which tool calls are never pruned.

use crate::engine::map::Set;
use std::fmt;

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};

use super::config::Config;
use super::glob::Glob;
use super::json::Json;

/// The rules of `protectedTools` and `protectedPaths`.
#[derive(Clone, Debug)]
pub struct Protection {
    names: Set<String>,
    tools: Vec<Glob>,
    paths: Vec<Glob>,
}

impl Protection {
    /// Entries that are no pattern are left out; reading the settings has already said so.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let (globs, names): (Vec<&String>, Vec<&String>) = config
            .protected_tools
            .iter()
            .partition(|entry| entry.contains(['*', '?']));
        let usable = |glob: &&String| Glob::for_names(glob).ok();
        Self {
            names: names.into_iter().cloned().collect(),
            tools: globs.iter().filter_map(usable).collect(),
            paths: config
                .protected_paths
                .iter()
                .filter_map(|glob| Glob::new(glob).ok())
                .collect(),
        }
    }

    /// Whether the output of this call must stay. `path` is the call's [`path_argument`].
    #[must_use]
    pub fn covers(&self, tool: &str, path: Option<&str>) -> bool {
        self.names.contains(tool)
            || self.tools.iter().any(|glob| glob.is_match(tool))
            || path.is_some_and(|path| self.paths.iter().any(|glob| glob.is_match(path)))
    }
}

/// The text of the top-level argument `path`; of several the last one, as in JavaScript.
///
/// `None` if there is none, it is no string, or the arguments are no JSON object.
#[must_use]
pub fn path_argument(arguments_json: &str) -> Option<String> {
    let mut parser = serde_json::Deserializer::from_str(arguments_json);
    let path = parser.deserialize_map(PathArgument).ok()?;
    parser.end().ok()?;
    path
}

/// Passes over all other arguments without keeping them: they can be whole files.
struct PathArgument;

impl<'de> Visitor<'de> for PathArgument {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut arguments: A) -> Result<Self::Value, A::Error> {
        let mut path = None;
        while let Some(name) = arguments.next_key::<String>()? {
            if name == "path" {
                let value: Json = arguments.next_value()?;
                path = value.as_text().map(str::to_owned);
            } else {
                arguments.next_value::<IgnoredAny>()?;
            }
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protection(tools: &[&str], paths: &[&str]) -> Protection {
        let owned = |list: &[&str]| list.iter().map(|&entry| entry.to_owned()).collect();
        Protection::new(&Config {
            protected_tools: owned(tools),
            protected_paths: owned(paths),
            ..Config::default()
        })
    }

    #[test]
    fn a_call_is_covered_by_its_tool_or_its_path() {
        let rules = protection(
            &["read", "mcp__memory__*", "todo?", "a[b]", " "],
            &["**/skills/**/*.md", "", "AGENTS.md"],
        );
        let rows = [
            ("read", None, true),
            ("Read", None, false),
            ("read_file", None, false),
            ("rea", None, false),
            ("mcp__memory__store", None, true),
            ("mcp__memory__a/b", None, true),
            ("mcp__other__store", None, false),
            ("todos", None, true),
            ("todo", None, false),
            ("a[b]", None, true),
            ("ab", None, false),
            ("", None, false),
            ("bash", Some("AGENTS.md"), true),
            ("bash", Some("x/AGENTS.md"), false),
            ("bash", Some("C:\\skills\\pdf\\SKILL.md"), true),
            ("bash", Some(""), false),
        ];
        for (tool, path, covered) in rows {
            assert_eq!(rules.covers(tool, path), covered, "{tool} {path:?}");
        }
    }

    #[test]
    fn empty_lists_cover_nothing() {
        assert!(!protection(&[], &[]).covers("read", Some("skills/a.md")));
    }

    #[test]
    fn the_path_is_the_top_level_string() {
        let rows = [
            (r#"{"path":"a/b"}"#, Some("a/b")),
            (r#" {"content":{"path":"x"},"path":"é\n"} "#, Some("é\n")),
            (r#"{"path":"a","path":"b"}"#, Some("b")),
            (r#"{"path":"a","path":1}"#, None),
            (r#"{"content":"\ud83d","path":"a"}"#, Some("a")),
            (r#"{"content":{"path":"x"}}"#, None),
            (r#"{"Path":"x"}"#, None),
            (r#"{"path":["x"]}"#, None),
            (r#"{"path":null}"#, None),
            (r#"["path","x"]"#, None),
            (r#""path""#, None),
            (r#"{"path":"x"} {"#, None),
            (r#"{"path":"x""#, None),
            ("", None),
        ];
        for (arguments, path) in rows {
            assert_eq!(path_argument(arguments).as_deref(), path, "{arguments}");
        }
    }
}
