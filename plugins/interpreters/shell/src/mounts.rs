//! The directories that WASI preopens, as file systems of the shell.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bashkit::{Bash, DirEntry, FileType, FsBackend, Metadata, PosixFs, Result, async_trait};
use wasip2::filesystem::preopens::get_directories;

/// Mounts every preopened directory under its own path.
pub(crate) fn attach(shell: &Bash) -> Result<()> {
    for (_, guest_path) in get_directories() {
        // The host's root holds nothing; the shell's own holds what the script makes.
        if guest_path == "/" {
            continue;
        }
        let root = PathBuf::from(&guest_path);
        shell.mount(&root.clone(), Arc::new(PosixFs::new(Directory { root })))?;
    }
    Ok(())
}

/// A preopened directory. What may be done in it, the host decides with every operation.
struct Directory {
    /// Its path inside the cell.
    root: PathBuf,
}

impl Directory {
    fn resolve(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

fn metadata_of(found: &fs::Metadata) -> Metadata {
    let kind = found.file_type();
    let file_type = if kind.is_dir() {
        FileType::Directory
    } else if kind.is_symlink() {
        FileType::Symlink
    } else {
        FileType::File
    };
    let modified = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Metadata {
        file_type,
        size: found.len(),
        mode: if kind.is_dir() { 0o755 } else { 0o644 },
        modified,
        created: found.created().unwrap_or(modified),
    }
}

#[async_trait]
impl FsBackend for Directory {
    async fn read(&self, path: &Path) -> Result<Vec<u8>> {
        Ok(fs::read(self.resolve(path))?)
    }

    async fn write(&self, path: &Path, content: &[u8]) -> Result<()> {
        Ok(fs::write(self.resolve(path), content)?)
    }

    async fn append(&self, path: &Path, content: &[u8]) -> Result<()> {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(self.resolve(path))?;
        Ok(file.write_all(content)?)
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        let path = self.resolve(path);
        Ok(if recursive { fs::create_dir_all(path) } else { fs::create_dir(path) }?)
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        let path = self.resolve(path);
        let is_directory = fs::symlink_metadata(&path)?.is_dir();
        Ok(match (is_directory, recursive) {
            (true, true) => fs::remove_dir_all(path),
            (true, false) => fs::remove_dir(path),
            (false, _) => fs::remove_file(path),
        }?)
    }

    async fn stat(&self, path: &Path) -> Result<Metadata> {
        Ok(metadata_of(&fs::symlink_metadata(self.resolve(path))?))
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.resolve(path))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            entries.push(DirEntry { name, metadata: metadata_of(&entry.metadata()?) });
        }
        Ok(entries)
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        Ok(fs::symlink_metadata(self.resolve(path)).is_ok())
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        Ok(fs::rename(self.resolve(from), self.resolve(to))?)
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let content = fs::read(self.resolve(from))?;
        Ok(fs::write(self.resolve(to), content)?)
    }

    async fn symlink(&self, _target: &Path, _link: &Path) -> Result<()> {
        Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into())
    }

    async fn read_link(&self, path: &Path) -> Result<PathBuf> {
        Ok(fs::read_link(self.resolve(path))?)
    }

    async fn chmod(&self, _path: &Path, _mode: u32) -> Result<()> {
        Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into())
    }
}
