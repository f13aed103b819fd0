//! What values are to each other: of which kind, equal, in which order.

use std::cmp::Ordering;

use crate::value::{Number, Value};

/// What kind of value it is, in the words of the language.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "None",
        other => other.a_kind(),
    }
}

/// A number, which `True` and `False` are, too.
pub(super) fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        Value::Bool(value) => Some(Number::Int(i64::from(*value))),
        _ => None,
    }
}

pub(super) fn equal(left: &Value, right: &Value) -> bool {
    match (number(left), number(right)) {
        (Some(left), Some(right)) => left == right,
        _ => left == right,
    }
}

pub(super) fn compare(left: &Value, right: &Value) -> Result<Ordering, String> {
    if let (Some(left), Some(right)) = (number(left), number(right)) {
        return Ok(left.compare(&right));
    }
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => Ok(left.cmp(right)),
        (Value::List(left), Value::List(right)) => {
            for (left, right) in left.iter().zip(right.iter()) {
                if !equal(left, right) {
                    return compare(left, right);
                }
            }
            Ok(left.len().cmp(&right.len()))
        }
        (left, right) => Err(format!("{} and {} have no order", kind(left), kind(right))),
    }
}

pub(super) fn minus(value: &Value) -> Result<Value, String> {
    let negative = match number(value) {
        Some(Number::Int(number)) => number.checked_neg().map(Number::Int),
        Some(Number::Float(number)) => Some(Number::Float(-number)),
        Some(big) => {
            let text = Value::Number(big).to_json();
            let text = text.strip_prefix('-').map_or_else(|| format!("-{text}"), str::to_owned);
            Number::parse_integer(&text, 10)
        }
        None => return Err(format!("`-` takes a number, not {}", kind(value))),
    };
    negative.map(Value::Number).ok_or_else(|| "the number is too large".to_owned())
}
