//! Where an agent comes from, written so that it can be loaded again from any folder.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::agent::{ComponentsFile, Loading, Which};

/// Where an agent comes from, for whoever loads it again: its file, and `#name` for one of several. What was handed in
/// beside it makes it a JSON object.
#[derive(Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) file: PathBuf,
    agent: Option<String>,
    components: Vec<ComponentsFile>,
}

impl Origin {
    /// The agent in this file, absolute, with what is said about it; files with parts are absolute, too.
    pub(crate) fn of(file: &Path, loading: &Loading<'_>) -> Self {
        let agent = match loading.agent {
            Which::Named(name) => Some(name.to_owned()),
            Which::Only | Which::Any => None,
        };
        Origin { file: file.to_owned(), agent, components: loading.components.to_vec() }
    }

    /// What a run is started with: the file, and `#name` for one of several. What was handed in beside it makes it JSON.
    pub(crate) fn source(&self) -> String {
        match (&self.agent, &self.components[..]) {
            (_, [_, ..]) => self.to_json(),
            (Some(name), []) => format!("{}#{name}", self.file.display()),
            (None, []) => self.file.display().to_string(),
        }
    }

    /// All of it as JSON.
    pub(crate) fn to_json(&self) -> String {
        // Paths that are no text cannot be written down.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What a run was started with: `source` is what [`Origin::source`] made.
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
