//! What the system tells of files (inotify): that something was changed, and who is not done with writing.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Error;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::folders::{Folders, Noticed};
use super::outcome::Outcome;
use super::written::Written;

/// How names end of files that are written all the time and that no agent is loaded from.
const IGNORED: [&str; 7] = [".db", "-wal", "-shm", "-journal", ".jsonl", ".log", "~"];
/// Bytes of what was told that are read together.
const TOGETHER: usize = 16 << 10;
/// How often so much is read for somebody who waits for it; whoever changes files all the time keeps nobody waiting for longer.
const MOST_OFTEN: usize = 64;

/// What the system tells of files.
pub(super) struct Watcher {
    seen: Arc<Seen>,
    listening: JoinHandle<()>,
}

/// What was told.
struct Seen {
    told: Arc<OwnedFd>,
    watched: Mutex<Watched>,
    /// How much was told
    count: AtomicU64,
    written: Arc<Written>,
    changed: Notify,
    /// Held while it is heard what was told, which is in order
    hearing: Mutex<()>,
}

/// The folders that are watched.
#[derive(Default)]
struct Watched {
    folders: HashMap<PathBuf, Folder>,
    by_watch: HashMap<i32, PathBuf>,
    /// Whether it was said that one cannot be watched
    has_complained: bool,
}

/// A folder that is watched.
struct Folder {
    watch: i32,
    /// Its number in its file system: one that was removed and made again is another one
    number: u64,
    /// Whether others may change what is in it without that this system knows
    is_shared: bool,
    noticed: Noticed,
}

impl Watcher {
    /// One that watches nothing yet, and notes in `written` who writes files. It has to be made within a tokio runtime.
    ///
    /// # Errors
    /// When the system does not tell of files, or tells too many of them already.
    pub(super) fn new(written: Arc<Written>) -> Result<Self, Error> {
        let told = Arc::new(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?);
        // SAFETY: it stays open, and means the same, as long as somebody has a reference to it, and this keeps one.
        let ready = unsafe { AsyncFd::register_with_interest(told.clone(), Interest::READABLE) }?;
        let (watched, count, changed) = (Mutex::default(), AtomicU64::new(0), Notify::new());
        let seen = Arc::new(Seen { told, watched, count, written, changed, hearing: Mutex::default() });
        let behind = Arc::downgrade(&seen);
        seen.written.heard_by(Box::new(move || {
            if let Some(seen) = behind.upgrade() {
                seen.catch_up();
            }
        }));
        let hears = seen.clone();
        let listening = tokio::spawn(async move {
            loop {
                let Ok(mut guard) = ready.readable().await else { return };
                if hears.read() {
                    guard.clear_ready();
                }
            }
        });
        Ok(Watcher { seen, listening })
    }

    /// Watches these folders from now on, and no others.
    pub(super) async fn watch(&self, folders: Folders) -> Outcome {
        let seen = self.seen.clone();
        let watching = tokio::task::spawn_blocking(move || seen.watched().watch(&seen.told, &folders)).await;
        watching.unwrap_or_default()
    }

    /// Ends when something was told since this was called last.
    pub(super) async fn changed(&self) {
        self.seen.changed.notified().await;
    }

    /// How much was told so far.
    pub(super) fn seen(&self) -> u64 {
        self.seen.count.load(Ordering::Relaxed)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Seen {
    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all that was told so far, for somebody who has to know it now.
    fn catch_up(&self) {
        for _ in 0..MOST_OFTEN {
            if self.read() {
                return;
            }
        }
    }

    /// Takes what was told so far. False if there may be more: others have their turn.
    fn read(&self) -> bool {
        let _hearing = self.hearing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = [MaybeUninit::uninit(); TOGETHER];
        let mut reader = Reader::new(&*self.told, &mut buffer);
        loop {
            let counts = match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                    self.counts(event.wd(), event.events(), name)
                }
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => false,
                // Whatever was lost, looking finds it.
                Err(error) => {
                    tracing::debug!(target: "hotcell::files", %error, "what the system tells of files cannot be read");
                    return true;
                }
            };
            if counts {
                self.count.fetch_add(1, Ordering::Relaxed);
                self.changed.notify_one();
            }
            if reader.is_buffer_empty() {
                return false;
            }
        }
    }

