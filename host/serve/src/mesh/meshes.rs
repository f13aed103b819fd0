//! The meshes that are served, and what is kept of them while they are.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use hotcell_runtime::leafmesh::MeshSettings;
use hotcell_runtime::{Agent, Clock, Counted, RunId};
use http::HeaderValue;
use serde_json::Value;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::channels::kept::Kept;
use super::channels::known_keys::Keys;
use super::health::Health;
use super::scores::Scores;
use super::senders::Senders;
use super::store::{SCOPE_END, SessionKey};
use crate::agents::Agents;
use crate::locks::Locks;
use crate::problem::{Problem, shown};
use crate::store::{Store, StoreError};

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
    /// Runs whose entries are to be acted on from now on, for the one task that takes them
    to_tend: (mpsc::UnboundedSender<ToTend>, tokio::sync::Mutex<mpsc::UnboundedReceiver<ToTend>>),
}

/// A run whose entries are to be acted on from now on.
pub(super) struct ToTend {
    pub(super) mesh: Arc<Mesh>,
    pub(super) run: RunId,
    /// Somebody is at work from the moment that it was asked for
    pub(super) working: Counted,
}

/// Behind this, an address names one of several meshes.
pub(crate) const MESHES: &str = "/meshes/";
/// The fact that names the file of the mesh that was there first: what is kept of it is kept under the names that it has itself.
const FIRST: &str = "first_mesh";
/// The fact that says what that mesh calls itself.
const FIRST_NAME: &str = "first_mesh_name";

/// The mesh that an address names.
#[derive(Clone, Debug)]
pub(crate) struct NamedMesh(pub(crate) String);

/// A mesh that is served, as it was loaded last.
pub(crate) struct Mesh {
    /// What addresses call it where there are several
    pub(super) id: String,
    /// What the names begin with under which things of it are kept: nothing for the mesh that was there first
    pub(super) scope: Arc<str>,
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
    pub(crate) fn of(agents: &Agents, store: &Store) -> Result<Self, StoreError> {
        let found: Vec<_> = agents.all().into_iter().filter(|(_, agent)| agent.mesh().is_some()).collect();
        let mut meshes = Vec::with_capacity(found.len());
        for (id, agent) in &found {
            meshes.extend(Mesh::of(id, agent.clone(), scope(store, agent, found.len() == 1)?));
        }
        let (events, tasks, scores) = (broadcast::Sender::new(KEPT), TaskTracker::new(), Scores::default());
        let (asked, taken) = mpsc::unbounded_channel();
        let to_tend = (asked, tokio::sync::Mutex::new(taken));
        Ok(Meshes { meshes: RwLock::new(meshes), events, tasks, scores, to_tend })
    }

    /// The one that a request is for: the one that its address names, or the only one.
    pub(super) fn asked(&self, named: Option<&NamedMesh>) -> Result<Arc<Mesh>, Problem> {
        let meshes = self.all();
        match (named, &meshes[..]) {
            (Some(NamedMesh(name)), all) => {
                // It stands in an address, where letters of other scripts are written with `%`.
                let decoded = url::form_urlencoded::parse(name.as_bytes()).next();
                let found =
                    all.iter().find(|mesh| decoded.as_ref().is_some_and(|(name, _)| *name == *mesh.id)).cloned();
                found.ok_or_else(|| Problem::not_found(format!("no mesh `{}` is served here", shown(name))))
            }
            (None, [mesh]) => Ok(mesh.clone()),
            (None, []) => Err(Problem::not_found("no mesh is served here")),
            (None, several) => {
                let names: Vec<String> = several.iter().map(|mesh| format!("`{MESHES}{}`", mesh.id)).collect();
                let detail = format!(
                    "{} meshes are served, so an address says which is meant: it begins with {}",
                    several.len(),
                    names.join(" or ")
                );
                Err(Problem::conflict(detail).kind("mesh-ambiguous", "Several meshes are served"))
            }
        }
    }

    /// The one whose things are kept under names that begin like this.
    pub(super) fn of_scope(&self, scope: &str) -> Option<Arc<Mesh>> {
        self.all().into_iter().find(|mesh| *mesh.scope == *scope)
    }

