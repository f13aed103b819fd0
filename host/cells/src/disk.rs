//! What a call may leave on the disk: bytes that it writes to files; files, directories and links that it makes.
//!
//! Three limits hold at once: the budget of the call, what its grant says that the whole directory may hold, and
//! room that stays free on every disk for others. A guest that meets one gets the error code of a full disk or quota;
//! if it fails for that reason, its call ends with the limit.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hotcell_budget::{Budget, Bytes};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::grants::{Access, DirectoryGrant, Grants};

/// Bytes that stay free on a disk; of a small one a twentieth.
const KEPT_FREE: u64 = 256 << 20;
/// Bytes that are written between two looks at what is free.
const LOOK_EVERY: u64 = 16 << 20;
/// Times that a call has one directory counted. What it overwrote or deleted since is free again.
const MAX_COUNTS: u32 = 16;
/// Entries of a directory that are counted; one with more is full.
const MAX_ENTRIES: u64 = 1_000_000;

/// What a call has left. Clones share it.
#[derive(Clone)]
pub(crate) struct Disk(Arc<Mutex<Left>>);

struct Left {
    budget: Room,
    used: Room,
    directories: Vec<Directory>,
    /// Bytes that may be written before the next look at what is free.
    unlooked: u64,
    refused: Option<String>,
}

/// A granted directory that may hold so much and no more.
struct Directory {
    host: PathBuf,
    guest: String,
    limit: Room,
    /// What it may take in addition, once it was counted.
    left: Option<Room>,
    counts: u32,
}

/// Bytes, and files, directories and links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    pub(crate) files: u64,
}

impl Room {
    const ALL: Self = Self { bytes: u64::MAX, files: u64::MAX };

    fn minus(self, other: Self) -> Option<Self> {
        Some(Self { bytes: self.bytes.checked_sub(other.bytes)?, files: self.files.checked_sub(other.files)? })
    }

    fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), files: self.files.saturating_add(other.files) }
    }
}

/// What is to be written or made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// Bytes that are written.
    bytes: u64,
    /// By how many bytes the file grows.
    grows: u64,
    /// Files, directories and links.
    files: u64,
}

impl Wanted {
    /// One more file, directory or link.
    pub(crate) const FILE: Self = Self { bytes: 0, grows: 0, files: 1 };

    /// Bytes that are written into a file from this place on, or to its end. A hole that this leaves in the file is counted as if it
    /// were filled: what is written into it later does not make the file grow any more.
    pub(crate) fn write(place: &Place, from: Option<u64>, bytes: usize) -> Self {
        let bytes = bytes as u64;
        let grows = from.map_or(bytes, |from| from.saturating_add(bytes).saturating_sub(place.size()));
        Self { bytes, grows, files: 0 }
    }

    /// The size that a file is to have.
    pub(crate) fn size(place: &Place, size: u64) -> Self {
        let bytes = size.saturating_sub(place.size());
        Self { bytes, grows: bytes, files: 0 }
    }

    fn of_call(self) -> Room {
        Room { bytes: self.bytes, files: self.files }
    }

    fn of_directory(self) -> Room {
        Room { bytes: self.grows, files: self.files }
    }
}

/// Where something is written or made.
#[derive(Clone, Default)]
pub(crate) struct Place {
    /// The number of the granted directory, if that has a limit of its own.
    pub(crate) directory: Option<usize>,
    /// The file, where there is one.
    pub(crate) file: Option<Arc<File>>,
}

impl Place {
    fn size(&self) -> u64 {
        self.file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |file| file.len())
    }
}

impl Disk {
    pub(crate) fn new(budget: &Budget, grants: &Grants) -> Self {
        let directories = grants.fs.iter().filter_map(Directory::limited).collect();
        let budget = Room { bytes: budget.file_bytes.0, files: u64::from(budget.files) };
        let left = Left { budget, used: Room::default(), directories, unlooked: 0, refused: None };
        Self(Arc::new(Mutex::new(left)))
    }

    /// What was written and made.
    pub(crate) fn used(&self) -> Room {
        self.left().used
    }

