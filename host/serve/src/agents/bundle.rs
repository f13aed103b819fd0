//! Archives with agents that somebody sent: unpacking them where nothing they name is outside of their folder, and nothing is larger
//! than it may be.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write as _};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};
use thiserror::Error;

/// Bytes that an archive may have.
pub(crate) const MAX_BUNDLE: usize = 16 << 20;
/// Bytes that it may have when it is unpacked, with all that belongs to the format.
const MAX_EXPANDED: u64 = 64 << 20;
/// Files and folders in it.
const MAX_ENTRIES: usize = 2000;
/// Bytes of a path in it, of a name, and how deep it may be.
const MAX_PATH: usize = 240;
const MAX_NAME: usize = 120;
const MAX_DEPTH: usize = 10;

/// What is wrong with an archive.
#[derive(Debug, Error)]
pub(crate) enum BundleError {
    /// It is of another format
    #[error("the bundle has to be a tar archive, plain or compressed with gzip{0}")]
    Format(&'static str),
    /// It is broken
    #[error("the bundle cannot be read: {}", .0.to_string().escape_debug())]
    Broken(io::Error),
    /// It has too much of something
    #[error("the bundle has more than {limit} {what}")]
    TooMuch {
        /// How much it may have
        limit: u64,
        /// Of what
        what: &'static str,
    },
    /// A path in it is not used
    #[error("`{path}` in the bundle is not unpacked: {reason}")]
    Path {
        /// The path
        path: String,
        /// Why not
        reason: &'static str,
    },
    /// It cannot be written
    #[error("the bundle cannot be unpacked: {0}")]
    Write(io::Error),
}

/// Unpacks an archive into a folder, which is there and empty. A folder that holds all the rest is left out.
///
/// # Errors
/// When something in it is not to be unpacked. What was unpacked before stays.
pub(crate) fn unpack(bytes: &[u8], folder: &Path) -> Result<(), BundleError> {
    match bytes {
        [0x1f, 0x8b, ..] => read(MultiGzDecoder::new(bytes), folder),
        [b'P', b'K', ..] => Err(BundleError::Format(", and not zip")),
        _ if bytes.get(257..262) == Some(b"ustar") => read(bytes, folder),
        _ => Err(BundleError::Format("")),
    }?;
    lift(folder).map_err(BundleError::Write)
}

fn read(archive: impl Read, folder: &Path) -> Result<(), BundleError> {
    let too_much = |limit: u64, what| BundleError::TooMuch { limit, what };
    let mut archive = Archive::new(Limited { inner: archive, left: MAX_EXPANDED });
    let broken = |error: io::Error| match error.get_ref().is_some_and(|cause| cause.is::<Exceeded>()) {
        true => too_much(MAX_EXPANDED, "bytes when it is unpacked"),
        false => BundleError::Broken(error),
    };
    let mut seen: HashSet<String> = HashSet::new();
    for (number, entry) in archive.entries().map_err(broken)?.enumerate() {
        if number >= MAX_ENTRIES {
            return Err(too_much(MAX_ENTRIES as u64, "files and folders"));
        }
        let mut entry = entry.map_err(broken)?;
        let path = plain(&entry.path_bytes())?;
        let refused = |reason| BundleError::Path { path: path.display().to_string(), reason };
        let place = folder.join(&path);
        match entry.header().entry_type() {
            EntryType::Directory => fs::create_dir_all(&place).map_err(|error| taken(error, &path))?,
            EntryType::Regular | EntryType::Continuous => {
                if path.as_os_str().is_empty() {
                    return Err(refused("a file needs a name"));
                }
                // Some file systems take two names for one.
                if !seen.insert(path.to_string_lossy().to_lowercase()) {
                    return Err(refused("there are two files of that name"));
                }
                if let Some(around) = place.parent() {
                    fs::create_dir_all(around).map_err(|error| taken(error, &path))?;
                }
                let mut file = File::create_new(&place).map_err(|error| taken(error, &path))?;
                let mut buffer = [0; 16 << 10];
                loop {
                    let size = entry.read(&mut buffer).map_err(broken)?;
                    if size == 0 {
                        break;
                    }
                    file.write_all(&buffer[..size]).map_err(BundleError::Write)?;
                }
            }
            EntryType::XGlobalHeader => {}
            EntryType::Symlink | EntryType::Link => return Err(refused("links are not supported")),
            _ => return Err(refused("only files and folders are")),
        }
    }
    Ok(())
}

/// Why something is not put there: the archive has something else of that name, or it cannot be written.
fn taken(error: io::Error, path: &Path) -> BundleError {
    match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
            BundleError::Path { path: path.display().to_string(), reason: "there is something else of that name" }
        }
        _ => BundleError::Write(error),
    }
}

