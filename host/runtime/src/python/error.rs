//! Why functions of files are no tools.

use std::sync::Arc;

use thiserror::Error;

use crate::python::modules::ModuleError;
use crate::python::packages::NoPackages;
use crate::scripts::ScriptError;
use crate::servers::ThreadError;

/// Why a file has no functions that can be tools.
#[derive(Debug, Error)]
pub(crate) enum ToolFileError {
    /// It is no script that can be run
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A folder with packages is not there
    #[error(transparent)]
    Packages(#[from] NoPackages),
    /// A module that it imports cannot be used
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// Its language has no tools
    #[error(transparent)]
    NoHarness(#[from] NoHarness),
    /// Its cell cannot be called here
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The revision does not hold its text
    #[error("the revision has no text of `{0}`")]
    TextNotKept(String),
    /// The revision does not hold what its cell said of it
    #[error("the revision does not say which functions `{0}` has")]
    FunctionsNotKept(String),
    /// It cannot be run; the reason is what its cell says
    #[error("`{file}` cannot be loaded: {reason}")]
    Load {
        /// The file
        file: String,
        /// Why not
        reason: String,
    },
    /// It names further modules, whatever it is given
    #[error("`{0}` cannot be loaded: its chain of imports is too long")]
    Endless(String),
    /// It asks a person while it is loaded
    #[error("`{0}` asks a question while it is loaded")]
    Asks(String),
    /// What its cell says of it is no description
    #[error("`{file}` cannot be described: {cause}")]
    Description {
        /// The file
        file: String,
        /// What is wrong with it
        #[source]
        cause: serde_json::Error,
    },
    /// Its cell wants modules for it, which its language has not
    #[error("`{0}` cannot be described")]
    NeedsModules(String),
    /// Its cell speaks of something else than its functions
    #[error("`{0}` cannot be described: its cell does not say which functions it has")]
    NoFunctions(String),
}

/// Why there is no schema of a model of a Python file.
#[derive(Debug, Error)]
pub(crate) enum NoModelSchema {
    /// The file cannot be used, or the model has no schema; the reason is what the cell says
    #[error(transparent)]
    File(#[from] ToolFileError),
    /// The file has none of that name
    #[error("`{file}` defines no model `{model}`{}", there_is(.near.as_deref()))]
    Missing {
        /// The model
        model: String,
        /// The file
        file: String,
        /// A model that is called nearly so
        near: Option<String>,
    },
    /// Its cell speaks of something else
    #[error("`{file}` does not describe the model `{model}`")]
    NoSchema {
        /// The model
        model: String,
        /// The file
        file: String,
    },
}

/// The language of a file has no harness.
#[derive(Debug, Error)]
#[error("`{file}` cannot have tools: only `.py`, `.sh` and `.ts` files can")]
pub(crate) struct NoHarness {
    /// The file
    pub(super) file: String,
}

/// Why a function is no tool.
#[derive(Debug, Error)]
pub(crate) enum FunctionError {
    /// The file cannot be used
    #[error(transparent)]
    File(#[from] Arc<ToolFileError>),
    /// It cannot be described; the reason is what the cell says
    #[error("`{function}` of `{file}` cannot be a tool: {reason}")]
    Broken {
        /// The function
        function: String,
        /// The file
        file: String,
        /// Why not
        reason: String,
    },
    /// The file has none of that name
    #[error("`{file}` defines no function `{function}`{}", there_is(.near.as_deref()))]
    Missing {
        /// The function
        function: String,
        /// The file
        file: String,
        /// A function that is called nearly so
        near: Option<String>,
    },
}

fn there_is(near: Option<&str>) -> String {
    near.map(|near| format!("; there is `{near}`")).unwrap_or_default()
}
