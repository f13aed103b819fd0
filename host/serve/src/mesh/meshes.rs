//! The meshes that are served, and what is kept of them while they are.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use hotcell_runtime::leafmesh::MeshSettings;
use hotcell_runtime::{Agent, RunId};
use http::HeaderValue;
use serde_json::Value;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::channels::{Kept, Keys};
use super::healing::Health;
use super::score::Scores;
use super::senders::Senders;
use super::store::SessionKey;
use crate::agents::Agents;
use crate::locks::Locks;
use crate::problem::Problem;

/// Events that are kept for whoever reads them slowly.
const KEPT: usize = 4096;

/// Where pages are usually tried.
const DEVELOPMENT: [&str; 5] = [
    "http://localhost:3000",
    "http://localhost:3001",
    "http://localhost:5173",
    "http://localhost:5174",
    "http://localhost:8080",
];

/// The meshes that are served.
pub(crate) struct Meshes {
    meshes: RwLock<Vec<Arc<Mesh>>>,
    /// What happens in them
    events: broadcast::Sender<Value>,
    pub(super) tasks: TaskTracker,
    /// How well they do what is expected of them
    pub(super) scores: Scores,
}

/// A mesh that is served, as it was loaded last.
pub(crate) struct Mesh {
    pub(super) agent: Arc<Agent>,
    /// As its file says
    pub(super) in_file: Arc<Agent>,
    pub(super) settings: MeshSettings,
    /// What is kept of it however often it is loaded again
    pub(super) doing: Arc<Doing>,
}

/// What is kept of a mesh while it is served.
#[derive(Default)]
pub(super) struct Doing {
    /// Held while something is begun in a session, or answered
    pub(super) sessions: Locks<SessionKey>,
    pub(super) senders: Senders,
    /// Questions that are being posted
    pub(super) posting: Posting,
    /// Runs whose entries are being acted on, and how often that was asked for
    pub(super) tended: Mutex<HashMap<RunId, u64>>,
    /// Held while somebody is told of a failure
    pub(super) telling: Locks<String>,
    /// Held while a message of a chat is acted on
    pub(super) chats: Locks<String>,
    /// What is kept of replies of chat providers
    pub(super) kept: Kept,
    /// The keys that tokens of Teams are signed with
    pub(super) keys: Keys,
    /// How its agents have done of late
    pub(super) health: Health,
    /// Cancelled when its agents wake up at other times
    pub(super) waking: Mutex<CancellationToken>,
    /// Held while its settings are changed
    pub(super) changing: tokio::sync::Mutex<()>,
}

impl Meshes {
    /// The meshes among the agents.
    pub(crate) fn of(agents: &Agents) -> Self {
        let meshes = RwLock::new(agents.all().into_iter().filter_map(|(_, agent)| Mesh::of(agent)).collect());
        let (events, tasks, scores) = (broadcast::Sender::new(KEPT), TaskTracker::new(), Scores::default());
        Meshes { meshes, events, tasks, scores }
    }

    /// The one that is served.
    pub(super) fn only(&self) -> Result<Arc<Mesh>, Problem> {
        match &self.meshes.read().unwrap_or_else(PoisonError::into_inner)[..] {
            [mesh] => Ok(mesh.clone()),
            [] => Err(Problem::not_found("no mesh is served here")),
            several => {
                let detail = format!(
                    "{} meshes are served, and these addresses belong to one: give each a server of its own",
                    several.len()
                );
                Err(Problem::conflict(detail))
            }
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<Mesh>> {
        self.meshes.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves the mesh from now on as it was loaded again: `in_file` is what its file says. What is under way ends as it began.
    pub(super) fn exchange(&self, mesh: &Mesh, agent: Arc<Agent>, in_file: Arc<Agent>) {
        let Some(settings) = agent.mesh().cloned() else { return };
        let exchanged = Arc::new(Mesh { agent, in_file, settings, doing: mesh.doing.clone() });
        let mut meshes = self.meshes.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = meshes.iter_mut().find(|known| Arc::ptr_eq(&known.doing, &mesh.doing)) {
            *known = exchanged;
        }
    }

    /// Serves a mesh from now on that was not there before.
    pub(super) fn add(&self, agent: Arc<Agent>) {
        self.meshes.write().unwrap_or_else(PoisonError::into_inner).extend(Mesh::of(agent));
    }

    /// Serves a mesh no more, and wakes none of its agents.
    pub(super) fn remove(&self, mesh: &Mesh) {
        let mut meshes = self.meshes.write().unwrap_or_else(PoisonError::into_inner);
        meshes.retain(|known| !Arc::ptr_eq(&known.doing, &mesh.doing));
        mesh.doing.waking.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    /// Whether pages of this origin may use the server: those that the mesh lists, and, while it is developed, those that are
    /// usually tried on this machine.
    pub(crate) fn lets_in(&self, origin: &HeaderValue) -> bool {
        let Ok(mesh) = self.only() else { return false };
        let is_tried = !mesh.settings.is_production && DEVELOPMENT.iter().any(|own| origin == own);
        is_tried || mesh.settings.cors_origins.iter().any(|listed| origin == listed)
    }

    /// What happens from now on.
    pub(crate) fn events(&self) -> broadcast::Receiver<Value> {
        self.events.subscribe()
    }

    pub(crate) async fn end(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    pub(super) fn tell(&self, event: Value) {
        // Nobody needs to listen.
        let _ = self.events.send(event);
    }
}

impl Mesh {
    /// The mesh that an agent is, if it is one.
    fn of(agent: Arc<Agent>) -> Option<Arc<Self>> {
        let settings = agent.mesh()?.clone();
        Some(Arc::new(Mesh { in_file: agent.clone(), agent, settings, doing: Arc::default() }))
    }
}

/// Questions that are being posted.
#[derive(Default)]
pub(super) struct Posting(Mutex<HashSet<String>>);

impl Posting {
    /// Whether nobody does that yet.
    pub(super) fn begin(&self, request: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(request.to_owned())
    }

    pub(super) fn end(&self, request: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(request);
    }
}