/// A path of an archive as it may be used below a folder; empty for the folder itself.
fn plain(bytes: &[u8]) -> Result<PathBuf, BundleError> {
    let shown = || String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_PATH)]).into_owned();
    let refused = |reason| BundleError::Path { path: shown().escape_debug().to_string(), reason };
    let text = std::str::from_utf8(bytes).map_err(|_| refused("it is not valid UTF-8"))?;
    if text.len() > MAX_PATH {
        return Err(refused("the path is too long"));
    }
    if text.chars().any(|c| c.is_control() || c == '\\' || c == ':') {
        return Err(refused("the path has characters that not every system takes"));
    }
    let mut path = PathBuf::new();
    for component in Path::new(text).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) if name.len() > MAX_NAME => return Err(refused("a name is too long")),
            Component::Normal(name) => path.push(name),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(refused("paths have to stay in the bundle"));
            }
        }
    }
    match path.components().count() > MAX_DEPTH {
        true => Err(refused("it is too deep")),
        false => Ok(path),
    }
}

/// Puts what lies in the only folder there is in its place.
fn lift(folder: &Path) -> io::Result<()> {
    let entries: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    let [only] = &entries[..] else { return Ok(()) };
    if !only.is_dir() {
        return Ok(());
    }
    // What it holds may be called like it.
    let aside = folder.join(".lifted");
    fs::rename(only, &aside)?;
    for entry in fs::read_dir(&aside)? {
        let entry = entry?;
        fs::rename(entry.path(), folder.join(entry.file_name()))?;
    }
    fs::remove_dir(&aside)
}

/// Reads no more than so much.
struct Limited<R> {
    inner: R,
    left: u64,
}

