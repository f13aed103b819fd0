//! Compiled components kept between processes, in a directory that only its owner can write.
//!
//! An entry is machine code, and mapping the wrong one means running whatever it says. So an entry is named by the
//! digest of the component and of the engine, its own hash lies beside it and is compared before it is mapped, and
//! a directory that others could write into is not used at all.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

/// Bytes that are written at once.
const PIECE: usize = 16 << 10;

/// Bytes that all entries together may have.
const MOST_BYTES: u64 = 4 << 30;
/// How long an entry is kept that nobody uses.
const UNUSED_FOR: Duration = Duration::from_secs(60 * 86_400);
/// How long a use is not noted again.
const STALE: Duration = Duration::from_secs(86_400);
/// What names of files begin with that are being written, and how long that may take.
const UNFINISHED: &str = ".new-";
const UNFINISHED_FOR: Duration = Duration::from_secs(86_400);

/// A directory of compiled components.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    directory: PathBuf,
}

/// An entry whose hash was compared; it may be mapped.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) path: PathBuf,
}

/// Why a directory cannot hold compiled code.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// It cannot be made or read.
    #[error("cannot use `{path}` as the cache of compiled cells: {error}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Others could put code into it.
    #[error("`{path}` is not used as the cache of compiled cells, because {reason}; {advice}")]
    Insecure {
        /// The directory.
        path: PathBuf,
        /// What is insecure.
        reason: String,
        /// What to do.
        advice: String,
    },
}

/// What was removed from a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Compiled components
    pub entries: u64,
    /// Their bytes
    pub bytes: u64,
    /// Bytes of what is still there
    pub left: u64,
}

/// Removes the compiled components from the cache in `directory` that were not used for some time, or all of them; with `dry_run`
/// it is only said what that would be. Whoever uses one meanwhile keeps it.
///
/// # Errors
/// When the directory cannot be read. One that is not there is empty.
pub fn clean_cells(directory: &Path, unused_for: Option<Duration>, dry_run: bool) -> io::Result<Cleaned> {
    match fs::read_dir(directory) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Cleaned::default()),
        Err(error) => return Err(error),
    }
    let cache = Cache { directory: directory.to_owned() };
    let now = SystemTime::now();
    let mut cleaned = Cleaned::default();
    for Entry { used, size, key } in cache.entries() {
        let age = now.duration_since(used).unwrap_or_default();
        if unused_for.is_some_and(|least| age < least) {
            cleaned.left += size;
            continue;
        }
        cleaned.entries += 1;
        cleaned.bytes += size;
        if !dry_run {
            cache.remove(&key);
        }
    }
    Ok(cleaned)
}

/// A compiled component in the cache.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    used: SystemTime,
    size: u64,
    key: String,
}

