//! Files that somebody writes and has not closed: what they say is half of something.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Files of which that is known; of further ones it is not.
const MOST: usize = 4096;
/// How long after the last write a file counts as written that nobody closes.
const LONGEST: Duration = Duration::from_secs(60);

/// Hears what the system has told of files so far.
type Hear = Box<dyn Fn() + Send + Sync>;

/// Files that somebody writes and has not closed, and when they did so last.
#[derive(Default)]
pub struct Written {
    files: Mutex<HashMap<PathBuf, Instant>>,
    /// None where nothing is told
    hear: OnceLock<Hear>,
}

impl Written {
    /// Has what was told be heard before it is said what is written: whoever has read half of a file has to know it then.
    pub(super) fn heard_by(&self, hear: Hear) {
        // There is one who hears it.
        let _ = self.hear.set(hear);
    }

    fn files(&self) -> MutexGuard<'_, HashMap<PathBuf, Instant>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn written(&self, file: &Path) {
        let mut files = self.files();
        if files.len() < MOST || files.contains_key(file) {
            files.insert(file.to_owned(), Instant::now());
        }
    }

    pub(super) fn closed(&self, file: &Path) {
        self.files().remove(file);
    }

    /// Those that somebody writes now, links followed, and how long that counts at most.
    pub fn now(&self) -> (BTreeSet<PathBuf>, Option<Duration>) {
        if let Some(hear) = self.hear.get() {
            hear();
        }
        let mut files = self.files();
        files.retain(|_, at| at.elapsed() < LONGEST);
        let left = files.values().map(|at| LONGEST.saturating_sub(at.elapsed())).max();
        let real = |file: &PathBuf| file.canonicalize().unwrap_or_else(|_| file.clone());
        (files.keys().map(real).collect(), left)
    }
}
