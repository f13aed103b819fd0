//! The host: what a process needs to load and run agents.

mod answers;
pub(crate) mod error;
mod fork;
pub(crate) mod options;
mod revisions;
mod runs;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use hotcell_cells::{CompileEvent, LoadError};
use hotcell_dialects::agent_spec::Exported;
use hotcell_engine::{Clock, Gates, Meter};
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_journal::{MemoryStore, RunRecord, RunStore, SqliteStore};
use hotcell_models::{Model, Prices, Providers, Recorder, Replay, Tokenizers};
use hotcell_plugins::{
    AgentFolder, Catalogue, FolderError, Owner, RecordSettings, SeenVersions, SignaturePolicy, Stores, StoresError,
    Trust, VERSIONS_FILE,
};

pub use self::error::{ConfigError, HostError};
pub use self::options::{HostOptions, JournalChoice, ModelSource, OnProgress, Progress, StoresChoice};
pub use self::revisions::RevisionChoice;
pub use self::runs::Session;
use crate::agent::{Agent, LoadFailure, Loading, NotConverted, Which};
use crate::cells::{CellRuntime, OnCompile};
use crate::context::{LoadContext, PLUGIN_FOLDER, Parts};
use crate::offered::Offered;
use crate::redaction_key::KeyOfJournal;
use crate::servers::SERVERS_FILE;
use crate::{convert, load};

/// Loads and runs agents. Cheap to clone.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    journal: Arc<dyn RunStore>,
    context: LoadContext,
    /// Before graphs that only so many runs may be in at a time
    gates: Gates,
    /// With what the journal keeps redacted values
    redaction_key: Arc<KeyOfJournal>,
    /// Counts what is used of allowances
    meter: Arc<OnceLock<Arc<dyn Meter>>>,
}

/// The folder in the user's cache where compiled cells are kept, if the user has a cache.
pub fn cells_cache() -> Option<PathBuf> {
    dirs::cache_dir().map(|folder| folder.join("hotcell").join("cells"))
}

/// The folder where tools that build plugins are installed for all projects of the user, if the user has one for data.
pub fn toolchains_folder() -> Option<PathBuf> {
    dirs::data_dir().map(|folder| folder.join("hotcell").join("toolchains"))
}

/// What the user decides for all folders: `config.toml` in the configuration folder.
#[derive(Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct UserConfig {
    signatures: SignaturePolicy,
    journal: JournalConfig,
    record: RecordSettings,
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
        let failed = |cause: ConfigError| HostError::Config { file: file.clone(), cause };
        match hotcell_files::read_text(&file, hotcell_files::MAX_TEXT) {
            Ok(text) => {
                let mut config: UserConfig = toml::from_str(&text).map_err(|error| failed(error.into()))?;
                config.signatures.versions = SeenVersions::in_file(file.with_file_name(VERSIONS_FILE));
                Ok(config)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(UserConfig::default()),
            Err(error) => Err(failed(error.into())),
        }
    }
}