impl Cache {
    /// Uses `directory`, which is made if it is not there.
    pub(crate) fn open(directory: &Path) -> Result<Self, CacheError> {
        let failed = |error| CacheError::Io { path: directory.to_owned(), error };
        if fs::symlink_metadata(directory).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            create_private(directory).map_err(failed)?;
        }
        check_private(directory)?;
        let cache = Self { directory: directory.to_owned() };
        cache.prune(MOST_BYTES, SystemTime::now());
        Ok(cache)
    }

    /// Whether whoever may write into `directory` may write into this, too, by its path or by that of a directory around it.
    pub(crate) fn is_reached_from(&self, directory: &Path) -> bool {
        let (Ok(own), Ok(other)) = (self.directory.canonicalize(), directory.canonicalize()) else { return false };
        own.starts_with(&other) || other.starts_with(&own)
    }

    /// Removes what was not used for long, and then what was used the longest time ago until no more than `most` bytes are left.
    /// Whoever has an entry mapped keeps it; whoever wants it again compiles it again.
    fn prune(&self, most: u64, now: SystemTime) {
        let is_older = |path: &Path, than: Duration| now.duration_since(used(path)).is_ok_and(|age| age > than);
        for (name, path) in self.files() {
            if name.starts_with(UNFINISHED) && is_older(&path, UNFINISHED_FOR) {
                let _ = fs::remove_file(&path);
            }
        }
        let mut kept = self.entries();
        kept.sort();
        let mut total: u64 = kept.iter().map(|entry| entry.size).sum();
        for Entry { used, size, key } in kept {
            let is_old = now.duration_since(used).is_ok_and(|age| age > UNUSED_FOR);
            if !is_old && total <= most {
                break;
            }
            self.remove(&key);
            total -= size;
        }
    }

    fn files(&self) -> impl Iterator<Item = (String, PathBuf)> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten();
        entries.filter_map(|entry| {
            let path = entry.ok()?.path();
            Some((path.file_name()?.to_string_lossy().into_owned(), path))
        })
    }

    fn entries(&self) -> Vec<Entry> {
        let entry = |(name, path): (String, PathBuf)| {
            let key = name.strip_suffix(".cwasm")?.to_owned();
            let size = path.metadata().map_or(0, |metadata| metadata.len());
            Some(Entry { used: used(&self.stamp(&key)), size, key })
        };
        self.files().filter_map(entry).collect()
    }

    fn remove(&self, key: &str) {
        // The stamp first: an entry without one counts for nothing.
        let _ = fs::remove_file(self.stamp(key));
        let _ = fs::remove_file(self.entry(key));
    }

    /// The entry of a component, if there is one and it is what was once written.
    pub(crate) fn find(&self, key: &str) -> Option<Checked> {
        let path = self.entry(key);
        let stamp = fs::read_to_string(self.stamp(key)).ok()?;
        let (hash, identity) = stamp.split_once(' ')?;
        if identity == identity_of(&path)? {
            // The stamp says when an entry was last used, to the day.
            let is_stale = |used: SystemTime| used.elapsed().is_ok_and(|age| age > STALE);
            if fs::metadata(self.stamp(key)).and_then(|stamp| stamp.modified()).is_ok_and(is_stale) {
                self.write_stamp(key, hash).ok()?;
            }
            return Some(Checked { path });
        }
        let content = fs::read(&path).ok()?;
        if blake3::hash(&content).to_hex().as_str() != hash {
            tracing::warn!(path = %path.display(), "a compiled cell in the cache is not what was written: recompiling");
            return None;
        }
        self.write_stamp(key, hash).ok()?;
        Some(Checked { path })
    }

    /// Writes the entry of a component, and leaves no more in the cache than may be there: a server runs for months, and who sends
    /// it plugins sends others each time. Two processes may do so at once: each entry appears whole or not at all.
    pub(crate) fn store(&self, key: &str, content: &[u8]) -> Result<Checked, CacheError> {
        self.store_within(MOST_BYTES, key, content)
    }

    fn store_within(&self, most: u64, key: &str, content: &[u8]) -> Result<Checked, CacheError> {
        // Before it is written: what is written last is what is wanted.
        self.prune(most.saturating_sub(content.len() as u64), SystemTime::now());
        let path = self.entry(key);
        let failed = |error| CacheError::Io { path: path.clone(), error };
        self.replace(&path, content).map_err(failed)?;
        self.write_stamp(key, blake3::hash(content).to_hex().as_str()).map_err(failed)?;
        Ok(Checked { path })
    }

    fn entry(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{key}.cwasm"))
    }

    fn stamp(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{key}.hash"))
    }

    /// Records the hash of an entry, and by which file it was last seen to hold.
    fn write_stamp(&self, key: &str, hash: &str) -> io::Result<()> {
        let identity = identity_of(&self.entry(key)).unwrap_or_default();
        self.replace(&self.stamp(key), format!("{hash} {identity}").as_bytes())
    }

    fn replace(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.directory)?;
        // In small pieces: from a single large one, Linux makes large pages of its cache, and whoever maps a little of the
        // entry then has 10 to 20 MB more of it in memory.
        for piece in content.chunks(PIECE) {
            file.write_all(piece)?;
        }
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// When a file was written.
fn used(path: &Path) -> SystemTime {
    path.metadata().and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The name of an entry: the component's digest and what its engine is.
pub(crate) fn key(digest: &str, compatibility: &str) -> String {
    format!("{digest}-{compatibility}")
}

/// The SHA-256 digest of a component in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What tells one state of a file from another without reading it. The time of the last change of the inode cannot
/// be set by a program, so an entry that was written to since it was hashed has another identity.
#[cfg(unix)]
fn identity_of(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;

    let file = fs::symlink_metadata(path).ok()?;
    if !file.is_file() {
        return None;
    }
    let numbers = [
        file.dev(),
        file.ino(),
        file.len(),
        file.mtime() as u64,
        file.mtime_nsec() as u64,
        file.ctime() as u64,
        file.ctime_nsec() as u64,
    ];
    Some(numbers.map(|number| number.to_string()).join("."))
}

/// Elsewhere every entry is hashed each time it is used.
#[cfg(not(unix))]
fn identity_of(_: &Path) -> Option<String> {
    Some(String::new())
}

#[cfg(unix)]
fn create_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;

    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::DirBuilder::new().mode(0o700).create(directory)
}

#[cfg(not(unix))]
fn create_private(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)
}

