//! The functions and methods that expressions may call.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::text::{as_text, is_true};
use super::values::{compare, kind, minus};
use crate::value::{List, Number, Value};

/// Bytes that a text may have which an expression makes.
const MAX_TEXT: usize = 1 << 20;
/// Items that a list may have which an expression makes.
pub(super) const MAX_ITEMS: usize = 2_000_000;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Function {
    Len,
    Str,
    Int,
    Float,
    Bool,
    Abs,
    Min,
    Max,
    /// The first value, or the second where the first is nothing
    OrElse,
}

/// Functions by name, with how many arguments they take.
pub(super) const FUNCTIONS: [(&str, Function, RangeInclusive<usize>); 8] = [
    ("len", Function::Len, 1..=1),
    ("str", Function::Str, 0..=1),
    ("int", Function::Int, 0..=1),
    ("float", Function::Float, 0..=1),
    ("bool", Function::Bool, 0..=1),
    ("abs", Function::Abs, 1..=1),
    ("min", Function::Min, 1..=64),
    ("max", Function::Max, 1..=64),
];

/// Methods, with how many arguments they take.
pub(super) const METHODS: [(&str, RangeInclusive<usize>); 27] = [
    ("strip", 0..=1),
    ("lstrip", 0..=1),
    ("rstrip", 0..=1),
    ("lower", 0..=0),
    ("upper", 0..=0),
    ("casefold", 0..=0),
    ("title", 0..=0),
    ("capitalize", 0..=0),
    ("startswith", 1..=1),
    ("endswith", 1..=1),
    ("removeprefix", 1..=1),
    ("removesuffix", 1..=1),
    ("split", 0..=1),
    ("splitlines", 0..=0),
    ("join", 1..=1),
    ("replace", 2..=2),
    ("find", 1..=1),
    ("count", 1..=1),
    ("index", 1..=1),
    ("isdigit", 0..=0),
    ("isalpha", 0..=0),
    ("isalnum", 0..=0),
    ("isspace", 0..=0),
    ("get", 1..=2),
    ("keys", 0..=0),
    ("values", 0..=0),
    ("items", 0..=0),
];

/// Types that `isinstance` knows.
pub(super) const TYPES: [&str; 7] = ["str", "int", "float", "bool", "list", "dict", "tuple"];

pub(super) fn how_many(counts: &RangeInclusive<usize>) -> String {
    match (counts.start(), counts.end()) {
        (least, most) if least == most && *most == 1 => "one argument".to_owned(),
        (least, most) if least == most => format!("{most} arguments"),
        (least, most) => format!("{least} to {most} arguments"),
    }
}

pub(super) fn is_instance(value: &Value, types: &[&str]) -> bool {
    types.iter().any(|name| match (*name, value) {
        ("str", Value::Text(_)) | ("bool" | "int", Value::Bool(_)) => true,
        ("int", Value::Number(number)) => number.is_integer(),
        ("float", Value::Number(number)) => !number.is_integer(),
        ("list" | "tuple", Value::List(_)) | ("dict", Value::Object(_)) => true,
        _ => false,
    })
}

pub(super) fn call(function: Function, arguments: &[Value]) -> Result<Value, String> {
    let first = arguments.first();
    match (function, first) {
        (Function::OrElse, Some(Value::Null)) => Ok(arguments.get(1).cloned().unwrap_or_default()),
        (Function::OrElse, first) => Ok(first.cloned().unwrap_or_default()),
        (Function::Len, Some(value)) => length(value).map(number_of),
        (Function::Str, Some(text @ Value::Text(_))) => Ok(text.clone()),
        // Before it is made: parts of a value may be one in memory.
        (Function::Str, Some(value)) if value.check_size().is_ok_and(|size| size <= MAX_TEXT) => {
            bounded(as_text(value))
        }
        (Function::Str, Some(_)) => Err(text_too_long()),
        (Function::Str, None) => Ok(Value::from("")),
        (Function::Bool, value) => Ok(Value::Bool(value.is_some_and(is_true))),
        (Function::Int, None) => Ok(Value::from(0)),
        (Function::Int, Some(value)) => int(value),
        (Function::Float, None) => Ok(Value::Number(Number::Float(0.0))),
        (Function::Float, Some(value)) => float(value),
        (Function::Abs, Some(value)) => match value {
            Value::Number(number) if number.to_f64() < 0.0 => minus(value),
            Value::Number(_) => Ok(value.clone()),
            Value::Bool(value) => Ok(Value::from(i64::from(*value))),
            other => Err(format!("`abs` takes a number, not {}", kind(other))),
        },
        (Function::Min | Function::Max, Some(_)) => extreme(function, arguments),
        (Function::Len | Function::Abs | Function::Min | Function::Max, None) => {
            Err("an argument is missing".to_owned())
        }
    }
}

fn number_of(count: usize) -> Value {
    Value::from(i64::try_from(count).unwrap_or(i64::MAX))
}

