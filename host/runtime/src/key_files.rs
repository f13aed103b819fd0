//! Files with keys and certificates that the file of an agent names.

use std::path::{Path, PathBuf};

use hotcell_cells::Grants;
use hotcell_cells::policy::{decide_host_path, path_grant};
use hotcell_files::{FileError, Folder};
use thiserror::Error;

/// Why a file with keys or certificates may not be named.
#[derive(Debug, Error)]
pub(crate) enum KeyFileError {
    /// It lies elsewhere
    #[error("`{file}` lies outside of the agent's folder; {help}")]
    Outside {
        /// The file
        file: String,
        /// What would allow it
        help: String,
    },
    /// It cannot be used
    #[error("`{file}` cannot be used: {cause}")]
    File {
        /// The file
        file: String,
        /// Why not
        #[source]
        cause: FileError,
    },
}

/// The path of such a file, which is named from `folder`. It is inside, because whoever wrote the agent's file does not choose
/// among the keys of whoever runs it; or it is in a folder that is granted to `name`. It may not be there yet.
///
/// # Errors
/// Why it may not be named, and which grant would allow it.
pub(crate) fn key_file(folder: &Path, file: &str, grants: &Grants, name: &str) -> Result<PathBuf, KeyFileError> {
    match Folder::new(folder).real_path(Path::new(file)) {
        Ok(found) => Ok(found),
        Err(FileError::Missing) => Ok(folder.join(file)),
        Err(FileError::Outside) if decide_host_path(grants, &folder.join(file)).is_allowed() => Ok(folder.join(file)),
        Err(FileError::Outside) => {
            let directory = Path::new(file).parent().unwrap_or(Path::new(".")).to_string_lossy().into_owned();
            let help = path_grant(name, &directory, "/keys");
            Err(KeyFileError::Outside { file: file.to_owned(), help })
        }
        Err(cause) => Err(KeyFileError::File { file: file.to_owned(), cause }),
    }
}
