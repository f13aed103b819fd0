//! Values as Python writes them.

use crate::value::{Number, Value};

/// The text that stands for a value: a text as it is, everything else as Python writes it (`True`, `None`, `['a', 1.0]`).
pub fn as_text(value: &Value) -> String {
    let mut text = String::new();
    write_text(value, &mut text);
    text
}

/// The same, added to a text.
pub fn write_text(value: &Value, into: &mut String) {
    match value {
        Value::Text(text) => into.push_str(text),
        other => write_quoted(other, into),
    }
}

fn write_quoted(value: &Value, into: &mut String) {
    match value {
        Value::Null => into.push_str("None"),
        Value::Bool(true) => into.push_str("True"),
        Value::Bool(false) => into.push_str("False"),
        Value::Number(Number::Float(number)) => into.push_str(&float(*number)),
        Value::Number(number) => into.push_str(&Value::Number(number.clone()).to_json()),
        Value::Text(text) => quote(text, into),
        Value::List(list) => {
            into.push('[');
            for (place, item) in list.iter().enumerate() {
                if place > 0 {
                    into.push_str(", ");
                }
                write_quoted(item, into);
            }
            into.push(']');
        }
        Value::Object(object) => {
            into.push('{');
            for (place, (key, value)) in object.iter().enumerate() {
                if place > 0 {
                    into.push_str(", ");
                }
                quote(key, into);
                into.push_str(": ");
                write_quoted(value, into);
            }
            into.push('}');
        }
    }
}

/// The shortest text of a number with a fraction: with an exponent where it is very large or very small.
fn float(number: f64) -> String {
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    let text = number.to_string();
    if text.contains('.') { text } else { format!("{text}.0") }
}

fn quote(text: &str, into: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    into.push(quote);
    for letter in text.chars() {
        match letter {
            '\n' => into.push_str("\\n"),
            '\r' => into.push_str("\\r"),
            '\t' => into.push_str("\\t"),
            '\\' => into.push_str("\\\\"),
            letter if letter == quote => into.extend(['\\', letter]),
            letter if letter.is_control() => into.push_str(&format!("\\x{:02x}", u32::from(letter))),
            letter => into.push(letter),
        }
    }
    into.push(quote);
}

/// Whether a value counts as true: everything but nothing, zero and what is empty.
pub(crate) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.to_f64() != 0.0,
        Value::Text(text) => !text.is_empty(),
        Value::List(list) => !list.is_empty(),
        Value::Object(object) => !object.is_empty(),
    }
}
