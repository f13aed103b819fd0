//! Results kept under the digest of what they were made from.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

/// A directory of results. Wrong or missing entries are made again.
pub(crate) struct Kept {
    directory: PathBuf,
}

impl Kept {
    /// Opens the directory, which is created if it is missing.
    pub(crate) fn open(directory: PathBuf) -> Result<Self, Box<dyn Error>> {
        fs::create_dir_all(&directory).map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
        Ok(Self { directory })
    }

    /// The result of `make`, or what it gave for the same inputs before.
    pub(crate) fn or_make(
        &self,
        name: &str,
        inputs: &[&[u8]],
        make: impl FnOnce() -> Result<Vec<u8>, Box<dyn Error>>,
    ) -> Result<Vec<u8>, Box<dyn Error>> {
        let mut digest = Sha256::new();
        for input in inputs {
            digest.update((input.len() as u64).to_le_bytes());
            digest.update(input);
        }
        let key: String = digest.finalize().iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        let path = self.directory.join(format!("{key}.{name}"));
        if let Ok(bytes) = fs::read(&path) {
            return Ok(bytes);
        }
        let bytes = make()?;
        // Renamed into place, so that an interrupted build leaves no half of a result.
        let unfinished = self.directory.join(format!("{key}.{name}.{}", std::process::id()));
        fs::write(&unfinished, &bytes)?;
        fs::rename(&unfinished, &path)?;
        self.forget_older(name)?;
        Ok(bytes)
    }

    /// Keeps the few newest results of a name: switching between two branches stays free, the directory stays small.
    fn forget_older(&self, name: &str) -> Result<(), Box<dyn Error>> {
        const NEWEST: usize = 4;
        let mut results = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().ends_with(&format!(".{name}")) {
                results.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        results.sort();
        let surplus = results.len().saturating_sub(NEWEST);
        for (_, path) in results.into_iter().take(surplus) {
            fs::remove_file(path)?;
        }
        Ok(())
    }
}
