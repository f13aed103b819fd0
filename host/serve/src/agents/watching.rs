//! How it is noticed that files of agents change.

use std::time::Duration;

/// How it is noticed that files of agents change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watching {
    /// The system tells of it; where it cannot, it is looked once a second, and less often where looking takes long
    #[default]
    Events,
    /// It is looked so often: for network file systems, of which the system does not tell what others change
    Every(Duration),
    /// Not at all
    Never,
}
