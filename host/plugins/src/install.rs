//! Putting components where plugins are looked for, and taking them away.

use std::io;
use std::path::Path;

use hotcell_files::{MAX_COMPONENT, MAX_TEXT};

use crate::signature::signature_file;

/// Puts a copy of a component, with its signature if it has one, where plugins are looked for. Whoever looks meanwhile
/// sees the old file or the new one.
///
/// # Errors
/// When a file cannot be read or written.
pub fn install(file: &Path, place: &Path) -> io::Result<()> {
    let bytes = hotcell_files::read(file, MAX_COMPONENT)?;
    match hotcell_files::read(signature_file(file), MAX_TEXT) {
        Ok(signature) => hotcell_files::replace(&signature_file(place), &signature)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => remove_if_there(&signature_file(place))?,
        Err(error) => return Err(error),
    }
    hotcell_files::replace(place, &bytes)
}

/// Puts a component that is no file where plugins are looked for. A signature that lies there says nothing of it and goes.
///
/// # Errors
/// When it cannot be written.
pub fn install_bytes(component: &[u8], place: &Path) -> io::Result<()> {
    remove_if_there(&signature_file(place))?;
    hotcell_files::replace(place, component)
}

/// Deletes a component and its signature.
///
/// # Errors
/// When one of them is there and cannot be deleted.
pub fn uninstall(file: &Path) -> io::Result<()> {
    std::fs::remove_file(file)?;
    remove_if_there(&signature_file(file))
}

fn remove_if_there(file: &Path) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_comes_and_goes_with_its_component() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (file, place) = (from.path().join("a.wasm"), to.path().join("plugins/b.wasm"));
        std::fs::write(&file, "component").unwrap();
        std::fs::write(from.path().join("a.wasm.minisig"), "signature").unwrap();
        install(&file, &place).unwrap();
        let signature = to.path().join("plugins/b.wasm.minisig");
        assert_eq!(std::fs::read_to_string(&signature).unwrap(), "signature");
        std::fs::remove_file(from.path().join("a.wasm.minisig")).unwrap();
        install(&file, &place).unwrap();
        assert!(!signature.exists(), "a signature of the old component says nothing of the new one");
        uninstall(&place).unwrap();
        assert!(!place.exists());
    }
}
