//! Where an agent comes from, written so that it can be loaded again from any folder.

use std::path::{Path, PathBuf};

use hotcell_graph::diagnostic::Diagnostic;
use serde::{Deserialize, Serialize};

use crate::agent::{ComponentsFile, LoadFailure, Loading, Which};
use crate::load::locate::read;

/// Where an agent comes from, for whoever loads it again: its file, and `#name` for one of several. What was handed in
/// beside it makes it a JSON object.
#[derive(Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) file: PathBuf,
    agent: Option<String>,
    components: Vec<ComponentsFile>,
}

impl Origin {
    /// What a run was started with: `source` is what [`source`] made.
    pub(crate) fn parse(source: &str) -> Self {
        if let Ok(origin) = serde_json::from_str(source) {
            return origin;
        }
        match source.rsplit_once('#') {
            Some((file, name)) if !Path::new(source).exists() => {
                Origin { file: file.into(), agent: Some(name.to_owned()), components: Vec::new() }
            }
            _ => Origin { file: source.into(), agent: None, components: Vec::new() },
        }
    }

    /// What is to be said when it is loaded.
    pub(crate) fn loading(&self) -> Loading<'_> {
        Loading { agent: self.agent.as_deref().map_or(Which::Only, Which::Named), components: &self.components }
    }
}

/// Where an agent comes from. Files are named so that they are found from any folder.
pub(crate) fn source(file: &Path, loading: &Loading<'_>) -> Result<String, LoadFailure> {
    if loading.components.is_empty() {
        return Ok(match loading.agent {
            Which::Named(name) => format!("{}#{name}", file.display()),
            Which::Only | Which::Any => file.display().to_string(),
        });
    }
    let absolute = |part: &ComponentsFile| {
        let (file, _) = read(&part.file, None)?;
        Ok::<_, LoadFailure>(ComponentsFile { file, rename: part.rename.clone() })
    };
    let components = loading.components.iter().map(absolute).collect::<Result<_, _>>()?;
    let agent = match loading.agent {
        Which::Named(name) => Some(name.to_owned()),
        Which::Only | Which::Any => None,
    };
    let origin = Origin { file: file.to_owned(), agent, components };
    // Paths that are no text cannot be written down.
    serde_json::to_string(&origin).map_err(|error| Diagnostic::error(error.to_string()).into())
}
