//! Opening a granted directory: the very one that the operator saw, whatever somebody puts in its place meanwhile.

use std::io;
use std::path::{Path, PathBuf};

/// A directory that stays the same as long as this lives.
pub(crate) struct OpenedDirectory {
    #[cfg(target_os = "linux")]
    directory: rustix::fd::OwnedFd,
    #[cfg(not(target_os = "linux"))]
    path: PathBuf,
}

#[cfg(target_os = "linux")]
impl OpenedDirectory {
    /// Opens a directory one step at a time and follows no link on the way. The path of a grant is free of links, because
    /// whoever read the grant has followed them: a link that is there now was put there since.
    ///
    /// # Errors
    /// When a part of the path is no directory, a link, or cannot be opened; the text names it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{CWD, Mode, OFlags, openat};

        let whole = std::path::absolute(path)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut directory = openat(CWD, "/", flags, Mode::empty())?;
        let mut so_far = PathBuf::from("/");
        for part in whole.components().skip(1) {
            so_far.push(part);
            directory = openat(&directory, part.as_os_str(), flags, Mode::empty()).map_err(|error| {
                let link = so_far.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
                let what =
                    if link { "is a link, and was none when it was granted".to_owned() } else { error.to_string() };
                io::Error::new(io::Error::from(error).kind(), format!("`{}`: {what}", so_far.display()))
            })?;
        }
        Ok(Self { directory })
    }

    /// A path that leads to the opened directory and nowhere else.
    pub(crate) fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd as _;

        PathBuf::from(format!("/proc/self/fd/{}", self.directory.as_raw_fd()))
    }
}

#[cfg(not(target_os = "linux"))]
impl OpenedDirectory {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_path_buf() })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.path.clone()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_directory_is_the_one_that_was_opened_and_no_link_leads_to_it() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("data/deep")).unwrap();
        fs::create_dir(root.join("keys")).unwrap();
        fs::write(root.join("data/deep/mine"), "mine").unwrap();
        let opened = OpenedDirectory::open(&root.join("data/deep")).unwrap();
        fs::rename(root.join("data"), root.join("moved")).unwrap();
        symlink(root.join("keys"), root.join("data")).unwrap();
        assert_eq!(fs::read_to_string(opened.path().join("mine")).unwrap(), "mine");
        fs::create_dir(root.join("keys/deep")).unwrap();
        for path in ["data", "data/deep"] {
            let refused = OpenedDirectory::open(&root.join(path)).err().unwrap().to_string();
            assert!(refused.contains("data`: is a link"), "{refused}");
        }
        fs::write(root.join("file"), "").unwrap();
        assert!(OpenedDirectory::open(&root.join("file")).is_err());
        assert!(OpenedDirectory::open(&root.join("none")).err().unwrap().to_string().contains("none`"));
    }
}
