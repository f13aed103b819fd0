//! The processes that work on the runs of a file.
//!
//! Each has a named pipe beside the file, which only it reads. Whoever can open it for writing knows that the process lives
//! (the kernel closes the reading end with the process), and wakes it by writing to it. So nothing has to be looked at again
//! and again, and nothing has to be cleaned up after a process that died.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

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
        let path = pipe_of(journal, &name);
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        let pipe = rustix::fs::open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Owner { name, path, pipe: pipe.into() })
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

fn pipe_of(journal: &Path, name: &str) -> PathBuf {
    let mut path = journal.as_os_str().to_owned();
    path.push(format!("-owner-{name}"));
    path.into()
}

fn open(path: &Path) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::open(path, flags, Mode::empty()).map(File::from)
}

/// Whether the process with that pipe lives.
pub(super) fn is_alive(journal: &Path, name: &str) -> bool {
    // An error that does not say that nobody reads is no proof of death.
    !matches!(open(&pipe_of(journal, name)), Err(Errno::NXIO | Errno::NOENT))
}

/// Wakes the process with that pipe.
pub(super) fn wake(journal: &Path, name: &str) {
    if let Ok(mut pipe) = open(&pipe_of(journal, name)) {
        // A pipe that is full wakes it, too.
        let _ = pipe.write(b".");
    }
}

/// Calls `gone` when the process with that pipe is gone.
pub(super) fn when_gone(journal: &Path, name: &str, gone: impl FnOnce() + Send + 'static) {
    let pipe = open(&pipe_of(journal, name));
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
    let prefix = format!("{}-owner-", name.to_string_lossy());
    let files = std::fs::read_dir(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    for file in files.into_iter().flatten().flatten() {
        let is_pipe = file.file_name().to_string_lossy().starts_with(&prefix);
        if is_pipe && matches!(open(&file.path()), Err(Errno::NXIO)) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}
