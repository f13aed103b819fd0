//! What a call asked for and was denied, collected for the operator.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::policy::{Capability, Denial};

/// Denials that are kept of one call: a guest that tries everything must not fill the host's memory.
const MAX_DENIALS: usize = 32;

/// The denials of one call, each once, in the order they happened. Cheap to clone; clones share the list.
#[derive(Clone)]
pub(crate) struct Denials {
    plugin: Arc<str>,
    list: Arc<Mutex<Vec<Denial>>>,
}

impl Denials {
    /// An empty list for the script or plugin with this name.
    pub(crate) fn new(plugin: &str) -> Self {
        Self { plugin: plugin.into(), list: Arc::default() }
    }

    pub(crate) fn add(&self, capability: Capability) {
        let denial = Denial { plugin: self.plugin.to_string(), capability };
        let mut list = self.list();
        if list.len() < MAX_DENIALS && !list.contains(&denial) {
            list.push(denial);
        }
    }

    pub(crate) fn take(&self) -> Vec<Denial> {
        std::mem::take(&mut *self.list())
    }

    fn list(&self) -> MutexGuard<'_, Vec<Denial>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
