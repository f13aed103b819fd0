//! Types of values, written as JSON schemas, and the conversions between them.
//!
//! A slot of a graph may have a type; what flows into it is converted. The rules are those of the Open Agent
//! Specification ("Type compatibility rules"), which leave texts alone: a text never becomes anything else.

mod compatible;
mod convert;
mod schema;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;
use std::sync::Arc;

use crate::value::{Key, Value};

pub use convert::{Iterated, Mismatch};
pub use schema::{DoubtfulKeyword, SchemaError, doubtful_keywords, pointer_step, schema_at};
pub use text::to_text;

use schema::Constraint;
pub(crate) use schema::{begin_file, end_file};

/// The type of a slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    shape: Shape,
    /// What a value of that shape has to satisfy beyond it
    constraint: Option<Constraint>,
}

/// The shape of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// Any value
    Any,
    /// A text
    Text,
    /// A whole number
    Integer,
    /// A floating point number
    Number,
    /// A truth value
    Boolean,
    /// Nothing
    Null,
    /// A list of this
    Array(Arc<Type>),
    /// An object
    Object(Members),
    /// One of these
    Union(Vec<Type>),
}

/// What an object has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Members {
    /// Those that are declared
    pub(crate) declared: Vec<Member>,
    /// The type of all others; none if nothing is said of them
    pub(crate) others: Option<Arc<Type>>,
}

/// A declared entry of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) name: Key,
    pub(crate) ty: Type,
    pub(crate) default: Option<Value>,
    pub(crate) optional: bool,
}

impl Type {
    pub(crate) fn of_shape(shape: Shape) -> Self {
        Type { shape, constraint: None }
    }

    /// Any value.
    pub fn any() -> Self {
        Type::of_shape(Shape::Any)
    }

    /// A text.
    pub fn text() -> Self {
        Type::of_shape(Shape::Text)
    }

    /// A list of this type.
    pub fn list_of(items: Arc<Type>) -> Self {
        Type::of_shape(Shape::Array(items))
    }

    /// One of two types.
    pub fn either(first: Type, second: Type) -> Self {
        Type::of_shape(Shape::Union(vec![first, second]))
    }

    /// Whether nothing is said of the value.
    pub fn is_any(&self) -> bool {
        matches!(self.shape, Shape::Any)
    }

    /// Whether this is a text and nothing else.
    pub fn is_text(&self) -> bool {
        matches!(self.shape, Shape::Text)
    }

    /// Whether this is an object, whatever is in it.
    pub fn is_object(&self) -> bool {
        matches!(self.shape, Shape::Object(_))
    }

    /// Whether this is an integer or a number.
    pub fn is_numeric(&self) -> bool {
        matches!(self.shape, Shape::Integer | Shape::Number)
    }

    /// Whether this is an integer.
    pub fn is_integer(&self) -> bool {
        matches!(self.shape, Shape::Integer)
    }

    /// The types of which a value is one: those of a union, else this type alone.
    pub fn members(&self) -> &[Type] {
        match &self.shape {
            Shape::Union(members) => members,
            _ => std::slice::from_ref(self),
        }
    }

    /// The type of the items, if this is a list.
    pub fn items(&self) -> Option<&Arc<Type>> {
        match &self.shape {
            Shape::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The type in words after "is not": `an integer`, `a string or null`, `null`.
    pub(super) fn with_article(&self) -> String {
        let text = self.to_string();
        let article = if text.starts_with("null") {
            ""
        } else if text.starts_with(['a', 'i', 'o']) {
            "an "
        } else {
            "a "
        };
        format!("{article}{text}")
    }
}

impl fmt::Display for Type {
    /// As people say it: `integer`, `array of string`, `object with a: integer`, `string or null`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shape {
            Shape::Any => f.write_str("any"),
            Shape::Text => f.write_str("string"),
            Shape::Integer => f.write_str("integer"),
            Shape::Number => f.write_str("number"),
            Shape::Boolean => f.write_str("boolean"),
            Shape::Null => f.write_str("null"),
            Shape::Array(items) if matches!(items.shape, Shape::Any) => f.write_str("array"),
            Shape::Array(items) if matches!(items.shape, Shape::Union(_)) => write!(f, "array of ({items})"),
            Shape::Array(items) => write!(f, "array of {items}"),
            Shape::Object(members) if members.declared.is_empty() => match &members.others {
                Some(others) => write!(f, "object of {others}"),
                None => f.write_str("object"),
            },
            Shape::Object(members) => {
                f.write_str("object with ")?;
                for (index, member) in members.declared.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}{}: {}", member.name, member.ty)?;
                }
                Ok(())
            }
            Shape::Union(members) => {
                for (index, member) in members.iter().enumerate() {
                    let or = if index > 0 { " or " } else { "" };
                    write!(f, "{or}{member}")?;
                }
                Ok(())
            }
        }
    }
}
