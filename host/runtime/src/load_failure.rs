//! Why an agent cannot be loaded.

use std::fmt;

use hotcell_graph::diagnostic::{Diagnostic, render};

/// Why an agent cannot be loaded: at least one of the diagnostics is an error.
#[derive(Clone, Debug)]
pub struct LoadFailure {
    /// Everything that was found, warnings included
    pub diagnostics: Vec<Diagnostic>,
}

impl std::error::Error for LoadFailure {}

impl fmt::Display for LoadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render(&self.diagnostics, false))
    }
}

impl From<Diagnostic> for LoadFailure {
    fn from(diagnostic: Diagnostic) -> Self {
        LoadFailure { diagnostics: vec![diagnostic] }
    }
}
