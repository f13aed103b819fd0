//! The host: what a process needs to load and run agents.

mod options;
mod runs;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hotcell_cells::{CellsError, CompileEvent};
use hotcell_dialects::agent_spec::Exported;
use hotcell_engine::RunError;
use hotcell_journal::{JournalError, MemoryStore, Question, RunRecord, RunStatus, RunStore, SqliteStore};
use hotcell_knowledge::Embedder;
use hotcell_models::{Model, ModelError, ModelName, Providers, Recorder, Replay};
use hotcell_plugins::{AgentFolder, Catalogue, FolderError, Owner, SignaturePolicy, Stores, StoresError, Trust};
use thiserror::Error;

pub use self::options::{HostOptions, JournalChoice, ModelSource, OnProgress, Progress, StoresChoice};
pub use self::runs::Session;
use crate::agent::{self, Agent, LoadFailure, Loading, NotConverted, Which};
use crate::cells::{CellRuntime, OnCompile};
use crate::environment::Environment;
use crate::servers::{Connections, SERVERS_FILE};

/// The folder of plugins beside a graph.
const PLUGIN_FOLDER: &str = "plugins";

/// Why a host does not do what it was asked.
#[derive(Debug, Error)]
pub enum HostError {
    /// WebAssembly cannot be used here
    #[error(transparent)]
    Cells(#[from] CellsError),
    /// The environment names models that cannot be used
    #[error(transparent)]
    Models(#[from] ModelError),
    /// The journal failed
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run did not start or cannot go on
    #[error(transparent)]
    Run(#[from] RunError),
    /// The agent of a run cannot be loaded again
    #[error("the graph of run `{run}` cannot be loaded:\n{failure}")]
    Load {
        /// The run
        run: String,
        /// What is wrong
        failure: LoadFailure,
    },
    /// The graph of a run was changed
    #[error("`{file}` was changed since run `{run}` began; undo the change to go on with it, or start a new run", file = file.display())]
    Changed {
        /// The run
        run: String,
        /// The graph's file
        file: PathBuf,
    },
    /// The user's `config.toml` cannot be used
    #[error("cannot use `{file}`: {cause}", file = file.display())]
    Config {
        /// The file
        file: PathBuf,
        /// Why not
        cause: String,
    },
    /// A run waits for no answer
    #[error("run `{run}` is {status} and waits for no answer")]
    NothingAsked {
        /// The run
        run: String,
        /// How it stands
        status: RunStatus,
    },
    /// A run has several open questions, or none of the id that was given
    #[error("{}", which_question(.run, .named.as_deref(), .open))]
    WhichQuestion {
        /// The run
        run: String,
        /// The id that was given
        named: Option<String>,
        /// The questions that are open
        open: Vec<Question>,
    },
    /// A knowledge base cannot be used
    #[error("{0}")]
    Knowledge(String),
    /// Somebody stopped the work before the run began
    #[error("stopped before the run began; what is built of its knowledge bases is kept")]
    Stopped,
    /// Somebody stopped the work while another run of its thread was not done
    #[error("stopped while another run of the thread `{0}` was not done; nothing was begun")]
    ThreadBusy(String),
    /// There is no folder to keep things in
    #[error("there is no home folder to keep runs in; name a file with `--journal FILE`, or `--journal memory`")]
    NoHome,
}

fn which_question(run: &str, named: Option<&str>, open: &[Question]) -> String {
    let open: Vec<String> = open
        .iter()
        .map(|question| {
            let text: String = question.text.chars().take(60).collect();
            format!("{} (`{}`: {})", question.id, question.node, text.escape_debug())
        })
        .collect();
    let open = open.join(", ");
    match named {
        Some(id) => format!("run `{run}` has no open question `{id}`; open are {open}"),
        None => format!("run `{run}` has several open questions; say which one with `--question`: {open}"),
    }
}

/// Loads and runs agents. Cheap to clone.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    cell_runtime: CellRuntime,
    journal: Arc<dyn RunStore>,
    providers: Arc<Providers>,
    model: Arc<dyn Model>,
    environment: Environment,
    plugins: Vec<PathBuf>,
    user_plugins: Option<PathBuf>,
    index: Option<PathBuf>,
    trust: Trust,
    signatures: SignaturePolicy,
    stores: StoresChoice,
    opened_stores: OnceLock<Stores>,
    models: Option<Vec<String>>,
    servers: Option<PathBuf>,
    connections: Arc<Connections>,
    embedders: Mutex<HashMap<String, Arc<dyn Embedder>>>,
    interactive: bool,
    progress: Option<OnProgress>,
}

/// The folder in the user's cache where compiled cells are kept, if the user has a cache.
pub fn cells_cache() -> Option<PathBuf> {
    dirs::cache_dir().map(|folder| folder.join("hotcell").join("cells"))
}

/// What the user decides for all folders: `config.toml` in the configuration folder.
#[derive(Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct UserConfig {
    signatures: SignaturePolicy,
    journal: JournalConfig,
}

/// How runs are kept.
#[derive(Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct JournalConfig {
    /// Whether each commit waits until the disk has it
    safe_from_power_loss: bool,
}

