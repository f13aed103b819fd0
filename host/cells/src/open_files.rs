//! How many files the process has open. The system gives it so many; guests take three quarters of them at most, so that
//! journals, sockets and whoever else works in the process can go on.

use std::fs::File;

/// Files that a process needs no more of.
#[cfg(unix)]
const ENOUGH: u64 = 65_536;

/// Lets this process open as many files as the system allows it, up to 65,536. Where that cannot be, it stays as it is.
pub fn raise_open_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let limit = getrlimit(Resource::Nofile);
        let raised = limit.maximum.unwrap_or(ENOUGH).min(ENOUGH);
        if limit.current.is_some_and(|current| current < raised) {
            let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum });
        }
    }
}

/// How many files guests may have open together, if this one, which was opened just now, is too many.
#[cfg(unix)]
pub(crate) fn one_too_many(file: &File) -> Option<u64> {
    use std::os::fd::AsRawFd as _;

    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current? / 4 * 3;
    // The system gives the lowest number that is free: all below it are taken.
    let open = u64::try_from(file.as_raw_fd()).ok()?;
    (open >= most).then_some(most)
}

#[cfg(not(unix))]
pub(crate) fn one_too_many(_: &File) -> Option<u64> {
    None
}
