//! How many bytes are kept in a folder.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::aside::aside;

/// How deep below a folder files count: deeper than anything that can be put there from outside.
const DEPTH: usize = 24;
/// How many files and folders are looked at.
const MOST: usize = 100_000;
/// Stands for the bytes of more files than are looked at, so that nobody keeps more unseen; more can be added to it.
const TOO_MANY: u64 = (1 << 53) - 1;
/// What looking may cost: one part in so many of the time. In between, what was found last counts.
const SHARE: u32 = 20;

/// How many bytes are kept in a folder, looked up from time to time.
#[derive(Default)]
pub(super) struct Stored(Mutex<Option<Looked>>);

/// What was found.
#[derive(Clone, Copy)]
struct Looked {
    at: Instant,
    took: Duration,
    bytes: u64,
}

impl Stored {
    /// The bytes of the files in a folder, but for those whose paths begin with this. What cannot be looked at does not count.
    pub(super) fn size(&self, folder: &Path, but_for: &str) -> u64 {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.filter(|last| last.at.elapsed() < last.took * SHARE) {
            return last.bytes;
        }
        let begun = Instant::now();
        let bytes = aside(|| size(folder, but_for));
        let looked = Looked { at: Instant::now(), took: begun.elapsed(), bytes };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(looked);
        bytes
    }
}

fn size(folder: &Path, but_for: &str) -> u64 {
    let mut left = MOST;
    sum(folder, but_for, DEPTH, &mut left).unwrap_or(TOO_MANY)
}

/// None if there is more than may be looked at.
fn sum(folder: &Path, but_for: &str, depth: usize, left: &mut usize) -> Option<u64> {
    let mut bytes = 0_u64;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        *left = left.checked_sub(1)?;
        // Of the entry itself: a link is not followed.
        let Ok(metadata) = entry.metadata() else { continue };
        if entry.path().as_os_str().as_encoded_bytes().starts_with(but_for.as_bytes()) {
            continue;
        }
        bytes = bytes.saturating_add(match metadata.is_dir() {
            true => sum(&entry.path(), but_for, depth.checked_sub(1)?, left)?,
            false => metadata.len(),
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{MOST, Stored, sum};

    #[test]
    fn files_in_folders_count_however_deep_they_lie() {
        let folder = tempfile::tempdir().expect("a folder");
        // As deep as a bundle may be, in the folder of its agent.
        let deep = format!("serve.agents/mine/{}", "d/".repeat(10));
        for below in ["a/b", &deep] {
            std::fs::create_dir_all(folder.path().join(below)).expect("made");
        }
        let far = format!("{deep}far");
        for (name, bytes) in
            [("one", 10), ("a/two", 20), ("a/b/three", 30), (&*far, 40), ("own.db", 5), ("own.db-wal", 5)]
        {
            std::fs::write(folder.path().join(name), vec![0; bytes]).expect("written");
        }
        let own = folder.path().join("own.db").display().to_string();
        assert_eq!(Stored::default().size(folder.path(), &own), 100);
        assert_eq!(Stored::default().size(&folder.path().join("none"), &own), 0);
    }

    #[test]
    fn more_than_is_looked_at_is_more_than_anything() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("a/b")).expect("made");
        for name in ["one", "a/two", "a/b/three"] {
            std::fs::write(folder.path().join(name), "x").expect("written");
        }
        let sum = |depth: usize, mut left: usize| sum(folder.path(), "own", depth, &mut left);
        assert_eq!((sum(2, MOST), sum(2, 5)), (Some(3), Some(3)));
        assert_eq!((sum(1, MOST), sum(2, 4)), (None, None));
    }
}
