//! Values with a type.

use std::sync::Arc;

use super::{Expression, NoValue};
use crate::jinja::Jinja;
use crate::template::Lookup;
use crate::types::{Mismatch, Type};
use crate::value::{Key, Object, Value, parse_json};

/// A value that is converted to a type.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed {
    /// The value
    pub value: Expression,
    /// Used where there is no value
    pub default: Option<Value>,
    /// The type
    pub to: Arc<Type>,
    /// What it is, for errors: "input `a`"
    pub what: String,
}

impl Typed {
    pub(super) fn evaluate(&self, scope: &dyn Lookup) -> Result<Value, NoValue> {
        let value = match (self.value.evaluate(scope), &self.default) {
            (Ok(value), _) => value,
            (Err(NoValue::Absent(_)), Some(default)) => default.clone(),
            (Err(NoValue::Absent(_)), None) => return Err(NoValue::Absent(self.what.clone())),
            (Err(other), _) => return Err(other),
        };
        let mismatch = |mismatch: Mismatch| NoValue::Mismatch { what: self.what.clone(), mismatch };
        self.to.convert(&value).map_err(mismatch)
    }
}

/// A template of the Jinja language with the values that it needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The template
    pub template: Jinja,
    /// The values of its names
    pub values: Vec<(Key, Expression)>,
}

impl Rendered {
    pub(super) fn evaluate(&self, scope: &dyn Lookup) -> Result<Value, NoValue> {
        let value = |(name, value): &(Key, Expression)| Ok((name.clone(), value.evaluate(scope)?));
        let values = self.values.iter().map(value).collect::<Result<Object, NoValue>>()?;
        self.template
            .render(&values)
            .map(Value::text)
            .map_err(|problem| NoValue::Unfit(format!("a template: {problem}")))
    }
}

/// The JSON object in a text: the whole of it, what is in its code fence, or what its outermost braces hold.
pub(super) fn json_within(text: &str) -> Option<Value> {
    let object = |text: &str| parse_json(text.trim()).ok().filter(|value| value.as_object().is_some());
    object(text).or_else(|| {
        let (start, end) = (text.find('{')?, text.rfind('}')?);
        object(text.get(start..=end)?)
    })
}
