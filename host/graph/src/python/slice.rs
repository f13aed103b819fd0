//! A part of a list or of a text: `[1:3]`, `[:-1]`, `[::2]`.

use super::values::kind;
use crate::value::Value;

/// The bounds of a part, as they are written; what is left out is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Slice {
    pub(super) from: Option<i64>,
    pub(super) to: Option<i64>,
    /// Never 0
    pub(super) step: Option<i64>,
}

impl Slice {
    /// The part of a value. What is not there has none, and bounds beyond the end count as the end.
    pub(super) fn of(&self, value: &Value) -> Result<Value, String> {
        match value {
            Value::Null => Ok(Value::Null),
            Value::List(list) => {
                Ok(Value::List(self.places(list.len()).filter_map(|place| list.get(place).cloned()).collect()))
            }
            Value::Text(text) => {
                let letters: Vec<char> = text.chars().collect();
                let part: String = self.places(letters.len()).filter_map(|place| letters.get(place)).collect();
                Ok(Value::from(part))
            }
            other => Err(format!("{} has no parts", kind(other))),
        }
    }

    /// The places that it names in something of this length, in its order.
    fn places(&self, length: usize) -> impl Iterator<Item = usize> {
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let step = self.step.unwrap_or(1);
        let (least, most) = if step > 0 { (0, length) } else { (-1, length - 1) };
        let bound = |written: Option<i64>, otherwise: i64| {
            written.map_or(otherwise, |at| (if at < 0 { at.saturating_add(length) } else { at }).clamp(least, most))
        };
        let (from, to) = match step > 0 {
            true => (bound(self.from, least), bound(self.to, most)),
            false => (bound(self.from, most), bound(self.to, least)),
        };
        let goes_on = move |at: &i64| if step > 0 { *at < to } else { *at > to };
        std::iter::successors(Some(from).filter(goes_on), move |at| at.checked_add(step).filter(goes_on))
            .filter_map(|place| usize::try_from(place).ok())
    }
}
