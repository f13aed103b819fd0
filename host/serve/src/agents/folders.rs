//! Which folders are watched.

use std::path::Path;

use hotcell_runtime::file_watch::{Folders, Noticed};

/// How deep below a folder others are watched.
const DEPTH: usize = 8;
/// Folders that are watched below one; in further ones it is not noticed when something changes.
const MOST: usize = 8192;
/// Folders with what tools of other languages put there.
const SKIPPED: [&str; 4] = ["node_modules", "target", "venv", "__pycache__"];

/// The folders below a path in which agents may come or go, and the one that holds it. Links are not followed.
pub(super) fn below(path: &Path) -> Folders {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // That it comes back is seen there. What is written beside it is not looked at: journals are, at every commit.
    let noticed = if path.is_file() { Noticed::Writing } else { Noticed::Names };
    let holder = path.ancestors().skip(1).find(|folder| folder.is_dir()).map(Path::to_path_buf);
    let mut folders: Folders = holder.into_iter().map(|holder| (holder, noticed)).collect();
    let mut next = vec![(path, DEPTH)];
    while let Some((folder, depth)) = next.pop() {
        if folders.len() >= MOST {
            tracing::warn!(target: "hotcell::serve", "there are more folders than are watched");
            break;
        }
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        if depth > 0 {
            for entry in entries.flatten() {
                let name = entry.file_name();
                let is_skipped =
                    SKIPPED.iter().any(|skipped| name == *skipped) || name.to_string_lossy().starts_with('.');
                if !is_skipped && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    next.push((entry.path(), depth - 1));
                }
            }
        }
        folders.insert(folder, Noticed::Writing);
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_not_followed_and_what_is_gone_is_waited_for_where_it_was() {
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().join("agents");
        for folder in ["a/plugins", "node_modules/x", ".git"] {
            std::fs::create_dir_all(root.join(folder)).expect("made");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("/", root.join("a/link")).expect("linked");
        let beside = (place.path().to_owned(), Noticed::Names);
        let within = [root.clone(), root.join("a"), root.join("a/plugins")].map(|folder| (folder, Noticed::Writing));
        let expected: Folders = std::iter::once(beside.clone()).chain(within).collect();
        assert_eq!(below(&root), expected);
        std::fs::remove_dir_all(&root).expect("removed");
        assert_eq!(below(&root), Folders::from([beside]));
        std::fs::write(&root, "name: a").expect("written");
        assert_eq!(below(&root), Folders::from([(place.path().to_owned(), Noticed::Writing)]));
    }
}
