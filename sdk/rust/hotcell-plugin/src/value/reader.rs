//! Takes an object apart.

use crate::schema::{Field, Schema};
use crate::{Json, Mismatch, Value};

/// Takes the values of known names out of an object, for the code that the macros write.
#[derive(Debug)]
pub struct Reader {
    members: serde_json::Map<String, Json>,
    fields: &'static [Field],
}

impl Reader {
    /// Begins with an object; names that are not in `fields` are refused unless it is open.
    ///
    /// # Errors
    /// Where it is no object, or a name is not known.
    pub fn new(json: Json, fields: &'static [Field], open: bool) -> Result<Self, Mismatch> {
        let Json::Object(members) = json else { return Err(Mismatch::expected("an object", &json)) };
        if !open && let Some(name) = members.keys().find(|name| fields.iter().all(|field| field.name != name.as_str()))
        {
            return Err(Mismatch::unknown(name, fields));
        }
        Ok(Self { members, fields })
    }

    /// The value under `name`.
    ///
    /// # Errors
    /// Where it is missing and has to be there, or does not fit.
    pub fn take<T: Value>(&mut self, name: &str) -> Result<T, Mismatch> {
        match self.members.swap_remove(name) {
            Some(value) => T::decode(value).map_err(|mismatch| mismatch.in_field(name)),
            None => T::absent().ok_or_else(|| self.missing::<T>(name)),
        }
    }

    /// The value under `name`, or what `default` gives where it is missing.
    ///
    /// # Errors
    /// Where it does not fit.
    pub fn take_or<T: Value>(&mut self, name: &str, default: impl FnOnce() -> T) -> Result<T, Mismatch> {
        match self.members.swap_remove(name) {
            Some(value) => T::decode(value).map_err(|mismatch| mismatch.in_field(name)),
            None => Ok(default()),
        }
    }

    /// The value under `name`, or the one that `json` (a literal of the source) says where it is missing.
    ///
    /// # Errors
    /// Where it does not fit.
    pub fn take_or_json<T: Value>(&mut self, name: &str, json: &str) -> Result<T, Mismatch> {
        let value = match self.members.swap_remove(name) {
            Some(value) => value,
            None => serde_json::from_str(json).unwrap_or(Json::Null),
        };
        T::decode(value).map_err(|mismatch| mismatch.in_field(name))
    }

    /// What is left, for a tag that says which form an object has.
    ///
    /// # Errors
    /// Where the tag is missing or not a text.
    pub fn tag(json: &Json, tag: &str, expected: &'static Schema) -> Result<String, Mismatch> {
        let Some(members) = json.as_object() else { return Err(Mismatch::expected("an object", json)) };
        match members.get(tag) {
            Some(Json::String(text)) => Ok(text.clone()),
            Some(other) => Err(Mismatch::form(expected, other).in_field(tag)),
            None => Err(Mismatch::missing(tag, expected)),
        }
    }

    fn missing<T: Value>(&self, name: &str) -> Mismatch {
        let declared = self.fields.iter().find(|field| field.name == name).map_or(T::SCHEMA, |field| field.schema);
        Mismatch::missing(name, declared)
    }
}
