//! Values that are drawn out of texts, lists, objects and conversations.

use std::sync::OnceLock;

use regex::Regex;

use super::typed::json_within;
use super::{Expression, NoValue, Rows, ValuePath};
use crate::conversation::{Speaker, as_text, speaker, tool_calls};
use crate::python::is_true;
use crate::searching::{Patience, Search, SearchFlags, TakesTooLong};
use crate::template::Lookup;
use crate::types::to_text;
use crate::value::{Key, List, Object, Value, parse_json};

/// Bytes of a text of which one match, or the JSON in it, is wanted.
const LONGEST: usize = 1 << 20;
/// Bytes of a text of which all matches are wanted: how long that takes may grow with the square of it.
const LONGEST_OF_ALL: usize = 64 << 10;
/// Empty matches that are passed over in search of the first that is not.
const MOST_EMPTY: usize = 1_000;
/// Parts of a text between code fences that are looked at.
const MOST_PARTS: usize = 100;

/// A value that is drawn out of others.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawn {
    /// What a pattern matches in a text
    Matches {
        /// The text
        text: Expression,
        /// The pattern
        pattern: SearchPattern,
        /// Which matches
        which: WhichMatch,
    },
    /// What is at a path of the first JSON value in a text that has something there; it has no value if none has
    InJson {
        /// The text
        text: Expression,
        /// The path
        path: ValuePath,
    },
    /// What is at a path of each item of a list, `null` where nothing is. The items of an object are objects with `_key` and
    /// `_value`
    Each {
        /// The list
        list: Expression,
        /// The path
        path: ValuePath,
    },
    /// A list with one item more
    Appended(Expression, Expression),
    /// A list with the items of another behind its own, or an object with the entries of another over its own
    Merged(Expression, Expression),
    /// Whether a value is true in the sense of Python: it is not `null`, `false`, zero or empty
    IsTrue(Expression),
    /// The name of the Python exception that a failure of a Python function names; it has no value if it names none
    ExceptionName(Expression),
    /// No value: evaluating it fails with this text
    Failure(Expression),
    /// Messages of a conversation
    Excerpt(Excerpt),
    /// Objects of a collection, or all collections after something was done with one
    Rows(Box<Rows>),
}

/// Which matches of a pattern are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichMatch {
    /// The first; it has no value if there is none
    First,
    /// The last; it has no value if there is none
    Last,
    /// All of them, as a list
    All,
}

/// A pattern that texts are searched for, with at most one group. A match is its group, or all of it if there is no group.
#[derive(Clone, Debug)]
pub struct SearchPattern {
    search: Search,
    flags: SearchFlags,
}

