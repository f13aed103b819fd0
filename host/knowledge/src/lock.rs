//! One builder at a time.
//!
//! The lock is the operating system's, on a file of its own, so that it ends with the process that has it, however that
//! ends. It is taken away only after the knowledge base is in its place: whoever then holds a lock on the file that is
//! no longer there sees the knowledge base and has nothing to do.

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// How often another builder is looked after, in milliseconds.
const INTERVAL: Duration = Duration::from_millis(100);

/// The right to build one knowledge base.
pub(crate) struct BuildLock {
    path: PathBuf,
    _file: File,
}

impl BuildLock {
    /// Waits until nobody else builds. Dropping the future ends the waiting.
    pub(crate) async fn wait(path: PathBuf) -> io::Result<Self> {
        let mut told = false;
        loop {
            if let Some(file) = try_lock(&path)? {
                return Ok(Self { path, _file: file });
            }
            if !told {
                tracing::info!(lock = %path.display(), "another process builds this knowledge base; waiting for it");
                told = true;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Takes the lock file away. Only for when the knowledge base is in its place.
    pub(crate) fn finish(self) {
        // A lock file that stays behind hinders nobody.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = hotcell_files::open_own(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
