//! Writing the log of the file back to it, beside what is committed.
//!
//! A commit is written to the log, and what is in the log has to be written back to the file before the log can be begun anew. That waits
//! for the disk, and SQLite would do it within a commit, for which every run waits then. So a thread does it, on a connection of its own:
//!
//! 1. Pages are written back, and the disk is made to take them, while others commit. What was committed meanwhile is written back next,
//!    which is less each time.
//! 2. The little that is left is written back while nobody commits. So the next commit begins the log anew: SQLite does that only where
//!    nothing is left, which never happens by itself where many commit.
//!
//! Nothing depends on the thread. It is started when the log is long for the first time, so whoever reads the journal or writes little
//! has none. Where it cannot work, or the disk is slower than what is committed, whoever commits writes the log back, as SQLite would.
//! Each process that commits has such a thread; SQLite lets one of them work at a time, and the others leave the log to it.

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode, ffi};

use super::locked;
use super::opening::{CHECKPOINT, Extent, connect};

/// How many times as long as that the log may be before whoever commits waits until it is written back.
const MOST: u32 = 4;
/// How often pages are written back beside commits before the rest is written back while nobody commits. On a disk that is slower than
/// what is committed, there would always be more.
const PASSES: usize = 5;
/// How many pages are few enough to be written back while nobody commits.
const FEW: i64 = 100;
/// How long others are waited for while nobody commits: those who read what was there before, and other processes that commit.
const PATIENCE: Duration = Duration::from_millis(5);
/// How often it is tried to give the space of the log back, and how long others may read in between.
const TRIES: usize = 40;
const BETWEEN: Duration = Duration::from_millis(50);

/// What becomes of the log when all of it is written back.
#[derive(Clone, Copy)]
enum Then {
    /// The next commit begins it anew, in the same space
    BegunAnew,
    /// Its space is given back
    Emptied,
}

/// Sees to it that the log of a file stays short. The thread has ended when this is dropped.
pub(super) struct Checkpoints(Arc<Log>);

struct Log {
    path: PathBuf,
    /// The connection of all who commit
    writer: Weak<Mutex<Connection>>,
    /// The connection for writing back, opened for the first time it is needed. Held by whoever does that
    beside: Mutex<Option<Connection>>,
    /// Held as long as pages are written back beside commits
    pass: Mutex<()>,
    /// From how many pages on it is written back
    from: AtomicU32,
    /// How many pages it has when the thread is woken again
    next: AtomicU32,
    /// Whether it could not be written back, which has been told
    is_failing: AtomicBool,
    work: Mutex<Work>,
    changed: Condvar,
}

#[derive(Default)]
struct Work {
    is_wanted: bool,
    is_closed: bool,
    thread: Option<JoinHandle<()>>,
}

impl Checkpoints {
    /// Has the log of the file at `path` written back when it is long after a commit of this connection.
    pub(super) fn new(path: &Path, writer: &Arc<Mutex<Connection>>) -> rusqlite::Result<Self> {
        let log = Arc::new(Log {
            path: path.to_owned(),
            writer: Arc::downgrade(writer),
            beside: Mutex::default(),
            pass: Mutex::default(),
            from: AtomicU32::new(CHECKPOINT),
            next: AtomicU32::new(0),
            is_failing: AtomicBool::new(false),
            work: Mutex::default(),
            changed: Condvar::new(),
        });
        let watched = log.clone();
        let committed = move |wal: &mut Wal, pages: c_int| -> rusqlite::Result<()> {
            watched.committed(wal, u32::try_from(pages).unwrap_or(0));
            // An error would be taken for one of the commit, which is done.
            Ok(())
        };
        // It takes the place of what SQLite does by itself.
        locked(writer).wal_hook(Some(committed))?;
        Ok(Checkpoints(log))
    }

    /// Sets from how many pages on the log is written back.
    pub(super) fn set_from(&self, pages: u32) {
        self.0.from.store(pages, Ordering::Relaxed);
    }

    /// Writes the log back and gives its space back, unless others go on reading what was there before: then that is left to whoever
    /// writes it back next.
    pub(super) fn empty(&self) -> rusqlite::Result<()> {
        for _ in 0..TRIES {
            if self.0.write_back(Then::Emptied)? {
                break;
            }
            thread::sleep(BETWEEN);
        }
        Ok(())
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        let thread = {
            let mut work = locked(&self.0.work);
            work.is_closed = true;
            work.thread.take()
        };
        self.0.changed.notify_all();
        if let Some(thread) = thread {
            // One that broke off has said so.
            let _ = thread.join();
        }
        // The last connection that is closed takes the log away, which the store waits for.
        drop(locked(&self.0.beside).take());
    }
}

