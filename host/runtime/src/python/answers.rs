//! What the cells say of files and of calls.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;

/// What the cell says of a function.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Described {
    Tool {
        description: String,
        parameters: Value,
        /// Whether the file itself defines it
        #[serde(default = "yes")]
        own: bool,
        #[serde(default)]
        marks: Marks,
    },
    Broken {
        error: String,
    },
}

/// What decorators of a function say of it beside its description.
#[derive(Clone, Default, Deserialize)]
pub(super) struct Marks {
    #[serde(default)]
    pub(super) confirm: bool,
    pub(super) allowed: Option<Vec<String>>,
    pub(super) category: Option<String>,
}

/// What the cell says of a file.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Description {
    Tools(IndexMap<String, Described>),
    /// Names of modules that have to be looked for first
    Needs(Vec<String>),
    /// The JSON schema of the model that was asked for
    Model(Value),
    /// The names of the models that there are instead
    Models(Vec<String>),
    Error(String),
}

fn yes() -> bool {
    true
}

/// What a call came to, as the cell says it.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Value(Value),
    Asks(String),
    Error(String),
}
