//! Values become values of a type.

use std::{fmt, io};

use thiserror::Error;

use super::text::to_text;
use super::{Members, Shape, Type};
use crate::value::{List, Number, Object, Value};

/// How often all parts of a value may be looked at together, before it is known what they become.
const MOST_STEPS: u64 = 15_000_000;
/// Declared members of an object that are looked through in the time of one step.
const MEMBERS_A_STEP: u64 = 8;

/// Why a value cannot become one of a type.
#[derive(Clone, Debug, Error, PartialEq)]
pub struct Mismatch {
    /// The keys and indexes that lead to the part that does not fit
    pub path: Vec<String>,
    /// What is wrong with it
    pub problem: String,
}

impl Mismatch {
    fn new(problem: impl Into<String>) -> Self {
        Mismatch { path: Vec::new(), problem: problem.into() }
    }

    fn below(mut self, key: impl Into<String>) -> Self {
        self.path.insert(0, key.into());
        self
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "at `{}`: ", self.path.join("."))?;
        }
        f.write_str(&self.problem)
    }
}

/// What a slot gets that takes one value or a list of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Iterated {
    /// One value, for every round the same
    Same(Value),
    /// One value for each round
    Each(List),
}

impl Type {
    /// The value as one of this type.
    ///
    /// A text stays one; everything becomes a text; numbers and truth values become each other, a number loses its
    /// decimals where an integer is wanted; lists and objects are converted item by item; `null` stays `null` where a
    /// text is wanted.
    ///
    /// # Errors
    /// When it cannot become one, with the part that does not fit.
    pub fn convert(&self, value: &Value) -> Result<Value, Mismatch> {
        self.check_work(value)?;
        self.converted(value)
    }

    /// Refuses a value that has many parts where each of them may be one of many types.
    fn check_work(&self, value: &Value) -> Result<(), Mismatch> {
        let ways = self.ways();
        if ways <= 1 || ways.saturating_mul(count(value)) <= MOST_STEPS {
            return Ok(());
        }
        Err(Mismatch::new("it takes too many steps to find out which of its types the value has"))
    }

    /// As how many types a part of a value is looked at.
    fn ways(&self) -> u64 {
        match &self.shape {
            Shape::Union(members) => members.iter().map(Type::ways).fold(1, u64::saturating_add),
            Shape::Array(items) => items.ways(),
            Shape::Object(members) => {
                let types = members.declared.iter().map(|member| &member.ty).chain(members.others.as_deref());
                let searched = members.declared.len() as u64 / MEMBERS_A_STEP;
                types.map(Type::ways).fold(searched.max(1), u64::max)
            }
            _ => 1,
        }
    }

    fn converted(&self, value: &Value) -> Result<Value, Mismatch> {
        let refused = || Mismatch::new(format!("{} is not {}", shown(value), self.with_article()));
        self.tried(value).unwrap_or_else(|| Err(refused()))
    }

    /// The same; none for a value of another kind, so that no words are made for each type of a union that it is not of.
    fn tried(&self, value: &Value) -> Option<Result<Value, Mismatch>> {
        let converted = match self.convert_shape(value)? {
            Ok(converted) => converted,
            failed => return Some(failed),
        };
        Some(match self.constraint.as_ref().and_then(|constraint| constraint.violated_by(&converted)) {
            Some(problem) => Err(Mismatch::new(problem)),
            None => Ok(converted),
        })
    }

    fn convert_shape(&self, value: &Value) -> Option<Result<Value, Mismatch>> {
        Some(Ok(match (&self.shape, value) {
            (Shape::Any, _) | (Shape::Text | Shape::Null, Value::Null) | (Shape::Text, Value::Text(_)) => value.clone(),
            (Shape::Boolean, Value::Bool(_)) => value.clone(),
            (Shape::Text, _) => Value::text(to_text(value)),
            (Shape::Integer, Value::Number(number)) => Value::Number(whole(number)),
            (Shape::Integer, Value::Bool(value)) => Value::from(i64::from(*value)),
            (Shape::Number, Value::Number(number)) => Value::Number(Number::Float(number.to_f64())),
            (Shape::Number, Value::Bool(value)) => Value::Number(Number::Float(f64::from(u8::from(*value)))),
            (Shape::Boolean, Value::Number(number)) => Value::Bool(number.to_f64() != 0.0),
            (Shape::Array(items), Value::List(_)) => return Some(items.each_of(value).map(Value::List)),
            (Shape::Object(members), Value::Object(object)) => return Some(members.convert(object).map(Value::Object)),
            (Shape::Union(members), _) => {
                let exact = members.iter().find(|member| member.is_kind_of(value));
                let near = || members.iter().find(|member| member.has(value));
                return match exact.or_else(near) {
                    Some(member) => member.tried(value),
                    None => members.iter().find_map(|member| member.tried(value)?.ok()).map(Ok),
                };
            }
            _ => return None,
        }))
    }

    /// Whether the value is of this type as it is; an integer is a number too.
    pub fn fits(&self, value: &Value) -> bool {
        self.check_work(value).is_ok() && self.has(value)
    }

