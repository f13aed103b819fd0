//! The key with which a journal keeps redacted values, in a file beside it.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use hotcell_engine::{PortError, RedactionKey, RedactionKeys};
use thiserror::Error;

/// Why the key of a journal cannot be used.
#[derive(Debug, Error)]
pub(crate) enum KeyError {
    /// Its file cannot be read or made
    #[error("`{}` cannot be {doing}: {cause}", path.display())]
    File {
        path: PathBuf,
        doing: &'static str,
        #[source]
        cause: io::Error,
    },
    /// Its file holds something else
    #[error("`{}` is not a key: it has {found} bytes, not {}", path.display(), RedactionKey::LEN)]
    NoKey { path: PathBuf, found: usize },
}

/// The key of a journal: made when it is first needed.
pub(crate) struct KeyOfJournal {
    /// Its file; none for a journal that ends with the process
    file: Option<PathBuf>,
    key: OnceLock<RedactionKey>,
}

impl KeyOfJournal {
    /// That of a journal in this file, or of one in memory.
    pub(crate) fn beside(journal: Option<&Path>) -> Self {
        let file = journal.map(|journal| {
            let mut name = journal.file_name().unwrap_or_default().to_owned();
            name.push(".key");
            journal.with_file_name(name)
        });
        KeyOfJournal { file, key: OnceLock::new() }
    }
}

impl RedactionKeys for KeyOfJournal {
    fn key(&self) -> Result<RedactionKey, PortError> {
        if let Some(key) = self.key.get() {
            return Ok(key.clone());
        }
        let key = match &self.file {
            Some(file) => read_or_make(file).map_err(PortError::new)?,
            None => RedactionKey::random(),
        };
        Ok(self.key.get_or_init(|| key).clone())
    }
}

pub(crate) fn read_or_make(path: &Path) -> Result<RedactionKey, KeyError> {
    let failed = |doing| move |cause| KeyError::File { path: path.to_owned(), doing, cause };
    match read(path) {
        Err(KeyError::File { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    // Whole before it has its name: another process may look for it at this moment, and the first one counts.
    let fresh = RedactionKey::random();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let draft = folder.join(format!(".{}.{}", std::process::id(), blake3::hash(fresh.bytes()).to_hex()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let made = options.open(&draft).and_then(|mut file| {
        file.write_all(fresh.bytes())?;
        file.sync_all()?;
        match std::fs::hard_link(&draft, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            // A journal that outlives a power loss is worth nothing without its key.
            _ => keep_names(folder),
        }
    });
    let _ = std::fs::remove_file(&draft);
    made.map_err(failed("made"))?;
    read(path)
}

/// Waits until the disk has the names of the files in a folder.
#[cfg(unix)]
fn keep_names(folder: &Path) -> io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}

/// Elsewhere folders cannot be waited for.
#[cfg(not(unix))]
fn keep_names(_: &Path) -> io::Result<()> {
    Ok(())
}

pub(crate) fn read(path: &Path) -> Result<RedactionKey, KeyError> {
    let failed = |cause| KeyError::File { path: path.to_owned(), doing: "read", cause };
    let bytes = hotcell_files::read(path, 4096).map_err(failed)?;
    let found = bytes.len();
    let bytes = bytes.try_into().map_err(|_| KeyError::NoKey { path: path.to_owned(), found })?;
    Ok(RedactionKey::new(bytes))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hotcell_engine::RedactionKeys as _;

    use super::KeyOfJournal;

    #[test]
    fn a_journal_has_one_key_whoever_asks_first() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("runs.db");
        let ask = |journal: Arc<std::path::PathBuf>| {
            std::thread::spawn(move || *KeyOfJournal::beside(Some(&journal)).key().unwrap().bytes())
        };
        let journal = Arc::new(journal);
        let keys: Vec<_> = (0..8).map(|_| ask(journal.clone())).collect();
        let keys: Vec<_> = keys.into_iter().map(|key| key.join().unwrap()).collect();
        assert!(keys.windows(2).all(|two| two[0] == two[1]));
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["runs.db.key"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(folder.path().join("runs.db.key")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_file_that_is_no_key_is_refused_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("runs.db");
        std::fs::write(folder.path().join("runs.db.key"), "short").unwrap();
        let error = KeyOfJournal::beside(Some(&journal)).key().err().unwrap().to_string();
        assert!(error.contains("runs.db.key` is not a key: it has 5 bytes, not 32"), "{error}");
    }
}
