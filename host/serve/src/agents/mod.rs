//! The agents that are served. Their files may change while they are: each agent is exchanged as a whole, and what cannot be loaded
//! leaves the revision before it.

pub(crate) mod bundle;
mod folders;
pub(crate) mod refresh;
pub(crate) mod sent;
mod trouble;
mod unit;
pub(crate) mod watch;
pub(crate) mod watching;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use hotcell_runtime::diagnostic::Diagnostic;
use hotcell_runtime::file_watch::{Folders, Noticed, Written};
use hotcell_runtime::{Agent, Host, LoadFailure};

use self::refresh::Loaded;
pub(crate) use self::trouble::Trouble;
use self::unit::Unit;
use crate::problem::{Problem, shown};
use crate::store::{Store, StoreError};

/// The agents that are served, by what runs name them by.
pub(crate) struct Agents {
    host: Host,
    roots: Arc<[Root]>,
    store: Store,
    now: RwLock<Arc<Served>>,
    /// Held while it is looked what was changed
    refreshing: tokio::sync::Mutex<()>,
    written: Arc<Written>,
    /// Held while an agent is taken or removed that was sent
    sending: tokio::sync::Mutex<()>,
    /// Held while it is decided what plugins are granted
    pub(crate) deciding: tokio::sync::Mutex<()>,
}

/// A folder below which everything is served, or a file.
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    /// Whether what is there was sent to the server, so that nothing counts of what it brings
    pub(crate) is_sent: bool,
}

/// What is served at one moment.
#[derive(Default)]
struct Served {
    units: BTreeMap<PathBuf, Arc<Unit>>,
    by_id: BTreeMap<String, Arc<Agent>>,
    by_source: HashMap<String, String>,
    /// Why what the files say now is not served, by what agents would be called
    troubled: BTreeMap<String, Arc<Trouble>>,
    /// Files that are not served because another one has the same id, each with what to do
    clashes: Vec<(PathBuf, String)>,
    /// Agents whose files were removed: what is under way of them ends
    retired: HashMap<String, String>,
}

/// A file that looks like an agent and is none that can be served.
pub(crate) struct NotServed {
    pub(crate) path: PathBuf,
    pub(crate) failure: LoadFailure,
}

impl Agents {
    /// Finds and loads what is below some folders; what cannot be loaded is left out.
    ///
    /// # Errors
    /// When what is kept of earlier ones cannot be read, or two of them have the same id and somebody is there who `decides` which is
    /// meant; the one that is found later is left out otherwise.
    pub(crate) async fn load(host: Host, store: Store, roots: Vec<Root>, decides: bool) -> Result<Self, LoadError> {
        let retired = store.retired_agents()?;
        let served = Served { retired: retired.into_iter().collect(), ..Served::default() };
        let (now, refreshing) = (RwLock::new(Arc::new(served)), tokio::sync::Mutex::default());
        for sent in roots.iter().filter(|root| root.is_sent) {
            sent::recover(&sent.path).map_err(|cause| LoadError::Sent { path: sent.path.clone(), cause })?;
        }
        let (written, sending, deciding) = Default::default();
        let roots = roots.into();
        let agents = Agents { host, roots, store, now, refreshing, written, sending, deciding };
        let Loaded { clashes, .. } = agents.refresh().await?;
        match clashes.into_iter().next() {
            Some((_, clash)) if decides => Err(LoadError::Clash(clash)),
            _ => Ok(agents),
        }
    }

    fn now(&self) -> Arc<Served> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What cannot be served at all.
    pub(crate) fn not_served(&self) -> Vec<NotServed> {
        let now = self.now();
        let clashes = now
            .clashes
            .iter()
            .map(|(path, clash)| NotServed { path: path.clone(), failure: Diagnostic::error(clash.as_str()).into() });
        let broken = now.units.iter().filter(|(_, unit)| unit.agents.is_empty());
        let failure = |(path, unit): (&PathBuf, &Arc<Unit>)| {
            let trouble = unit.trouble.as_ref()?;
            let failure = trouble.failure.clone().unwrap_or_else(|| Diagnostic::error(trouble.detail.as_str()).into());
            Some(NotServed { path: path.clone(), failure })
        };
        broken.filter_map(failure).chain(clashes).collect()
    }

