//! The host: what a process needs to load and run agents.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hotcell_cells::{CellsError, CompileEvent};
use hotcell_dialects::agent_spec::Exported;
use hotcell_engine::{
    Engine, Entry, Fact, Given, Journal, JournalError, MemoryJournal, Observer, OpenQuestion, People, Ports, RunError,
    RunLock, RunRecord, RunReport, RunRequest, RunStatus, SqliteJournal, open_questions,
};
use hotcell_knowledge::Embedder;
use hotcell_models::{Model, ModelError, ModelName, Providers, Recorder, Replay};
use hotcell_plugins::{AgentFolder, Catalogue, FolderError, SignaturePolicy, Stores, StoresError, Trust};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::agent::{self, Agent, LoadFailure, Loading, NotConverted, Which};
use crate::cells::{Kitchen, OnCompile};
use crate::environment::Environment;
use crate::family::Guarded;
use crate::servers::{Connections, SERVERS_FILE};
use crate::web::AgentModel;

/// The folder of plugins beside a graph.
const PLUGIN_FOLDER: &str = "plugins";

/// How many runs of a thread only refer to the state of the one before them.
const LONGEST_CHAIN: u32 = 32;
/// How often a run looks whether its thread is free.
const THREAD_POLL: Duration = Duration::from_millis(25);

/// How a host is set up. The default is what the command line does.
#[derive(Clone)]
pub struct HostOptions {
    /// Where runs are kept
    pub journal: JournalChoice,
    /// Where compiled cells are kept; none means the user's cache folder
    pub cache_dir: Option<PathBuf>,
    /// Folders with plugins, beside `plugins` in the folder of a graph and the user's own
    pub plugins: Vec<PathBuf>,
    /// The user's own folder of plugins; none means that of the system
    pub user_plugins: Option<PathBuf>,
    /// Which folders may grant something by their own `hotcell.toml`; none means those the user has trusted
    pub trust: Option<Trust>,
    /// Whose signatures plugins need; none means what the user's `config.toml` says
    pub signatures: Option<SignaturePolicy>,
    /// Where plugins keep data of their own
    pub stores: StoresChoice,
    /// Where keys and URLs of models and granted variables come from
    pub environment: Environment,
    /// The names of the models that exist; none means that it shows when they are called
    pub models: Option<Vec<String>>,
    /// Who answers requests to models
    pub model_source: ModelSource,
    /// The user's own file of MCP servers; none means that of the system
    pub servers: Option<PathBuf>,
    /// Whether a person is there who can be asked before a run begins
    pub interactive: bool,
    /// Is told about work that takes long
    pub progress: Option<OnProgress>,
}

impl Default for HostOptions {
    fn default() -> Self {
        HostOptions {
            journal: JournalChoice::Default,
            cache_dir: None,
            plugins: Vec::new(),
            user_plugins: None,
            trust: None,
            signatures: None,
            stores: StoresChoice::Default,
            environment: Environment::process(),
            models: None,
            model_source: ModelSource::Providers,
            servers: None,
            interactive: false,
            progress: None,
        }
    }
}

/// Who answers requests to models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSource {
    /// The providers that the environment names
    Providers,
    /// The same, and every exchange is added to this file
    Record(PathBuf),
    /// This file of recorded exchanges, without any network
    Replay(PathBuf),
}

impl HostOptions {
    /// A host for programs and tests that make the folders they run themselves: nothing of the user's own settings,
    /// plugins, keys or runs is read or written, and every folder is trusted.
    pub fn isolated() -> Self {
        HostOptions {
            journal: JournalChoice::Memory,
            user_plugins: Some(PathBuf::new()),
            trust: Some(Trust::Everything),
            signatures: Some(SignaturePolicy::default()),
            stores: StoresChoice::Memory,
            environment: Environment::of([("", ""); 0]),
            servers: Some(PathBuf::new()),
            ..HostOptions::default()
        }
    }
}

/// Is told about work that takes long.
pub type OnProgress = Arc<dyn Fn(&Progress) + Send + Sync>;

/// Where runs are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalChoice {
    /// In the user's state folder
    Default,
    /// In this file
    File(PathBuf),
    /// Nowhere: they end with the process
    Memory,
}

/// Where plugins keep data of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoresChoice {
    /// In the user's state folder
    Default,
    /// In this file
    File(PathBuf),
    /// In memory, until the process ends
    Memory,
}

/// Work that takes long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// A component that was not in the cache is being compiled
    Compiling {
        /// Its name
        name: String,
    },
    /// It is compiled
    Compiled {
        /// Its name
        name: String,
        /// How long it took
        elapsed: std::time::Duration,
    },
    /// A knowledge base is being built
    Indexing {
        /// Its node
        node: String,
        /// Documents that are in it
        documents: usize,
        /// Documents that are to be in it
        total: usize,
        /// Chunks that were embedded
        chunks: usize,
    },
    /// It is built
    Indexed {
        /// Its node
        node: String,
        /// Its documents
        documents: usize,
        /// Its chunks
        chunks: usize,
    },
}

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

