//! Kinds of values as CEL calls them, and sets of them: a value has one, an expression may have several.

use std::fmt;

use crate::value::{Number, Value};

/// A set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds(u8);

/// Every kind by itself, with its name and what it is called in a sentence.
const ALL: [(Kinds, &str, &str); 7] = [
    (Kinds::NULL, "null", "null"),
    (Kinds::BOOL, "bool", "a bool"),
    (Kinds::INT, "int", "an int"),
    (Kinds::DOUBLE, "double", "a double"),
    (Kinds::STRING, "string", "a string"),
    (Kinds::LIST, "list", "a list"),
    (Kinds::MAP, "map", "a map"),
];

impl Kinds {
    pub(super) const NONE: Kinds = Kinds(0);
    pub(super) const NULL: Kinds = Kinds(1);
    pub(super) const BOOL: Kinds = Kinds(1 << 1);
    pub(super) const INT: Kinds = Kinds(1 << 2);
    pub(super) const DOUBLE: Kinds = Kinds(1 << 3);
    pub(super) const STRING: Kinds = Kinds(1 << 4);
    pub(super) const LIST: Kinds = Kinds(1 << 5);
    pub(super) const MAP: Kinds = Kinds(1 << 6);
    pub(super) const ANY: Kinds = Kinds((1 << 7) - 1);
    /// What may be a text: a message of a conversation is its own text where one is needed.
    pub(super) const TEXT: Kinds = Kinds::STRING.or(Kinds::MAP);
    pub(super) const NUMBER: Kinds = Kinds::INT.or(Kinds::DOUBLE);

    /// The kind of a value.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Kinds::NULL,
            Value::Bool(_) => Kinds::BOOL,
            Value::Number(Number::Float(_)) => Kinds::DOUBLE,
            Value::Number(_) => Kinds::INT,
            Value::Text(_) => Kinds::STRING,
            Value::List(_) => Kinds::LIST,
            Value::Object(_) => Kinds::MAP,
        }
    }

    /// Those of both sets.
    pub(super) const fn or(self, other: Kinds) -> Self {
        Kinds(self.0 | other.0)
    }

    /// Whether there is a kind that both sets have.
    pub(super) const fn meets(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there is no kind.
    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether every kind of this set is in the other one.
    pub(super) const fn within(self, other: Kinds) -> bool {
        self.0 & !other.0 == 0
    }

    /// Its kinds, each by itself.
    pub(super) fn each(self) -> impl Iterator<Item = Kinds> {
        ALL.into_iter().map(|(kind, ..)| kind).filter(move |kind| self.meets(*kind))
    }

    /// The name of the first kind, which is the only one where this is the kind of a value.
    pub(super) fn name(self) -> &'static str {
        ALL.into_iter().find(|(kind, ..)| self.meets(*kind)).map_or("nothing", |(_, name, _)| name)
    }
}

impl fmt::Display for Kinds {
    /// As a part of a sentence: `an int`, `an int or a string`, `anything`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Kinds::ANY {
            return f.write_str("anything");
        }
        let mut or = "";
        for (_, _, words) in ALL.into_iter().filter(|(kind, ..)| self.meets(*kind)) {
            write!(f, "{or}{words}")?;
            or = " or ";
        }
        Ok(())
    }
}
