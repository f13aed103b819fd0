//! What is done to the file elsewhere, for whoever follows a run that another process works on.
//!
//! A commit rings nobody in other processes: that would cost every node a write. Whoever follows a run is told by the system that the
//! file was written to. That is only a reason to look, and looking decides. Where the system does not tell, it is looked once a second.

use std::collections::HashSet;
use std::io::PipeWriter;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::ErrorCode;
use tokio::sync::Notify;

use super::opening::Extent;
use super::owner::when_gone;
use super::reading::aside;
use super::{Shared, query};
use crate::ids::RunId;
use crate::projection::RunStatus;
use crate::store::JournalError;

/// How often it is looked where the system does not tell that the file was written to.
const UNTOLD: Duration = Duration::from_secs(1);

/// Who waits for what is done to the file elsewhere.
#[derive(Default)]
pub(super) struct Elsewhere {
    /// Rung when something may have been done
    bell: Notify,
    /// Set when the first one waits; the thread that listens ends with what is in it. Nothing is in it where the system does not tell
    listening: OnceLock<Option<PipeWriter>>,
    /// Set when it is looked once a second
    looking: OnceLock<()>,
    /// Processes whose end is waited for, by the names of their pipes
    owners: Mutex<HashSet<String>>,
}

/// Whether a commit that was under way has been waited for.
enum Settled {
    Yes,
    /// It takes long
    NotYet,
    /// It cannot be waited for: the file may only be read
    Unknown,
}

impl Elsewhere {
    fn owners(&self) -> MutexGuard<'_, HashSet<String>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Waits until a run has an entry after this one, or is not worked on, whichever process sees to that.
    pub(super) async fn until_moved_on(self: &Arc<Self>, run: &RunId, after: u64) -> Result<(), JournalError> {
        self.listen();
        loop {
            // From here on, nothing that is told is missed.
            let rung = self.elsewhere.bell.notified();
            if self.has_moved_on(run, after)? {
                return Ok(());
            }
            // The system tells of a commit when its pages are written; it can be read a moment later, of which nobody is told.
            let settled = aside(self, Shared::settle).await?;
            if self.has_moved_on(run, after)? {
                return Ok(());
            }
            match settled {
                Settled::Yes => rung.await,
                Settled::NotYet => {}
                Settled::Unknown => {
                    self.look_on();
                    rung.await;
                }
            }
        }
    }

