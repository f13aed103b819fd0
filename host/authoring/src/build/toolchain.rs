//! The tools that make components of one language, found and asked for their versions before anything is built.

use std::path::Path;

use super::{BuildError, Job, Made, c, javascript, python};
use crate::project::Language;
use crate::tools::Tools;

/// The tools of a language whose projects have a `plugin.toml`.
pub(super) enum Toolchain {
    Python(python::Python),
    JavaScript(javascript::Node),
    C,
}

impl Toolchain {
    /// Finds the tools for a project; an error names the one that is missing and what installs it.
    pub(super) fn find(language: Language, tools: &Tools, directory: &Path) -> Result<Self, BuildError> {
        match language {
            Language::Python => python::find(tools, directory).map(Self::Python),
            Language::JavaScript | Language::TypeScript => {
                javascript::find(tools, directory, javascript::BUILDS).map(Self::JavaScript)
            }
            // A manifest never names Rust: cargo builds it, and has a manifest of its own.
            Language::C | Language::Rust => c::find_compiler(tools, directory).map(|_| Self::C),
        }
    }

    /// The programs with their versions; none where a component is built each time, because that takes no longer than
    /// finding out whether it has to be.
    pub(super) fn versions(&self, tools: &Tools, directory: &Path) -> Option<Vec<String>> {
        match self {
            Self::Python(python) => Some(python.versions()),
            Self::JavaScript(node) => node.versions(tools, directory),
            Self::C => None,
        }
    }

    pub(super) fn build(&self, job: &mut Job<'_>) -> Result<Made, BuildError> {
        match self {
            Self::Python(python) => python::build(job, python),
            Self::JavaScript(node) => javascript::build(job, node),
            Self::C => c::build(job),
        }
    }
}
