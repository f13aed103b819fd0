//! Reducers: how a write to a key is combined with what is there.

use thiserror::Error;

use crate::conversation;
use crate::place::Place;
use crate::value::{List, Object, Value};

/// A way to combine the current value of a key with one that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reducer {
    /// Adds the value to a list as one item
    Append,
    /// Adds the items of a list to a list
    Extend,
    /// Joins texts with a line break; nothing is put after an empty text
    Concat,
    /// Adds numbers; integers stay exact
    Sum,
    /// Keeps the larger number
    Max,
    /// Keeps the smaller number
    Min,
    /// Sets the keys of an object in an object; nested objects are replaced
    Merge,
    /// Takes the written value
    Overwrite,
    /// Adds messages to a conversation (see [`crate::conversation::add`])
    Converse,
    /// Sets a place within the value (see [`crate::ir::Expression::Placed`]); any other value replaces the whole
    Place,
}

/// The entries of a value that is written to a place.
const AT: &str = "(place)";
const PLACED: &str = "value";

/// What [`Reducer::Place`] takes to set a place, of which the first step is the key. No value that somebody gives has this form.
pub(crate) fn placed(place: &Place, value: Value) -> Value {
    Value::Object([(AT.into(), Value::from(place.to_string())), (PLACED.into(), value)].into_iter().collect())
}

/// The place and the value of a write to a place.
fn as_placed(written: &Value) -> Option<(Place, &Value)> {
    let object: &Object = written.as_object().filter(|object| object.len() == 2)?;
    Some((Place::parse(object.get(AT)?.as_text()?).ok()?, object.get(PLACED)?))
}

/// A value that a reducer cannot combine.
#[derive(Debug, Error, Clone, PartialEq)]
pub enum ReducerError {
    /// One of the values is none that it takes
    #[error("reducer `{reducer}` takes {expected}, but the {position} is {found}")]
    Kind {
        /// The reducer
        reducer: &'static str,
        /// What it takes
        expected: &'static str,
        /// Which of the values
        position: &'static str,
        /// What that is
        found: String,
    },
    /// What was written is not a message
    #[error("{0}")]
    Message(String),
    /// The value has no such place
    #[error("{0}")]
    Place(String),
}

/// Those that a graph may declare by name. `converse` belongs to keys that are conversations by themselves.
const ALL: [Reducer; 8] = [
    Reducer::Append,
    Reducer::Extend,
    Reducer::Concat,
    Reducer::Sum,
    Reducer::Max,
    Reducer::Min,
    Reducer::Merge,
    Reducer::Overwrite,
];

