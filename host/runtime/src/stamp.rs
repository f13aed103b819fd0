//! What changes when a file is changed.

use std::fs::Metadata;
use std::time::SystemTime;

/// What changes when a file is changed: as long as it is the same, the file need not be read to know what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    size: u64,
    modified: Option<SystemTime>,
    /// Its number in its file system, which is another one after it was replaced
    number: u64,
}

impl FileStamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        FileStamp { size: metadata.len(), modified: metadata.modified().ok(), number: number(metadata) }
    }
}

#[cfg(unix)]
fn number(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn number(_: &Metadata) -> u64 {
    0
}