fn length(value: &Value) -> Result<usize, String> {
    match value {
        Value::Text(text) => Ok(text.chars().count()),
        Value::List(list) => Ok(list.len()),
        Value::Object(object) => Ok(object.len()),
        other => Err(format!("{} has no length", kind(other))),
    }
}

fn int(value: &Value) -> Result<Value, String> {
    match value {
        Value::Bool(value) => Ok(Value::from(i64::from(*value))),
        Value::Number(Number::Float(number)) if number.abs() < 9e15 => Ok(Value::from(number.trunc() as i64)),
        Value::Number(Number::Float(_)) => Err("the number is too large for `int`".to_owned()),
        Value::Number(_) => Ok(value.clone()),
        Value::Text(text) => Number::parse_integer(text.trim(), 10)
            .map(Value::Number)
            .ok_or_else(|| format!("`int` cannot read {}", shown(text))),
        other => Err(format!("`int` takes a number or a text, not {}", kind(other))),
    }
}

fn float(value: &Value) -> Result<Value, String> {
    let number = match value {
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::Number(number) => Some(number.to_f64()),
        Value::Text(text) => text.trim().parse().ok(),
        other => return Err(format!("`float` takes a number or a text, not {}", kind(other))),
    };
    let number = number.and_then(Number::from_f64);
    number.map(Value::Number).ok_or_else(|| format!("`float` cannot read {}", shown(&as_text(value))))
}

fn extreme(function: Function, arguments: &[Value]) -> Result<Value, String> {
    let list;
    let items: Vec<&Value> = match arguments {
        [Value::List(of)] => {
            list = of.clone();
            list.iter().collect()
        }
        several => several.iter().collect(),
    };
    let mut items = items.into_iter();
    let mut best = items.next().ok_or_else(|| "there is nothing to choose from".to_owned())?;
    for item in items {
        let order = compare(item, best)?;
        let is_better = if function == Function::Min { order.is_lt() } else { order.is_gt() };
        if is_better {
            best = item;
        }
    }
    Ok(best.clone())
}

pub(super) fn method(of: &Value, name: &str, arguments: &[Value]) -> Result<Value, String> {
    match of {
        Value::Text(text) => of_text(text, name, arguments),
        Value::Object(object) => match (name, arguments) {
            ("get", [Value::Text(key), default @ ..]) => {
                Ok(object.get(key).or(default.first()).cloned().unwrap_or_default())
            }
            ("keys", []) => Ok(Value::List(object.iter().map(|(key, _)| Value::Text(key.clone())).collect())),
            ("values", []) => Ok(Value::List(object.iter().map(|(_, value)| value.clone()).collect())),
            ("items", []) => {
                let pair = |key: &crate::value::Key, value: &Value| {
                    Value::List(List::from_iter([Value::Text(key.clone()), value.clone()]))
                };
                Ok(Value::List(object.iter().map(|(key, value)| pair(key, value)).collect()))
            }
            _ => Err(no_method(of, name)),
        },
        Value::List(list) => match (name, arguments) {
            ("count", [wanted]) => Ok(number_of(list.iter().filter(|item| *item == wanted).count())),
            ("index", [wanted]) => match list.iter().position(|item| item == wanted) {
                Some(place) => Ok(number_of(place)),
                None => Err("`index` finds no such item".to_owned()),
            },
            _ => Err(no_method(of, name)),
        },
        other => Err(no_method(other, name)),
    }
}

fn no_method(of: &Value, name: &str) -> String {
    format!("{} has no method `{name}`", kind(of))
}

