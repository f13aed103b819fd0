//! How many bytes are kept in a folder.

use std::path::Path;

/// How deep below a folder files count, and how many of them: it has a few.
const DEPTH: usize = 4;
const MOST: usize = 10_000;

/// The bytes of the files in a folder, but for those whose paths begin with this. What cannot be looked at does not count.
pub(super) fn size(folder: &Path, but_for: &str) -> u64 {
    let mut left = MOST;
    sum(folder, but_for, DEPTH, &mut left)
}

fn sum(folder: &Path, but_for: &str, depth: usize, left: &mut usize) -> u64 {
    let mut bytes = 0_u64;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if *left == 0 {
            break;
        }
        *left -= 1;
        // Of the entry itself: a link is not followed.
        let Ok(metadata) = entry.metadata() else { continue };
        if entry.path().as_os_str().as_encoded_bytes().starts_with(but_for.as_bytes()) {
            continue;
        }
        bytes = bytes.saturating_add(match metadata.is_dir() {
            true if depth > 0 => sum(&entry.path(), but_for, depth - 1, left),
            true => 0,
            false => metadata.len(),
        });
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn files_in_folders_count() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("a/b")).expect("made");
        for (name, bytes) in [("one", 10), ("a/two", 20), ("a/b/three", 30), ("own.db", 5), ("own.db-wal", 5)] {
            std::fs::write(folder.path().join(name), vec![0; bytes]).expect("written");
        }
        let own = folder.path().join("own.db").display().to_string();
        assert_eq!(size(folder.path(), &own), 60);
        assert_eq!(size(&folder.path().join("none"), &own), 0);
    }
}