#[cfg(unix)]
fn check_private(directory: &Path) -> Result<(), CacheError> {
    use std::os::unix::fs::MetadataExt as _;

    let insecure = |reason: String, advice: String| CacheError::Insecure { path: directory.to_owned(), reason, advice };
    let metadata =
        fs::symlink_metadata(directory).map_err(|error| CacheError::Io { path: directory.to_owned(), error })?;
    let elsewhere = || "choose another directory".to_owned();
    if !metadata.is_dir() {
        return Err(insecure("it is not a directory".to_owned(), elsewhere()));
    }
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own {
        return Err(insecure(format!("it belongs to user {} and hotcell runs as {own}", metadata.uid()), elsewhere()));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(insecure(
            format!("others may enter it (mode {mode:o})"),
            format!("run `chmod 700 {}`", directory.display()),
        ));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_private(_: &Path) -> Result<(), CacheError> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, SystemTime};

    use super::{Cache, CacheError, Cleaned, clean_cells};

    #[test]
    fn attack_66_a_directory_that_others_may_enter_is_refused() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let fresh = folder.path().join("made/by/us");
        Cache::open(&fresh)?;
        assert_eq!(fs::metadata(&fresh)?.permissions().mode() & 0o777, 0o700);

        for mode in [0o770, 0o701, 0o755, 0o777] {
            fs::set_permissions(&fresh, fs::Permissions::from_mode(mode))?;
            assert!(matches!(Cache::open(&fresh), Err(CacheError::Insecure { .. })), "mode {mode:o}");
        }
        let link = folder.path().join("link");
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o700))?;
        std::os::unix::fs::symlink(&fresh, &link)?;
        assert!(matches!(Cache::open(&link), Err(CacheError::Insecure { .. })));
        Ok(())
    }

    #[test]
    fn attack_66_an_entry_that_was_changed_is_not_used() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let cache = Cache::open(&folder.path().join("cache"))?;
        let written = cache.store("key", b"machine code")?;
        assert!(cache.find("key").is_some());
        assert!(cache.find("other").is_none());

        fs::write(&written.path, b"machine cod3")?;
        assert!(cache.find("key").is_none());
        fs::write(&written.path, b"machine code")?;
        assert!(cache.find("key").is_some());

        fs::write(folder.path().join("elsewhere"), b"machine code")?;
        fs::remove_file(&written.path)?;
        assert!(cache.find("key").is_none());
        Ok(())
    }

    /// Whoever has one component after the other compiled fills no disk with them, however long the process goes on.
    #[test]
    fn a_cache_stays_within_its_share_while_it_is_written_to() -> Result<(), Box<dyn std::error::Error>> {
        let place = tempfile::tempdir()?;
        let cache = Cache::open(&place.path().join("cells"))?;
        let days_ago = |days: u64| SystemTime::now() - Duration::from_secs(days * 86_400);
        for number in 0..20 {
            let key = format!("key{number}");
            cache.store_within(1_000, &key, &[0; 300])?;
            assert!(cache.find(&key).is_some());
            fs::File::options().write(true).open(cache.stamp(&key))?.set_modified(days_ago(40 - number))?;
            assert!(cache.entries().iter().map(|entry| entry.size).sum::<u64>() <= 1_000);
        }
        assert_eq!(
            [16, 17, 18, 19].map(|number| cache.find(&format!("key{number}")).is_some()),
            [false, true, true, true]
        );
        Ok(())
    }

    #[test]
    fn what_is_not_used_goes_and_the_rest_stays_within_its_share() -> Result<(), Box<dyn std::error::Error>> {
        let place = tempfile::tempdir()?;
        let cache = Cache::open(&place.path().join("cells"))?;
        let now = SystemTime::now();
        let days_ago = |days: u64| now - Duration::from_secs(days * 86_400);
        for (key, age) in [("new", 0), ("week", 7), ("month", 30), ("old", 61)] {
            cache.store(key, &[0; 100])?;
            fs::File::options().write(true).open(cache.stamp(key))?.set_modified(days_ago(age))?;
        }
        let unfinished = cache.directory.join(".new-x");
        fs::write(&unfinished, "")?;
        fs::File::options().write(true).open(&unfinished)?.set_modified(days_ago(2))?;
        let there = || ["new", "week", "month", "old"].map(|key| cache.entry(key).exists());
        cache.prune(1000, now);
        assert_eq!((there(), unfinished.exists()), ([true, true, true, false], false));
        assert!(cache.find("month").is_some(), "a use is noted");
        cache.prune(250, now);
        assert_eq!(there(), [true, false, true, false]);
        assert!(cache.find("week").is_none());

        fs::File::options().write(true).open(cache.stamp("month"))?.set_modified(days_ago(30))?;
        let clean = |unused_for: Option<u64>, dry_run| {
            clean_cells(&cache.directory, unused_for.map(|days| Duration::from_secs(days * 86_400)), dry_run)
        };
        let one = Cleaned { entries: 1, bytes: 100, left: 100 };
        assert_eq!((clean(Some(20), true)?, there()), (one, [true, false, true, false]));
        assert_eq!((clean(Some(20), false)?, there()), (one, [true, false, false, false]));
        assert_eq!(clean(None, false)?, Cleaned { left: 0, ..one });
        assert_eq!(clean_cells(&place.path().join("nowhere"), None, false)?, Cleaned::default());
        Ok(())
    }
}