    fn has(&self, value: &Value) -> bool {
        let shape = match (&self.shape, value) {
            (Shape::Any, _)
            | (Shape::Text, Value::Text(_))
            | (Shape::Number, Value::Number(_))
            | (Shape::Boolean, Value::Bool(_))
            | (Shape::Null, Value::Null) => true,
            (Shape::Integer, Value::Number(number)) => number.is_integer(),
            (Shape::Array(items), Value::List(list)) => list.iter().all(|item| items.has(item)),
            (Shape::Object(members), Value::Object(object)) => members.fit(object),
            (Shape::Union(members), _) => members.iter().any(|member| member.has(value)),
            _ => false,
        };
        shape && self.constraint.as_ref().is_none_or(|constraint| constraint.violated_by(value).is_none())
    }

    /// Whether the value may be a default of this type: numbers and truth values stand for each other.
    pub fn takes_default(&self, value: &Value) -> bool {
        let numeric = |shape: &Shape| matches!(shape, Shape::Integer | Shape::Number | Shape::Boolean);
        match (&self.shape, value) {
            (Shape::Union(members), _) => members.iter().any(|member| member.takes_default(value)),
            (shape, Value::Number(_) | Value::Bool(_)) if numeric(shape) => self.convert(value).is_ok(),
            (Shape::Array(_) | Shape::Object(_), Value::List(_) | Value::Object(_)) => self.convert(value).is_ok(),
            _ => self.fits(value),
        }
    }

    /// The value for a slot that takes one value of this type for all rounds, or a list with one for each.
    ///
    /// # Errors
    /// When it is neither.
    pub fn iterate(&self, value: &Value) -> Result<Iterated, Mismatch> {
        self.check_work(value)?;
        if self.has(value) {
            return Ok(Iterated::Same(self.converted(value)?));
        }
        match value {
            Value::List(_) => Ok(Iterated::Each(self.each_of(value)?)),
            _ => Ok(Iterated::Same(self.converted(value)?)),
        }
    }

    /// A list of values, each as one of this type.
    ///
    /// # Errors
    /// When it is no list, or an item cannot become one.
    pub fn each(&self, value: &Value) -> Result<List, Mismatch> {
        self.check_work(value)?;
        self.each_of(value)
    }

    fn each_of(&self, value: &Value) -> Result<List, Mismatch> {
        let Value::List(list) = value else {
            return Err(Mismatch::new(format!("{} is not a list", shown(value))));
        };
        let item =
            |(index, item): (usize, &Value)| self.converted(item).map_err(|mismatch| mismatch.below(index.to_string()));
        list.iter().enumerate().map(item).collect()
    }

    /// Whether the value has the very kind of this type, an integer not being a number.
    fn is_kind_of(&self, value: &Value) -> bool {
        match (&self.shape, value) {
            (Shape::Number, Value::Number(number)) => !number.is_integer(),
            _ => self.has(value),
        }
    }
}

/// The values that a value consists of.
pub(super) fn count(value: &Value) -> u64 {
    match value {
        Value::List(items) => 1 + items.iter().map(count).sum::<u64>(),
        Value::Object(object) => 1 + object.iter().map(|(_, value)| count(value)).sum::<u64>(),
        _ => 1,
    }
}

impl Members {
    fn convert(&self, object: &Object) -> Result<Object, Mismatch> {
        let mut converted = Object::default();
        for (key, value) in object.iter() {
            let declared = self.declared.iter().find(|member| member.name == *key).map(|member| &member.ty);
            let value = match declared.or(self.others.as_deref()) {
                Some(ty) => ty.converted(value).map_err(|mismatch| mismatch.below(&**key))?,
                None => value.clone(),
            };
            converted.insert(key.clone(), value);
        }
        for member in self.declared.iter().filter(|member| object.get(&member.name).is_none()) {
            match &member.default {
                Some(default) => {
                    let default = member.ty.converted(default).map_err(|mismatch| mismatch.below(&*member.name))?;
                    converted.insert(member.name.clone(), default);
                }
                None if member.optional => {}
                None => return Err(Mismatch::new(format!("the property `{}` is missing", member.name))),
            }
        }
        Ok(converted)
    }

    fn fit(&self, object: &Object) -> bool {
        let entry = |(key, value): (&crate::Key, &Value)| {
            let declared = self.declared.iter().find(|member| member.name == *key).map(|member| &member.ty);
            declared.or(self.others.as_deref()).is_none_or(|ty| ty.has(value))
        };
        let given = |member: &super::Member| member.optional || object.get(&member.name).is_some();
        object.iter().all(entry) && self.declared.iter().all(given)
    }
}

/// Without what is behind the decimal point.
fn whole(number: &Number) -> Number {
    match number {
        Number::Float(value) => {
            let digits = format!("{:.0}", value.trunc());
            // A finite number has at most 309 digits.
            Number::parse_integer(&digits, 10).unwrap_or(Number::Int(0))
        }
        integer => integer.clone(),
    }
}

/// The value for a message, cut where it is long. No more of it is written out than that.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    let mut beginning = Beginning(Vec::new());
    let is_whole = serde_json::to_writer(&mut beginning, value).is_ok();
    let text = String::from_utf8_lossy(&beginning.0);
    if is_whole && text.chars().count() <= LONGEST {
        return format!("`{text}`");
    }
    let beginning: String = text.chars().take(LONGEST).collect();
    format!("`{beginning}...`")
}

/// Takes a few bytes of a text, more than have to be shown.
struct Beginning(Vec<u8>);

impl io::Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        const MOST: usize = 512;
        let taken = bytes.len().min(MOST - self.0.len());
        self.0.extend_from_slice(&bytes[..taken]);
        if taken < bytes.len() { Err(io::Error::other("the rest is not shown")) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
