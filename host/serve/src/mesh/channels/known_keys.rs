//! The keys of a provider that are known.

use std::sync::RwLock;
use std::time::SystemTime;

use super::token::Key;

/// The keys, as they were read last.
#[derive(Default)]
pub(in crate::mesh) struct Keys {
    pub(super) known: RwLock<Known>,
    /// Held while they are read
    pub(super) reading: tokio::sync::Mutex<()>,
}

/// What is known of them.
#[derive(Default)]
pub(super) struct Known {
    pub(super) keys: Vec<Key>,
    pub(super) algorithms: Vec<String>,
    pub(super) read: Option<SystemTime>,
    pub(super) failed: Option<(SystemTime, String)>,
}