    /// Whether what was told may concern what agents are loaded from.
    fn counts(&self, watch: i32, what: ReadFlags, name: Option<&OsStr>) -> bool {
        let mut watched = self.watched();
        if what.contains(ReadFlags::IGNORED) {
            // The folder is not there any more.
            if let Some(folder) = watched.by_watch.remove(&watch) {
                watched.folders.remove(&folder);
            }
            return true;
        }
        let (Some(folder), Some(name)) = (watched.by_watch.get(&watch), name) else {
            // More was told than could be kept, or it concerns a folder itself.
            return true;
        };
        if is_ignored(name) {
            return false;
        }
        let path = folder.join(name);
        if what.contains(ReadFlags::MODIFY) {
            self.written.written(&path);
        } else if what
            .intersects(ReadFlags::CLOSE_WRITE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO)
        {
            self.written.closed(&path);
        }
        true
    }
}

fn is_ignored(name: &OsStr) -> bool {
    IGNORED.iter().any(|ignored| name.as_bytes().ends_with(ignored.as_bytes()))
}

impl Watched {
    fn watch(&mut self, told: &OwnedFd, folders: &Folders) -> Outcome {
        let gone: Vec<PathBuf> = self
            .folders
            .iter()
            .filter(|(folder, known)| !folders.contains_key(*folder) || number(folder) != Some(known.number))
            .map(|(folder, _)| folder.clone())
            .collect();
        for folder in gone {
            if let Some(Folder { watch, .. }) = self.folders.remove(&folder) {
                self.by_watch.remove(&watch);
                // The system forgets by itself what was removed.
                let _ = inotify::remove_watch(told, watch);
            }
        }
        let mut outcome = Outcome { is_told: true, ..Outcome::default() };
        for (folder, noticed) in folders {
            if let Some(known) = self.folders.get(folder).filter(|known| known.noticed == *noticed) {
                outcome.is_told &= !known.is_shared;
                continue;
            }
            let Some(number) = number(folder) else { continue };
            let writing = match noticed {
                Noticed::Names => WatchFlags::empty(),
                Noticed::Writing => WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE,
            };
            // A folder that is watched already is watched like this from now on.
            let wanted = writing
                | WatchFlags::ATTRIB
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::MOVE
                | WatchFlags::ONLYDIR;
            match inotify::add_watch(told, folder.as_path(), wanted) {
                Ok(watch) => {
                    let is_shared = is_shared(folder);
                    outcome.is_told &= !is_shared;
                    outcome.is_more = true;
                    let known = Folder { watch, number, is_shared, noticed: *noticed };
                    self.folders.insert(folder.clone(), known);
                    self.by_watch.insert(watch, folder.clone());
                }
                // It was removed a moment ago.
                Err(_) if !folder.exists() => {}
                Err(error) => {
                    outcome.is_told = false;
                    if !std::mem::replace(&mut self.has_complained, true) {
                        outcome.refused = Some((folder.clone(), error.into()));
                    }
                }
            }
        }
        outcome
    }
}

/// Whether a folder is on a file system that other machines write to as well: what they do is told to nobody here.
fn is_shared(folder: &Path) -> bool {
    // NFS, SMB (three versions), Ceph, AFS, Coda, 9P, and what programs or virtual machines hand in (FUSE).
    let shared =
        [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x00c3_6400, 0x5346_414f, 0x7375_7245, 0x0102_1997, 0x6573_5546];
    rustix::fs::statfs(folder).is_ok_and(|found| shared.contains(&found.f_type))
}

/// The number of a folder in its file system; none if it is not there.
fn number(folder: &Path) -> Option<u64> {
    let metadata = std::fs::metadata(folder).ok().filter(std::fs::Metadata::is_dir)?;
    Some(std::os::unix::fs::MetadataExt::ino(&metadata))
}