    /// Why something was refused, if it was.
    pub(crate) fn refused(&self) -> Option<String> {
        self.left().refused.clone()
    }

    /// The number of the granted directory with this path of the guest's, if it has a limit of its own.
    pub(crate) fn directory(&self, guest: &str) -> Option<usize> {
        self.left().directories.iter().position(|directory| directory.guest == guest)
    }

    /// Takes room, in a directory with a limit after counting it if that is necessary.
    pub(crate) async fn take(&self, place: &Place, wanted: Wanted) -> Result<(), ErrorCode> {
        if let Some((number, host, limit)) = place.directory.and_then(|number| self.to_be_counted(number, wanted)) {
            let counted = tokio::task::spawn_blocking(move || held(&host, limit)).await.unwrap_or(Room::ALL);
            let directory = &mut self.left().directories[number];
            directory.left = Some(directory.limit.minus(counted).unwrap_or_default());
            directory.counts += 1;
        }
        self.take_uncounted(place, wanted)
    }

    /// The same, as a directory was counted last.
    fn take_uncounted(&self, place: &Place, wanted: Wanted) -> Result<(), ErrorCode> {
        let mut left = self.left();
        let used = left.used.plus(wanted.of_call());
        let Room { bytes, files } = left.budget;
        if used.bytes > bytes {
            return left.refuse(format!("more than {} written to files", Bytes(bytes)), ErrorCode::Quota);
        }
        if used.files > files {
            return left.refuse(format!("more than {files} files and directories made"), ErrorCode::Quota);
        }
        let rest = match place.directory.map(|number| &left.directories[number]) {
            None => None,
            Some(directory) => match directory.left.and_then(|left| left.minus(wanted.of_directory())) {
                None => {
                    let reason = directory.full();
                    return left.refuse(reason, ErrorCode::Quota);
                }
                rest => rest,
            },
        };
        if let Some(file) = place.file.as_deref().filter(|_| wanted.bytes > left.unlooked) {
            let free = free(file);
            if free < wanted.bytes {
                let reason = "the disk is nearly full, and hotcell leaves the rest to others".to_owned();
                return left.refuse(reason, ErrorCode::InsufficientSpace);
            }
            left.unlooked = free.min(LOOK_EVERY.max(wanted.bytes));
        }
        left.unlooked = left.unlooked.saturating_sub(wanted.bytes);
        left.used = used;
        if let Some(number) = place.directory {
            left.directories[number].left = rest;
        }
        Ok(())
    }

    /// The directory with this number, if it was not counted yet, or so long ago that it may have room again.
    fn to_be_counted(&self, number: usize, wanted: Wanted) -> Option<(usize, PathBuf, Room)> {
        let left = self.left();
        let directory = &left.directories[number];
        let fits = directory.left.is_some_and(|left| left.minus(wanted.of_directory()).is_some());
        (!fits && directory.counts < MAX_COUNTS).then(|| (number, directory.host.clone(), directory.limit))
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Left {
    fn refuse(&mut self, reason: String, code: ErrorCode) -> Result<(), ErrorCode> {
        self.refused = Some(reason);
        Err(code)
    }
}

impl Directory {
    fn limited(grant: &DirectoryGrant) -> Option<Self> {
        let is_limited = grant.max_bytes.is_some() || grant.max_files.is_some();
        (grant.access == Access::ReadWrite && is_limited).then(|| Self {
            host: grant.host.clone(),
            guest: grant.guest.clone(),
            limit: Room {
                bytes: grant.max_bytes.map_or(u64::MAX, |most| most.0),
                files: grant.max_files.unwrap_or(u64::MAX),
            },
            left: None,
            counts: 0,
        })
    }

    fn full(&self) -> String {
        let Room { bytes, files } = self.limit;
        let most = match (bytes, files) {
            (bytes, u64::MAX) => Bytes(bytes).to_string(),
            (u64::MAX, files) => format!("{files} files"),
            (bytes, files) => format!("{} in {files} files", Bytes(bytes)),
        };
        format!("by its grant `{}` holds at most {most}", crate::text::one_line(&self.guest, 200))
    }
}

/// What a directory holds, counted until it is more than `limit`. Links are not followed. A directory that cannot be counted is
/// full: a guest makes some that lie so deep that no path leads there.
fn held(directory: &Path, limit: Room) -> Room {
    let mut held = Room::default();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if holds_nothing(&error) => continue,
            Err(_) => return Room::ALL,
        };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            let bytes = if metadata.is_file() { metadata.len() } else { 0 };
            held = held.plus(Room { bytes, files: 1 });
            if limit.minus(held).is_none() || held.files > MAX_ENTRIES {
                return Room::ALL;
            }
            if metadata.is_dir() {
                open.push(entry.path());
            }
        }
    }
    held
}

