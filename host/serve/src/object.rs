//! JSON objects.

use serde_json::{Map, Value};

/// Any JSON object.
pub(crate) type Object = Map<String, Value>;

/// An object that is one by construction.
pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}