/// Messages of a conversation, each as an object with the word for who speaks and its text as `content`.
#[derive(Clone, Debug, PartialEq)]
pub struct Excerpt {
    /// The state key with the conversation
    pub conversation: Key,
    /// Whose messages, and the word for each
    pub words: Vec<(Speaker, &'static str)>,
    /// The entry that has the word
    pub entry: Key,
    /// Whether they are counted from the end
    pub from_end: bool,
    /// So many are passed over
    pub skipped: usize,
    /// The most that are given
    pub most: usize,
}

impl Drawn {
    pub(super) fn evaluate(&self, scope: &dyn Lookup) -> Result<Value, NoValue> {
        match self {
            Drawn::Matches { text, pattern, which } => pattern.matches(&to_text(&text.evaluate(scope)?), *which),
            Drawn::InJson { text, path } => {
                let text = to_text(&text.evaluate(scope)?);
                if text.len() > LONGEST {
                    let size = text.len();
                    return Err(NoValue::Unfit(format!(
                        "a text with JSON in it has {LONGEST} bytes at most, not {size}"
                    )));
                }
                let found = json_values(&text).find_map(|value| path.follow(&value).filter(is_given).cloned());
                found.ok_or_else(|| NoValue::Absent(format!("`{path}` of the JSON in the text")))
            }
            Drawn::Each { list, path } => {
                let at = |item: &Value| path.follow(item).cloned().unwrap_or_default();
                match list.evaluate(scope)? {
                    Value::List(items) => Ok(Value::List(items.iter().map(at).collect())),
                    Value::Object(object) => Ok(Value::List(object.iter().map(|entry| at(&item_of(entry))).collect())),
                    other => Err(NoValue::Unfit(format!("a list is needed, not {}", other.a_kind()))),
                }
            }
            Drawn::Appended(list, item) => match list.evaluate(scope)? {
                Value::List(mut items) => {
                    items.push(item.evaluate(scope)?);
                    Ok(Value::List(items))
                }
                other => Err(NoValue::Unfit(format!("an item goes into a list, not into {}", other.a_kind()))),
            },
            Drawn::Merged(first, second) => match (first.evaluate(scope)?, second.evaluate(scope)?) {
                (Value::List(mut items), Value::List(more)) => {
                    items.extend(&more);
                    Ok(Value::List(items))
                }
                (Value::Object(mut object), Value::Object(more)) => {
                    more.iter().for_each(|(key, value)| object.insert(key.clone(), value.clone()));
                    Ok(Value::Object(object))
                }
                (first, second) => {
                    let kinds = (first.a_kind(), second.a_kind());
                    Err(NoValue::Unfit(format!("{} cannot be merged into {}", kinds.1, kinds.0)))
                }
            },
            Drawn::IsTrue(value) => Ok(Value::Bool(is_true(&value.evaluate(scope)?))),
            Drawn::ExceptionName(failure) => {
                let text = to_text(&failure.evaluate(scope)?);
                let name = exception_name(&text).map(Value::from);
                name.ok_or_else(|| NoValue::Absent("the name of the exception".to_owned()))
            }
            Drawn::Failure(text) => Err(NoValue::Unfit(to_text(&text.evaluate(scope)?))),
            Drawn::Excerpt(excerpt) => Ok(Value::List(excerpt.of(scope))),
            Drawn::Rows(rows) => rows.evaluate(scope),
        }
    }
}

fn is_given(value: &&Value) -> bool {
    **value != Value::Null
}

/// An entry of an object as an item of a list.
fn item_of((key, value): (&Key, &Value)) -> Value {
    let mut item = Object::default();
    item.insert("_key", Value::Text(key.clone()));
    item.insert("_value", value.clone());
    Value::Object(item)
}

/// The JSON values in a text: between code fences, or in braces there.
fn json_values(text: &str) -> impl Iterator<Item = Value> {
    text.split("```").take(MOST_PARTS).filter_map(|part| {
        let part = part.trim();
        let named = ["json", "JSON"].into_iter().find_map(|name| part.strip_prefix(name));
        let part = named.unwrap_or(part).trim();
        if part.is_empty() { None } else { parse_json(part).ok().or_else(|| json_within(part)) }
    })
}

/// The name of the exception in the words in which the failure of a Python function is told: in front of its message, where
/// a traceback follows.
fn exception_name(failure: &str) -> Option<&str> {
    static NAMED: OnceLock<Option<Regex>> = OnceLock::new();
    let (said, _) = failure.split_once("\nTraceback (most recent call last):")?;
    let named = NAMED.get_or_init(|| Regex::new(r"tool `[^`\n]*`: (?:\w+\.)*(\w+)(?::|\n|$)").ok()).as_ref()?;
    Some(named.captures(said)?.get(1)?.as_str())
}

impl SearchPattern {
    /// The pattern of an expression.
    ///
    /// # Errors
    /// When it is none, is too large or has several groups; the text says which.
    pub fn new(expression: &str, flags: SearchFlags) -> Result<Self, String> {
        let search = Search::new(expression, flags).map_err(|error| {
            // What it says first is a picture of the expression.
            let shown = error.to_string();
            shown.rsplit_once("error: ").map_or(shown.as_str(), |(_, reason)| reason).to_owned()
        })?;
        match search.groups() {
            0 | 1 => Ok(SearchPattern { search, flags }),
            groups => Err(format!("it has {groups} groups, and one is the most")),
        }
    }

    /// The pattern that matches any of these words.
    ///
    /// # Errors
    /// When they are too many.
    pub fn any_of<'w>(words: impl Iterator<Item = &'w str>) -> Result<Self, String> {
        let words: Vec<String> = words.map(regex::escape).collect();
        SearchPattern::new(&words.join("|"), SearchFlags::default())
    }

