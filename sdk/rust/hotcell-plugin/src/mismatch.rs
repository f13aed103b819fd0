//! Where a value does not fit its form, in words.

use std::fmt;

use crate::schema::{Field, Schema, listed};
use crate::{Error, Json};

/// Characters of a text that a message repeats.
const SHOWN: usize = 40;

/// A value that does not fit, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    path: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    Form { expected: String, found: String },
    Missing { expected: String },
    Unknown { known: Vec<&'static str> },
}

impl Mismatch {
    /// Something else than `schema` stands here.
    pub fn form(schema: &Schema, found: &Json) -> Self {
        Self::expected(schema.words(), found)
    }

    /// Something else than what `expected` says stands here.
    pub fn expected(expected: impl Into<String>, found: &Json) -> Self {
        let problem = Problem::Form { expected: expected.into(), found: shown(found) };
        Self { path: String::new(), problem }
    }

    pub(crate) fn missing(name: &str, schema: &Schema) -> Self {
        Self { path: name.to_owned(), problem: Problem::Missing { expected: schema.words() } }
    }

    pub(crate) fn unknown(name: &str, fields: &'static [Field]) -> Self {
        let known = fields.iter().map(|field| field.name).collect();
        Self { path: name.to_owned(), problem: Problem::Unknown { known } }
    }

    /// The same mismatch, seen from the object that holds the value under `name`.
    #[must_use]
    pub fn in_field(mut self, name: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{name}{dot}{}", self.path);
        self
    }

    /// The same mismatch, seen from the list that holds the value at `index`.
    #[must_use]
    pub fn in_item(mut self, index: usize) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("[{index}]{dot}{}", self.path);
        self
    }

    /// The error for whoever gave the value; `what` names its kind, such as `argument`.
    pub fn into_error(self, what: &str) -> Error {
        Error::invalid_input(self.text(what))
    }

    fn text(&self, what: &str) -> String {
        let place = if self.path.is_empty() { format!("the {what}") } else { format!("{what} `{}`", self.path) };
        match &self.problem {
            Problem::Form { expected, found } => format!("{place} must be {expected}; it is {found}"),
            Problem::Missing { expected } => format!("{place} is missing; it must be {expected}"),
            Problem::Unknown { known } if known.is_empty() => format!("{place} is not known; there are none"),
            Problem::Unknown { known } => {
                format!("{place} is not known; known here: {}", listed(known.iter().copied()))
            }
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text("value"))
    }
}

impl std::error::Error for Mismatch {}

/// What came, briefly.
fn shown(value: &Json) -> String {
    match value {
        Json::Null => "null".to_owned(),
        Json::Bool(value) => format!("`{value}`"),
        Json::Number(value) => format!("the number `{value}`"),
        Json::String(text) => {
            let mut start: String = text.chars().take(SHOWN).collect();
            if start.len() < text.len() {
                start.push('…');
            }
            format!("the text `{}`", start.escape_debug())
        }
        Json::Array(items) => format!("a list of {} items", items.len()),
        Json::Object(members) => format!("an object with {} names", members.len()),
    }
}
