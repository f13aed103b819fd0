//! Numbers as values.

use crate::schema::Schema;
use crate::{Error, Json, Mismatch, Value};

/// The largest whole number below which every whole number is exact in a `f64`.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Value for f64 {
    const SCHEMA: &'static Schema = &Schema::Number;

    fn decode(json: Json) -> Result<Self, Mismatch> {
        json.as_f64().ok_or_else(|| Mismatch::form(Self::SCHEMA, &json))
    }

    fn encode(self) -> Result<Json, Error> {
        if self.fract() == 0.0 && self.abs() < EXACT {
            // `3` and not `3.0`: people and models read it.
            return Ok(Json::from(self as i64));
        }
        serde_json::Number::from_f64(self)
            .map(Json::Number)
            .ok_or_else(|| Error::other(format!("the result is `{self}`, which is not a number that JSON can say")))
    }
}

impl Value for f32 {
    const SCHEMA: &'static Schema = &Schema::Number;

    fn decode(json: Json) -> Result<Self, Mismatch> {
        Ok(f64::decode(json)? as f32)
    }

    fn encode(self) -> Result<Json, Error> {
        f64::from(self).encode()
    }
}

/// A whole number, also where it was written with a fraction of zero, as models do.
fn whole(json: &Json) -> Option<i128> {
    if let Some(number) = json.as_i64() {
        return Some(i128::from(number));
    }
    if let Some(number) = json.as_u64() {
        return Some(i128::from(number));
    }
    let number = json.as_f64()?;
    (number.fract() == 0.0 && number.abs() < EXACT).then_some(number as i128)
}

macro_rules! integers {
    ($($integer:ty: $minimum:expr, $maximum:expr;)*) => { $(
        impl Value for $integer {
            const SCHEMA: &'static Schema = &Schema::Integer { minimum: $minimum, maximum: $maximum };

            fn decode(json: Json) -> Result<Self, Mismatch> {
                whole(&json)
                    .and_then(|number| Self::try_from(number).ok())
                    .ok_or_else(|| Mismatch::form(Self::SCHEMA, &json))
            }

            fn encode(self) -> Result<Json, Error> {
                Ok(Json::from(self))
            }
        }
    )* };
}

integers! {
    i8: Some(i8::MIN as i64), Some(i8::MAX as i64);
    i16: Some(i16::MIN as i64), Some(i16::MAX as i64);
    i32: Some(i32::MIN as i64), Some(i32::MAX as i64);
    i64: None, None;
    isize: None, None;
    u8: Some(0), Some(u8::MAX as i64);
    u16: Some(0), Some(u16::MAX as i64);
    u32: Some(0), Some(u32::MAX as i64);
    u64: Some(0), None;
    usize: Some(0), None;
}