    fn matches(&self, text: &str, which: WhichMatch) -> Result<Value, NoValue> {
        self.matches_within(text, which, Patience::begin())
    }

    fn matches_within(&self, text: &str, which: WhichMatch, mut patience: Patience) -> Result<Value, NoValue> {
        let longest = if which == WhichMatch::First { LONGEST } else { LONGEST_OF_ALL };
        if text.len() > longest {
            return Err(NoValue::Unfit(format!(
                "a text that is searched has {longest} bytes at most, not {}",
                text.len()
            )));
        }
        let late = |_: TakesTooLong| NoValue::Unfit(format!("it takes too long to find what `{self}` matches"));
        let mut matches = self.search.matches(text, self.search.groups());
        let (mut all, mut chosen, mut empty) = (List::default(), None, 0);
        while let Some(found) = matches.advance(&mut patience).map_err(late)? {
            match (&text[found.group], which) {
                ("", WhichMatch::First) if empty == MOST_EMPTY => {
                    return Err(NoValue::Unfit(format!("`{self}` matches nothing {MOST_EMPTY} times and more")));
                }
                ("", _) => empty += 1,
                (found, WhichMatch::All) => all.push(Value::from(found)),
                (found, WhichMatch::Last) => chosen = Some(found),
                (found, WhichMatch::First) => {
                    chosen = Some(found);
                    break;
                }
            }
        }
        match (which, chosen) {
            (WhichMatch::All, _) => Ok(Value::List(all)),
            (_, Some(found)) => Ok(Value::from(found)),
            (_, None) => Err(NoValue::Absent(format!("what `{self}` matches"))),
        }
    }
}

impl std::fmt::Display for SearchPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.search.source())
    }
}

impl PartialEq for SearchPattern {
    fn eq(&self, other: &Self) -> bool {
        self.search.source() == other.search.source() && self.flags == other.flags
    }
}

