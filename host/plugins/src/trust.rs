//! Folders that the operator trusts, each pinned to everything in it that decides what may happen.
//!
//! A folder that somebody else made may bring a `hotcell.toml` of its own. What that file grants is only a wish until
//! the operator has said `hotcell trust DIR`; whatever decides and was changed since is a new wish.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::footprint::Footprint;
use crate::toml_file::{self, TomlFileError};

/// Bytes that the list may have.
const MAX_LIST: u64 = 64 << 20;

/// Which folders may grant something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those in this file
    Listed(PathBuf),
    /// Those in this file, and the folder of each agent that the person names, as it is: not those of agents that it calls
    Named(PathBuf),
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
        #[source]
        cause: TomlFileError,
    },
}

/// The list as it stands in its file.
#[derive(Default, Serialize, Deserialize)]
struct List {
    /// What was pinned by versions that pinned `hotcell.toml` and the lock alone
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    trusted: BTreeMap<String, String>,
    /// What decided in each folder
    #[serde(default)]
    folder: BTreeMap<String, Footprint>,
}

/// What is known of a folder.
pub(crate) enum Pinned {
    /// Everything in it counts
    All,
    /// What was there when the operator trusted it counts
    To(Box<Footprint>),
    /// It was trusted by a version that pinned less
    Before,
    /// Nobody trusts it
    Nothing,
}

impl Trust {
    /// The trust in the agent that the person names.
    #[must_use]
    pub fn of_named(&self) -> Self {
        match self {
            Trust::Named(_) => Trust::Everything,
            other => other.clone(),
        }
    }

    /// The trust in an agent that came from somewhere: a folder that nobody looked at is not trusted, whoever made the others.
    #[must_use]
    pub fn of_unnamed(&self) -> Self {
        match self {
            Trust::Listed(file) | Trust::Named(file) => Trust::Listed(file.clone()),
            // No file has this name.
            Trust::Everything => Trust::Listed(PathBuf::new()),
        }
    }

    /// The file with the list of trusted folders, where there is one.
    pub(crate) fn list(&self) -> Option<&Path> {
        match self {
            Trust::Everything => None,
            Trust::Listed(file) | Trust::Named(file) => {
                Some(file).filter(|file| !file.as_os_str().is_empty()).map(PathBuf::as_path)
            }
        }
    }

    /// What is pinned for a folder.
    pub(crate) fn pinned(&self, folder: &Path) -> Pinned {
        let file = match self {
            Trust::Everything => return Pinned::All,
            Trust::Listed(file) | Trust::Named(file) => file,
        };
        let Ok(mut list) = read(file) else { return Pinned::Nothing };
        let key = key(folder);
        match list.folder.remove(&key) {
            Some(footprint) => Pinned::To(Box::new(footprint)),
            None if list.trusted.contains_key(&key) => Pinned::Before,
            None => Pinned::Nothing,
        }
    }

    /// Trusts a folder no longer.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn forget(&self, folder: &Path) -> Result<(), TrustError> {
        self.set(folder, None)
    }

    /// Trusts a folder with this, or no longer.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub(crate) fn set(&self, folder: &Path, footprint: Option<&Footprint>) -> Result<(), TrustError> {
        let (Trust::Listed(file) | Trust::Named(file)) = self else { return Ok(()) };
        let _changing = toml_file::changing();
        let mut list = read(file)?;
        let key = key(folder);
        list.trusted.remove(&key);
        match footprint {
            Some(footprint) => list.folder.insert(key, footprint.clone()),
            None => list.folder.remove(&key),
        };
        toml_file::write(file, &list).map_err(|cause| TrustError::File { path: file.clone(), cause })
    }
}

/// The name of a folder that does not depend on how one came there.
fn key(folder: &Path) -> String {
    folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf()).display().to_string()
}

fn read(file: &Path) -> Result<List, TrustError> {
    toml_file::read(file, MAX_LIST).map_err(|cause| TrustError::File { path: file.to_path_buf(), cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_found_however_one_comes_there() {
        let place = tempfile::tempdir().unwrap();
        let trust = Trust::Listed(place.path().join("config/trust.toml"));
        let folder = place.path().join("agent");
        std::fs::create_dir(&folder).unwrap();
        let is_pinned = |folder: &Path| matches!(trust.pinned(folder), Pinned::To(_));
        assert!(!is_pinned(&folder));
        trust.set(&folder, Some(&Footprint::default())).unwrap();
        assert!(is_pinned(&folder) && is_pinned(&folder.join("../agent")));
        trust.set(&folder, None).unwrap();
        assert!(!is_pinned(&folder));
    }

    #[cfg(unix)]
    #[test]
    fn the_list_is_read_by_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("trust.toml");
        let trust = Trust::Listed(file.clone());
        let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        trust.set(place.path(), Some(&Footprint::default())).unwrap();
        assert_eq!(mode(), 0o600);
        // One of an earlier version.
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        trust.set(place.path(), None).unwrap();
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn those_who_change_the_list_at_once_lose_nothing_of_each_other() {
        let place = tempfile::tempdir().unwrap();
        let trust = Trust::Listed(place.path().join("trust.toml"));
        let folders: Vec<PathBuf> = (0..16).map(|number| place.path().join(format!("{number}"))).collect();
        std::thread::scope(|scope| {
            for folder in &folders {
                scope.spawn(|| trust.set(folder, Some(&Footprint::default())).unwrap());
            }
        });
        assert!(folders.iter().all(|folder| matches!(trust.pinned(folder), Pinned::To(_))));
    }

    #[test]
    fn what_an_earlier_version_pinned_is_told_apart_and_kept_for_other_folders() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("trust.toml");
        let (one, two) = (key(&place.path().join("one")), key(&place.path().join("two")));
        std::fs::write(&file, format!("[trusted]\n'{one}' = 'abc'\n'{two}' = 'abc'\n")).unwrap();
        let trust = Trust::Listed(file);
        assert!(matches!(trust.pinned(Path::new(&one)), Pinned::Before));
        trust.set(Path::new(&one), Some(&Footprint::default())).unwrap();
        assert!(matches!(trust.pinned(Path::new(&one)), Pinned::To(_)));
        assert!(matches!(trust.pinned(Path::new(&two)), Pinned::Before));
    }

    #[test]
    fn a_broken_list_trusts_nothing_and_is_not_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("trust.toml");
        std::fs::write(&file, "trusted = 7").unwrap();
        let trust = Trust::Listed(file.clone());
        assert!(matches!(trust.pinned(place.path()), Pinned::Nothing));
        assert!(trust.set(place.path(), Some(&Footprint::default())).is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "trusted = 7");
    }
}
