//! One builder at a time.
//!
//! The lock is the operating system's, on a file of its own, so that it ends with the process that has it, however that
//! ends. It is taken away only after the knowledge base is in its place: whoever then holds a lock on the file that is
//! no longer there sees the knowledge base and has nothing to do.

use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::{io, thread};

use tokio::sync::oneshot;

/// Bytes of the stack of a thread that waits.
const STACK: usize = 128 * 1024;

/// The right to build one knowledge base.
pub(crate) struct BuildLock {
    path: PathBuf,
    _file: File,
}

impl BuildLock {
    /// Waits until nobody else builds. Dropping the future ends the waiting.
    pub(crate) async fn wait(path: PathBuf) -> io::Result<Self> {
        let file = hotcell_files::open_own(&path)?;
        let file = match file.try_lock() {
            Ok(()) => file,
            Err(TryLockError::WouldBlock) => {
                tracing::info!(lock = %path.display(), "another process builds this knowledge base; waiting for it");
                locked(file).await?
            }
            Err(TryLockError::Error(error)) => return Err(error),
        };
        Ok(Self { path, _file: file })
    }

    /// Takes the lock file away. Only for when the knowledge base is in its place.
    pub(crate) fn finish(self) {
        // A lock file that stays behind hinders nobody.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The file, once its lock is ours. The thread that waits is none of the runtime's: a program that ends would wait for that.
async fn locked(file: File) -> io::Result<File> {
    let (tell, told) = oneshot::channel();
    let wait = move || {
        let taken = loop {
            match file.lock() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                taken => break taken,
            }
        };
        // If nobody waits for it any more, the file is closed, and its lock is free.
        let _ = tell.send(taken.map(|()| file));
    };
    thread::Builder::new().name("knowledge-lock".to_owned()).stack_size(STACK).spawn(wait)?;
    told.await.unwrap_or_else(|_| Err(io::Error::other("the thread that waited for it has ended")))
}