impl Log {
    /// Looks at how long the log is after a commit.
    fn committed(self: &Arc<Self>, wal: &mut Wal, pages: u32) {
        let from = self.from.load(Ordering::Relaxed);
        if pages < from {
            // It was begun anew.
            self.next.store(0, Ordering::Relaxed);
            return;
        }
        if pages >= self.next.load(Ordering::Relaxed) {
            // Where it cannot be written back, each commit would try it.
            self.next.store(pages.saturating_add(pages / 4), Ordering::Relaxed);
            self.wake();
        }
        if pages >= from.saturating_mul(MOST) {
            let _pass = locked(&self.pass);
            if let Err(error) = wal.checkpoint() {
                self.tell(&error);
            }
        }
    }

    fn wake(self: &Arc<Self>) {
        let mut work = locked(&self.work);
        if work.is_closed {
            return;
        }
        work.is_wanted = true;
        // One that broke off is followed by another.
        if work.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            let log = self.clone();
            // Where no thread can be started, the log grows until whoever commits writes it back.
            work.thread = thread::Builder::new().name("journal-log".to_owned()).spawn(move || log.serve()).ok();
        }
        self.changed.notify_one();
    }

    fn serve(&self) {
        while self.wait() {
            match self.write_back(Then::BegunAnew) {
                Ok(is_done) => {
                    self.is_failing.store(false, Ordering::Relaxed);
                    // What was wanted meanwhile is done, too.
                    locked(&self.work).is_wanted &= !is_done;
                }
                Err(error) => self.tell(&error),
            }
        }
    }

    /// Waits until the log is to be written back; `false` if it never is again.
    fn wait(&self) -> bool {
        let mut work = locked(&self.work);
        loop {
            if work.is_closed {
                return false;
            }
            if std::mem::take(&mut work.is_wanted) {
                return true;
            }
            work = self.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Writes the log back. `false` if something is left of it, because others read what was there before, or do the same.
    fn write_back(&self, then: Then) -> rusqlite::Result<bool> {
        let mut beside = locked(&self.beside);
        let connection = match beside.take() {
            Some(connection) => connection,
            None => {
                let connection = connect(&self.path, Extent::Whole)?;
                connection.busy_timeout(PATIENCE)?;
                connection
            }
        };
        let is_done = self.write_back_with(&connection, then)?;
        *beside = Some(connection);
        Ok(is_done)
    }

    fn write_back_with(&self, connection: &Connection, then: Then) -> rusqlite::Result<bool> {
        let mut before = 0;
        for _ in 0..PASSES {
            let _pass = locked(&self.pass);
            let written = checkpoint(connection, "PASSIVE")?.written;
            // SQLite has the disk take them when nothing is left, which is when nobody commits.
            sync(connection)?;
            if written - before <= FEW {
                break;
            }
            before = written;
        }
        let Some(writer) = self.writer.upgrade() else { return Ok(false) };
        let mode = match then {
            Then::BegunAnew => "RESTART",
            Then::Emptied => "TRUNCATE",
        };
        let _nobody_commits = locked(&writer);
        Ok(!checkpoint(connection, mode)?.is_busy)
    }

    /// Says once that the log cannot be written back. Nothing is lost by that.
    fn tell(&self, error: &rusqlite::Error) {
        let others_use_it =
            matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked));
        if !others_use_it && !self.is_failing.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                journal = %self.path.display(),
                %error,
                "the log of the journal (`-wal`) cannot be written back to it, and grows; what is committed is safe in it"
            );
        }
    }
}

/// How far the log was written back.
struct Checkpoint {
    /// Whether something kept it from what was asked for
    is_busy: bool,
    /// How many of its pages are in the file
    written: i64,
}

fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<Checkpoint> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        Ok(Checkpoint { is_busy: row.get(0)?, written: row.get(2)? })
    })
}

