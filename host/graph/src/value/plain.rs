//! JSON text to [`serde_json::Value`], as it is written.
//!
//! `serde_json` takes an object whose first key is a name of its own (`$serde_json::private::RawValue`) for more JSON within a text, as soon as
//! any crate of a program wants raw values. Whoever writes such an object has it be one thing where it is looked at, by a hook or a person, and
//! another one where it is used, and nests it as deeply as they like. What comes from outside is read here instead.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads exactly one JSON value. Of a key that occurs twice in an object the last value counts.
///
/// # Errors
/// When it is not JSON, or nested more than 127 levels deep.
pub fn read_json(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).map(|Plain(value)| value)
}

/// A value in which every key is a key.
struct Plain(Value);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Read)
    }
}

struct Read;

impl<'de> Visitor<'de> for Read {
    type Value = Plain;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Plain, E> {
        Ok(Plain(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Plain, E> {
        Ok(Plain(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Plain, E> {
        Ok(Plain(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Plain, E> {
        Ok(Plain(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Plain, E> {
        Ok(Plain(text.into()))
    }

    fn visit_unit<E>(self) -> Result<Plain, E> {
        Ok(Plain(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Plain, A::Error> {
        let mut all = Vec::new();
        while let Some(Plain(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Plain(Value::Array(all)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Plain, A::Error> {
        let mut all = Map::new();
        while let Some((key, Plain(value))) = entries.next_entry::<String, Plain>()? {
            all.insert(key, value);
        }
        Ok(Plain(Value::Object(all)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::parse_json;

    #[test]
    fn a_name_of_the_library_is_a_key_like_any_other() {
        for text in [
            r#"{"$serde_json::private::RawValue":"{\"path\":\"/etc\"}"}"#,
            r#"{"path":{"$serde_json::private::RawValue":"\"/etc\""}}"#,
            r#"[{"$serde_json::private::RawValue":"no JSON"},{"$serde_json::private::RawValue":1,"a":2}]"#,
            r#"{"$serde_json::private::Number":"1"}"#,
        ] {
            let value = read_json(text).expect(text);
            assert_eq!(value.to_string(), text);
            // It is the same for whoever looks at it in the other form.
            assert_eq!(crate::Value::from(&value), parse_json(text).expect(text));
        }
    }

    #[test]
    fn everything_else_is_what_the_library_reads() {
        for text in [
            r#"{"b":[1,-1,1.5,1e300,18446744073709551615,100000000000000000000000],"a":{"é":"\u0041\n"},"c":[null,true,[],{}]}"#,
            r#"{"a":1,"b":2,"a":3}"#,
            " 7 ",
        ] {
            assert_eq!(read_json(text).expect(text), serde_json::from_str::<Value>(text).expect(text));
        }
        for text in ["", "{} {}", "[1,]", "NaN", "1e999", &"[".repeat(200_000)] {
            assert!(read_json(text).is_err(), "{text:.20} was taken");
        }
    }
}
