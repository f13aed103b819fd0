//! Ways in which an object may be taken, one of which is chosen by its name.

use std::fmt;

use super::composed::object_of;
use super::{Expression, Fit, NoValue};
use crate::python::ObjectCondition;
use crate::suggest::closest;
use crate::template::Lookup;
use crate::value::{Key, Object, Value};

/// The choice of a way for an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// What a way is called in errors
    pub noun: &'static str,
    /// The text that names one; without it the only one there is
    pub chosen: Expression,
    /// The object
    pub object: Expression,
    /// All of them
    pub ways: Vec<WayCase>,
}

/// One of the ways.
#[derive(Clone, Debug, PartialEq)]
pub struct WayCase {
    /// Its name
    pub name: Key,
    /// What the object has to meet
    pub condition: Option<ObjectCondition>,
    /// What the object has to fit
    pub fit: Option<Fit>,
}

impl Way {
    pub(super) fn evaluate(&self, scope: &dyn Lookup) -> Result<Value, NoValue> {
        let noun = self.noun;
        let names = || self.ways.iter().map(|way| &*way.name).collect::<Vec<_>>();
        let chosen = match (self.chosen.evaluate(scope), &self.ways[..]) {
            (Ok(Value::Text(name)), _) => name,
            (Err(NoValue::Absent(_)) | Ok(Value::Null), [only]) => only.name.clone(),
            (Err(NoValue::Absent(_)) | Ok(Value::Null), _) => {
                return Err(NoValue::Unfit(format!("no {noun} is named; there are {}", quoted(&names()))));
            }
            (Err(problem), _) => return Err(problem),
            (Ok(other), _) => {
                return Err(NoValue::Unfit(format!("the {noun} is named by a text, not {}", other.a_kind())));
            }
        };
        let Some(way) = self.ways.iter().find(|way| way.name == chosen) else {
            let help = match closest(&chosen, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", quoted(&names())),
            };
            return Err(NoValue::Unfit(format!("there is no {noun} `{chosen}`; {help}")));
        };
        let object = object_of(&self.object, scope)?;
        way.admits(noun, &object).map_err(|barred| NoValue::Unfit(barred.to_string()))?;
        Ok(Value::Text(chosen))
    }
}

/// Why an object may not go a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Barred {
    /// It does not meet the condition
    Closed(String),
    /// It does not fit the schema
    Unfit(String),
}

impl fmt::Display for Barred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Barred::Closed(reason) | Barred::Unfit(reason)) = self;
        f.write_str(reason)
    }
}

impl WayCase {
    /// Whether an object may go this way, which is a `noun`.
    ///
    /// # Errors
    /// Why it may not.
    pub fn admits(&self, noun: &str, object: &Object) -> Result<(), Barred> {
        let name = &self.name;
        if let Some(condition) = &self.condition {
            match condition.holds(object) {
                Ok(true) => {}
                unmet => {
                    let why = unmet.err().map_or_else(String::new, |unmet| format!(" ({unmet})"));
                    let source = condition.source();
                    return Err(Barred::Closed(format!(
                        "the {noun} `{name}` is closed: `{source}` does not hold{why}"
                    )));
                }
            }
        }
        if let Some(fit) = &self.fit {
            let problems = fit.problems(&Value::Object(object.clone()));
            if !problems.is_empty() {
                let problems = problems.join("; ");
                return Err(Barred::Unfit(format!("what is given to the {noun} `{name}` does not fit: {problems}")));
            }
        }
        Ok(())
    }
}

fn quoted(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { format!("`{}`", names.join("`, `")) }
}