    /// Where others reach a mesh: below its own name, where there are several.
    pub(super) fn base_url(&self, base: String, mesh: &Mesh) -> String {
        match self.all().len() {
            0 | 1 => base,
            _ => {
                let id: String = url::form_urlencoded::byte_serialize(mesh.id.as_bytes()).collect();
                format!("{base}{MESHES}{id}")
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
        let (id, scope) = (mesh.id.clone(), mesh.scope.clone());
        let exchanged = Arc::new(Mesh { id, scope, agent, in_file, settings, doing: mesh.doing.clone() });
        let mut meshes = self.meshes.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = meshes.iter_mut().find(|known| Arc::ptr_eq(&known.doing, &mesh.doing)) {
            *known = exchanged;
        }
    }

    /// Serves a mesh from now on that was not there before.
    pub(super) fn add(&self, store: &Store, id: &str, agent: Arc<Agent>) -> Result<(), StoreError> {
        let scope = scope(store, &agent, self.all().is_empty())?;
        self.meshes.write().unwrap_or_else(PoisonError::into_inner).extend(Mesh::of(id, agent, scope));
        Ok(())
    }

    /// Serves a mesh no more, and wakes none of its agents.
    pub(super) fn remove(&self, mesh: &Mesh) {
        let mut meshes = self.meshes.write().unwrap_or_else(PoisonError::into_inner);
        meshes.retain(|known| !Arc::ptr_eq(&known.doing, &mesh.doing));
        mesh.doing.waking.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    /// Whether pages of this origin may use a mesh: those that it lists, and, while it is developed, those that are usually tried on
    /// this machine.
    pub(crate) fn lets_in(&self, origin: &HeaderValue, named: Option<&NamedMesh>) -> bool {
        let Ok(mesh) = self.asked(named) else { return false };
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

    /// Asks that what happens in a run of the mesh with this scope is acted on from now on, until the run rests. What follows from
    /// a run may begin another one: so it is not done here, but by the task that takes what was asked for.
    pub(super) fn tend(&self, clock: &dyn Clock, scope: &str, run: &RunId) {
        let Some(mesh) = self.of_scope(scope) else { return };
        {
            let mut tended = mesh.doing.tended.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(asked) = tended.get_mut(run) {
                *asked += 1;
                return;
            }
            tended.insert(run.clone(), 1);
        }
        // When the server has closed nobody takes it any more, and its next start finds it.
        let _ = self.to_tend.0.send(ToTend { mesh, run: run.clone(), working: clock.working() });
    }

    /// The next run whose entries are to be acted on.
    pub(super) async fn next_to_tend(&self) -> Option<ToTend> {
        self.to_tend.1.lock().await.recv().await
    }

    /// Lets go of all runs whose entries were to be acted on, and takes no more of them.
    pub(super) async fn tend_no_more(&self) {
        let mut taken = self.to_tend.1.lock().await;
        taken.close();
        while taken.try_recv().is_ok() {}
    }

    pub(super) fn tell(&self, event: Value) {
        // Nobody needs to listen.
        let _ = self.events.send(event);
    }
}

impl Mesh {
    /// The mesh that an agent is, if it is one.
    fn of(id: &str, agent: Arc<Agent>, scope: Arc<str>) -> Option<Arc<Self>> {
        let settings = agent.mesh()?.clone();
        let id = id.to_owned();
        Some(Arc::new(Mesh { id, scope, in_file: agent.clone(), agent, settings, doing: Arc::default() }))
    }

    /// The name under which something of the mesh is kept.
    pub(super) fn own(&self, name: &str) -> String {
        format!("{}{name}", self.scope)
    }

    /// What something is called in the mesh that is kept under this name, if it is of this mesh.
    pub(super) fn of_own<'n>(&self, name: &'n str) -> Option<&'n str> {
        name.strip_prefix(&*self.scope).filter(|own| !own.contains(SCOPE_END))
    }
}

/// What the names begin with under which things of a mesh are kept. One that is served alone, and is called as the first one was, takes
/// over what is kept of that: its file has another place now.
fn scope(store: &Store, agent: &Agent, is_only: bool) -> Result<Arc<str>, StoreError> {
    let (source, name) = (agent.source(), agent.mesh().map_or("", |settings| settings.name.as_str()));
    let own = scope_of(source);
    let is_first = match store.mesh_fact(FIRST)? {
        None => true,
        Some(first) if first == source => return Ok("".into()),
        Some(_) => {
            is_only && !store.has_sessions(&own)? && store.mesh_fact(FIRST_NAME)?.is_some_and(|first| first == name)
        }
    };
    if !is_first {
        return Ok(own.into());
    }
    store.remember(FIRST_NAME, name)?;
    store.remember(FIRST, source)?;
    Ok("".into())
}

/// What the names of a mesh begin with that was not there first.
fn scope_of(source: &str) -> String {
    format!("{}{SCOPE_END}", source.replace(SCOPE_END, " "))
}

/// The name under which what an agent uses is kept, whose mesh has this file.
pub(super) fn kept_name(store: &Store, source: &str, agent: &str) -> Result<String, StoreError> {
    Ok(match store.mesh_fact(FIRST)? {
        Some(first) if first != source => format!("{}{agent}", scope_of(source)),
        _ => agent.to_owned(),
    })
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
