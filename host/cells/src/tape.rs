//! What becomes of what a call takes from the host.

use std::sync::Arc;

use serde::Serialize;

use crate::recording::{HostFunction, Player, Recorder};

/// Whether a call is recorded, or executed again.
pub(crate) enum Tape {
    /// Neither
    Off,
    /// What it takes from the host is recorded
    Recording(Arc<Recorder>),
    /// What it takes from the host is what was recorded
    Playing(Arc<Player>),
}

impl Tape {
    /// What was recorded, where the call is executed again.
    pub(crate) fn player(&self) -> Option<&Arc<Player>> {
        match self {
            Self::Playing(player) => Some(player),
            Self::Off | Self::Recording(_) => None,
        }
    }

    /// Records a reply, where the call is recorded.
    pub(crate) fn note<T: Serialize>(&self, from: HostFunction, asked: impl FnOnce() -> String, gave: &T) {
        if let Self::Recording(recorder) = self {
            recorder.note(from, asked(), gave);
        }
    }
}
