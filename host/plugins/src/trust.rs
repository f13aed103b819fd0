//! Folders whose `hotcell.toml` the operator trusts, each pinned to the digest of that file.
//!
//! A folder that somebody else made may bring a `hotcell.toml` of its own. What that file grants is only a wish until
//! the operator has said `hotcell trust DIR`; a changed file is a new wish.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::atomic::write_atomically;

/// Which folders may grant something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those in this file
    Listed(PathBuf),
    /// All: for programs that embed hotcell and write the folders themselves
    Everything,
}

/// Why the list of trusted folders cannot be used.
#[derive(Debug, Error)]
pub enum TrustError {
    /// It cannot be read or written
    #[error("cannot use the list of trusted folders `{path}`: {cause}", path = path.display())]
    File {
        /// The file
        path: PathBuf,
        /// Why not
        cause: String,
    },
    /// The folder has nothing to trust
    #[error("`{folder}` has no `hotcell.toml`, so there is nothing to trust", folder = folder.display())]
    Nothing {
        /// The folder
        folder: PathBuf,
    },
}

/// The list as it stands in its file.
#[derive(Default, Serialize, Deserialize)]
struct List {
    /// The digest of `hotcell.toml` by the folder it lies in
    #[serde(default)]
    trusted: BTreeMap<String, String>,
}

impl Trust {
    /// Whether the folder's settings with this digest are trusted.
    pub(crate) fn covers(&self, folder: &Path, digest: &str) -> bool {
        match self {
            Trust::Everything => true,
            Trust::Listed(file) => {
                read(file).is_ok_and(|list| list.trusted.get(&key(folder)).is_some_and(|known| known == digest))
            }
        }
    }

    /// Trusts a folder no longer.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn forget(&self, folder: &Path) -> Result<(), TrustError> {
        self.set(folder, None)
    }

    /// Trusts the folder's settings as they are now, or no longer.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub(crate) fn set(&self, folder: &Path, digest: Option<&str>) -> Result<(), TrustError> {
        let Trust::Listed(file) = self else { return Ok(()) };
        let mut list = read(file)?;
        match digest {
            Some(digest) => list.trusted.insert(key(folder), digest.to_owned()),
            None => list.trusted.remove(&key(folder)),
        };
        let failed = |cause: String| TrustError::File { path: file.clone(), cause };
        let text = toml::to_string(&list).map_err(|error| failed(error.to_string()))?;
        write_atomically(file, text.as_bytes()).map_err(|error| failed(error.to_string()))
    }
}

/// The name of a folder that does not depend on how one came there.
fn key(folder: &Path) -> String {
    folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf()).display().to_string()
}

fn read(file: &Path) -> Result<List, TrustError> {
    let failed = |cause: String| TrustError::File { path: file.to_path_buf(), cause };
    match std::fs::read_to_string(file) {
        Ok(text) => toml::from_str(&text).map_err(|error| failed(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(List::default()),
        Err(error) => Err(failed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_trusted_with_the_file_it_had() {
        let place = tempfile::tempdir().unwrap();
        let trust = Trust::Listed(place.path().join("config/trust.toml"));
        let folder = place.path().join("agent");
        std::fs::create_dir(&folder).unwrap();
        assert!(!trust.covers(&folder, "a"));
        trust.set(&folder, Some("a")).unwrap();
        assert!(trust.covers(&folder, "a") && trust.covers(&folder.join("../agent"), "a"));
        assert!(!trust.covers(&folder, "b"));
        trust.set(&folder, None).unwrap();
        assert!(!trust.covers(&folder, "a"));
    }

    #[test]
    fn a_broken_list_trusts_nothing_and_is_not_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("trust.toml");
        std::fs::write(&file, "trusted = 7").unwrap();
        let trust = Trust::Listed(file.clone());
        assert!(!trust.covers(place.path(), "a"));
        assert!(trust.set(place.path(), Some("a")).is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "trusted = 7");
    }
}
