//! What a template is rendered with: filters that take and give only so much together, and a few tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use minijinja::value::Rest;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value as Rendered};

use super::MAX_TEXT;

/// Bytes that all filters of one rendering may take and give.
const MAX_FILTERED: u64 = 64 << 20;
/// How deep tags may be nested.
const MAX_DEPTH: usize = 64;

/// Filters that give about as much as they take.
const FILTERS: &[&str] = &[
    "abs",
    "attr",
    "bool",
    "capitalize",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "int",
    "items",
    "last",
    "length",
    "list",
    "lower",
    "max",
    "min",
    "reverse",
    "round",
    "safe",
    "sort",
    "string",
    "title",
    "trim",
    "unique",
    "upper",
];

/// What renders: no loader, no functions but `range`, filters that are watched.
pub(super) fn environment(fuel: u64) -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_fuel(Some(fuel));
    environment.set_recursion_limit(MAX_DEPTH);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let spent = Arc::new(AtomicU64::new(0));
    for name in FILTERS {
        let spent = spent.clone();
        let filter = move |arguments: Rest<Rendered>| -> Result<Rendered, Error> {
            arguments.iter().try_for_each(|argument| charge(argument, &spent))?;
            // The filters as they are, in a place without anything else.
            bounded(Environment::new().empty_state().apply_filter(name, &arguments)?, &spent)
        };
        environment.add_filter(*name, filter);
    }
    let (joined, replaced, json) = (spent.clone(), spent.clone(), spent);
    environment
        .add_filter("join", move |list: Rendered, by: Option<String>| join(&list, &by.unwrap_or_default(), &joined));
    environment
        .add_filter("replace", move |text: String, from: String, to: String| replace(&text, &from, &to, &replaced));
    environment.add_filter("tojson", move |value: Rendered| {
        let text = serde_json::to_string(&value)
            .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))?;
        bounded(Rendered::from(text), &json)
    });
    environment.add_function("range", minijinja::functions::range);
    for (name, test) in [("defined", true), ("undefined", false)] {
        environment.add_test(name, move |value: &Rendered| value.is_undefined() != test);
    }
    environment.add_test("none", |value: &Rendered| value.is_none());
    environment.add_test("string", |value: &Rendered| value.as_str().is_some());
    environment.add_test("number", |value: &Rendered| value.is_number());
    environment.add_test("true", |value: &Rendered| *value == Rendered::from(true));
    environment.add_test("false", |value: &Rendered| *value == Rendered::from(false));
    environment
}

fn too_long() -> Error {
    Error::new(ErrorKind::InvalidOperation, "filters take or give too much")
}

/// A value that a filter gave, if it is not too large and not one of too many.
fn bounded(value: Rendered, spent: &AtomicU64) -> Result<Rendered, Error> {
    charge(&value, spent)?;
    Ok(value)
}

/// Takes note of what a filter takes or gives.
fn charge(value: &Rendered, spent: &AtomicU64) -> Result<(), Error> {
    let size = value.as_str().map_or_else(|| value.len().unwrap_or(1), str::len);
    let all = spent.fetch_add(size as u64, Ordering::Relaxed) + size as u64;
    if size > MAX_TEXT || all > MAX_FILTERED { Err(too_long()) } else { Ok(()) }
}

fn join(list: &Rendered, by: &str, spent: &AtomicU64) -> Result<Rendered, Error> {
    charge(list, spent)?;
    let mut text = String::new();
    for (place, item) in list.try_iter()?.enumerate() {
        if place > 0 {
            text.push_str(by);
        }
        text.push_str(&item.to_string());
        if text.len() > MAX_TEXT {
            return Err(too_long());
        }
    }
    bounded(Rendered::from(text), spent)
}

fn replace(text: &str, from: &str, to: &str, spent: &AtomicU64) -> Result<Rendered, Error> {
    charge(&Rendered::from(text), spent)?;
    let found = if from.is_empty() { text.len() + 1 } else { text.matches(from).count() };
    if text.len() + found.saturating_mul(to.len()) > MAX_TEXT {
        return Err(too_long());
    }
    bounded(Rendered::from(text.replace(from, to)), spent)
}