impl Reducer {
    /// All reducers, in the order in which they are documented.
    pub fn all() -> &'static [Reducer] {
        &ALL
    }

    /// The name under which graphs declare it.
    pub fn name(self) -> &'static str {
        match self {
            Reducer::Append => "append",
            Reducer::Extend => "extend",
            Reducer::Concat => "concat",
            Reducer::Sum => "sum",
            Reducer::Max => "max",
            Reducer::Min => "min",
            Reducer::Merge => "merge",
            Reducer::Overwrite => "overwrite",
            Reducer::Converse => "converse",
            Reducer::Place => "place",
        }
    }

    /// The reducer of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        ALL.into_iter().find(|reducer| reducer.name() == name)
    }

    /// Combines the current value, if the key is there, with a written one. The first write of `append` and `extend`
    /// goes to an empty list; the first write of the others is stored as it is.
    pub fn reduce(self, current: Option<&Value>, written: Value) -> Result<Value, ReducerError> {
        let empty = Value::List(List::default());
        if self == Reducer::Converse {
            self.accepts(current.unwrap_or(&empty), "current value")?;
            let conversation = current.and_then(Value::as_list).cloned().unwrap_or_default();
            let added = conversation::add(&conversation, &written);
            return added.map(Value::List).map_err(ReducerError::Message);
        }
        if self == Reducer::Place {
            let Some((place, value)) = as_placed(&written) else { return Ok(written) };
            return place.set(current, value.clone()).map_err(ReducerError::Place);
        }
        let current = match (self, current) {
            (_, Some(current)) => current,
            (Reducer::Append | Reducer::Extend, None) => &empty,
            (_, None) => {
                self.accepts(&written, "written value")?;
                return Ok(written);
            }
        };
        if self != Reducer::Append {
            self.accepts(&written, "written value")?;
        }
        self.accepts(current, "current value")?;
        Ok(match (self, current, written) {
            (Reducer::Append, Value::List(list), written) => {
                let mut list = list.clone();
                list.push(written);
                Value::List(list)
            }
            (Reducer::Extend, Value::List(list), Value::List(more)) => {
                let mut list = list.clone();
                list.extend(&more);
                Value::List(list)
            }
            (Reducer::Concat, Value::Text(current), Value::Text(written)) if !current.is_empty() => {
                Value::text(format!("{current}\n{written}"))
            }
            (Reducer::Sum, Value::Number(current), Value::Number(written)) => {
                let sum =
                    current.add(&written).ok_or_else(|| self.error("written value", "too large to add".into()))?;
                Value::Number(sum)
            }
            (Reducer::Max, Value::Number(current), Value::Number(written)) => {
                Value::Number(if written.compare(current).is_gt() { written } else { current.clone() })
            }
            (Reducer::Min, Value::Number(current), Value::Number(written)) => {
                Value::Number(if written.compare(current).is_lt() { written } else { current.clone() })
            }
            (Reducer::Merge, Value::Object(current), Value::Object(written)) => {
                let mut merged = current.clone();
                for (key, value) in written.iter() {
                    merged.insert(key.clone(), value.clone());
                }
                Value::Object(merged)
            }
            (_, _, written) => written,
        })
    }

    fn accepts(self, value: &Value, position: &'static str) -> Result<(), ReducerError> {
        let accepted = match self {
            Reducer::Append | Reducer::Extend | Reducer::Converse => matches!(value, Value::List(_)),
            Reducer::Concat => matches!(value, Value::Text(_)),
            Reducer::Sum | Reducer::Max | Reducer::Min => matches!(value, Value::Number(_)),
            Reducer::Merge => matches!(value, Value::Object(_)),
            Reducer::Overwrite | Reducer::Place => true,
        };
        if accepted { Ok(()) } else { Err(self.error(position, value.a_kind().to_owned())) }
    }

    fn error(self, position: &'static str, found: String) -> ReducerError {
        let expected = match self {
            Reducer::Append | Reducer::Extend => "a list",
            Reducer::Concat => "a text",
            Reducer::Sum | Reducer::Max | Reducer::Min => "a number",
            Reducer::Merge => "an object",
            Reducer::Overwrite | Reducer::Place => "any value",
            Reducer::Converse => "messages",
        };
        ReducerError::Kind { reducer: self.name(), expected, position, found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::parse_json;

    #[test]
    fn reducers_combine() {
        for (reducer, current, written, expected) in [
            ("append", None, "1", "[1]"),
            ("append", Some("[[1]]"), "[2]", "[[1],[2]]"),
            ("extend", None, "[1]", "[1]"),
            ("extend", Some("[1]"), "[2,3]", "[1,2,3]"),
            ("concat", Some(r#""""#), r#""a""#, r#""a""#),
            ("concat", Some(r#""a""#), r#""""#, r#""a\n""#),
            ("sum", None, "5", "5"),
            ("sum", Some("9007199254740993"), "1", "9007199254740994"),
            ("sum", Some("9223372036854775807"), "1", "9223372036854775808"),
            ("sum", Some("1"), "2.5", "3.5"),
            ("sum", Some("5"), "5", "10"),
            ("max", Some("3"), "3.5", "3.5"),
            ("max", Some("9007199254740993"), "9007199254740992", "9007199254740993"),
            ("min", Some("3"), "-1", "-1"),
            ("merge", Some(r#"{"a":{"x":1},"z":9}"#), r#"{"a":{"y":2}}"#, r#"{"a":{"y":2},"z":9}"#),
            ("overwrite", Some("1"), "null", "null"),
        ] {
            let current = current.map(|text| parse_json(text).unwrap());
            let reducer = Reducer::from_name(reducer).unwrap();
            let result = reducer.reduce(current.as_ref(), parse_json(written).unwrap()).unwrap();
            assert_eq!(result.to_json(), expected, "{}", reducer.name());
        }
    }

    #[test]
    fn a_place_is_set_and_everything_else_replaces() {
        let write = |place: &str, value: Value| {
            let place = Place::parse(place).unwrap();
            placed(&place, value)
        };
        let now = parse_json(r#"{"a":[1,2]}"#).unwrap();
        let reduce = |written: Value| Reducer::Place.reduce(Some(&now), written).map(|value| value.to_json());
        assert_eq!(reduce(write("k.a[0]", 9.into())).as_deref(), Ok(r#"{"a":[9,2]}"#));
        assert_eq!(reduce(write("k.b.c", 9.into())).as_deref(), Ok(r#"{"a":[1,2],"b":{"c":9}}"#));
        assert_eq!(reduce(write("k", 9.into())).as_deref(), Ok("9"));
        assert_eq!(reduce(parse_json(r#"{"value":1}"#).unwrap()).as_deref(), Ok(r#"{"value":1}"#));
        assert!(reduce(write("k.a.b", 9.into())).is_err());
    }

    #[test]
    fn type_errors_say_which_value() {
        for (reducer, current, written, message) in [
            ("append", Some("1"), "1", "reducer `append` takes a list, but the current value is a number"),
            ("extend", Some("[]"), "1", "reducer `extend` takes a list, but the written value is a number"),
            ("concat", None, "1", "reducer `concat` takes a text, but the written value is a number"),
            ("sum", Some("1"), r#""2""#, "reducer `sum` takes a number, but the written value is a text"),
            ("merge", Some("[]"), "{}", "reducer `merge` takes an object, but the current value is a list"),
        ] {
            let current = current.map(|text| parse_json(text).unwrap());
            let reducer = Reducer::from_name(reducer).unwrap();
            let error = reducer.reduce(current.as_ref(), parse_json(written).unwrap()).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
