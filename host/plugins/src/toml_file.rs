//! Small files of the user's that hotcell itself writes, as TOML.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Why such a file cannot be used. The texts do not repeat its path.
#[derive(Debug, Error)]
pub enum TomlFileError {
    /// It cannot be read or written
    #[error(transparent)]
    System(#[from] io::Error),
    /// What it says is not of its form
    #[error(transparent)]
    Form(#[from] toml::de::Error),
    /// What it is to say cannot be written as TOML
    #[error(transparent)]
    Content(#[from] toml::ser::Error),
}

/// Is held from reading a file until it is written again, so that nothing is lost that others of this process change meanwhile: hosts of
/// several tenants have the same files.
pub(crate) fn changing() -> MutexGuard<'static, ()> {
    static CHANGING: Mutex<()> = Mutex::new(());
    CHANGING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a file says; the default where it is not there. The error is why it cannot be used.
pub(crate) fn read<T: DeserializeOwned + Default>(file: &Path, largest: u64) -> Result<T, TomlFileError> {
    match hotcell_files::read_text(file, largest) {
        Ok(text) => Ok(toml::from_str(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(error.into()),
    }
}

/// Writes a file, whole or not at all, which only its owner can read: it tells where a person works and with what. The error is why it cannot be written.
pub(crate) fn write<T: Serialize>(file: &Path, content: &T) -> Result<(), TomlFileError> {
    Ok(hotcell_files::replace_private(file, toml::to_string(content)?.as_bytes())?)
}
