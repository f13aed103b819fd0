//! Writing a file in the place of another.

use std::io::{self, Write as _};
use std::path::Path;

/// Puts `bytes` into `path`, making its folder if need be: a reader sees the old bytes or the new ones, whatever happens in between.
/// They are on the disk once this returns. A link that lies there is replaced, and what it leads to is not touched.
///
/// # Errors
/// Those of the system.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, false)
}

/// The same for a file that its owner alone may read and write, also where others could read the one of before.
///
/// # Errors
/// Those of the system.
pub fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, true)
}

/// Makes a folder, and those that it is in, which its owner alone may enter; one that is there stays as it is. Whoever may write into the
/// folder of a private file puts another one into its place.
///
/// # Errors
/// Those of the system.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    let mut make = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700);
    make.recursive(true).create(path)
}

fn put(path: &Path, bytes: &[u8], is_private: bool) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if is_private { make_private_folder(folder) } else { std::fs::create_dir_all(folder) }?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    // A temporary file is its owner's alone, and keeps that in its new place.
    #[cfg(unix)]
    if !is_private {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file);
        let mode = mode.map_or(0o644, |old| old.permissions().mode() & 0o777);
        file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = is_private;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::{replace, replace_private};

    #[test]
    fn a_file_takes_the_place_of_what_was_there_and_follows_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        replace(&at("made/on/the/way"), b"new").unwrap();
        assert_eq!(fs::read(at("made/on/the/way")).unwrap(), b"new");
        fs::set_permissions(at("made/on/the/way"), fs::Permissions::from_mode(0o640)).unwrap();
        replace(&at("made/on/the/way"), b"newer").unwrap();
        assert_eq!(fs::metadata(at("made/on/the/way")).unwrap().permissions().mode() & 0o777, 0o640);

        fs::write(at("mine"), "kept").unwrap();
        for (name, to) in [("link", at("mine")), ("dangling", at("nowhere"))] {
            symlink(to, at(name)).unwrap();
            replace(&at(name), b"new").unwrap();
            assert!(
                fs::symlink_metadata(at(name)).unwrap().is_file() && fs::read(at(name)).unwrap() == b"new",
                "{name}"
            );
        }
        assert!(fs::read(at("mine")).unwrap() == b"kept" && !at("nowhere").exists());
        assert!(replace(folder.path(), b"new").is_err());
    }

    #[test]
    fn a_private_file_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("private");
        let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        replace_private(&file, b"new").unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        replace_private(&file, b"newer").unwrap();
        assert_eq!((mode(), fs::read(&file).unwrap().as_slice()), (0o600, b"newer".as_slice()));
        // So is the folder that is made for it, whatever the mask of the process says.
        replace_private(&folder.path().join("a/b/private"), b"new").unwrap();
        for made in ["a", "a/b"] {
            assert_eq!(fs::metadata(folder.path().join(made)).unwrap().permissions().mode() & 0o777, 0o700, "{made}");
        }
    }
}
