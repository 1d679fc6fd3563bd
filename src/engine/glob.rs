//! Patterns for the paths and names that are never pruned.

use std::borrow::Cow;

use globset::GlobBuilder;
use regex_lite::{Regex, RegexBuilder};

/// No one writes a longer pattern, and matching takes time in proportion to it.
const PATTERN_BYTES: usize = 1_024;

/// For the compiled pattern; a pattern of the full length takes about a tenth of it.
const COMPILED_BYTES: usize = 1 << 20;

/// Longer than any path that a file system takes.
const SUBJECT_BYTES: usize = 32_768;

/// A pattern that is matched against a whole path or name, letter case included.
///
/// `?` is one character and `*` any number of them, both within a segment; `**` is any number
/// across segments, and `**/` also none at all. Every other character stands for itself. In the
/// path `\` counts as `/`.
///
/// Source: the seed document, "Protected tools & paths"; `?` and astral characters: reference
/// note 41.
#[derive(Clone, Debug)]
pub struct Glob {
    regex: Regex,
}

impl Glob {
    /// Reads a pattern for paths.
    ///
    /// # Errors
    /// The pattern is blank or too long. Says which.
    pub fn new(pattern: &str) -> Result<Self, String> {
        Self::compile(pattern, "[^/]*")
    }

    /// Reads a pattern for names. Names have no segments: `*` matches slashes too.
    ///
    /// # Errors
    /// As [`Glob::new`].
    pub fn for_names(pattern: &str) -> Result<Self, String> {
        Self::compile(pattern, ".*")
    }

    /// Whether the pattern matches all of `path`. Nothing matches a path of over 32 KiB.
    #[must_use]
    pub fn is_match(&self, path: &str) -> bool {
        if path.len() > SUBJECT_BYTES {
            return false;
        }
        let path = if path.contains('\\') {
            Cow::Owned(path.replace('\\', "/"))
        } else {
            Cow::Borrowed(path)
        };
        self.regex.is_match(&path)
    }

    fn compile(pattern: &str, star: &str) -> Result<Self, String> {
        if pattern.trim().is_empty() {
            return Err("blank".to_owned());
        }
        if pattern.len() > PATTERN_BYTES {
            return Err(format!("longer than {PATTERN_BYTES} bytes"));
        }
        let regex = RegexBuilder::new(&translate(pattern, star)?)
            .dot_matches_new_line(true)
            .size_limit(COMPILED_BYTES)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { regex })
    }
}

