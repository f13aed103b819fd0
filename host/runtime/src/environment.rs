//! Environment variables as the host sees them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Where hotcell looks up variables: keys and URLs of models, and the variables that `env` grants name.
#[derive(Clone)]
pub struct Environment(Arc<Look>);

type Look = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Environment {
    /// The variables of this process.
    pub fn process() -> Self {
        Environment(Arc::new(|name| std::env::var(name).ok()))
    }

    /// These variables and no others.
    pub fn of(variables: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        let variables: BTreeMap<String, String> =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Environment(Arc::new(move |name| variables.get(name).cloned()))
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<String> {
        (self.0)(name)
    }
}

/// No value is shown by accident.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment")
    }
}
