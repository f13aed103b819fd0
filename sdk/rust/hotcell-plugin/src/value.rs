//! Values that cross the boundary of a plugin: arguments, results, settings, parts of the state.

mod numbers;
mod reader;

use std::collections::BTreeMap;

pub use reader::Reader;

use crate::schema::Schema;
use crate::{Error, Json, Mismatch};

/// A type that has a JSON form.
///
/// `#[derive(Value)]` makes one of a struct or an enum. There are values for texts, numbers, `bool`, [`Vec`],
/// [`Option`] (which may be left out), [`BTreeMap`] with names as keys, and [`Json`] for everything.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON form",
    note = "put `#[derive(hotcell_plugin::Value)]` on a type of your own, or use `hotcell_plugin::Json`"
)]
pub trait Value: Sized {
    /// The form that is declared, and that [`Value::decode`] accepts.
    const SCHEMA: &'static Schema;

    /// Whether a name with such a value may be left out of an object.
    const OPTIONAL: bool = false;

    /// Reads a value.
    ///
    /// # Errors
    /// Where it does not fit the form.
    fn decode(json: Json) -> Result<Self, Mismatch>;

    /// The value as JSON.
    ///
    /// # Errors
    /// Where JSON cannot say it, such as a number that is not finite.
    fn encode(self) -> Result<Json, Error>;

    /// The value of a name that was left out; none where it has to be there.
    fn absent() -> Option<Self> {
        None
    }
}

impl Value for Json {
    const SCHEMA: &'static Schema = &Schema::Any;

    fn decode(json: Json) -> Result<Self, Mismatch> {
        Ok(json)
    }

    fn encode(self) -> Result<Json, Error> {
        Ok(self)
    }
}

/// A JSON object with any names.
impl Value for serde_json::Map<String, Json> {
    const SCHEMA: &'static Schema = &Schema::Map(&Schema::Any);

    fn decode(json: Json) -> Result<Self, Mismatch> {
        match json {
            Json::Object(members) => Ok(members),
            other => Err(Mismatch::form(Self::SCHEMA, &other)),
        }
    }

    fn encode(self) -> Result<Json, Error> {
        Ok(Json::Object(self))
    }
}

impl Value for () {
    const SCHEMA: &'static Schema = &Schema::Null;

    fn decode(json: Json) -> Result<Self, Mismatch> {
        if json.is_null() { Ok(()) } else { Err(Mismatch::form(Self::SCHEMA, &json)) }
    }

    fn encode(self) -> Result<Json, Error> {
        Ok(Json::Null)
    }
}

impl Value for bool {
    const SCHEMA: &'static Schema = &Schema::Boolean;

    fn decode(json: Json) -> Result<Self, Mismatch> {
        json.as_bool().ok_or_else(|| Mismatch::form(Self::SCHEMA, &json))
    }

    fn encode(self) -> Result<Json, Error> {
        Ok(Json::Bool(self))
    }
}

impl Value for String {
    const SCHEMA: &'static Schema = &Schema::Text;

    fn decode(json: Json) -> Result<Self, Mismatch> {
        match json {
            Json::String(text) => Ok(text),
            other => Err(Mismatch::form(Self::SCHEMA, &other)),
        }
    }

    fn encode(self) -> Result<Json, Error> {
        Ok(Json::String(self))
    }
}

impl Value for char {
    const SCHEMA: &'static Schema = &Schema::Text;

    fn decode(json: Json) -> Result<Self, Mismatch> {
        let mut characters = json.as_str().unwrap_or_default().chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => Ok(character),
            _ => Err(Mismatch::expected("a text of one character", &json)),
        }
    }

    fn encode(self) -> Result<Json, Error> {
        Ok(Json::String(self.to_string()))
    }
}

impl<T: Value> Value for Vec<T> {
    const SCHEMA: &'static Schema = &Schema::List(T::SCHEMA);

    fn decode(json: Json) -> Result<Self, Mismatch> {
        let Json::Array(items) = json else { return Err(Mismatch::form(Self::SCHEMA, &json)) };
        let decode = |(index, item)| T::decode(item).map_err(|mismatch| mismatch.in_item(index));
        items.into_iter().enumerate().map(decode).collect()
    }

    fn encode(self) -> Result<Json, Error> {
        self.into_iter().map(T::encode).collect::<Result<Vec<_>, _>>().map(Json::Array)
    }
}

impl<T: Value> Value for BTreeMap<String, T> {
    const SCHEMA: &'static Schema = &Schema::Map(T::SCHEMA);

    fn decode(json: Json) -> Result<Self, Mismatch> {
        let Json::Object(members) = json else { return Err(Mismatch::form(Self::SCHEMA, &json)) };
        let decode = |(name, value): (String, Json)| match T::decode(value) {
            Ok(value) => Ok((name, value)),
            Err(mismatch) => Err(mismatch.in_field(&name)),
        };
        members.into_iter().map(decode).collect()
    }

    fn encode(self) -> Result<Json, Error> {
        let encode = |(name, value): (String, T)| Ok((name, value.encode()?));
        self.into_iter().map(encode).collect::<Result<_, Error>>().map(Json::Object)
    }
}

impl<T: Value> Value for Option<T> {
    const SCHEMA: &'static Schema = &Schema::Nullable(T::SCHEMA);
    const OPTIONAL: bool = true;

    fn decode(json: Json) -> Result<Self, Mismatch> {
        if json.is_null() { Ok(None) } else { T::decode(json).map(Some) }
    }

    fn encode(self) -> Result<Json, Error> {
        self.map_or(Ok(Json::Null), T::encode)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Value> Value for Box<T> {
    const SCHEMA: &'static Schema = T::SCHEMA;
    const OPTIONAL: bool = T::OPTIONAL;

    fn decode(json: Json) -> Result<Self, Mismatch> {
        T::decode(json).map(Self::new)
    }

    fn encode(self) -> Result<Json, Error> {
        (*self).encode()
    }

    fn absent() -> Option<Self> {
        T::absent().map(Self::new)
    }
}
