//! Reading files that somebody else wrote.
//!
//! A path may lead to a device that never ends, a pipe that nobody writes into, a directory, or gigabytes. So there is one
//! way to read a file: it is a regular file of at most so many bytes, and nothing of it is waited for. `.ci/reads` refuses
//! any other way in the host.
//!
//! Links are followed: where they may lead is the matter of whoever makes the path. What is written takes the place of what was there,
//! also of a link ([`replace`]).

mod folder;
mod replace;

pub use folder::{Entry, FileError, Folder};
pub use replace::{make_private_folder, replace, replace_private};

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;

/// Bytes that a file may have which people write: a graph, settings, a list of servers, a case.
pub const MAX_TEXT: u64 = 16 << 20;
/// Bytes that a plugin may have.
pub const MAX_COMPONENT: u64 = 96 << 20;
/// Bytes that a recording may have.
pub const MAX_RECORDING: u64 = 256 << 20;

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// Those of the system, and of the kind [`io::ErrorKind::InvalidInput`] for what is no regular file, or of
/// [`io::ErrorKind::FileTooLarge`] for what is larger. The text says what it is, without the path.
pub fn read(path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
    let (file, _) = open_regular(path.as_ref())?;
    bytes_of(file, limit)
}

pub(crate) fn bytes_of(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let too_large = |found: u64| {
        let message = format!("it has {found} bytes, and at most {limit} are read");
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    };
    let size = file.metadata()?.len();
    if size > limit {
        return Err(too_large(size));
    }
    // What the system says of the size is no more than a hint: it can grow, and files of `/proc` have none.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}

/// Reads a regular file of at most `limit` bytes of UTF-8 text.
///
/// # Errors
/// As [`read`], and of the kind [`io::ErrorKind::InvalidData`] for what is no UTF-8.
pub fn read_text(path: impl AsRef<Path>, limit: u64) -> io::Result<String> {
    text_of(read(path, limit)?)
}

/// Bytes as UTF-8 text.
///
/// # Errors
/// Of the kind [`io::ErrorKind::InvalidData`] for what is no UTF-8; the text says where.
pub fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("it is not UTF-8 text: byte {at} is wrong"))
    })
}

/// Opens a regular file for reading, with what the system says about it. What is read of it is for the caller to limit.
///
/// # Errors
/// Those of the system, and of the kind [`io::ErrorKind::InvalidInput`] for what is no regular file.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    // Looked at before it is opened, because opening a device can already do something; and once more afterwards.
    check(&std::fs::metadata(path)?)?;
    let file = open(path)?;
    let metadata = file.metadata()?;
    check(&metadata)?;
    Ok((file, metadata))
}

/// Opens a file of our own for writing, which is made if it is not there and keeps what it has: a lock, for example. A link is
/// not followed.
///
/// # Errors
/// Those of the system, and of the kind [`io::ErrorKind::InvalidInput`] for what is no regular file.
pub fn open_own(path: &Path) -> io::Result<File> {
    // Most systems say less clearly what is wrong with a link.
    if let Ok(metadata) = std::fs::symlink_metadata(path) {
        check(&metadata)?;
    }
    let file = open_for_writing(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

#[cfg(unix)]
fn open_for_writing(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::from_raw_mode(0o666))?.into())
}

#[cfg(not(unix))]
fn open_for_writing(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(path)
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    // A pipe that takes the place of the file is opened without waiting for who writes into it.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

pub(crate) fn check(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let what = kind(metadata);
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a regular file")))
}

#[cfg(unix)]
fn kind(metadata: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = metadata.file_type();
    match () {
        () if kind.is_symlink() => "a link",
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () => "something else",
    }
}

#[cfg(not(unix))]
fn kind(metadata: &Metadata) -> &'static str {
    if metadata.is_dir() { "a directory" } else { "something else" }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::ErrorKind;
    use std::path::Path;

    use super::{open_own, read, read_text};

    fn refused(path: &Path, kind: ErrorKind, part: &str) {
        let error = read(path, 8).expect_err(&path.display().to_string());
        assert!(error.kind() == kind && error.to_string().contains(part), "{}: {error:?}", path.display());
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RWXU).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("device")).unwrap();
        std::os::unix::fs::symlink(at("pipe"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("circle"), at("circle")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        refused(&at("pipe"), ErrorKind::InvalidInput, "a pipe, not a regular file");
        refused(&at("link"), ErrorKind::InvalidInput, "a pipe");
        refused(&at("device"), ErrorKind::InvalidInput, "a device");
        refused(&at("socket"), ErrorKind::InvalidInput, "a socket");
        refused(folder.path(), ErrorKind::InvalidInput, "a directory");
        refused(Path::new("/dev/null"), ErrorKind::InvalidInput, "a device");
        assert!(read(at("circle"), 8).is_err());
        assert_eq!(read(at("nothing"), 8).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_file_may_have_as_many_bytes_as_the_limit_says() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "12345678").unwrap();
        assert_eq!(read(&file, 8).unwrap(), b"12345678");
        assert_eq!(read_text(&file, 8).unwrap(), "12345678");
        std::fs::write(&file, "123456789").unwrap();
        refused(&file, ErrorKind::FileTooLarge, "it has 9 bytes, and at most 8 are read");
        // It says that it is empty and is not.
        refused(Path::new("/proc/cpuinfo"), ErrorKind::FileTooLarge, "at most 8 are read");
        // Most of it is not there, and it is refused before anything of it is read.
        std::fs::File::create(&file).unwrap().set_len(1 << 40).unwrap();
        refused(&file, ErrorKind::FileTooLarge, "1099511627776 bytes");
    }

    #[test]
    fn a_file_of_our_own_is_never_behind_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("other"), "kept").unwrap();
        std::os::unix::fs::symlink(at("other"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RWXU).unwrap();
        for (name, what) in [("link", "a link"), ("dangling", "a link"), ("pipe", "a pipe")] {
            let error = open_own(&at(name)).unwrap_err();
            assert!(error.to_string().contains(what), "{name}: {error}");
        }
        assert!(!at("nowhere").exists());
        open_own(&at("own")).unwrap();
        open_own(&at("other")).unwrap();
        assert_eq!(read_text(at("other"), 8).unwrap(), "kept");
    }

    #[test]
    fn text_is_utf_8() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, b"ab\xff").unwrap();
        let error = read_text(&file, 8).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::InvalidData, "it is not UTF-8 text: byte 2 is wrong")
        );
    }
}
