//! JSON text to [`Value`]. The text may come from a script, a model or a person: nothing in it can hurt the host.

use jiter::JsonValue;
use thiserror::Error;

use super::{Key, Number, Value};

/// How deeply lists and objects may be nested in JSON that comes from outside.
pub const MAX_DEPTH: usize = 128;

/// Why a text is not JSON that hotcell takes.
#[derive(Debug, Error, Clone, PartialEq)]
pub enum JsonError {
    /// Not JSON, or more than one JSON value
    #[error("{0}")]
    Syntax(String),
    /// Nested deeper than [`MAX_DEPTH`]
    #[error("nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
}

/// Reads exactly one JSON value; white space around it is allowed, anything else is an error.
/// Of a key that occurs twice in an object the last value counts, as in every JSON reader scripts know.
pub fn parse_json(text: &str) -> Result<Value, JsonError> {
    let parsed = JsonValue::parse(text.as_bytes(), false)
        .map_err(|error| JsonError::Syntax(error.description(text.as_bytes())))?;
    convert(&parsed, 0)
}

fn convert(value: &JsonValue<'_>, depth: usize) -> Result<Value, JsonError> {
    if depth > MAX_DEPTH {
        return Err(JsonError::TooDeep);
    }
    Ok(match value {
        JsonValue::Null => Value::Null,
        JsonValue::Bool(value) => Value::Bool(*value),
        JsonValue::Int(value) => Value::Number(Number::Int(*value)),
        JsonValue::BigInt(value) => Value::Number(Number::from_big(value.clone())),
        JsonValue::Float(value) => {
            Value::Number(Number::from_f64(*value).ok_or_else(|| JsonError::Syntax("number out of range".into()))?)
        }
        JsonValue::Str(text) => Value::text(&**text),
        JsonValue::Array(items) => {
            Value::List(items.iter().map(|item| convert(item, depth + 1)).collect::<Result<_, _>>()?)
        }
        JsonValue::Object(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, value)| Ok((Key::from(&**key), convert(value, depth + 1)?)))
                .collect::<Result<_, JsonError>>()?,
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_key_order_survive() {
        for text in [
            r#"{"b":1,"a":[9007199254740993,100000000000000000000000000000000000001,1.0,-0.5],"é":null}"#,
            "1e20",
            "18446744073709551615",
        ] {
            let value = parse_json(text).unwrap();
            let again = parse_json(&value.to_json()).unwrap();
            assert_eq!(value, again);
            if text != "1e20" {
                assert_eq!(value.to_json(), text);
            }
        }
    }

    #[test]
    fn what_is_not_one_value_is_refused() {
        for text in ["", "  ", "{", "{} {}", "nope", "[1,]", "NaN", "{\"a\":1}x", "\u{feff}{}"] {
            assert!(matches!(parse_json(text), Err(JsonError::Syntax(_))), "{text:?} was taken");
        }
    }

    #[test]
    fn depth_is_limited_without_recursion_of_the_host() {
        let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(parse_json(&deep(MAX_DEPTH)).is_ok());
        assert_eq!(parse_json(&deep(MAX_DEPTH + 2)), Err(JsonError::TooDeep));
        assert!(parse_json(&deep(200_000)).is_err());
    }
}
