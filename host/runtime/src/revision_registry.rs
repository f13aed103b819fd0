//! What is current: for each agent the revision that runs begin with from now on. Runs that have begun are not concerned.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use futures::future::join_all;
use tokio::sync::watch;

use crate::agent::{Agent, LoadFailure};
use crate::host::Host;

/// The current revisions of agents, by the paths that they are known by. Each is swapped as a whole: whoever asks gets the old one
/// or the new one.
pub struct RevisionRegistry {
    host: Host,
    slots: Mutex<BTreeMap<PathBuf, Arc<Slot>>>,
    changes: watch::Sender<u64>,
}

/// The place of an agent.
#[derive(Default)]
struct Slot {
    current: RwLock<Option<Arc<Agent>>>,
    /// Held by whoever loads it: others who want the same agent wait for that, and nobody else does
    loading: tokio::sync::Mutex<()>,
}

impl Slot {
    fn current(&self) -> Option<Arc<Agent>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl RevisionRegistry {
    /// An empty registry of a host's agents.
    pub fn new(host: Host) -> Self {
        RevisionRegistry { host, slots: Mutex::default(), changes: watch::Sender::new(0) }
    }

    /// The host whose agents these are.
    pub fn host(&self) -> &Host {
        &self.host
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, path: &Path) -> Arc<Slot> {
        self.slots().entry(path.to_owned()).or_default().clone()
    }

    /// The current revision of an agent; it is loaded if nobody has asked for it before.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub async fn get(&self, path: &Path) -> Result<Arc<Agent>, LoadFailure> {
        let slot = self.slot(path);
        if let Some(agent) = slot.current() {
            return Ok(agent);
        }
        let _loading = slot.loading.lock().await;
        match slot.current() {
            Some(agent) => Ok(agent),
            None => self.load(&slot, path).await,
        }
    }

    /// Loads an agent anew. What its files say now becomes current if it is anything else than before; what cannot be loaded leaves
    /// the current revision as it is.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub async fn refresh(&self, path: &Path) -> Result<Arc<Agent>, LoadFailure> {
        let slot = self.slot(path);
        let _loading = slot.loading.lock().await;
        self.load(&slot, path).await
    }

    /// Loads several agents anew, side by side; the results are in the order of the paths.
    pub async fn refresh_all(&self, paths: &[PathBuf]) -> Vec<Result<Arc<Agent>, LoadFailure>> {
        join_all(paths.iter().map(|path| self.refresh(path))).await
    }

    async fn load(&self, slot: &Slot, path: &Path) -> Result<Arc<Agent>, LoadFailure> {
        let loaded = Arc::new(self.host.load_async(path).await?);
        let mut current = slot.current.write().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            // What it has compiled and opened serves on.
            Some(known) if known.digest() == loaded.digest() => return Ok(known.clone()),
            _ => *current = Some(loaded.clone()),
        }
        drop(current);
        self.changes.send_modify(|version| *version += 1);
        Ok(loaded)
    }

    /// Forgets an agent; it is loaded again when somebody asks for it.
    pub fn remove(&self, path: &Path) {
        if self.slots().remove(path).is_some_and(|slot| slot.current().is_some()) {
            self.changes.send_modify(|version| *version += 1);
        }
    }

    /// The current revisions, in the order of their paths.
    pub fn all(&self) -> Vec<Arc<Agent>> {
        let slots: Vec<Arc<Slot>> = self.slots().values().cloned().collect();
        slots.iter().filter_map(|slot| slot.current()).collect()
    }

    /// Changes with each revision that becomes current or is forgotten.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
