//! JSON text to [`Value`]. The text may come from a script, a model or a person: nothing in it can hurt the host.

use jiter::JsonValue;
use thiserror::Error;

use super::{Key, Number, Value};

/// How deeply lists and objects may be nested in JSON that comes from outside.
pub const MAX_DEPTH: usize = 128;
/// How deeply they may be nested in JSON that hotcell itself wrote to keep it: what came from outside, what a graph put around that, and what an
/// entry of a journal has around it. The parser takes 200.
pub const MAX_KEPT_DEPTH: usize = 190;

/// Why a text is not JSON that hotcell takes.
#[derive(Debug, Error, Clone, PartialEq)]
pub enum JsonError {
    /// Not JSON, or more than one JSON value
    #[error("{0}")]
    Syntax(String),
    /// Nested deeper than this
    #[error("nested more than {0} levels deep")]
    TooDeep(usize),
}

/// Reads exactly one JSON value; white space around it is allowed, anything else is an error.
/// Of a key that occurs twice in an object the last value counts, as in every JSON reader scripts know.
pub fn parse_json(text: &str) -> Result<Value, JsonError> {
    parse(text, MAX_DEPTH)
}

/// The same for JSON that hotcell itself wrote to keep it, which may be nested up to [`MAX_KEPT_DEPTH`]: whatever could be kept can be read again.
pub fn parse_kept_json(text: &str) -> Result<Value, JsonError> {
    parse(text, MAX_KEPT_DEPTH)
}

fn parse(text: &str, deepest: usize) -> Result<Value, JsonError> {
    let parsed = JsonValue::parse(text.as_bytes(), false)
        .map_err(|error| JsonError::Syntax(error.description(text.as_bytes())))?;
    convert(&parsed, deepest, 0)
}

fn convert(value: &JsonValue<'_>, deepest: usize, depth: usize) -> Result<Value, JsonError> {
    if depth > deepest {
        return Err(JsonError::TooDeep(deepest));
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
            Value::List(items.iter().map(|item| convert(item, deepest, depth + 1)).collect::<Result<_, _>>()?)
        }
        JsonValue::Object(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, value)| Ok((Key::from(&**key), convert(value, deepest, depth + 1)?)))
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
        assert_eq!(parse_json(&deep(MAX_DEPTH + 2)), Err(JsonError::TooDeep(MAX_DEPTH)));
        assert!(parse_json(&deep(200_000)).is_err());
        assert!(parse_kept_json(&deep(MAX_KEPT_DEPTH)).is_ok());
        assert_eq!(parse_kept_json(&deep(MAX_KEPT_DEPTH + 2)), Err(JsonError::TooDeep(MAX_KEPT_DEPTH)));
        assert!(parse_kept_json(&deep(200_000)).is_err());
    }
}
