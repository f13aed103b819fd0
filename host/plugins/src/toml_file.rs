//! Small files of the user's that hotcell itself writes, as TOML.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::atomic::write_atomically;

/// What a file says; the default where it is not there. The error is why it cannot be used.
pub(crate) fn read<T: DeserializeOwned + Default>(file: &Path, largest: u64) -> Result<T, String> {
    match hotcell_files::read_text(file, largest) {
        Ok(text) => toml::from_str(&text).map_err(|error| error.to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(error.to_string()),
    }
}

/// Writes a file, whole or not at all. The error is why it cannot be written.
pub(crate) fn write<T: Serialize>(file: &Path, content: &T) -> Result<(), String> {
    let text = toml::to_string(content).map_err(|error| error.to_string())?;
    write_atomically(file, text.as_bytes()).map_err(|error| error.to_string())
}
