//! How large a value is, for those that limit it. Values share what they are made of, so a few lines can make one that would
//! fill any disk when it is written out.

use super::{MAX_KEPT_DEPTH, Value};

/// Bytes that one value may have as JSON, roughly.
pub const MAX_SIZE: usize = 64 << 20;
/// How deeply a value may be nested that a graph makes: deeper than one that comes from outside, and no deeper than that an entry around it can be
/// read again.
const MAX_NESTING: usize = MAX_KEPT_DEPTH - 30;
/// Bytes that a value takes beside its texts and the digits of large integers: quotes, a comma, a number.
const EACH: usize = 4;

/// Why a value is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// Written out it has more than [`MAX_SIZE`] bytes
    #[error("it is larger than {MAX_SIZE} bytes")]
    Bytes,
    /// Lists and objects lie in each other deeper than a value may be
    #[error("it is nested more than {MAX_NESTING} levels deep")]
    Nesting,
}

impl Value {
    /// The size of a value as JSON, roughly, which looks at no more than that of it.
    ///
    /// # Errors
    /// When it is larger or nested deeper than a value may be.
    pub fn check_size(&self) -> Result<usize, TooLarge> {
        let mut left = MAX_SIZE;
        self.take_from(&mut left, 0)?;
        Ok(MAX_SIZE - left)
    }

    fn take_from(&self, left: &mut usize, depth: usize) -> Result<(), TooLarge> {
        if depth > MAX_NESTING {
            return Err(TooLarge::Nesting);
        }
        let own = match self {
            Value::Text(text) => EACH + text.len(),
            Value::Number(number) => EACH + number.digits(),
            _ => EACH,
        };
        *left = left.checked_sub(own).ok_or(TooLarge::Bytes)?;
        match self {
            Value::List(items) => items.iter().try_for_each(|item| item.take_from(left, depth + 1)),
            Value::Object(entries) => entries.iter().try_for_each(|(key, value)| {
                *left = left.checked_sub(key.len()).ok_or(TooLarge::Bytes)?;
                value.take_from(left, depth + 1)
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{List, parse_json};

    #[test]
    fn what_doubles_is_too_large_long_before_it_is_written_out() {
        let list = |items: [Value; 2]| Value::List(items.into_iter().collect::<List>());
        let mut value = Value::text("x".repeat(1_000));
        for _ in 0..20 {
            value = list([value.clone(), value]);
        }
        assert_eq!(value.check_size(), Err(TooLarge::Bytes));
        let large = parse_json(&"9".repeat(4_000)).unwrap();
        let large = Value::List(std::iter::repeat_n(large, 20_000).collect());
        assert_eq!(large.check_size(), Err(TooLarge::Bytes));
        let mut deep = Value::Null;
        for _ in 0..400 {
            deep = Value::List([deep].into_iter().collect());
        }
        assert_eq!(deep.check_size(), Err(TooLarge::Nesting));
        let value = parse_json(r#"{"ab": ["cde", 1]}"#).unwrap();
        assert_eq!(value.check_size(), Ok(4 * EACH + 5));
        assert_eq!(Value::text("x".repeat(MAX_SIZE)).check_size(), Err(TooLarge::Bytes));
    }
}