/// Whether a directory that cannot be read has nothing of a guest's: it is gone, or closed to this process and so to its guests.
fn holds_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

/// Bytes that may be written to the disk of a file before others run short.
#[cfg(unix)]
fn free(file: &File) -> u64 {
    // A file system that does not say is taken to have room: writing to it fails when it has none.
    rustix::fs::fstatvfs(file).map_or(u64::MAX, |disk| {
        let kept = disk.f_blocks.saturating_mul(disk.f_frsize) / 20;
        disk.f_bavail.saturating_mul(disk.f_frsize).saturating_sub(kept.min(KEPT_FREE))
    })
}

#[cfg(not(unix))]
fn free(_: &File) -> u64 {
    u64::MAX
}

/// A stream into a file that takes room for what is written.
pub(crate) struct Counted {
    pub(crate) stream: DynOutputStream,
    /// Where it goes on; none where each piece goes to the end of the file.
    pub(crate) from: Option<u64>,
    pub(crate) place: Place,
    pub(crate) disk: Disk,
}

impl Counted {
    fn goes_on(&mut self, bytes: usize) {
        self.from = self.from.map(|from| from.saturating_add(bytes as u64));
    }
}

/// The error of a stream, in the form from which the guest's library takes the error code.
fn full(code: ErrorCode) -> StreamError {
    let kind = match code {
        ErrorCode::InsufficientSpace => std::io::ErrorKind::StorageFull,
        _ => std::io::ErrorKind::QuotaExceeded,
    };
    StreamError::LastOperationFailed(std::io::Error::from(kind).into())
}

#[async_trait]
impl OutputStream for Counted {
    fn write(&mut self, bytes: bytes::Bytes) -> StreamResult<()> {
        let count = bytes.len();
        self.disk.take_uncounted(&self.place, Wanted::write(&self.place, self.from, count)).map_err(full)?;
        self.stream.write(bytes)?;
        self.goes_on(count);
        Ok(())
    }

    async fn blocking_write_and_flush(&mut self, bytes: bytes::Bytes) -> StreamResult<()> {
        let count = bytes.len();
        self.disk.take(&self.place, Wanted::write(&self.place, self.from, count)).await.map_err(full)?;
        self.stream.blocking_write_and_flush(bytes).await?;
        self.goes_on(count);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.stream.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.stream.check_write()
    }

    async fn cancel(&mut self) {
        self.stream.cancel().await;
    }
}

#[async_trait]
impl Pollable for Counted {
    async fn ready(&mut self) {
        self.stream.ready().await;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::fd::OwnedFd;

    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

    use super::{Room, held};

    #[test]
    fn what_lies_too_deep_to_be_counted_is_not_taken_for_nothing() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("shallow"))?;
        let limit = Room { bytes: 1_000, files: 1_000 };
        assert_eq!(held(folder.path(), limit), Room { bytes: 0, files: 1 });
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut directories: Vec<OwnedFd> = vec![openat(CWD, folder.path(), flags, Mode::empty())?];
        let name = "x".repeat(250);
        // No path has more than 4,096 bytes.
        for depth in 0..20 {
            mkdirat(&directories[depth], &name, Mode::RWXU)?;
            directories.push(openat(&directories[depth], &name, flags, Mode::empty())?);
        }
        assert_eq!(held(folder.path(), limit), Room::ALL);
        Ok(())
    }
}
