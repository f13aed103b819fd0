//! The state of the graph, for scripts and node types. Values are read one by one; what is not asked for costs nothing.

use crate::schema::Schema;
use crate::{Error, Json, Mismatch, Value, system};

/// The state of the graph.
#[derive(Debug)]
#[non_exhaustive]
pub struct State;

impl State {
    /// The state of the graph that runs this plugin.
    #[expect(clippy::new_without_default, reason = "there is one state, and it is read rather than made")]
    pub fn new() -> Self {
        Self
    }

    /// The value at a dotted path such as `order.items.0.name`, where a number selects from a list. An `Option` is
    /// `None` where the path leads nowhere.
    ///
    /// # Errors
    /// `invalid-input` where the value is missing or does not fit.
    pub fn get<T: Value>(&self, path: &str) -> Result<T, Error> {
        match system::state_get(path)? {
            Some(value) => T::decode(value).map_err(|mismatch| mismatch.in_field(path).into_error("state value")),
            None => T::absent().ok_or_else(|| Mismatch::missing(path, T::SCHEMA).into_error("state value")),
        }
    }

    /// The whole state, one object.
    ///
    /// # Errors
    /// `other` where the host gives something that is not JSON.
    pub fn all(&self) -> Result<Json, Error> {
        system::state_all()
    }

    /// The state as one value. Of a struct only the names it declares are read.
    ///
    /// # Errors
    /// `invalid-input` where something is missing or does not fit.
    pub fn read<T: Value>(&self) -> Result<T, Error> {
        let json = match T::SCHEMA {
            Schema::Object(object) => {
                let mut members = serde_json::Map::new();
                for field in object.fields {
                    if let Some(value) = system::state_get(field.name)? {
                        members.insert(field.name.to_owned(), value);
                    }
                }
                Json::Object(members)
            }
            _ => self.all()?,
        };
        T::decode(json).map_err(|mismatch| mismatch.into_error("state value"))
    }
}

/// Checks what a script gives back.
///
/// # Errors
/// `other` where it is not an object.
pub fn changes(result: Json) -> Result<Json, Error> {
    if result.is_object() {
        return Ok(result);
    }
    Err(Error::other("the script gave a value that is not an object; its names and values are merged into the state"))
}