/// What models cost: the table that ships with hotcell, with the user's own on top.
fn users_prices() -> Result<Prices, HostError> {
    let shipped = Prices::shipped();
    let Some(file) = config_file("prices.json") else { return Ok(shipped) };
    let failed = |cause: ConfigError| HostError::Config { file: file.clone(), cause };
    match hotcell_files::read_text(&file, hotcell_files::MAX_TEXT) {
        Ok(text) => Ok(shipped.with(Prices::parse(&text).map_err(|error| failed(error.into()))?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(shipped),
        Err(error) => Err(failed(error.into())),
    }
}

fn config_file(name: &str) -> Option<PathBuf> {
    dirs::config_dir().map(|folder| folder.join("hotcell").join(name))
}

/// The folder of runs, data of plugins and the like.
///
/// # Errors
/// When the user has no home folder.
pub fn state_folder() -> Result<PathBuf, HostError> {
    options::state_folder().ok_or(HostError::NoHome)
}

impl Host {
    /// Sets up a host with its own WebAssembly engine. One per process is enough (see [`Host::beside`]).
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

    /// Sets up another host in the same process, with its own journal, environment and plugins. It shares the engine and the
    /// compiled cells, and has the `cache_dir` and `progress` of this host.
    pub fn beside(&self, options: HostOptions) -> Result<Self, HostError> {
        Host::with_cell_runtime(self.context().cell_runtime().clone(), options)
    }

    /// Sets what counts the usage of allowances over all runs. Without it, usage is counted for the lifetime of the host. It can be set
    /// only once.
    pub fn counting_with(&self, meter: Arc<dyn Meter>) {
        let _ = self.0.meter.set(meter);
    }

    /// The same host, with the same runs and plugins, that offers exactly this to the agents that it loads and to runs that it resumes.
    pub fn offering(&self, offered: Offered) -> Self {
        let Inner { journal, context, gates, redaction_key, meter } = &*self.0;
        let (journal, gates, meter) = (journal.clone(), gates.clone(), meter.clone());
        let redaction_key = redaction_key.clone();
        Host(Arc::new(Inner { journal, context: context.offering(offered), gates, redaction_key, meter }))
    }

    fn with_cell_runtime(cell_runtime: CellRuntime, options: HostOptions) -> Result<Self, HostError> {
        let cell_runtime = cell_runtime.sharing(options.share);
        let trust = match options.trust {
            Some(trust) => trust,
            // Without a configuration folder there is no such file, and nothing is trusted.
            None => Trust::Listed(config_file("trust.toml").unwrap_or_default()),
        };
        let trust = match trust {
            Trust::Listed(file) if options.trust_named => Trust::Named(file),
            other => other,
        };
        let user = match options.signatures {
            Some(signatures) => UserConfig { signatures, ..UserConfig::default() },
            None => UserConfig::read()?,
        };
        let open = |path: &Path| match user.journal.safe_from_power_loss {
            true => SqliteStore::open_safe_from_power_loss(path),
            false => SqliteStore::open(path),
        };
        let file = match &options.journal {
            JournalChoice::Memory => None,
            JournalChoice::File(path) => Some(path.clone()),
            JournalChoice::Default => Some(state_folder()?.join("runs.db")),
        };
        let journal: Arc<dyn RunStore> = match &file {
            None => Arc::new(MemoryStore::default()),
            Some(path) => Arc::new(open(path)?),
        };
        let redaction_key = Arc::new(KeyOfJournal::beside(file.as_deref()));
        let user_plugins =
            options.user_plugins.or_else(|| dirs::data_dir().map(|folder| folder.join("hotcell").join(PLUGIN_FOLDER)));
        let environment = options.environment;
        let providers = Providers::from_environment(&|name| environment.get(name))?;
        let tokenizers = Tokenizers::of_folder(options.tokenizers.or_else(|| config_file("tokenizers")));
        let providers = providers.with_private_addresses(hotcell_cells::policy::is_private).counting_with(tokenizers);
        let providers = Arc::new(providers);
        let model: Arc<dyn Model> = match &options.model_source {
            ModelSource::Providers => providers.clone(),
            ModelSource::Record(file) => Arc::new(Recorder::wrap(providers.clone(), file)?),
            ModelSource::Replay(file) => Arc::new(Replay::open(file)?),
        };
        let prices = match options.prices {
            Some(prices) => prices,
            None => users_prices()?,
        };
        let context = LoadContext::new(Parts {
            cell_runtime,
            providers,
            model,
            environment,
            plugins: options.plugins,
            user_plugins: user_plugins.filter(|folder| !folder.as_os_str().is_empty()),
            index: dirs::cache_dir().map(|folder| folder.join("hotcell").join("plugins.json")),
            trust,
            starts_programs: options.starts_programs,
            signatures: user.signatures,
            record: options.record.unwrap_or(user.record),
            stores: options.stores,
            opened_stores: OnceLock::new(),
            models: options.models,
            prices: Arc::new(prices),
            servers: options.servers.or_else(|| config_file(SERVERS_FILE)),
            connections: Arc::default(),
            embedders: Mutex::default(),
            interactive: options.interactive,
            progress: options.progress,
            clock: options.clock,
            within: options.within.map(|within| {
                within.iter().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone())).collect()
            }),
        });
        Ok(Host(Arc::new(Inner { journal, context, gates: Gates::default(), redaction_key, meter: Arc::default() })))
    }

    /// Loads an agent: a graph file, or the folder that contains one. Nothing of it is run.
    pub fn load(&self, path: &Path) -> Result<Agent, LoadFailure> {
        load::load(self.context(), path, &Loading::default())
    }

    /// Loads an agent like [`Host::load`], on another thread, so that compiling it and connecting to its MCP servers blocks nothing.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub async fn load_async(&self, path: &Path) -> Result<Agent, LoadFailure> {
        let (context, path) = (self.context().clone(), path.to_owned());
        let loaded = self.context().connections();
        let loaded = loaded.blocking(move || load::load(&context, &path, &Loading::default())).await;
        loaded.unwrap_or_else(|reason| Err(Diagnostic::error(format!("loading failed: {reason}")).into()))
    }

    /// Loads one of several agents of a file, or the first of them, like [`Host::load_async`].
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub async fn load_any_async(&self, path: &Path, name: Option<&str>) -> Result<Agent, LoadFailure> {
        let (context, path, name) = (self.context().clone(), path.to_owned(), name.map(str::to_owned));
        let connections = self.context().connections();
        let loaded = connections.blocking(move || {
            let agent = name.as_deref().map_or(Which::Any, Which::Named);
            load::load(&context, &path, &Loading { agent, ..Loading::default() })
        });
        loaded.await.unwrap_or_else(|reason| Err(Diagnostic::error(format!("loading failed: {reason}")).into()))
    }

    /// The text of an agent's file, as it is now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn text_of(&self, agent: &Agent) -> Result<String, LoadFailure> {
        load::text_of(&agent.file)
    }

    /// Loads an agent again, like [`Host::load_async`], as if its file had this text. The file is not changed, and trust in the file does
    /// not cover a different text.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub async fn load_text_async(&self, agent: &Agent, text: String) -> Result<Agent, LoadFailure> {
        let context = self.context().unnamed(agent.is_unnamed);
        let (path, dialect) = (agent.file.clone(), agent.dialect);
        let connections = self.context().connections();
        let loaded = connections.blocking(move || load::load_text(&context, &path, text, dialect)).await;
        loaded.unwrap_or_else(|reason| Err(Diagnostic::error(format!("loading failed: {reason}")).into()))
    }

    /// Loads the first of the agents of a file, with the errors of all of them.
    pub fn load_any(&self, path: &Path) -> Result<Agent, LoadFailure> {
        load::load(self.context(), path, &Loading { agent: Which::Any, ..Loading::default() })
    }

    /// Loads the agent of a run.
    pub fn load_of(&self, run: &RunRecord) -> Result<Agent, LoadFailure> {
        load::load_source(self.context(), &run.header.source)
    }

    /// Loads one of several agents of a file.
    pub fn load_named(&self, path: &Path, name: &str) -> Result<Agent, LoadFailure> {
        load::load(self.context(), path, &Loading { agent: Which::Named(name), ..Loading::default() })
    }

    /// Loads an agent with what is said beside its file.
    pub fn load_with(&self, path: &Path, loading: &Loading<'_>) -> Result<Agent, LoadFailure> {
        load::load(self.context(), path, loading)
    }

    /// The agent at `path` as a configuration of the Open Agent Specification, and where that behaves differently.
    ///
    /// # Errors
    /// When it cannot be loaded, or cannot be expressed in that language.
    pub fn convert(&self, path: &Path, loading: &Loading<'_>) -> Result<Exported, NotConverted> {
        convert::convert(self.context(), path, loading)
    }

    /// The configuration of the Open Agent Specification at `path` as JSON: references where a component is used more than
    /// once and to what is handed in beside it. What its text implies is written out, unless something is handed in that it
    /// may follow from.
    pub fn write(&self, path: &Path, loading: &Loading<'_>) -> Result<String, LoadFailure> {
        convert::write(self.context(), path, loading)
    }

    /// Prices of models.
    pub fn prices(&self) -> &Prices {
        self.context().prices()
    }

    /// The default model, as `provider:model`, if there is one.
    pub fn default_model(&self) -> Option<String> {
        self.context().default_model().map(|model| model.to_string())
    }

    /// The clock of runs.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        self.context().clock()
    }

    /// A variable of the host's environment.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.context().environment().get(name)
    }

    /// All runs.
    pub fn journal(&self) -> &Arc<dyn RunStore> {
        &self.0.journal
    }

    /// What loading needs of this process.
    pub(crate) fn context(&self) -> &LoadContext {
        &self.0.context
    }

    /// The plugins that agents of a folder can use: those in its `plugins`, in the plugin folders of the host, and the user's own.
    /// None of them is compiled or run.
    pub fn catalogue(&self, folder: &Path) -> Catalogue {
        self.context().catalogue(folder)
    }

    /// The owner of the data of a plugin that was found in a [`Host::catalogue`] of a folder.
    ///
    /// # Errors
    /// When a folder no longer exists, or its name is not UTF-8.
    pub fn owner(&self, folder: &Path, file: &Path, plugin: &str) -> Result<Owner, StoresError> {
        self.context().owner(folder, file, plugin)
    }

    /// Compiles a component and checks it against the contract, without running it.
    ///
    /// # Errors
    /// When it cannot be loaded; the error says why.
    pub fn check_component(&self, name: &str, bytes: &[u8]) -> Result<(), LoadError> {
        self.context().cell_runtime().cells().load(name, bytes).map(drop)
    }

    /// The operator's settings for an agent's folder.
    ///
    /// # Errors
    /// When `hotcell.toml` or `hotcell.lock` exists and cannot be used.
    pub fn agent_folder(&self, folder: &Path) -> Result<AgentFolder, FolderError> {
        self.context().agent_folder(folder)
    }

    /// The folders whose `hotcell.toml` may grant something.
    pub fn trust(&self) -> &Trust {
        self.context().trust()
    }

    /// The signatures that plugins need.
    pub fn signatures(&self) -> &SignaturePolicy {
        self.context().signatures()
    }

    /// The data of plugins, opened on first use.
    ///
    /// # Errors
    /// When its file cannot be used.
    pub fn stores(&self) -> Result<&Stores, StoresError> {
        self.context().stores()
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
        assert!(read("[record]\non = false").is_ok_and(|user| user.record.on == Some(false)));
        for wrong in
            ["[journal]\nsafe = true", "[journals]", "[journal]\nsafe_from_power_loss = 1", "[record]\noff = true"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
