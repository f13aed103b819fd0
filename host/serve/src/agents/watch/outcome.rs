//! What came of watching folders.

/// What came of watching folders.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    /// Whether all of them are watched
    pub(super) is_told: bool,
    /// Whether some were not before
    pub(super) is_more: bool,
}
