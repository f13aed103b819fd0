//! What can be wrong with settings.

use std::path::PathBuf;

use hotcell_files::FileError;
use thiserror::Error;

/// What is wrong with the file.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// It cannot be read
    #[error("cannot read `{path}`: {cause}", path = path.display())]
    Read {
        /// The file
        path: PathBuf,
        /// Why not
        cause: FileError,
    },
    /// It says something that has no meaning
    #[error("`{path}` cannot be parsed: {cause}", path = path.display())]
    Form {
        /// The file
        path: PathBuf,
        /// What and where
        cause: String,
    },
}

/// A limit is not of its form; the text names it.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct LimitError(#[from] serde_json::Error);

/// A file is not the one that is trusted any more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{file}` was changed a moment ago, after it was found to be the one that is trusted; try again")]
pub struct NotPinned {
    /// The file, as the settings name it
    pub file: String,
}

/// A text is not of the form of grants; the text says what is wrong and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(transparent)]
pub struct GrantsForm(#[from] toml::de::Error);
