//! JSON values that are cheap to clone, so that state can be shared instead of copied.
//!
//! Differences from `serde_json::Value`, each for a reason: lists and objects share structure (a clone costs a
//! reference count, a push onto a list of 10,000 entries does not copy it), integers of any size survive unchanged,
//! and objects keep the order of their keys.

mod number;
mod object;
mod parse;
mod plain;
mod size;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

pub use number::Number;
pub use object::Object;
pub use parse::{JsonError, MAX_DEPTH, MAX_KEPT_DEPTH, parse_json, parse_kept_json};
pub use plain::read_json;
pub use size::{MAX_SIZE, TooLarge};

/// A key of an object or of the state.
pub type Key = Arc<str>;

/// A JSON value. Cloning never copies a list, an object or a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number; see [`Number`]
    Number(Number),
    /// A text
    Text(Arc<str>),
    /// A list
    List(List),
    /// An object whose keys keep their order
    Object(Object),
}

impl Value {
    /// A text value.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Value::Text(text.into())
    }

    /// The text, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The object, if this is one.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The list, if this is one.
    pub fn as_list(&self) -> Option<&List> {
        match self {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    /// What kind of value this is, in the words of JSON: `null`, `boolean`, `number`, `text`, `list`, `object`.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::Text(_) => "text",
            Value::List(_) => "list",
            Value::Object(_) => "object",
        }
    }

    /// The same with its article, for sentences: `a list`, `an object`, `null`.
    pub fn a_kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }

    /// Compact JSON text: no white space, keys in order, UTF-8 not escaped.
    pub fn to_json(&self) -> String {
        // A `Value` has only text keys and finite numbers, so writing it cannot fail.
        serde_json::to_string(self).expect("a JSON value can always be written")
    }

    /// The text that stands for this value inside a larger text: a text as it is, everything else as compact JSON.
    pub fn to_display(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Value::Text(text) => std::borrow::Cow::Borrowed(text),
            Value::Null => std::borrow::Cow::Borrowed("null"),
            other => std::borrow::Cow::Owned(other.to_json()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_display())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Number(Number::Int(value))
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::Text(value.into())
    }
}

impl From<Object> for Value {
    fn from(value: Object) -> Self {
        Value::Object(value)
    }
}

impl From<List> for Value {
    fn from(value: List) -> Self {
        Value::List(value)
    }
}

impl From<&serde_json::Value> for Value {
    fn from(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(*value),
            serde_json::Value::Number(number) => Value::Number(number.into()),
            serde_json::Value::String(text) => Value::text(text.as_str()),
            serde_json::Value::Array(items) => Value::List(items.iter().map(Value::from).collect()),
            serde_json::Value::Object(map) => {
                Value::Object(map.iter().map(|(key, value)| (Key::from(key.as_str()), Value::from(value))).collect())
            }
        }
    }
}

impl From<&Value> for serde_json::Value {
    /// Integers beyond 64 bits become the nearest floating point number, which is all `serde_json` can hold.
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => serde_json::Value::Bool(*value),
            Value::Number(number) => number.to_serde(),
            Value::Text(text) => serde_json::Value::String(text.to_string()),
            Value::List(list) => list.iter().map(serde_json::Value::from).collect(),
            Value::Object(object) => {
                object.iter().map(|(key, value)| (key.to_string(), serde_json::Value::from(value))).collect()
            }
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Number(number) => number.serialize(serializer),
            Value::Text(text) => serializer.serialize_str(text),
            Value::List(list) => {
                let mut sequence = serializer.serialize_seq(Some(list.len()))?;
                for item in list.iter() {
                    sequence.serialize_element(item)?;
                }
                sequence.end()
            }
            Value::Object(object) => {
                let mut map = serializer.serialize_map(Some(object.len()))?;
                for (key, value) in object.iter() {
                    map.serialize_entry(&**key, value)?;
                }
                map.end()
            }
        }
    }
}

/// A list that shares structure between its clones; pushing does not copy the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List(imbl::Vector<Value>);

impl List {
    /// The number of items.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The item at `index`, counted from 0.
    pub fn get(&self, index: usize) -> Option<&Value> {
        self.0.get(index)
    }

    /// All items in order.
    pub fn iter(&self) -> impl Iterator<Item = &Value> {
        self.0.iter()
    }

    /// Adds an item at the end.
    pub fn push(&mut self, value: Value) {
        self.0.push_back(value);
    }

    /// Puts another item at `index`; nothing happens where there is none.
    pub fn set(&mut self, index: usize, value: Value) {
        if let Some(item) = self.0.get_mut(index) {
            *item = value;
        }
    }

    /// Adds all items of `other` at the end.
    pub fn extend(&mut self, other: &List) {
        self.0.append(other.0.clone());
    }
}

impl FromIterator<Value> for List {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        List(items.into_iter().collect())
    }
}
