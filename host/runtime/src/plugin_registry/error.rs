//! Why something of a plugin cannot be used.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use hotcell_budget::Overdrawn;
use hotcell_cells::LoadError;
use thiserror::Error;

use crate::permissions::Revoked;

/// Why a full name stands for nothing that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoPluginNode {
    /// There is nothing of that name; this one is near
    Missing(Option<String>),
    /// Its plugin may not be used; the text says why and what to do
    Held(String),
}

/// Why a name is not that of a tool that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoTool {
    /// There is none
    Missing,
    /// Several plugins have one of that name; these are the full names
    Ambiguous(Vec<String>),
    /// Its plugin may not be used; the text says why and what to do
    Held(String),
}

/// Why the component of a plugin cannot be used.
#[derive(Clone, Debug, Error)]
pub(crate) enum ComponentUnusable {
    /// Its file cannot be read
    #[error("cannot read plugin `{file}`: {cause}", file = file.display())]
    Unreadable {
        /// The file
        file: PathBuf,
        /// Why not
        #[source]
        cause: Arc<io::Error>,
    },
    /// Its file has another component now
    #[error("plugin `{plugin}` was changed while it was in use; run the graph again")]
    Changed {
        /// The plugin
        plugin: String,
    },
    /// It cannot be loaded
    #[error(transparent)]
    Load(Arc<LoadError>),
}

impl From<LoadError> for ComponentUnusable {
    fn from(error: LoadError) -> Self {
        ComponentUnusable::Load(Arc::new(error))
    }
}

/// Why a call of a component is not made.
#[derive(Debug, Error)]
pub(crate) enum NotPrepared {
    /// The component cannot be used
    #[error(transparent)]
    Component(#[from] ComponentUnusable),
    /// What was granted is not granted any more
    #[error(transparent)]
    Revoked(#[from] Revoked),
    /// The run has used up what it may
    #[error(transparent)]
    Overdrawn(#[from] Overdrawn),
}
