//! Names of models: `provider:model`, or a model alone.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{ModelError, untrusted::shown};

/// The longest name accepted, in bytes.
const MAX_LENGTH: usize = 256;

/// The name of a model as a configuration writes it, for example `anthropic:claude-sonnet-4-6`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelName(Arc<str>);

impl ModelName {
    /// The whole name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What stands before the first colon, if there is one.
    #[must_use]
    pub fn provider(&self) -> Option<&str> {
        self.0.split_once(':').map(|(provider, _)| provider)
    }

    /// What stands after the first colon, or the whole name without one.
    #[must_use]
    pub fn model(&self) -> &str {
        self.0.split_once(':').map_or(&*self.0, |(_, model)| model)
    }
}

impl FromStr for ModelName {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self, ModelError> {
        let refuse = |reason: &str| Err(ModelError::InvalidName { name: shown(name), reason: reason.to_owned() });
        if name.len() > MAX_LENGTH {
            return refuse("it is longer than 256 bytes");
        }
        if name.chars().any(char::is_control) || name.trim() != name {
            return refuse("it has control characters, or white space at an end");
        }
        let name = Self(Arc::from(name));
        if name.model().is_empty() || name.provider().is_some_and(str::is_empty) {
            return refuse("write `provider:model`, or a model alone");
        }
        Ok(name)
    }
}

impl TryFrom<String> for ModelName {
    type Error = ModelError;

    fn try_from(name: String) -> Result<Self, ModelError> {
        name.parse()
    }
}

impl From<ModelName> for String {
    fn from(name: ModelName) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_colon_separates() {
        for (name, provider, model) in [
            ("openai:gpt-4o", Some("openai"), "gpt-4o"),
            ("ollama:llama3:8b", Some("ollama"), "llama3:8b"),
            ("gpt-4o", None, "gpt-4o"),
        ] {
            let name: ModelName = name.parse().expect("a name");
            assert_eq!((name.provider(), name.model()), (provider, model));
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for name in ["", ":", "openai:", ":gpt", " gpt", "gpt\n", "a\u{1b}[31m", &"x".repeat(257)] {
            let error = name.parse::<ModelName>().expect_err(name);
            assert!(!error.to_string().contains('\u{1b}'), "{error}");
            assert!(!error.is_transient());
        }
    }
}
