//! Numbers that pass through unchanged: an integer of any size stays that integer, `1.0` stays `1.0`.

use std::cmp::Ordering;
use std::sync::Arc;

use num_bigint::{BigInt, Sign};
use serde::ser::{Error as _, Serialize, Serializer};

/// Bits of the largest integer that is made here. It has 4,300 digits, and integers of more are not read from JSON: a value with one would
/// be written to a journal that nobody can read afterwards.
const MAX_BITS: u64 = 14_284;

/// A JSON number.
#[derive(Clone, Debug)]
pub enum Number {
    /// An integer that fits 64 bits
    Int(i64),
    /// A larger integer; never one that would fit [`Number::Int`]
    Big(BigInteger),
    /// A finite number that was written with a fraction or an exponent
    Float(f64),
}

/// An integer beyond 64 bits.
#[derive(Clone, Debug, PartialEq)]
pub struct BigInteger(Arc<BigInt>);

impl Number {
    /// A floating point number; `None` for NaN and infinities, which JSON does not have.
    pub fn from_f64(value: f64) -> Option<Self> {
        value.is_finite().then_some(Number::Float(value))
    }

    /// Reads an integer in a base from 2 to 36, with an optional sign. `None` if it is none or has more than 4,096
    /// digits, which costs too much to convert, or more than 4,300 in base 10.
    pub fn parse_integer(text: &str, base: u32) -> Option<Self> {
        if text.len() > 4096 || text.contains('_') {
            return None;
        }
        BigInt::parse_bytes(text.as_bytes(), base).and_then(Number::made)
    }

    /// An integer that was made here; none where it is too large to be read again.
    fn made(value: BigInt) -> Option<Self> {
        (value.bits() <= MAX_BITS).then(|| Number::from_big(value))
    }

    /// About how many digits it has, for those who limit what a value takes; for all but large integers none that count.
    pub(crate) fn digits(&self) -> usize {
        match self {
            Number::Big(value) => usize::try_from(value.0.bits() / 3).unwrap_or(usize::MAX),
            Number::Int(_) | Number::Float(_) => 0,
        }
    }

    pub(super) fn from_big(value: BigInt) -> Self {
        match i64::try_from(&value) {
            Ok(small) => Number::Int(small),
            Err(_) => Number::Big(BigInteger(Arc::new(value))),
        }
    }

    fn to_big(&self) -> Option<BigInt> {
        match self {
            Number::Int(value) => Some(BigInt::from(*value)),
            Number::Big(value) => Some((*value.0).clone()),
            Number::Float(_) => None,
        }
    }

    /// The nearest floating point number.
    pub fn to_f64(&self) -> f64 {
        match self {
            Number::Int(value) => *value as f64,
            // Writing one of thousands of digits takes a thousand times as long as a step of an expression.
            Number::Big(value) if value.0.bits() > u64::from(f64::MAX_EXP.unsigned_abs()) => match value.0.sign() {
                Sign::Minus => f64::NEG_INFINITY,
                _ => f64::INFINITY,
            },
            Number::Big(value) => value.0.to_string().parse().unwrap_or(f64::MAX),
            Number::Float(value) => *value,
        }
    }

    /// Whether this is an integer, whatever its size; `1.0` is not.
    pub fn is_integer(&self) -> bool {
        !matches!(self, Number::Float(_))
    }

    /// The sum: exact between integers, floating point otherwise; `None` if it is beyond all finite numbers, or an integer of more than
    /// 4,300 digits.
    pub fn add(&self, other: &Number) -> Option<Number> {
        if let (Number::Int(left), Number::Int(right)) = (self, other)
            && let Some(sum) = left.checked_add(*right)
        {
            return Some(Number::Int(sum));
        }
        match (self.to_big(), other.to_big()) {
            (Some(left), Some(right)) => Number::made(left + right),
            _ => Number::from_f64(self.to_f64() + other.to_f64()),
        }
    }

    /// The order by value, integers compared exactly.
    pub fn compare(&self, other: &Number) -> Ordering {
        match (self.to_big(), other.to_big()) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => self.to_f64().total_cmp(&other.to_f64()),
        }
    }

    pub(super) fn to_serde(&self) -> serde_json::Value {
        match self {
            Number::Int(value) => (*value).into(),
            Number::Big(value) => match u64::try_from(&*value.0) {
                Ok(value) => value.into(),
                Err(_) => self.to_f64().into(),
            },
            Number::Float(value) => (*value).into(),
        }
    }
}

impl PartialEq for Number {
    /// By value: `3` equals `3.0`.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Number::Int(left), Number::Int(right)) => left == right,
            _ => self.compare(other) == Ordering::Equal,
        }
    }
}

impl From<&serde_json::Number> for Number {
    fn from(number: &serde_json::Number) -> Self {
        if let Some(value) = number.as_i64() {
            return Number::Int(value);
        }
        match number.as_u64() {
            Some(value) => Number::from_big(BigInt::from(value)),
            // Without arbitrary precision a `serde_json` number is an integer or a finite float.
            None => Number::Float(number.as_f64().unwrap_or_default()),
        }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Number::Int(value) => serializer.serialize_i64(*value),
            Number::Float(value) => serializer.serialize_f64(*value),
            Number::Big(value) => serde_json::value::RawValue::from_string(value.0.to_string())
                .map_err(S::Error::custom)?
                .serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Number;
    use crate::value::{Value, parse_json};

    /// What cannot be read is lost when a run goes on.
    #[test]
    fn every_integer_that_is_made_can_be_read_again() {
        let read = |number: &Number| parse_json(&Value::Number(number.clone()).to_json());
        assert!(Number::parse_integer(&"f".repeat(4_096), 16).is_none());
        for (digit, length, base) in [("9", 4_096, 10), ("f", 3_571, 16), ("7", 4_096, 8)] {
            let mut number = Number::parse_integer(&digit.repeat(length), base).unwrap();
            let mut doubled = 0;
            loop {
                assert_eq!(read(&number), Ok(Value::Number(number.clone())));
                match number.add(&number) {
                    Some(sum) => number = sum,
                    None => break,
                }
                doubled += 1;
            }
            assert!(doubled < 3_000);
        }
    }

    #[test]
    fn what_is_beyond_all_finite_numbers_is_infinite() {
        let of = |text: String| Number::parse_integer(&text, 10).unwrap().to_f64();
        assert_eq!(of(format!("1{}", "0".repeat(300))), 1e300);
        assert_eq!(of(format!("1{}", "0".repeat(309))), f64::INFINITY);
        assert_eq!(of(format!("-1{}", "0".repeat(4_000))), f64::NEG_INFINITY);
        // The first that is not rounded to the largest number, and the last that is.
        let largest = Number::parse_integer(&format!("fffffffffffffbff{}", "f".repeat(240)), 16).unwrap();
        assert_eq!((largest.to_f64(), largest.add(&Number::Int(1)).unwrap().to_f64()), (f64::MAX, f64::INFINITY));
    }
}
