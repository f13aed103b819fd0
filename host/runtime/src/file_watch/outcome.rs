//! What came of watching folders.

use std::io::Error;
use std::path::PathBuf;

/// What came of watching folders.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Whether the system tells of all changes in them. It does not where they are not watched, or are on a network file system, where
    /// others may change them
    pub(super) is_told: bool,
    /// Whether some were not watched before
    pub(super) is_more: bool,
    /// The first folder that could not be watched, and why. It is named once
    pub(super) refused: Option<(PathBuf, Error)>,
}