/// There is more than may be read.
#[derive(Debug, Error)]
#[error("there is more than may be read")]
struct Exceeded;

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(size as u64).ok_or_else(|| io::Error::other(Exceeded))?;
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, Header};

    use super::*;

    /// An archive of entries: path, type and content.
    /// Something in an archive: its path, what it is, and its content.
    type Archived<'a> = (&'a [u8], EntryType, &'a [u8]);

    fn archive(entries: &[Archived<'_>]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (path, kind, content) in entries {
            let mut header = Header::new_ustar();
            header.set_entry_type(*kind);
            header.set_size(content.len() as u64);
            header.set_mode(0o777);
            header.as_old_mut().name[..path.len()].copy_from_slice(path);
            if matches!(kind, EntryType::Symlink | EntryType::Link) {
                header.set_link_name("/etc/passwd").expect("a name");
            }
            header.set_cksum();
            builder.append(&header, *content).expect("added");
        }
        builder.into_inner().expect("an archive")
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(bytes).and_then(|()| packer.finish()).expect("packed")
    }

    fn unpacked(bytes: &[u8]) -> Result<Vec<String>, String> {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("in");
        fs::create_dir(&folder).expect("made");
        let result = unpack(bytes, &folder).map_err(|error| error.to_string());
        let outside: Vec<_> = fs::read_dir(place.path()).expect("read").collect();
        assert_eq!(outside.len(), 1, "nothing lands outside");
        let mut names = Vec::new();
        let mut next = vec![folder.clone()];
        while let Some(path) = next.pop() {
            match path.is_dir() {
                true => next.extend(fs::read_dir(&path).expect("read").map(|entry| entry.expect("read").path())),
                false => names.push(path.strip_prefix(&folder).expect("below").display().to_string()),
            }
        }
        names.sort();
        result.map(|()| names)
    }

    const FILE: EntryType = EntryType::Regular;

    #[test]
    fn files_land_in_the_folder_and_a_folder_around_them_all_is_left_out() {
        let plain = archive(&[(b"./graph.yaml", FILE, b"a"), (b"scripts/x.js", FILE, b"b")]);
        assert_eq!(unpacked(&plain), Ok(vec!["graph.yaml".to_owned(), "scripts/x.js".to_owned()]));
        assert_eq!(unpacked(&packed(&plain)), unpacked(&plain));
        let around = archive(&[
            (b"desk/", EntryType::Directory, b""),
            (b"desk/desk/graph.yaml", FILE, b"a"),
            (b"desk/x", FILE, b""),
        ]);
        assert_eq!(unpacked(&around), Ok(vec!["desk/graph.yaml".to_owned(), "x".to_owned()]));
    }

    #[test]
    fn what_leaves_the_folder_or_is_no_file_is_refused() {
        let deep = "d/".repeat(11) + "x";
        let cases: [(&[u8], EntryType, &str); 13] = [
            (b"../x", FILE, "stay in the bundle"),
            (b"a/../../x", FILE, "stay in the bundle"),
            (b"/etc/x", FILE, "stay in the bundle"),
            (b"a\\..\\x", FILE, "characters"),
            (b"C:x", FILE, "characters"),
            (b"a\nb", FILE, "characters"),
            (b"\xff\xfe", FILE, "UTF-8"),
            (deep.as_bytes(), FILE, "too deep"),
            (b"./", FILE, "name"),
            (b"link", EntryType::Symlink, "links"),
            (b"link", EntryType::Link, "links"),
            (b"pipe", EntryType::Fifo, "only files"),
            (b"device", EntryType::Char, "only files"),
        ];
        for (path, kind, reason) in cases {
            let error = unpacked(&archive(&[(path, kind, b"")])).expect_err(&String::from_utf8_lossy(path));
            assert!(error.contains(reason), "{}: {error}", String::from_utf8_lossy(path));
        }
        let twice = archive(&[(b"a/x", FILE, b"1"), (b"A/X", FILE, b"2")]);
        assert!(unpacked(&twice).is_err_and(|error| error.contains("two files")));
        let taken: [[Archived<'_>; 2]; 3] = [
            [(b"a", FILE, b"1"), (b"a/x", FILE, b"2")],
            [(b"a", FILE, b"1"), (b"a/", EntryType::Directory, b"")],
            [(b"a/x", FILE, b"1"), (b"a", FILE, b"2")],
        ];
        for entries in taken {
            let error = unpacked(&archive(&entries)).expect_err("it is taken");
            assert!(error.contains("something else of that name"), "{error}");
        }
    }

    #[test]
    fn every_limit_trips() {
        let many: Vec<String> = (0..=MAX_ENTRIES).map(|number| format!("{number}")).collect();
        let many: Vec<Archived<'_>> = many.iter().map(|name| (name.as_bytes(), FILE, b"".as_slice())).collect();
        assert!(unpacked(&archive(&many)).is_err_and(|error| error.contains("2000 files")));
        // A few KiB that become more than may be.
        let zeros = vec![0; MAX_EXPANDED as usize + 1];
        let bomb = packed(&archive(&[(b"zeros", FILE, &zeros)]));
        assert!(bomb.len() < 1 << 20);
        assert!(unpacked(&bomb).is_err_and(|error| error.contains("when it is unpacked")));
        for (name, reason) in [("n".repeat(121), "a name is too long"), ("d/".repeat(130), "the path is too long")] {
            let mut builder = Builder::new(Vec::new());
            let mut header = Header::new_gnu();
            header.set_size(0);
            builder.append_data(&mut header, &name, io::empty()).expect("added");
            let bytes = builder.into_inner().expect("an archive");
            assert!(unpacked(&bytes).is_err_and(|error| error.contains(reason)), "{name}");
        }
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        for (bytes, reason) in [
            (b"".as_slice(), "has to be a tar archive"),
            (b"PK\x03\x04", "and not zip"),
            (b"name: x\nstart: a\n", "has to be a tar archive"),
            (b"\x1f\x8b\x08\x00broken", "cannot be read"),
        ] {
            assert!(unpacked(bytes).is_err_and(|error| error.contains(reason)), "{reason}");
        }
        let whole = archive(&[(b"a", FILE, b"1234")]);
        assert!(unpacked(&whole[..514]).is_err(), "half of one");
    }
}
