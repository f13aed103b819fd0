//! What came of a run, for Python.

use std::sync::Arc;

use hotcell_graph::Value;
use hotcell_runtime::{RunReport, report_json};
use pyo3::prelude::*;

/// A run that gave control back.
#[pyclass(frozen, module = "hotcell._hotcell")]
pub(crate) struct Report(pub(crate) Arc<RunReport>);

#[pymethods]
impl Report {
    /// What came of it, as JSON.
    fn json(&self) -> String {
        report_json(&self.0).to_string()
    }

    /// The state that it came to, as JSON.
    fn state(&self, py: Python<'_>) -> String {
        py.detach(|| Value::Object(self.0.state.to_object()).to_json())
    }
}
