//! The text that stands for a value where a text is wanted.

use std::fmt::Write as _;

use crate::value::{Number, Value};

/// The text of a value: a text as it is, everything else as JSON with `, ` and `: ` between its parts and `\uXXXX` for
/// what is not ASCII. A floating point number always shows that it is one (`3.0`, `1e+20`).
pub fn to_text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        other => {
            let mut text = String::new();
            write_json(other, &mut text);
            text
        }
    }
}

fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(Number::Float(value)) => write_float(*value, out),
        Value::Number(_) => out.push_str(&value.to_json()),
        Value::Text(text) => write_string(text, out),
        Value::List(list) => {
            out.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            for (index, (key, item)) in object.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_string(key, out);
                out.push_str(": ");
                write_json(item, out);
            }
            out.push('}');
        }
    }
}

/// The shortest digits that give the number back; an exponent has a sign and two digits.
fn write_float(value: f64, out: &mut String) {
    let digits = format!("{value:?}");
    match digits.split_once('e') {
        None => out.push_str(&digits),
        Some((mantissa, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            // Writing to a `String` does not fail.
            let _ = write!(out, "{mantissa}e{sign}{exponent:0>2}");
        }
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='\u{7f}' => out.push(character),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}
