//! Folders with Python packages that the operator names: cells read them, and nothing else in them is changed.

use std::path::{Path, PathBuf};

use hotcell_cells::{Access, DirectoryGrant};
use hotcell_plugins::{SETTINGS_FILE, Settings};
use thiserror::Error;

use crate::context::LoadContext;

/// The variable of the environment with further folders, for all projects of a user.
const VARIABLE: &str = "HOTCELL_PYTHON_PATH";
/// The file that makes a folder a virtual environment.
const ENVIRONMENT: &str = "pyvenv.cfg";
/// Where the packages of such an environment are, on Windows.
const WINDOWS_PACKAGES: &str = "Lib/site-packages";

/// A folder with packages.
pub(super) struct Package {
    /// What lets a cell read it
    pub(super) grant: DirectoryGrant,
    /// Whether the settings of the project name it, and not the user for all projects
    pub(super) of_project: bool,
}

/// Somebody names a folder with packages that is not there.
#[derive(Debug, Error)]
#[error("`{said}` names `{folder}` for Python packages, and there is no such folder", folder = folder.display())]
pub(crate) struct NoPackages {
    /// The file or the variable of the environment that names it
    said: &'static str,
    folder: PathBuf,
}

/// The folders with packages.
pub(super) fn packages(context: &LoadContext, settings: &Settings) -> Result<Vec<Package>, NoPackages> {
    let of_user = context.environment().get(VARIABLE).unwrap_or_default();
    let of_user =
        std::env::split_paths(&of_user).filter(|path| !path.as_os_str().is_empty()).map(|path| (path, VARIABLE));
    let said = settings.python_path().iter().map(|path| (path.clone(), SETTINGS_FILE));
    let grant = |(place, (folder, said)): (usize, (PathBuf, &'static str))| {
        let host = packages_of(&folder).ok_or(NoPackages { said, folder })?;
        let grant = DirectoryGrant::new(host, format!("/python-packages/{place}"), Access::Read);
        Ok(Package { grant, of_project: said == SETTINGS_FILE })
    };
    said.chain(of_user).enumerate().map(grant).collect()
}

/// The folder with the packages themselves, which in a virtual environment lies deeper.
fn packages_of(path: &Path) -> Option<PathBuf> {
    if !path.is_dir() {
        return None;
    }
    if !path.join(ENVIRONMENT).is_file() {
        return Some(path.to_owned());
    }
    let versions = std::fs::read_dir(path.join("lib")).into_iter().flatten().flatten();
    let found = versions.map(|version| version.path().join("site-packages")).find(|packages| packages.is_dir());
    Some(found.unwrap_or_else(|| path.join(WINDOWS_PACKAGES)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_a_virtual_environment_lie_deeper() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(packages_of(&folder.path().join("gone")), None);
        assert_eq!(packages_of(folder.path()), Some(folder.path().to_owned()));
        let deeper = folder.path().join("lib/python3.12/site-packages");
        std::fs::create_dir_all(&deeper).unwrap();
        std::fs::write(folder.path().join(ENVIRONMENT), "").unwrap();
        assert_eq!(packages_of(folder.path()), Some(deeper));
    }
}
