//! Graphs that only so many runs may be in at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hotcell_graph::ir::Graph;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clock::Clock;

/// What a graph belongs to, its name, and how many calls of it are worked on at a time.
type Name = (String, String, u32);

/// The gates before graphs that limit how many calls of them are worked on at a time ([`Graph::at_once`]). Engines that share
/// them count together. Clones are the same gates.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    by_name: Arc<Mutex<HashMap<Name, Arc<Semaphore>>>>,
    /// What the graphs belong to: others may have the same names
    of: Arc<str>,
}

impl Gates {
    /// The gates before the graphs of this agent.
    #[must_use]
    pub fn of(&self, agent: &str) -> Self {
        Gates { by_name: self.by_name.clone(), of: agent.into() }
    }

    /// Waits until one more may work on a graph; it counts as long as what is returned is there.
    pub(crate) async fn enter(&self, graph: &Graph, clock: &dyn Clock) -> Option<OwnedSemaphorePermit> {
        let at_once = graph.at_once?;
        let gate = {
            let mut gates = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
            let name = (self.of.to_string(), graph.name.clone(), at_once);
            let places = usize::try_from(at_once).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
            gates.entry(name).or_insert_with(|| Arc::new(Semaphore::new(places))).clone()
        };
        // Whoever is within is counted by himself.
        let _waits = clock.idle();
        gate.acquire_owned().await.ok()
    }
}
