//! `hotcell.lock`: which component each grant was given to. It lies beside `hotcell.toml` and is written by
//! `hotcell plugin grant`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hotcell_cells::Requests;
use hotcell_files::{FileError, Folder};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::plugin::Plugin;

/// The name of the file.
pub const LOCK_FILE: &str = "hotcell.lock";
/// Bytes that the file may have.
const MAX_TEXT: u64 = 4 << 20;

/// The components that grants were given to, by the names of the plugins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lock {
    #[serde(default)]
    pub(crate) plugin: BTreeMap<String, Locked>,
}

/// A component that grants were given to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Locked {
    /// The SHA-256 digest of the component
    pub(crate) digest: String,
    /// The plugin's version, for people
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// What it asked for then, so that an update that asks for more can be told apart
    #[serde(default, skip_serializing_if = "Requests::is_empty")]
    pub(crate) requested: Requests,
    /// The points at which it was told of runs then
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hooks: Vec<String>,
}

impl Locked {
    /// What is pinned of a plugin.
    pub(crate) fn of(plugin: &Plugin) -> Self {
        Locked {
            digest: plugin.survey.digest.clone(),
            version: plugin.description.version.clone(),
            requested: plugin.description.capabilities.clone(),
            hooks: plugin.hook_points(),
        }
    }
}

/// Why the file cannot be used.
#[derive(Debug, Error)]
#[error("cannot use `{path}`: {cause}", path = path.display())]
pub struct LockError {
    /// The file
    path: PathBuf,
    /// Why not
    cause: String,
}

impl Lock {
    /// The lock of a folder; empty where there is none.
    pub(crate) fn of_folder(folder: &Path) -> Result<Self, LockError> {
        Self::text(folder)?.map_or_else(|| Ok(Lock::default()), |text| Self::parse(folder, &text))
    }

    /// The text of a folder's lock, if it has one.
    pub(crate) fn text(folder: &Path) -> Result<Option<String>, LockError> {
        match Folder::new(folder).read_text(Path::new(LOCK_FILE), MAX_TEXT) {
            Ok(text) => Ok(Some(text)),
            Err(FileError::Missing) => Ok(None),
            Err(error) => Err(LockError { path: folder.join(LOCK_FILE), cause: error.to_string() }),
        }
    }

    /// What the text of a folder's lock says.
    pub(crate) fn parse(folder: &Path, text: &str) -> Result<Self, LockError> {
        let failed = |cause: String| LockError { path: folder.join(LOCK_FILE), cause };
        toml::from_str(text).map_err(|error| failed(error.to_string().trim_end().to_owned()))
    }

    /// Writes the lock of a folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), LockError> {
        let path = folder.join(LOCK_FILE);
        let failed = |cause: String| LockError { path: path.clone(), cause };
        let text = toml::to_string(self).map_err(|error| failed(error.to_string()))?;
        let text =
            format!("# Written by `hotcell plugin`. It pins grants to the components they were given to.\n\n{text}");
        hotcell_files::replace(&path, text.as_bytes()).map_err(|error| failed(error.to_string()))
    }
}