/// The pattern as an anchored regular expression.
///
/// `globset` sees `**` only where it is a segment of its own, and writes characters beyond ASCII
/// as bytes, which a matcher of characters would take for others; so it gets what is between.
fn translate(pattern: &str, star: &str) -> Result<String, String> {
    let mut regex = String::from("^");
    let mut rest = pattern;
    while let Some(next) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("**/") {
            regex.push_str("(?:.*/)?");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("**") {
            regex.push_str(".*");
            rest = after;
        } else if let Some(after) = rest.strip_prefix('*') {
            regex.push_str(star);
            rest = after;
        } else if !next.is_ascii() {
            regex.push(next);
            rest = rest.strip_prefix(next).unwrap_or_default();
        } else {
            let plain = |c: char| c.is_ascii() && c != '*';
            let end = rest.find(|c| !plain(c)).unwrap_or(rest.len());
            let (run, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            regex.push_str(&translate_run(run)?);
            rest = after;
        }
    }
    regex.push('$');
    Ok(regex)
}

/// A run of ASCII in which only `?` is special.
fn translate_run(run: &str) -> Result<String, String> {
    let mut escaped = String::with_capacity(run.len());
    for c in run.chars() {
        if matches!(c, '[' | ']' | '{' | '}' | ',' | '!' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    let glob = GlobBuilder::new(&escaped)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map_err(|error| error.to_string())?;
    let anchored = glob.regex();
    anchored
        .strip_prefix("(?-u)^")
        .and_then(|regex| regex.strip_suffix('$'))
        .map(str::to_owned)
        .ok_or_else(|| format!("not understood: {anchored}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(pattern: &str, matched: &[&str], others: &[&str]) {
        let glob = Glob::new(pattern).expect(pattern);
        for path in matched {
            assert!(glob.is_match(path), "{pattern} should match {path:?}");
        }
        for path in others {
            assert!(!glob.is_match(path), "{pattern} should not match {path:?}");
        }
    }

    #[test]
    fn one_star_stays_within_a_segment() {
        check(
            "src/*.ts",
            &["src/a.ts", "src/.ts"],
            &["src/a/b.ts", "a.ts"],
        );
        check("*", &["", "a", "é\n"], &["a/b", "/"]);
    }

    #[test]
    fn a_question_mark_is_one_character() {
        check(
            "l?g",
            &["log", "l😀g", "lég"],
            &["lg", "l/g", "loog", "l\\g"],
        );
        check("😀?.md", &["😀😀.md"], &["😀.md"]);
    }

    #[test]
    fn two_stars_cross_segments() {
        check("**", &["", "a", "a/b/c", "/", "a\nb"], &[]);
        check("docs/**", &["docs/a/b.txt", "docs/"], &["docs", "xdocs/a"]);
        check(
            "**/SKILL.md",
            &["SKILL.md", "a/b/SKILL.md", "/SKILL.md"],
            &["xSKILL.md"],
        );
        check("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb", "b"]);
        check("**/**/b", &["b", "x/b", "x/y/b"], &["xb"]);
        check(
            "**/*.lock",
            &["Cargo.lock", "js/a/yarn.lock"],
            &["lock", "a.lock/x"],
        );
        check(
            "**/skills/**/*.md",
            &[
                "skills/a.md",
                "/home/x/skills/a/b.md",
                "C:\\skills\\a\\b.md",
            ],
            &["skills.md", "myskills/a.md", "skills/a.txt"],
        );
    }

    #[test]
    fn two_stars_glued_to_others_cross_segments_too() {
        check(
            "a**b",
            &["ab", "axb", "a/b", "ax/y/zb"],
            &["a", "b", "cab", "abc"],
        );
        check("a***b", &["ab", "a/x/b"], &["a"]);
        check("**a", &["a", "xa", "x/ya"], &["ab"]);
        check("a**", &["a", "a/b", "ab"], &["b"]);
        check("a**/b", &["ab", "a/b", "ax/b", "a/x/b"], &["axb"]);
    }

    #[test]
    fn everything_else_stands_for_itself() {
        check("a+(b).md", &["a+(b).md"], &["aab.md", "a+(b)xmd"]);
        check("x.md", &["x.md"], &["X.MD", "xxmd", "x.md\n"]);
        check("[c].md", &["[c].md"], &["c.md"]);
        check("{a,b}", &["{a,b}"], &["a", "b"]);
        check("[!a]", &["[!a]"], &["b"]);
        check("!a", &["!a"], &["b", "a"]);
        check("a-b#c&d~e^$|", &["a-b#c&d~e^$|"], &["a"]);
        check("naïve/日本*", &["naïve/日本語"], &["naive/日本語"]);
        check("a b\tc\0", &["a b\tc\0"], &["abc"]);
    }

    #[test]
    fn a_backslash_is_a_separator_in_the_path_only() {
        check("a/b", &["a\\b", "a/b"], &["ab"]);
        check("a\\b", &[], &["a\\b", "a/b", "ab"]);
    }

    #[test]
    fn names_have_no_segments() {
        let glob = Glob::for_names("mcp__*").expect("a pattern");
        assert!(glob.is_match("mcp__memory/read"));
        assert!(!glob.is_match("my_mcp__x"));
    }

    #[test]
    fn unusable_patterns_are_refused() {
        for pattern in ["", " \t", &"a".repeat(1_025), &"😀".repeat(999)] {
            assert!(Glob::new(pattern).is_err());
        }
        for unit in ["**/", "?", "*a", "[", "😀", "\\", "é*"] {
            let pattern = unit.repeat(PATTERN_BYTES / unit.len());
            let glob = Glob::new(&pattern).expect("as long as is allowed");
            let _ = glob.is_match(&"a/".repeat(100));
        }
    }

    /// The contract again, by trying every way to match.
    fn matches(pattern: &[char], path: &[char]) -> bool {
        let Some((first, rest)) = pattern.split_first() else {
            return path.is_empty();
        };
        let somewhere = |rest: &[char]| (0..=path.len()).any(|at| matches(rest, &path[at..]));
        match (first, rest) {
            ('*', ['*', '/', rest @ ..]) => {
                let behind_a_slash =
                    (0..path.len()).any(|at| path[at] == '/' && matches(rest, &path[at + 1..]));
                matches(rest, path) || behind_a_slash
            }
            ('*', ['*', rest @ ..]) => somewhere(rest),
            ('*', rest) => {
                let segment = path.iter().take_while(|c| **c != '/').count();
                (0..=segment).any(|at| matches(rest, &path[at..]))
            }
            (c, rest) => path.split_first().is_some_and(|(next, path)| {
                let one = if *c == '?' { *next != '/' } else { next == c };
                one && matches(rest, path)
            }),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_contract(pattern in "[ab*?/é\\[{,.]{1,9}", path in "[ab/é\\[{,.]{0,9}") {
            prop_assume!(!pattern.trim().is_empty());
            let glob = Glob::new(&pattern).unwrap();
            let letters = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(glob.is_match(&path), matches(&letters(&pattern), &letters(&path)));
        }

        #[test]
        fn any_pattern_is_read_or_refused(pattern in any::<String>(), path in any::<String>()) {
            if let Ok(glob) = Glob::new(&pattern) {
                let _ = glob.is_match(&path);
            }
        }
    }
}