impl UserConfig {
    fn read() -> Result<Self, HostError> {
        let Some(file) = config_file("config.toml") else { return Ok(UserConfig::default()) };
        let failed = |cause: String| HostError::Config { file: file.clone(), cause };
        match std::fs::read_to_string(&file) {
            Ok(text) => toml::from_str(&text).map_err(|error| failed(error.to_string())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(UserConfig::default()),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

fn config_file(name: &str) -> Option<PathBuf> {
    dirs::config_dir().map(|folder| folder.join("hotcell").join(name))
}

/// Where runs, the data of plugins and the like are kept.
///
/// # Errors
/// When the user has no home folder.
pub fn state_folder() -> Result<PathBuf, HostError> {
    let folder = dirs::state_dir().or_else(dirs::data_local_dir).ok_or(HostError::NoHome)?;
    Ok(folder.join("hotcell"))
}

impl Host {
    /// Sets up a host, with a WebAssembly engine of its own: one per process is enough (see [`Host::beside`]).
    pub fn new(options: HostOptions) -> Result<Self, HostError> {
        let cache_dir = options.cache_dir.clone().or_else(cells_cache);
        let on_compile = options.progress.clone().map(|progress| {
            Arc::new(move |event: &CompileEvent| {
                progress(&match event {
                    CompileEvent::Started { name, .. } => Progress::Compiling { name: name.clone() },
                    CompileEvent::Finished { name, elapsed } => {
                        Progress::Compiled { name: name.clone(), elapsed: *elapsed }
                    }
                });
            }) as OnCompile
        });
        let cell_runtime = CellRuntime::new(cache_dir, on_compile)?;
        for warning in cell_runtime.cells().warnings() {
            tracing::warn!(target: "hotcell::cells", "{warning}");
        }
        Host::with_cell_runtime(cell_runtime, options)
    }

    /// Another host in the same process, with its own journal, environment and plugins and the same engine and
    /// compiled cells. Its `cache_dir` and `progress` are those of this host.
    pub fn beside(&self, options: HostOptions) -> Result<Self, HostError> {
        Host::with_cell_runtime(self.0.cell_runtime.clone(), options)
    }

    fn with_cell_runtime(cell_runtime: CellRuntime, options: HostOptions) -> Result<Self, HostError> {
        let trust = match options.trust {
            Some(trust) => trust,
            // Without a configuration folder there is no such file, and nothing is trusted.
            None => Trust::Listed(config_file("trust.toml").unwrap_or_default()),
        };
        let user = match options.signatures {
            Some(signatures) => UserConfig { signatures, ..UserConfig::default() },
            None => UserConfig::read()?,
        };
        let open = |path: &Path| match user.journal.safe_from_power_loss {
            true => SqliteStore::open_safe_from_power_loss(path),
            false => SqliteStore::open(path),
        };
        let journal: Arc<dyn RunStore> = match &options.journal {
            JournalChoice::Memory => Arc::new(MemoryStore::default()),
            JournalChoice::File(path) => Arc::new(open(path)?),
            JournalChoice::Default => Arc::new(open(&state_folder()?.join("runs.db"))?),
        };
        let user_plugins =
            options.user_plugins.or_else(|| dirs::data_dir().map(|folder| folder.join("hotcell").join(PLUGIN_FOLDER)));
        let environment = options.environment;
        let providers = Arc::new(Providers::from_environment(&|name| environment.get(name))?);
        let model: Arc<dyn Model> = match &options.model_source {
            ModelSource::Providers => providers.clone(),
            ModelSource::Record(file) => Arc::new(Recorder::wrap(providers.clone(), file)?),
            ModelSource::Replay(file) => Arc::new(Replay::open(file)?),
        };
        Ok(Host(Arc::new(Inner {
            cell_runtime,
            journal,
            providers,
            model,
            environment,
            plugins: options.plugins,
            user_plugins: user_plugins.filter(|folder| !folder.as_os_str().is_empty()),
            index: dirs::cache_dir().map(|folder| folder.join("hotcell").join("plugins.json")),
            trust,
            signatures: user.signatures,
            stores: options.stores,
            opened_stores: OnceLock::new(),
            models: options.models,
            servers: options.servers.or_else(|| config_file(SERVERS_FILE)),
            connections: Arc::default(),
            embedders: Mutex::default(),
            interactive: options.interactive,
            progress: options.progress,
        })))
    }

    /// Loads an agent: a graph file, or the folder that holds one. Nothing of it is run.
    pub fn load(&self, path: &Path) -> Result<Agent, LoadFailure> {
        agent::load(self, path, &Loading::default())
    }

    /// Loads the first of the agents of a file, to say what is wrong with any of them.
    pub fn load_any(&self, path: &Path) -> Result<Agent, LoadFailure> {
        agent::load(self, path, &Loading { agent: Which::Any, ..Loading::default() })
    }

    /// Loads the agent of a run.
    pub fn load_of(&self, run: &RunRecord) -> Result<Agent, LoadFailure> {
        agent::load_source(self, &run.header.source)
    }

    /// Loads one of several agents of a file.
    pub fn load_named(&self, path: &Path, name: &str) -> Result<Agent, LoadFailure> {
        agent::load(self, path, &Loading { agent: Which::Named(name), ..Loading::default() })
    }

    /// Loads an agent with what is said beside its file.
    pub fn load_with(&self, path: &Path, loading: &Loading<'_>) -> Result<Agent, LoadFailure> {
        agent::load(self, path, loading)
    }

    /// The agent at `path` as a configuration of the Open Agent Specification, and where that behaves in another way.
    ///
    /// # Errors
    /// When it cannot be loaded, or cannot be expressed in that language.
    pub fn convert(&self, path: &Path, loading: &Loading<'_>) -> Result<Exported, NotConverted> {
        agent::convert(self, path, loading)
    }

    /// The configuration of the Open Agent Specification at `path` as JSON: references where a component is used more than
    /// once and to what is handed in beside it. What its text implies is written out, unless something is handed in that it
    /// may follow from.
    pub fn write(&self, path: &Path, loading: &Loading<'_>) -> Result<String, LoadFailure> {
        agent::write(self, path, loading)
    }

    /// All runs.
    pub fn journal(&self) -> &Arc<dyn RunStore> {
        &self.0.journal
    }

    pub(crate) fn cell_runtime(&self) -> &CellRuntime {
        &self.0.cell_runtime
    }

    /// The user's own file of MCP servers.
    pub(crate) fn users_servers(&self) -> Option<&Path> {
        self.0.servers.as_deref().filter(|file| !file.as_os_str().is_empty())
    }

    pub(crate) fn connections(&self) -> Arc<Connections> {
        self.0.connections.clone()
    }

    pub(crate) fn is_interactive(&self) -> bool {
        self.0.interactive
    }

    pub(crate) fn progress(&self, progress: &Progress) {
        if let Some(told) = &self.0.progress {
            told(progress);
        }
    }

    /// A model that makes vectors, if it was used before.
    pub(crate) fn embedder(&self, name: &str) -> Option<Arc<dyn Embedder>> {
        self.0.embedders.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn keep_embedder(&self, name: &str, embedder: Arc<dyn Embedder>) {
        self.0.embedders.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), embedder);
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.0.environment
    }

    pub(crate) fn providers(&self) -> &Providers {
        &self.0.providers
    }

    /// The plugins within reach of an agent's folder: those in its `plugins`, in the folders the host was given, and
    /// the user's own. None of them is compiled or run.
    pub fn catalogue(&self, folder: &Path) -> Catalogue {
        Catalogue::of_folders(&self.plugin_folders(folder), self.0.index.as_deref())
    }

    /// Where plugins of an agent in this folder may be.
    pub(crate) fn plugin_folders(&self, folder: &Path) -> Vec<PathBuf> {
        let further = self.0.plugins.iter().filter(|folder| !folder.as_os_str().is_empty());
        let further = further.chain(&self.0.user_plugins).cloned();
        [folder.join(PLUGIN_FOLDER)].into_iter().chain(further).collect()
    }

    /// Whose the data of a plugin is that was found in a [`Host::catalogue`] of a folder.
    ///
    /// # Errors
    /// When a folder is not there any more, or its name is not UTF-8.
    pub fn owner(&self, folder: &Path, file: &Path, plugin: &str) -> Result<Owner, StoresError> {
        let place = file.parent().unwrap_or(Path::new(""));
        if place == folder.join(PLUGIN_FOLDER) {
            return Owner::of_project(folder, plugin);
        }
        if self.0.user_plugins.as_deref() == Some(place) {
            return Owner::of_user(place, plugin);
        }
        Owner::beside_project(folder, place, plugin)
    }

    /// Compiles a component and compares it with the contract, without running it.
    ///
    /// # Errors
    /// When it cannot be loaded; the text says why.
    pub fn check_component(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        self.cell_runtime().cells().load(name, bytes).map(drop).map_err(|error| error.to_string())
    }

    /// What the operator said about an agent's folder.
    ///
    /// # Errors
    /// When `hotcell.toml` or `hotcell.lock` is there and cannot be used.
    pub fn agent_folder(&self, folder: &Path) -> Result<AgentFolder, FolderError> {
        AgentFolder::open(folder, &self.0.trust)
    }

    /// Which folders may grant something by their own `hotcell.toml`.
    pub fn trust(&self) -> &Trust {
        &self.0.trust
    }

    /// Whose signatures plugins need.
    pub fn signatures(&self) -> &SignaturePolicy {
        &self.0.signatures
    }

    /// The data of plugins, opened when the first one needs it.
    ///
    /// # Errors
    /// When the file they are in cannot be used.
    pub fn stores(&self) -> Result<&Stores, StoresError> {
        if let Some(stores) = self.0.opened_stores.get() {
            return Ok(stores);
        }
        let file = match &self.0.stores {
            StoresChoice::Memory => None,
            StoresChoice::File(file) => Some(file.clone()),
            StoresChoice::Default => state_folder().ok().map(|folder| folder.join("stores.db")),
        };
        let stores = Stores::open(file.as_deref())?;
        Ok(self.0.opened_stores.get_or_init(|| stores))
    }

    pub(crate) fn model(&self) -> Arc<dyn Model> {
        self.0.model.clone()
    }

    pub(crate) fn default_model(&self) -> Option<ModelName> {
        self.0.providers.default_model().cloned()
    }

    pub(crate) fn known_models(&self) -> Option<&[String]> {
        self.0.models.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::UserConfig;

    #[test]
    fn what_the_user_decides_is_read_and_nothing_is_ignored() {
        let read = |text: &str| toml::from_str::<UserConfig>(text);
        assert!(read("[journal]\nsafe_from_power_loss = true").is_ok_and(|user| user.journal.safe_from_power_loss));
        assert!(read("").is_ok_and(|user| !user.journal.safe_from_power_loss));
        for wrong in ["[journal]\nsafe = true", "[journals]", "[journal]\nsafe_from_power_loss = 1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
