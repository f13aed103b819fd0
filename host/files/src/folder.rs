//! What a file in an agent's folder names. The folder comes from a stranger, and so does every path in its files: all of them are
//! opened here, below the folder, whatever `..`, absolute path or link is written there, and whatever somebody exchanges meanwhile.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use cap_primitives::ambient_authority;
use cap_primitives::fs::{OpenOptions, open, open_ambient_dir};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a file is not read. The texts do not repeat its path.
#[derive(Debug, Error)]
pub enum FileError {
    /// There is nothing of that name
    #[error("there is no such file")]
    Missing,
    /// The path leads out of the folder, as it is written or by a link
    #[error("it leads out of the agent's folder")]
    Outside,
    /// The system refuses it, it is no regular file, it has too many bytes, or it is not UTF-8
    #[error(transparent)]
    System(io::Error),
}

/// What a path in a folder leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Entry {
    /// A regular file
    File,
    /// A folder
    Folder,
    /// A pipe, a device or a socket
    Special,
    /// Nothing that is there or can be looked at
    Missing,
    /// Something outside
    Outside,
}

/// A folder, as the whole world of the files in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at `path`. Nothing is opened yet.
    pub fn new(path: &Path) -> Self {
        Folder { path: path.to_path_buf() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the regular file that `name` leads to. `..` and links are followed as long as they stay inside; an absolute path
    /// has to begin with that of the folder.
    ///
    /// # Errors
    /// When there is no such file inside, or it is not a regular one.
    pub fn open(&self, name: &Path) -> Result<File, FileError> {
        let file = self.open_any(name)?;
        crate::check(&file.metadata()?)?;
        Ok(file)
    }

    /// The bytes of a file, as [`Folder::open`] opens it.
    ///
    /// # Errors
    /// As with [`Folder::open`], and when it has more than `limit` bytes.
    pub fn read(&self, name: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
        bytes_of(self.open(name)?, limit)
    }

    /// The text of a file, as [`Folder::open`] opens it.
    ///
    /// # Errors
    /// As with [`Folder::read`], and when it is not UTF-8.
    pub fn read_text(&self, name: &Path, limit: u64) -> Result<String, FileError> {
        text_of(self.read(name, limit)?)
    }

    /// What `name` leads to.
    pub fn entry(&self, name: &Path) -> Entry {
        let opened = self.open_any(name).and_then(|file| file.metadata().map_err(FileError::System));
        match opened {
            Ok(metadata) if metadata.is_file() => Entry::File,
            Ok(metadata) if metadata.is_dir() => Entry::Folder,
            Ok(_) => Entry::Special,
            Err(FileError::Outside) => Entry::Outside,
            Err(_) => Entry::Missing,
        }
    }

    /// Where `name` really is, links followed: below the folder's own real path. For what takes paths alone; whatever can
    /// take an open file is given one.
    ///
    /// # Errors
    /// When there is nothing of that name inside.
    pub fn real_path(&self, name: &Path) -> Result<PathBuf, FileError> {
        drop(self.open_any(name)?);
        let real = |path: &Path| path.canonicalize().map_err(error_of);
        let (folder, found) = (real(&self.path)?, real(&self.path.join(name))?);
        if found.starts_with(folder) { Ok(found) } else { Err(FileError::Outside) }
    }

    fn open_any(&self, name: &Path) -> Result<File, FileError> {
        let name = match name.strip_prefix(&self.path) {
            Ok(below) if name.is_absolute() => below,
            _ => name,
        };
        if leaves(name) {
            return Err(FileError::Outside);
        }
        let name = if name.as_os_str().is_empty() { Path::new(".") } else { name };
        let folder = open_ambient_dir(&self.path, ambient_authority()).map_err(error_of)?;
        open(&folder, name, &reading()).map_err(|error| match self.path.join(name).canonicalize() {
            // The refusal of a path that leaves the folder is told from a missing permission by where the path leads.
            Ok(found) if self.path.canonicalize().is_ok_and(|folder| !found.starts_with(folder)) => FileError::Outside,
            _ => error_of(error),
        })
    }
}

/// Whether a path leaves its folder as it is written.
fn leaves(path: &Path) -> bool {
    let mut depth = 0_i64;
    for part in path.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return true,
        }
        if depth < 0 {
            return true;
        }
    }
    false
}

fn reading() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    cap_primitives::fs::OpenOptionsExt::custom_flags(&mut options, not_waiting());
    options
}

/// Opening a pipe does not wait for whoever writes into it.
#[cfg(unix)]
fn not_waiting() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits().cast_signed()
}

fn error_of(error: io::Error) -> FileError {
    error.into()
}

impl From<io::Error> for FileError {
    /// An error of this crate's functions for any path, as one about a file of a folder.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => FileError::Missing,
            _ => FileError::System(error),
        }
    }
}

fn bytes_of(file: File, limit: u64) -> Result<Vec<u8>, FileError> {
    Ok(crate::bytes_of(file, limit)?)
}

fn text_of(bytes: Vec<u8>) -> Result<String, FileError> {
    Ok(crate::text_of(bytes)?)
}

#[cfg(test)]
mod tests;
