//! Searches, extracts and replaces with regular expressions.
//!
//! The engine is [`regex`]: time grows with the length of the text and never explodes, so there are no look-around and
//! no back-references. A pattern that would grow too large is refused.

use std::collections::BTreeMap;

use hotcell_plugin::{Error, Value, plugin, tool};
use regex::{Captures, Regex, RegexBuilder};

plugin! { tools: [find, replace, split] }

/// Bytes that a compiled pattern may have.
const PATTERN_SIZE: usize = 2 << 20;

/// One match.
#[derive(Debug, PartialEq, Value)]
struct Match {
    /// What matched.
    text: String,
    /// Where it begins, counted in characters from 0.
    start: usize,
    /// Where it ends: the character after it.
    end: usize,
    /// What the groups matched, in order; null for a group that took no part.
    groups: Vec<Option<String>>,
    /// What the groups with names matched, by name.
    named: BTreeMap<String, String>,
}

/// All matches, up to the limit.
#[derive(Debug, PartialEq, Value)]
struct Matches {
    /// The matches, in order.
    matches: Vec<Match>,
    /// Whether there are more.
    more: bool,
}

/// A text in which matches were replaced.
#[derive(Debug, PartialEq, Value)]
struct Replaced {
    /// The whole text afterwards.
    text: String,
    /// How many matches were replaced.
    count: usize,
}

/// Finds everything in a text that matches a regular expression, with the groups of each match.
#[tool(read_only)]
fn find(
    /// The regular expression, such as `(?P<user>\w+)@example\.org`. No look-around, no back-references.
    pattern: &str,
    /// The text to search.
    text: &str,
    /// Whether `a` and `A` are the same.
    #[value(default = false)]
    ignore_case: bool,
    /// Whether `^` and `$` are the ends of lines instead of the ends of the text.
    #[value(default = false)]
    lines: bool,
    /// How many matches to give at most.
    #[value(default = 100)]
    limit: u16,
) -> Result<Matches, Error> {
    let regex = compiled(pattern, ignore_case, lines)?;
    let (mut matches, mut characters, mut seen) = (Vec::new(), 0, 0);
    for found in regex.captures_iter(text) {
        if matches.len() == usize::from(limit) {
            return Ok(Matches { matches, more: true });
        }
        let Some(whole) = found.get(0) else { continue };
        characters += text[seen..whole.start()].chars().count();
        seen = whole.start();
        matches.push(described(&regex, &found, whole.as_str(), characters));
    }
    Ok(Matches { matches, more: false })
}

/// Replaces everything in a text that matches a regular expression.
#[tool(read_only)]
fn replace(
    /// The regular expression. No look-around, no back-references.
    pattern: &str,
    /// The text to change.
    text: &str,
    /// What to put there: `$1` or `${name}` stands for a group, `$$` for a dollar sign.
    replacement: &str,
    /// Whether `a` and `A` are the same.
    #[value(default = false)]
    ignore_case: bool,
    /// Whether `^` and `$` are the ends of lines instead of the ends of the text.
    #[value(default = false)]
    lines: bool,
) -> Result<Replaced, Error> {
    let regex = compiled(pattern, ignore_case, lines)?;
    let mut count = 0;
    let replaced = regex.replace_all(text, |found: &Captures<'_>| {
        count += 1;
        let mut put = String::new();
        found.expand(replacement, &mut put);
        put
    });
    Ok(Replaced { text: replaced.into_owned(), count })
}

/// Splits a text where a regular expression matches.
#[tool(read_only)]
fn split(
    /// The regular expression of what lies between the parts.
    pattern: &str,
    /// The text to split.
    text: &str,
) -> Result<Vec<String>, Error> {
    Ok(compiled(pattern, false, false)?.split(text).map(ToOwned::to_owned).collect())
}

fn compiled(pattern: &str, ignore_case: bool, lines: bool) -> Result<Regex, Error> {
    RegexBuilder::new(pattern)
        .case_insensitive(ignore_case)
        .multi_line(lines)
        .size_limit(PATTERN_SIZE)
        .build()
        .map_err(|error| Error::invalid_input(format!("`{pattern}` cannot be used as a regular expression: {error}")))
}

fn described(regex: &Regex, found: &Captures<'_>, text: &str, start: usize) -> Match {
    let groups = found.iter().skip(1).map(|group| group.map(|group| group.as_str().to_owned())).collect();
    let named = regex
        .capture_names()
        .flatten()
        .filter_map(|name| Some((name.to_owned(), found.name(name)?.as_str().to_owned())));
    Match { text: text.to_owned(), start, end: start + text.chars().count(), groups, named: named.collect() }
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::json;

    use super::{PLUGIN, find, replace, split};

    #[test]
    fn matches_have_places_in_characters_and_groups() {
        let found = find(r"(?P<user>\w+)@(\w+)?", "né, ann@x und bob@", false, false, 10).map(|found| found.matches);
        let found = found.unwrap_or_default();
        assert_eq!((found[0].text.as_str(), found[0].start, found[0].end), ("ann@x", 4, 9));
        assert_eq!(found[0].named["user"], "ann");
        assert_eq!(found[1].groups, [Some("bob".to_owned()), None]);
    }

    #[test]
    fn the_limit_and_the_flags_hold() {
        assert_eq!(find("a", "aAa", true, false, 2).map(|found| (found.matches.len(), found.more)), Ok((2, true)));
        assert_eq!(find("^b$", "a\nb\nc", false, true, 5).map(|found| found.matches.len()), Ok(1));
    }

    #[test]
    fn groups_are_put_into_replacements() {
        let replaced = replace(r"(\w+), (\w+)", "Lovelace, Ada; Hopper, Grace", "$2 $1", false, false);
        assert_eq!(
            replaced.map(|replaced| (replaced.text, replaced.count)),
            Ok(("Ada Lovelace; Grace Hopper".to_owned(), 2))
        );
        assert_eq!(split(r"\s*;\s*", "a ;b;  c"), Ok(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]));
    }

    #[test]
    fn a_pattern_that_cannot_be_used_is_the_callers() {
        for pattern in ["(a", r"(a)\1", "(?=a)", r"(\w{1000}){1000}"] {
            let error = PLUGIN.call_tool("find", json!({"pattern": pattern, "text": "a"}));
            assert_eq!(error.map_err(|error| error.kind()), Err("invalid-input"), "{pattern}");
        }
    }

    #[test]
    fn what_kills_other_engines_ends_here() {
        let text = "a".repeat(50_000);
        assert_eq!(find("(a+)+$", &(text + "b"), false, false, 1).map(|found| found.matches.len()), Ok(0));
    }

    #[test]
    fn cases_hold() {
        let problems = hotcell_plugin::testing::run_cases(&PLUGIN, concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
        assert_eq!(problems, Ok(Vec::new()));
    }
}