/// What a run is connected to while this process runs it.
#[derive(Clone)]
pub struct Session {
    /// Answers questions
    pub people: Arc<dyn People>,
    /// Is told what happens
    pub observer: Arc<dyn Observer>,
    /// Stops the work; the run can be resumed
    pub cancel: CancellationToken,
}

/// Loads and runs agents. Cheap to clone.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    kitchen: Kitchen,
    journal: Arc<dyn Journal>,
    providers: Arc<Providers>,
    model: Arc<dyn Model>,
    environment: Environment,
    plugins: Vec<PathBuf>,
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
        let kitchen = Kitchen::new(cache_dir, on_compile)?;
        for warning in kitchen.cells().warnings() {
            tracing::warn!(target: "hotcell::cells", "{warning}");
        }
        Host::with_kitchen(kitchen, options)
    }

    /// Another host in the same process, with its own journal, environment and plugins and the same engine and
    /// compiled cells. Its `cache_dir` and `progress` are those of this host.
    pub fn beside(&self, options: HostOptions) -> Result<Self, HostError> {
        Host::with_kitchen(self.0.kitchen.clone(), options)
    }

    fn with_kitchen(kitchen: Kitchen, options: HostOptions) -> Result<Self, HostError> {
        let journal: Arc<dyn Journal> = match &options.journal {
            JournalChoice::Memory => Arc::new(MemoryJournal::default()),
            JournalChoice::File(path) => Arc::new(SqliteJournal::open(path)?),
            JournalChoice::Default => Arc::new(SqliteJournal::open(&state_folder()?.join("runs.db"))?),
        };
        let trust = match options.trust {
            Some(trust) => trust,
            // Without a configuration folder there is no such file, and nothing is trusted.
            None => Trust::Listed(config_file("trust.toml").unwrap_or_default()),
        };
        let signatures = match options.signatures {
            Some(signatures) => signatures,
            None => UserConfig::read()?.signatures,
        };
        let user_plugins =
            options.user_plugins.or_else(|| dirs::data_dir().map(|folder| folder.join("hotcell").join(PLUGIN_FOLDER)));
        let mut plugins = options.plugins;
        plugins.extend(user_plugins);
        let environment = options.environment;
        let providers = Arc::new(Providers::from_environment(&|name| environment.get(name))?);
        let model: Arc<dyn Model> = match &options.model_source {
            ModelSource::Providers => providers.clone(),
            ModelSource::Record(file) => Arc::new(Recorder::wrap(providers.clone(), file)?),
            ModelSource::Replay(file) => Arc::new(Replay::open(file)?),
        };
        Ok(Host(Arc::new(Inner {
            kitchen,
            journal,
            providers,
            model,
            environment,
            plugins,
            index: dirs::cache_dir().map(|folder| folder.join("hotcell").join("plugins.json")),
            trust,
            signatures,
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
    /// When it cannot be loaded, or does what that language has no words for.
    pub fn convert(&self, path: &Path, loading: &Loading<'_>) -> Result<Exported, NotConverted> {
        agent::convert(self, path, loading)
    }

    /// The configuration of the Open Agent Specification at `path` as JSON: references where a component is used more than
    /// once and to what is handed in beside it. What its text implies is written out, unless something is handed in that it
    /// may follow from.
    pub fn write(&self, path: &Path, loading: &Loading<'_>) -> Result<String, LoadFailure> {
        agent::write(self, path, loading)
    }

    /// Starts a run and drives it as far as it goes. One that belongs to a thread goes on with the state of the run
    /// before it in that thread; where that one waits for a person, the text is the answer and it goes on instead.
    pub async fn run(&self, agent: &Agent, mut given: Given, session: Session) -> Result<RunReport, HostError> {
        let _thread = self.lock_thread(&agent.source, given.thread.as_deref(), &session).await?;
        let before = match given.thread.as_deref() {
            Some(thread) => self.0.journal.last_of_thread(&agent.source, thread)?,
            None => None,
        };
        if let Some(before) = before {
            if let (RunStatus::Waiting, Some(text)) = (before.status, &given.input) {
                self.answer(before.id.as_str(), text)?;
                return self.go_on(&before, agent, session).await;
            }
            let state = self.engine(agent, &session).state_of(&before.id, agent.graph.clone())?;
            given.earlier = Some(state.to_object());
            // What a changed graph makes of an old run is kept, because it may be changed once more. So is every so
            // manyth state, because a run that only refers to the one before it is read together with it.
            if before.header.digest == agent.digest && before.depth() + 1 < LONGEST_CHAIN {
                given.after = Some(before.id.to_string());
                given.depth = before.depth() + 1;
            }
        }
        let request = RunRequest {
            graph: agent.graph.clone(),
            source: agent.source.clone(),
            digest: agent.digest.clone(),
            given,
        };
        self.prepare(agent, &session).await?;
        let engine = self.engine(agent, &session);
        Ok(engine.start(request, session.cancel).await?)
    }

    /// Goes on with a run, named by its name or an unambiguous beginning of it: one that waits for a person, or whose
    /// process is gone.
    pub async fn resume(&self, run: &str, session: Session) -> Result<RunReport, HostError> {
        let record = self.0.journal.find(run)?;
        let run = record.id.to_string();
        if record.status.is_final() {
            return Err(RunError::Ended { run: record.id, status: record.status }.into());
        }
        let agent = self.load_of(&record).map_err(|failure| HostError::Load { run: run.clone(), failure })?;
        let _thread = self.lock_thread(&record.header.source, record.thread(), &session).await?;
        self.go_on(&record, &agent, session).await
    }

    async fn go_on(&self, record: &RunRecord, agent: &Agent, session: Session) -> Result<RunReport, HostError> {
        if agent.digest != record.header.digest {
            return Err(HostError::Changed { run: record.id.to_string(), file: agent.file.clone() });
        }
        self.prepare(agent, &session).await?;
        let engine = self.engine(agent, &session);
        Ok(engine.resume(&record.id, agent.graph.clone(), session.cancel).await?)
    }

    /// Waits until nobody else works on a thread.
    async fn lock_thread(
        &self,
        source: &str,
        thread: Option<&str>,
        session: &Session,
    ) -> Result<Option<Box<dyn RunLock>>, HostError> {
        let Some(thread) = thread else { return Ok(None) };
        let mut told = false;
        loop {
            match self.0.journal.lock_thread(source, thread) {
                Ok(lock) => return Ok(Some(lock)),
                Err(JournalError::Busy(_)) => {}
                Err(error) => return Err(error.into()),
            }
            if !told {
                tracing::info!(target: "hotcell::graph", thread, "waits: another run of this thread is not done");
                told = true;
            }
            tokio::select! {
                biased;
                () = session.cancel.cancelled() => return Err(HostError::ThreadBusy(thread.to_owned())),
                () = tokio::time::sleep(THREAD_POLL) => {}
            }
        }
    }

    /// Builds and opens what the nodes of an agent, and of those that it may call, look things up in.
    async fn prepare(&self, agent: &Agent, session: &Session) -> Result<(), HostError> {
        for knowledge in agent.family.knowledge() {
            tokio::select! {
                biased;
                () = session.cancel.cancelled() => return Err(HostError::Stopped),
                ready = knowledge.prepare(self, &*session.people) => ready.map_err(HostError::Knowledge)?,
            }
        }
        Ok(())
    }

    fn engine(&self, agent: &Agent, session: &Session) -> Engine {
        let ports = Ports {
            scripts: agent.own.scripts.clone(),
            tools: agent.own.tools.clone(),
            model: Arc::new(AgentModel {
                model: self.0.model.clone(),
                providers: self.0.providers.clone(),
                grants: agent.grants.clone(),
            }),
            default_model: self.0.providers.default_model().cloned(),
            people: session.people.clone(),
            observer: session.observer.clone(),
            hooks: agent.own.hooks.clone(),
            offers: agent.own.offers.clone(),
            knowledge: agent.own.knowledge.clone(),
            agents: Arc::new(Guarded { family: agent.family.clone(), guards: agent.own.hooks.clone() }),
            web: agent.own.web.clone(),
        };
        Engine::new(ports, self.0.journal.clone())
    }

    /// Commits the answer to the oldest open question of a run. The run goes on when somebody resumes it.
    pub fn answer(&self, run: &str, text: &str) -> Result<OpenQuestion, HostError> {
        let record = self.0.journal.find(run)?;
        let _lock = self.0.journal.lock(&record.id)?;
        let entries = self.0.journal.entries(&record.id)?;
        let nothing = || HostError::NothingAsked { run: record.id.to_string(), status: record.status };
        if record.status.is_final() {
            return Err(nothing());
        }
        let open = open_questions(&entries).into_iter().next().ok_or_else(nothing)?;
        let answer = Fact::Answered { number: open.number, text: text.to_owned() };
        self.0.journal.append(&record.id, &Entry { place: open.place.clone(), fact: answer })?;
        Ok(open)
    }

    /// Ends a run for good. A process that is running it notices and stops.
    pub fn cancel(&self, run: &str) -> Result<RunRecord, HostError> {
        let record = self.0.journal.find(run)?;
        if record.status.is_final() {
            return Err(RunError::Ended { run: record.id, status: record.status }.into());
        }
        self.0.journal.set_status(&record.id, RunStatus::Cancelled, None)?;
        Ok(RunRecord { status: RunStatus::Cancelled, ..record })
    }

    /// All runs.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.0.journal
    }

    pub(crate) fn kitchen(&self) -> &Kitchen {
        &self.0.kitchen
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
        let further = self.0.plugins.iter().filter(|folder| !folder.as_os_str().is_empty()).cloned();
        [folder.join(PLUGIN_FOLDER)].into_iter().chain(further).collect()
    }

    /// Compiles a component and compares it with the contract, without running it.
    ///
    /// # Errors
    /// When it cannot be loaded; the text says why.
    pub fn check_component(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        self.kitchen().cells().load(name, bytes).map(drop).map_err(|error| error.to_string())
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
    pub(crate) fn stores(&self) -> Result<&Stores, StoresError> {
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
