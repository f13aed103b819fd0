//! Texts that the file of an agent names and that lie outside of its folder: beside it, say, where several agents share a skill.
//! What lies there is not for whoever wrote the file to choose, so it has to be granted to the file.

use std::path::{Component, Path, PathBuf};

use hotcell_plugins::Settings;

use crate::permissions::{FILE_GRANTS, Permissions};

/// The directory, granted to the agent's file at this moment, in which `path` lies, and the path without `..`. None for what
/// lies in `folder`, and for what is not granted.
pub(crate) fn directory_of(
    settings: &Settings,
    permissions: &Permissions,
    folder: &Path,
    path: &Path,
) -> Option<(PathBuf, PathBuf)> {
    let path = plain(path);
    if path.starts_with(folder) {
        return None;
    }
    let granted = permissions.grants(FILE_GRANTS, &settings.grants_of_file(FILE_GRANTS)).ok()?;
    let directory = granted.fs.iter().map(|grant| plain(&grant.host)).find(|directory| path.starts_with(directory))?;
    Some((directory, path))
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}