    /// All of them, in the order of their ids.
    pub(crate) fn all(&self) -> Vec<(String, Arc<Agent>)> {
        self.now().by_id.iter().map(|(id, agent)| (id.clone(), agent.clone())).collect()
    }

    /// The agent of an id, or of a name that no other one has.
    pub(crate) fn find(&self, name: &str) -> Result<(String, Arc<Agent>), Problem> {
        let now = self.now();
        if let Some((id, agent)) = now.by_id.get_key_value(name) {
            return Ok((id.clone(), agent.clone()));
        }
        let mut named = now.by_id.iter().filter(|(_, agent)| agent.graph.name == name);
        match (named.next(), named.next()) {
            (Some((id, agent)), None) => Ok((id.clone(), agent.clone())),
            (Some((one, _)), Some((other, _))) => {
                let detail = format!("several agents are called `{}`: `{one}` and `{other}`; use the id", shown(name));
                Err(Problem::conflict(detail).kind("agent-ambiguous", "Several agents have this name"))
            }
            (None, _) => match now.troubled.get(name) {
                Some(trouble) => {
                    let detail = format!("agent `{}` cannot be served: {}", shown(name), trouble.detail);
                    Err(Problem::conflict(detail).kind("agent-broken", "The agent cannot be loaded"))
                }
                None => {
                    let near = hotcell_graph::closest(name, now.by_id.keys().map(String::as_str));
                    let help = match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => "`POST /agents/search` lists them".to_owned(),
                    };
                    let detail = format!("there is no agent `{}`; {help}", shown(name));
                    Err(Problem::not_found(detail).kind("unknown-agent", "There is no such agent"))
                }
            },
        }
    }

    /// Why what the files of an agent say now is not served.
    pub(crate) fn trouble_of(&self, id: &str) -> Option<Arc<Trouble>> {
        self.now().troubled.get(id).cloned()
    }

    /// Where all of them were loaded from, and those that are served no more.
    pub(crate) fn sources(&self) -> Vec<String> {
        let now = self.now();
        now.by_source.keys().chain(now.retired.keys()).cloned().collect()
    }

    /// The id of the agent that a run was loaded from, if it is served or was.
    pub(crate) fn id_of(&self, source: &str) -> Option<String> {
        let now = self.now();
        now.by_source.get(source).or_else(|| now.retired.get(source)).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.now().by_id.len()
    }

    /// The folders in which something can change that concerns what is served.
    async fn folders(&self) -> Folders {
        let (now, roots) = (self.now(), self.roots.clone());
        let find = move || {
            let roots = roots.iter().flat_map(|root| folders::below(&root.path));
            let fresh = now.units.values().flat_map(|unit| unit.fresh.folders());
            let mut folders = Folders::new();
            for (folder, noticed) in roots.chain(fresh.map(|folder| (folder, Noticed::Writing))) {
                // One folder by two ways is watched once.
                let known = folders.entry(folder.canonicalize().unwrap_or(folder)).or_insert(noticed);
                *known = noticed.max(*known);
            }
            folders
        };
        tokio::task::spawn_blocking(find).await.unwrap_or_default()
    }
}

/// Why agents cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// Two agents would have the same id
    #[error("{0}")]
    Clash(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder of agents that were sent cannot be used
    #[error("the folder {path} of agents that were sent cannot be used: {cause}", path = .path.display())]
    Sent { path: PathBuf, cause: std::io::Error },
}

/// Whether a file lies below a folder, however one comes there.
fn lies_below(file: &str, folder: &Path) -> bool {
    real(folder).is_some_and(|folder| Path::new(file).starts_with(folder))
}

/// Where a folder is, links followed.
fn real(folder: &Path) -> Option<PathBuf> {
    folder.canonicalize().or_else(|_| std::path::absolute(folder)).ok()
}
