//! Folders that are watched.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is noticed in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Noticed {
    /// What comes and goes
    Names,
    /// What is written, too
    Writing,
}

/// Folders that are watched, each with what is noticed in it.
pub type Folders = BTreeMap<PathBuf, Noticed>;