    fn has_moved_on(self: &Arc<Self>, run: &RunId, after: u64) -> Result<bool, JournalError> {
        let (_, status, owner) = self.read(|connection| Ok(self.number(connection, run)))??;
        let last = self.read(|connection| query::last_entry(connection, run))?;
        match owner {
            Some(owner) if status == RunStatus::Running && last.is_none_or(|last| last <= after) => {
                self.tell_end_of(owner);
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    /// Waits for a commit that is under way: whoever commits has the lock until it can be read.
    fn settle(&self) -> Result<Settled, JournalError> {
        // Nobody writes to a damaged file.
        if self.extent == Extent::Rest {
            return Ok(Settled::Yes);
        }
        self.read(|connection| match connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK") {
            Ok(()) => Ok(Settled::Yes),
            Err(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Ok(Settled::NotYet),
                Some(ErrorCode::ReadOnly) => Ok(Settled::Unknown),
                _ => Err(error),
            },
        })
    }

    /// Has whoever waits look when a process is gone.
    fn tell_end_of(self: &Arc<Self>, owner: String) {
        if !self.elsewhere.owners().insert(owner.clone()) {
            return;
        }
        let (told, gone) = (Arc::downgrade(self), owner.clone());
        when_gone(&self.path, &owner, move || {
            if let Some(shared) = told.upgrade() {
                shared.elsewhere.owners().remove(&gone);
                shared.elsewhere.bell.notify_waiters();
            }
        });
    }

    /// Has whoever waits look when the file is written to.
    fn listen(self: &Arc<Self>) {
        self.elsewhere.listening.get_or_init(|| match told::listen(self) {
            Ok(listening) => Some(listening),
            Err(error) => {
                tracing::debug!(%error, "the system does not report changes to the journal; it is read once a second instead");
                self.look_on();
                None
            }
        });
    }

    /// Has whoever waits look once a second.
    fn look_on(self: &Arc<Self>) {
        self.elsewhere.looking.get_or_init(|| {
            let told = Arc::downgrade(self);
            let look = move || {
                while let Some(shared) = told.upgrade() {
                    shared.elsewhere.bell.notify_waiters();
                    drop(shared);
                    std::thread::sleep(UNTOLD);
                }
            };
            let thread = std::thread::Builder::new().name("journal-look".to_owned()).stack_size(128 * 1024);
            if let Err(error) = thread.spawn(look) {
                tracing::warn!(%error, "no thread can be started to look at the journal");
            }
        });
    }
}

/// What the system tells of files (inotify).
#[cfg(target_os = "linux")]
mod told {
    use std::io::PipeWriter;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Path;
    use std::sync::Arc;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;

    use super::super::Shared;

    /// How the names of the files end that commits are written to: the file itself, its log, and what takes the place of the log where
    /// the file system cannot have one.
    const WRITTEN: [&str; 3] = ["", "-wal", "-journal"];
    /// Bytes of what was told that are read together.
    const TOGETHER: usize = 4096;

    /// Starts a thread that has whoever waits look when the file is written to. It ends when what is returned is dropped.
    pub(super) fn listen(shared: &Arc<Shared>) -> std::io::Result<PipeWriter> {
        let told = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        // Files come and go, for instance when the log is made anew: the folder stays.
        let folder = shared.path.parent().unwrap_or_else(|| Path::new("/"));
        let wanted =
            WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE | WatchFlags::ONLYDIR;
        inotify::add_watch(&told, folder, wanted)?;
        let name = shared.path.file_name().unwrap_or_default().as_bytes();
        let names = WRITTEN.map(|end| [name, end.as_bytes()].concat());
        let (ended, listening) = std::io::pipe()?;
        let waiting = Arc::downgrade(shared);
        let listen = move || {
            loop {
                let mut ready = [PollFd::new(&told, PollFlags::IN), PollFd::new(&ended, PollFlags::IN)];
                let polled = poll(&mut ready, None);
                let [_, ended] = &ready;
                if polled.is_ok() && !ended.revents().is_empty() {
                    return;
                }
                let (is_written, is_told) = match polled {
                    Ok(_) => read(&told, &names),
                    Err(Errno::INTR) => continue,
                    Err(_) => (true, false),
                };
                let Some(shared) = waiting.upgrade() else { return };
                if !is_told {
                    shared.look_on();
                    return;
                }
                if is_written {
                    shared.elsewhere.bell.notify_waiters();
                }
            }
        };
        std::thread::Builder::new().name("journal-told".to_owned()).stack_size(128 * 1024).spawn(listen)?;
        Ok(listening)
    }

    /// Takes what was told: whether one of these files may have been written to, and whether more will be told.
    fn read(told: &OwnedFd, names: &[Vec<u8>]) -> (bool, bool) {
        let mut buffer = [MaybeUninit::uninit(); TOGETHER];
        let mut reader = Reader::new(told, &mut buffer);
        let mut is_written = false;
        loop {
            match reader.next() {
                Ok(event) if event.events().contains(ReadFlags::IGNORED) => return (true, false),
                Ok(event) => {
                    // Without a name, more was told than could be kept, or it concerns the folder itself.
                    let is_ours = |name: &std::ffi::CStr| names.iter().any(|ours| ours == name.to_bytes());
                    is_written |= event.file_name().is_none_or(is_ours);
                }
                Err(Errno::AGAIN) => return (is_written, true),
                Err(Errno::INTR) => {}
                Err(_) => return (true, false),
            }
            if reader.is_buffer_empty() {
                return (is_written, true);
            }
        }
    }
}

/// A system that tells nothing of files.
#[cfg(not(target_os = "linux"))]
mod told {
    use std::io::{ErrorKind, PipeWriter};
    use std::sync::Arc;

    use super::super::Shared;

    pub(super) fn listen(_: &Arc<Shared>) -> std::io::Result<PipeWriter> {
        Err(ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::SqliteStore;

    #[tokio::test]
    async fn where_the_system_tells_nothing_it_is_looked_all_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        store.shared.look_on();
        for _ in 0..2 {
            let rung = store.shared.elsewhere.bell.notified();
            tokio::time::timeout(Duration::from_secs(60), rung).await.expect("it does not hang");
        }
    }
}
