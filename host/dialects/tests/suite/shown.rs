//! Files that are read, and beside them what a person sees of each.

use std::path::{Path, PathBuf};

/// The YAML files of a folder, by name.
pub(crate) fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    paths
}

/// Snapshots are beside what they are of.
pub(crate) fn snapshots_in(folder: &Path) -> insta::Settings {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(folder.join("shown"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}