fn of_text(text: &str, name: &str, arguments: &[Value]) -> Result<Value, String> {
    let argument = |place: usize| match arguments.get(place) {
        Some(Value::Text(text)) => Ok(&**text),
        Some(other) => Err(format!("`{name}` takes a text, not {}", kind(other))),
        None => Err(format!("`{name}` lacks an argument")),
    };
    let is_empty = arguments.is_empty();
    let all = |test: fn(char) -> bool| Value::Bool(!text.is_empty() && text.chars().all(test));
    let given = |text: &str| Ok(Value::from(text));
    match name {
        "strip" if is_empty => given(text.trim()),
        "lstrip" if is_empty => given(text.trim_start()),
        "rstrip" if is_empty => given(text.trim_end()),
        "strip" | "lstrip" | "rstrip" => {
            let letters: HashSet<char> = argument(0)?.chars().collect();
            let is_one = |letter: char| letters.contains(&letter);
            given(match name {
                "strip" => text.trim_matches(is_one),
                "lstrip" => text.trim_start_matches(is_one),
                _ => text.trim_end_matches(is_one),
            })
        }
        "lower" | "casefold" => Ok(Value::from(text.to_lowercase())),
        "upper" => Ok(Value::from(text.to_uppercase())),
        "title" => Ok(Value::from(titled(text, |before| !before.is_alphabetic()))),
        "capitalize" => Ok(Value::from(titled(text, |_| false))),
        "startswith" | "endswith" => {
            let ends = |part: &str| if name == "startswith" { text.starts_with(part) } else { text.ends_with(part) };
            match arguments.first() {
                // Several of them: any will do.
                Some(Value::List(parts)) => Ok(Value::Bool(parts.iter().filter_map(Value::as_text).any(ends))),
                _ => Ok(Value::Bool(ends(argument(0)?))),
            }
        }
        "removeprefix" => given(text.strip_prefix(argument(0)?).unwrap_or(text)),
        "removesuffix" => given(text.strip_suffix(argument(0)?).unwrap_or(text)),
        "split" if is_empty => listed(text.split_whitespace()),
        "split" => match argument(0)? {
            "" => Err("`split` takes a text that is not empty".to_owned()),
            separator => listed(text.split(separator)),
        },
        "splitlines" => listed(text.lines()),
        "join" => match arguments.first() {
            Some(Value::List(parts)) => {
                let parts: Option<Vec<&str>> = parts.iter().map(Value::as_text).collect();
                let parts = parts.ok_or_else(|| "`join` takes a list of texts".to_owned())?;
                let between = text.len().saturating_mul(parts.len().saturating_sub(1));
                let length = parts.iter().map(|part| part.len()).fold(between, usize::saturating_add);
                if length > MAX_TEXT { Err(text_too_long()) } else { Ok(Value::from(parts.join(text))) }
            }
            _ => Err("`join` takes a list of texts".to_owned()),
        },
        "replace" => {
            let (old, new) = (argument(0)?, argument(1)?);
            // As often as it could occur, before anything is made.
            let most = text.chars().count() + 1;
            if new.len().saturating_mul(most).saturating_add(text.len()) > MAX_TEXT && new.len() > old.len() {
                return Err(text_too_long());
            }
            Ok(Value::from(text.replace(old, new)))
        }
        "find" | "index" => match (text.find(argument(0)?), name) {
            (Some(place), _) => Ok(number_of(text[..place].chars().count())),
            (None, "find") => Ok(Value::from(-1)),
            (None, _) => Err("`index` finds no such text".to_owned()),
        },
        "count" => match argument(0)? {
            "" => Ok(number_of(text.chars().count() + 1)),
            part => Ok(number_of(text.matches(part).count())),
        },
        "isdigit" => Ok(all(char::is_numeric)),
        "isalpha" => Ok(all(char::is_alphabetic)),
        "isalnum" => Ok(all(char::is_alphanumeric)),
        "isspace" => Ok(all(char::is_whitespace)),
        _ => Err(no_method(&Value::from(text), name)),
    }
}

fn titled(text: &str, begins: impl Fn(char) -> bool) -> String {
    let mut before = None;
    let mut titled = String::with_capacity(text.len());
    for letter in text.chars() {
        match before.is_none_or(&begins) {
            true => titled.extend(letter.to_uppercase()),
            false => titled.extend(letter.to_lowercase()),
        }
        before = Some(letter);
    }
    titled
}

pub(super) fn bounded(text: String) -> Result<Value, String> {
    if text.len() > MAX_TEXT { Err(text_too_long()) } else { Ok(Value::from(text)) }
}

fn text_too_long() -> String {
    "the text becomes too long".to_owned()
}

pub(super) fn list_too_long() -> String {
    format!("the list becomes longer than {MAX_ITEMS} items")
}

/// The parts of a text as a list. Each takes memory of its own.
fn listed<'t>(parts: impl Iterator<Item = &'t str> + Clone) -> Result<Value, String> {
    if parts.clone().take(MAX_ITEMS + 1).count() > MAX_ITEMS {
        return Err(list_too_long());
    }
    Ok(Value::List(parts.map(Value::from).collect()))
}

fn shown(text: &str) -> String {
    let text: String = text.chars().take(40).collect();
    format!("'{}'", text.escape_debug())
}

/// The index of a list or a text.
pub(super) fn index(of: &Value, at: &Value) -> Result<Value, String> {
    match (of, as_index(at), at) {
        // What is not there is nothing.
        (Value::Null, ..) => Ok(Value::Null),
        (Value::Object(object), _, Value::Text(key)) => Ok(object.get(key).cloned().unwrap_or_default()),
        (Value::List(list), Some(index), _) => crate::place::position(index, list.len())
            .and_then(|place| list.get(place).cloned())
            .ok_or_else(|| format!("the list has {} items, and there is no `[{index}]`", list.len())),
        (Value::Text(text), Some(index), _) => {
            let letters: Vec<char> = text.chars().collect();
            let letter = crate::place::position(index, letters.len()).and_then(|place| letters.get(place));
            letter.map(|letter| Value::from(letter.to_string())).ok_or_else(|| format!("the text has no `[{index}]`"))
        }
        (of, _, at) => Err(format!("{} has no index that is {}", kind(of), kind(at))),
    }
}

/// A whole number as an index.
fn as_index(value: &Value) -> Option<i64> {
    match value {
        Value::Number(Number::Int(index)) => Some(*index),
        Value::Bool(value) => Some(i64::from(*value)),
        _ => None,
    }
}