/// Has the disk take what was written to the file.
fn sync(connection: &Connection) -> rusqlite::Result<()> {
    // The file is not opened a second time: closing that would take away the locks that this process has on it.
    let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
    // SAFETY: the connection is open, and this asks for what `file` is: the file that the connection has opened.
    let found = unsafe {
        let to = (&raw mut file).cast();
        ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_FILE_POINTER, to)
    };
    let code = match found {
        // SAFETY: the file and its methods stay as they are until the connection is closed, which is borrowed here; and as a connection
        // is not shared by threads, nobody else uses them.
        ffi::SQLITE_OK => unsafe {
            let methods = file.as_ref().and_then(|file| file.pMethods.as_ref());
            methods.and_then(|methods| methods.xSync).map_or(ffi::SQLITE_OK, |sync| sync(file, ffi::SQLITE_SYNC_NORMAL))
        },
        refused => refused,
    };
    match code {
        ffi::SQLITE_OK => Ok(()),
        code => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::Ordering;
    use std::sync::{Arc, Mutex};
    use std::thread;
    use std::time::{Duration, Instant};

    use rusqlite::Connection;

    use super::super::{SqliteStore, locked, opening};
    use super::{Checkpoints, MOST};

    /// From how many pages on the log is written back here: more than a new journal has in it.
    const FROM: u32 = 200;
    /// Bytes of a page in the log.
    const PAGE: u64 = 4096 + 24;

    /// Commits so many rows, each by itself.
    fn commit(connection: &Mutex<Connection>, rows: std::ops::Range<u32>) {
        for row in rows {
            let done = locked(connection).execute("INSERT INTO waits (run, owner) VALUES (?1, 'somebody')", [row]);
            assert_eq!(done, Ok(1), "row {row}");
        }
    }

    /// How many pages the log has, and how many of them are in the file.
    fn pages(connection: &Mutex<Connection>) -> (u32, u32) {
        let asked = "PRAGMA wal_checkpoint(NOOP)";
        locked(connection).query_row(asked, [], |row| Ok((row.get(1)?, row.get(2)?))).expect("read")
    }

    /// Waits until it is so.
    fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The bytes that the log has had.
    fn size(journal: &Path) -> u64 {
        std::fs::metadata(journal.with_file_name("runs.db-wal")).expect("a log").len()
    }

    #[test]
    fn the_log_is_written_back_beside_commits_and_begun_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let (connection, checkpoints) = (&store.shared.connection, &store.shared.checkpoints);
        checkpoints.set_from(FROM);
        commit(connection, 0..1);
        assert!(pages(connection).0 < FROM && locked(&checkpoints.0.work).thread.is_none(), "it has no thread yet");
        let mut rows = 1;
        while pages(connection).0 < FROM {
            commit(connection, rows..rows + 1);
            rows += 1;
        }
        assert!(locked(&checkpoints.0.work).thread.is_some());
        soon("all is written back", || {
            let (log, written) = pages(connection);
            log == written
        });
        // Whoever commits at the very moment in which the last page is written back adds to it once more.
        soon("the log is begun anew", || {
            let (log, written) = pages(connection);
            if log == written {
                commit(connection, rows..rows + 1);
                rows += 1;
            }
            assert!(log < FROM * MOST, "whoever commits need not see to it");
            pages(connection).0 < FROM
        });
    }

    #[test]
    fn the_log_stays_short_however_much_is_committed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("runs.db");
        let store = SqliteStore::open(&file).expect("opened");
        store.checkpoint_from(FROM);
        commit(&store.shared.connection, 0..20 * FROM);
        assert!(size(&file) <= u64::from(FROM * (MOST + 1)) * PAGE, "{}", size(&file));
    }

    #[test]
    fn where_the_thread_cannot_write_it_back_commits_succeed_and_the_log_stays_short() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("runs.db");
        let (connection, _) = opening::open(&file).expect("opened");
        let connection = Arc::new(Mutex::new(connection));
        let elsewhere = folder.path().join("nowhere").join("runs.db");
        let checkpoints = Checkpoints::new(&elsewhere, &connection).expect("watched");
        checkpoints.set_from(FROM);
        commit(&connection, 0..20 * FROM);
        assert!(size(&file) <= u64::from(FROM * (MOST + 1)) * PAGE, "{}", size(&file));
        soon("it is told that it fails", || checkpoints.0.is_failing.load(Ordering::Relaxed));
        drop(checkpoints);
        commit(&connection, 20 * FROM..21 * FROM);
    }

    #[test]
    fn the_thread_ends_with_the_store_and_nothing_of_the_log_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("runs.db");
        let store = SqliteStore::open(&file).expect("opened");
        store.checkpoint_from(1);
        commit(&store.shared.connection, 0..10);
        assert!(locked(&store.shared.checkpoints.0.work).thread.is_some());
        let log = Arc::downgrade(&store.shared.checkpoints.0);
        drop(store);
        assert!(log.upgrade().is_none(), "nobody has it any more, nor the connection in it");
        assert!(!file.with_file_name("runs.db-wal").exists());
        let again = SqliteStore::open(&file).expect("opened");
        let rows = again
            .shared
            .read(|connection| connection.query_row("SELECT count(*) FROM waits", [], |row| row.get::<_, i64>(0)));
        assert_eq!(rows.expect("read"), 10);
    }
}
