//! The processes that work on the runs of a file.
//!
//! Each has a named pipe beside the file, which only it reads. Whoever can open it for writing knows that the process lives
//! (the kernel closes the reading end with the process), and wakes it by writing to it. So nothing has to be looked at again
//! and again, and nothing has to be cleaned up after a process that died.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::ids::RunId;

/// The pipe of this process.
pub(super) struct Owner {
    /// What rows of this process are marked with
    pub(super) name: String,
    path: PathBuf,
    /// Open for reading and writing, so that reading waits instead of ending
    pipe: File,
}

impl Owner {
    /// Makes the pipe of this process beside `journal`, and removes those of processes that are gone.
    pub(super) fn new(journal: &Path) -> std::io::Result<Self> {
        sweep(journal);
        let name = RunId::random().to_string();
        // It gets its name when it is open: whoever sweeps at this moment would take it for one that nobody reads.
        let (made, path) = (beside(journal, "new", &name), beside(journal, "owner", &name));
        rustix::fs::mknodat(rustix::fs::CWD, &made, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        let open = || -> std::io::Result<File> {
            let pipe = rustix::fs::open(&made, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())?;
            std::fs::rename(&made, &path)?;
            Ok(pipe.into())
        };
        let pipe = open().inspect_err(|_| {
            let _ = std::fs::remove_file(&made);
        })?;
        Ok(Owner { name, path, pipe })
    }

    /// Starts a thread that calls `woken` whenever somebody wakes this process, until it returns `false`.
    pub(super) fn listen(&self, woken: impl Fn() -> bool + Send + 'static) -> std::io::Result<()> {
        let mut pipe = self.pipe.try_clone()?;
        std::thread::Builder::new().name("journal".to_owned()).stack_size(128 * 1024).spawn(move || {
            let mut bytes = [0; 512];
            while pipe.read(&mut bytes).is_ok_and(|read| read > 0) && woken() {}
        })?;
        Ok(())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        // The thread that listens ends when it finds nobody to wake.
        let _ = self.pipe.write(b".");
    }
}

fn beside(journal: &Path, what: &str, name: &str) -> PathBuf {
    let mut path = journal.as_os_str().to_owned();
    path.push(format!("-{what}-{name}"));
    path.into()
}

/// Opens the pipe of a process for writing. Names come from the file, which may come from anywhere: what is no name of ours, and
/// what is no pipe, is nobody's.
fn open(journal: &Path, name: &str) -> Result<File, Errno> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
        return Err(Errno::NOENT);
    }
    open_pipe(&beside(journal, "owner", name))
}

fn open_pipe(path: &Path) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let pipe = rustix::fs::open(path, flags, Mode::empty())?;
    match FileType::from_raw_mode(rustix::fs::fstat(&pipe)?.st_mode) {
        FileType::Fifo => Ok(pipe.into()),
        _ => Err(Errno::NOENT),
    }
}

/// Whether the process with that pipe lives.
pub(super) fn is_alive(journal: &Path, name: &str) -> bool {
    // An error that does not say that nobody reads is no proof of death.
    !matches!(open(journal, name), Err(Errno::NXIO | Errno::NOENT))
}

/// Wakes the process with that pipe.
pub(super) fn wake(journal: &Path, name: &str) {
    if let Ok(mut pipe) = open(journal, name) {
        // A pipe that is full wakes it, too.
        let _ = pipe.write(b".");
    }
}

/// Calls `gone` when the process with that pipe is gone.
pub(super) fn when_gone(journal: &Path, name: &str, gone: impl FnOnce() + Send + 'static) {
    let pipe = open(journal, name);
    let wait = move || {
        if let Ok(pipe) = pipe {
            let mut fds = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::ERR)];
            while matches!(poll(&mut fds, None), Err(Errno::INTR)) {}
        }
        gone();
    };
    if std::thread::Builder::new().name("journal-wait".to_owned()).stack_size(128 * 1024).spawn(wait).is_err() {
        tracing::warn!("no thread can be started to see the end of another process");
    }
}

/// Removes the pipes of processes that are gone.
fn sweep(journal: &Path) {
    let (Some(folder), Some(name)) = (journal.parent(), journal.file_name()) else { return };
    let name = name.to_string_lossy();
    let (prefix, unfinished) = (format!("{name}-owner-"), format!("{name}-new-"));
    let files = std::fs::read_dir(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    for file in files.into_iter().flatten().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        // One that is just being made is nobody's yet.
        let is_old = || {
            file.metadata()
                .and_then(|pipe| pipe.modified())
                .is_ok_and(|at| at.elapsed().is_ok_and(|age| age > Duration::from_secs(60)))
        };
        let is_ours = name.starts_with(&prefix) || (name.starts_with(&unfinished) && is_old());
        if is_ours && matches!(open_pipe(&file.path()), Err(Errno::NXIO)) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}
