//! The exceptions of the package, which are classes written in Python (`hotcell/errors.py`).

use hotcell_runtime::{HostError, LoadFailure, RunError, diagnostic_json};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use serde_json::Value;

const MODULE: &str = "hotcell.errors";

/// An exception of this class.
fn raise<'py>(py: Python<'py>, class: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let made = py.import(MODULE).and_then(|module| module.getattr(class)).and_then(|class| class.call1(arguments));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Something cannot be done; the text says what and why.
pub(crate) fn refused(py: Python<'_>, message: &str) -> PyErr {
    raise(py, "HotcellError", (message,))
}

/// What this program handed over cannot be used.
pub(crate) fn unusable(message: impl Into<String>) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(message.into())
}

/// An agent cannot be loaded.
pub(crate) fn not_loaded(py: Python<'_>, failure: &LoadFailure) -> PyErr {
    let found: Vec<Value> = failure.diagnostics.iter().map(diagnostic_json).collect();
    raise(py, "LoadError", (failure.to_string().trim_end(), Value::from(found).to_string()))
}

/// A host does not do what it was asked.
pub(crate) fn of_host(py: Python<'_>, error: &HostError) -> PyErr {
    match error {
        HostError::Load { failure, .. } => {
            let found: Vec<Value> = failure.diagnostics.iter().map(diagnostic_json).collect();
            raise(py, "LoadError", (error.to_string().trim_end(), Value::from(found).to_string()))
        }
        HostError::Run(
            RunError::MissingVariables(_)
            | RunError::MissingInputs(_)
            | RunError::UnknownVariables(_)
            | RunError::UnknownState(_)
            | RunError::Input(_)
            | RunError::State(_)
            | RunError::AgentVariables { .. },
        ) => raise(py, "InputError", (error.to_string(),)),
        _ => refused(py, &with_causes(error)),
    }
}

/// An error with what it follows from, where its own words do not say that.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = inner.source();
    }
    text
}
