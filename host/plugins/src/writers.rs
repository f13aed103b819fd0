//! Whether somebody is granted to write what decides about folders.
//!
//! Where a folder counts as it is, and not as it was when the operator looked at it, whoever may write its `hotcell.toml` grants
//! themselves anything: the next time that it is read, it is believed. The same goes for other folders, and for the list of those that are
//! trusted. So nothing counts of a folder in which that is granted. A folder that is trusted as it was when the operator looked at it needs
//! no such check of what lies in it: trust in it ends with the change.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use hotcell_cells::Access;
use hotcell_files::{Entry, Folder};
use thiserror::Error;

use crate::footprint::{self, SERVERS_FILE};
use crate::lock::LOCK_FILE;
use crate::settings::{SETTINGS_FILE, Settings};

/// Links that are followed on the way to one file.
const MAX_LINKS: usize = 40;
/// How deep, and among how many entries, folders of other agents are looked for in a directory.
const MAX_DEPTH: usize = 8;
const MAX_ENTRIES: usize = 10_000;

/// Somebody is granted to write what decides.
#[derive(Debug, Error)]
#[error(
    "`{name}` is granted the directory `{directory}` for writing, and could write `{file}` there, which decides what is granted; \
     {remedy}",
    directory = directory.display(),
    file = file.display()
)]
pub struct WritesWhatDecides {
    name: String,
    directory: PathBuf,
    file: PathBuf,
    remedy: &'static str,
}

/// What to do where trust in the folder as it is now would do, too.
const OR_TRUST: &str = "grant another directory, or this one for reading only, or let the folder count as it is now and not as it is \
                        at any time: trust it with `hotcell trust`, and not with `--trust` or `trust = true`";
const ANOTHER: &str = "grant another directory, or this one for reading only";

/// Refuses what is granted in a folder that counts as it is, where somebody could write what decides in it or in the folder of another
/// agent.
pub(crate) fn check(folder: &Path, settings: &Settings) -> Result<(), WritesWhatDecides> {
    for (name, directory) in writable(settings) {
        let own = || footprint::places(folder, settings).into_iter().find(|place| is_reached(place, directory));
        let packages = || settings.python_path().iter().find(|packages| lies_within(directory, packages)).cloned();
        let written = own().or_else(packages).or_else(|| decides_above(directory)).or_else(|| decides_below(directory));
        if let Some(file) = written {
            return Err(WritesWhatDecides {
                name: name.to_owned(),
                directory: directory.to_owned(),
                file,
                remedy: OR_TRUST,
            });
        }
    }
    Ok(())
}

/// Refuses what is granted in a folder, where somebody could write the list of trusted folders.
pub(crate) fn check_list(list: &Path, settings: &Settings) -> Result<(), WritesWhatDecides> {
    let list = std::path::absolute(list).unwrap_or_else(|_| list.to_owned());
    match writable(settings).find(|(_, directory)| is_reached(&list, directory)) {
        None => Ok(()),
        Some((name, directory)) => Err(WritesWhatDecides {
            name: name.to_owned(),
            directory: directory.to_owned(),
            file: list,
            remedy: ANOTHER,
        }),
    }
}

/// Whether somebody is granted to write a file.
pub(crate) fn may_be_written(file: &Path, settings: &Settings) -> bool {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    writable(settings).any(|(_, directory)| is_reached(&file, directory))
}

/// The directories that are granted for writing, and to whom.
fn writable(settings: &Settings) -> impl Iterator<Item = (&str, &Path)> {
    settings.all_grants().iter().flat_map(|(name, grants)| {
        let directories = grants.fs.iter().filter(|directory| directory.access == Access::ReadWrite);
        directories.map(move |directory| (name.as_str(), directory.host.as_path()))
    })
}

/// Whether whoever may write into a directory may write what a path leads to, or make it lead elsewhere.
fn is_reached(path: &Path, directory: &Path) -> bool {
    let itself = identity(directory);
    let is_it = |above: &Path| above == directory || (itself.is_some() && identity(above) == itself);
    passed(path).iter().any(|place| place.ancestors().skip(1).any(is_it))
}

/// Whether a directory is another one, lies in it, or around it.
fn lies_within(directory: &Path, other: &Path) -> bool {
    is_reached(&other.join("*"), directory) || is_reached(&directory.join("*"), other)
}

/// The links on the way along a path, each by a path without links, and what it leads to in the end.
fn passed(path: &Path) -> Vec<PathBuf> {
    let mut passed = Vec::new();
    let mut path = path.to_path_buf();
    loop {
        let ways: Vec<&Path> = path.ancestors().collect();
        let link = ways.into_iter().rev().find(|way| way.symlink_metadata().is_ok_and(|found| found.is_symlink()));
        let link = link.map(Path::to_path_buf);
        let target = link.as_ref().filter(|_| passed.len() < MAX_LINKS).and_then(|link| link.read_link().ok());
        let (Some(link), Some(target)) = (link, target) else {
            passed.push(path);
            return passed;
        };
        let mut next = link.parent().unwrap_or(Path::new("/")).join(target);
        // A path that ends with a separator would be followed.
        if let Some(rest) = path.strip_prefix(&link).ok().filter(|rest| !rest.as_os_str().is_empty()) {
            next.push(rest);
        }
        passed.push(link);
        path = next;
    }
}

/// What a directory is, however it is written, on a file system that ignores case, too.
#[cfg(unix)]
fn identity(directory: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = directory.metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(directory: &Path) -> Option<PathBuf> {
    directory.canonicalize().ok()
}

/// What decides in a folder around a directory and could be written there: a script or a plugin, say.
fn decides_above(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().find_map(|above| {
        let root = Folder::new(above);
        let is_there = |name: &str| root.entry(Path::new(name)) != Entry::Missing;
        if ![SETTINGS_FILE, LOCK_FILE, SERVERS_FILE].into_iter().any(is_there) {
            return None;
        }
        let text = Settings::text(above).ok().flatten();
        let settings = text.and_then(|text| Settings::of_folder(above, &text).ok()).unwrap_or_default();
        footprint::places(above, &settings).into_iter().find(|place| is_reached(place, directory))
    })
}

/// What decides in a folder below a directory.
fn decides_below(directory: &Path) -> Option<PathBuf> {
    let decides = |name: &OsStr| [SETTINGS_FILE, LOCK_FILE].iter().any(|file| name.eq_ignore_ascii_case(file));
    let mut left = MAX_ENTRIES;
    let mut folders = VecDeque::from([(directory.to_owned(), 0)]);
    while let Some((folder, depth)) = folders.pop_front() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.filter_map(Result::ok).take(left) {
            left -= 1;
            if decides(&entry.file_name()) {
                return Some(entry.path());
            }
            if depth < MAX_DEPTH && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push_back((entry.path(), depth + 1));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests;