impl Excerpt {
    fn of(&self, scope: &dyn Lookup) -> List {
        let messages = scope.lookup(&self.conversation).and_then(Value::as_list);
        let said = |message: &Value| {
            let word = self.words.iter().find(|(who, _)| Some(*who) == speaker(message)).map(|(_, word)| *word)?;
            // What only calls tools says nothing.
            let text = as_text(message).unwrap_or_default();
            if text.is_empty() && !tool_calls(message).is_empty() {
                return None;
            }
            let mut entry = Object::default();
            entry.insert(self.entry.clone(), Value::from(word));
            entry.insert("content", Value::from(text));
            Some(Value::Object(entry))
        };
        let mut all: Vec<Value> = messages.into_iter().flat_map(|messages| messages.iter()).filter_map(said).collect();
        if self.from_end {
            all.reverse();
        }
        let chosen = all.into_iter().skip(self.skipped).take(self.most);
        let mut chosen: Vec<Value> = chosen.collect();
        if self.from_end {
            chosen.reverse();
        }
        chosen.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::State;

    fn drawn(drawn: Drawn) -> Result<Value, NoValue> {
        Expression::Drawn(Box::new(drawn)).evaluate(&State::default())
    }

    fn given(json: &str) -> Expression {
        Expression::Value(parse_json(json).unwrap())
    }

    fn said(text: &str) -> Expression {
        Expression::Value(Value::from(text))
    }

    fn matches(pattern: &str, text: &str, which: WhichMatch) -> Result<String, NoValue> {
        let pattern = SearchPattern::new(pattern, SearchFlags::default()).unwrap();
        drawn(Drawn::Matches { text: said(text), pattern, which }).map(|value| value.to_json())
    }

    #[test]
    fn matches_are_the_group_or_all_of_it() {
        assert_eq!(matches(r"<a>(.*?)</a>", "<a>1</a><a>2</a>", WhichMatch::First).unwrap(), r#""1""#);
        assert_eq!(matches(r"<a>(.*?)</a>", "<a>1</a><a>2</a>", WhichMatch::Last).unwrap(), r#""2""#);
        assert_eq!(matches(r"\d*", "a1b22", WhichMatch::All).unwrap(), r#"["1","22"]"#);
        assert!(matches!(matches("x", "a", WhichMatch::First), Err(NoValue::Absent(_))));
        assert_eq!(matches("x", "a", WhichMatch::All).unwrap(), "[]");
        assert_eq!(matches("a*", &format!("{}a", "b".repeat(9)), WhichMatch::First).unwrap(), r#""a""#);
        assert!(matches!(matches("a*", &"b".repeat(MOST_EMPTY + 9), WhichMatch::First), Err(NoValue::Unfit(_))));
        assert!(matches!(matches("x", &"a".repeat(LONGEST_OF_ALL + 1), WhichMatch::All), Err(NoValue::Unfit(_))));
        assert!(matches!(matches("x", &"a".repeat(LONGEST + 1), WhichMatch::First), Err(NoValue::Unfit(_))));
        for wrong in ["(a)(b)", "(?=a)", r"(a)\1", "(", "(?:a{1000}){1000}"] {
            assert!(SearchPattern::new(wrong, SearchFlags::default()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn searches_end() {
        // Each search for the first alternative looks at all that is left, and fails.
        let pattern = SearchPattern::new("[01]*1[01]{900}X|0", SearchFlags::default()).unwrap();
        let text = "01".repeat(9);
        for which in [WhichMatch::All, WhichMatch::Last, WhichMatch::First] {
            let late = pattern.matches_within(&text, which, Patience::over());
            assert!(matches!(&late, Err(NoValue::Unfit(said)) if said.contains("takes too long")), "{late:?}");
            assert!(pattern.matches(&text, which).is_ok());
        }
        // All places of it have to be looked at.
        let large = matches(r"\b(?:a{100}){100}", &format!("é{}", "a".repeat(9_000)), WhichMatch::First);
        assert!(matches!(&large, Err(NoValue::Unfit(said)) if said.contains("takes too long")), "{large:?}");
    }

    #[test]
    fn the_first_json_that_has_something_at_the_path_counts() {
        let text =
            "I think:\n```json\n{\"thought\": \"t\"}\n```\nSo: ```{\"thought\": \"u\", \"n\": [1, {\"x\": 2}]}```";
        let at = |path: &str| {
            let path = ValuePath::parse(path).unwrap();
            drawn(Drawn::InJson { text: said(text), path }).map(|value| value.to_json())
        };
        assert_eq!(at(".thought").unwrap(), r#""t""#);
        assert_eq!(at(".n[1].x").unwrap(), "2");
        assert!(matches!(at(".missing"), Err(NoValue::Absent(_))));
        let long = said(&format!("{{\"a\": \"{}\"}}", "b".repeat(LONGEST)));
        let path = ValuePath::parse(".a").unwrap();
        assert!(matches!(drawn(Drawn::InJson { text: long, path }), Err(NoValue::Unfit(_))));
    }

    #[test]
    fn lists_and_objects_are_put_together() {
        let json = |value: Result<Value, NoValue>| value.unwrap().to_json();
        let path = || ValuePath::parse("._value.a").unwrap();
        assert_eq!(json(drawn(Drawn::Each { list: given(r#"{"k": {"a": 1}, "l": {}}"#), path: path() })), "[1,null]");
        assert_eq!(json(drawn(Drawn::Appended(given("[1]"), given("[2]")))), "[1,[2]]");
        assert_eq!(json(drawn(Drawn::Merged(given("[1]"), given("[2]")))), "[1,2]");
        assert_eq!(json(drawn(Drawn::Merged(given(r#"{"a": 1}"#), given(r#"{"a": 2}"#)))), r#"{"a":2}"#);
        assert!(drawn(Drawn::Merged(given("1"), given("[2]"))).is_err());
        for (value, is) in [("null", "false"), ("0", "false"), ("\"\"", "false"), ("[]", "false"), ("\"no\"", "true")] {
            assert_eq!(json(drawn(Drawn::IsTrue(given(value)))), is, "{value}");
        }
    }

    #[test]
    fn an_exception_is_named_where_python_says_it() {
        let name = |text: &str| drawn(Drawn::ExceptionName(said(text))).ok().map(|value| value.to_json());
        let told = "node `n` failed: tool `t`: tools.Own: a: b\nc\nTraceback (most recent call last):\n  File";
        assert_eq!(name(told).as_deref(), Some(r#""Own""#));
        assert_eq!(name("tool `t`: ValueError: no traceback"), None);
    }
}
