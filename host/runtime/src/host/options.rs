//! How a host is set up: where it keeps things, what it may use, and whom it tells about work that takes long.

use std::path::PathBuf;
use std::sync::Arc;

use hotcell_engine::{Clock, SystemClock};
use hotcell_models::Prices;
use hotcell_plugins::{RecordSettings, SignaturePolicy, Trust};

use crate::environment::Environment;

/// Settings of a host. The defaults are those of the command line.
#[derive(Clone)]
pub struct HostOptions {
    /// Where runs are stored
    pub journal: JournalChoice,
    /// Folder of compiled cells; by default the user's cache folder
    pub cache_dir: Option<PathBuf>,
    /// Plugin folders, in addition to `plugins` in the folder of a graph and the user's own
    pub plugins: Vec<PathBuf>,
    /// The user's own plugin folder; by default the one in the user's data folder
    pub user_plugins: Option<PathBuf>,
    /// Folders whose `hotcell.toml` may grant something; by default those that the user has trusted
    pub trust: Option<Trust>,
    /// Whether the folder of the agent that the user names may grant something, too
    pub trust_named: bool,
    /// Whether MCP servers that are programs may be started; otherwise, their functions are unknown
    pub starts_programs: bool,
    /// Signatures that plugins need; by default what the user's `config.toml` says
    pub signatures: Option<SignaturePolicy>,
    /// Whether calls are recorded; by default what the user's `config.toml` says
    pub record: Option<RecordSettings>,
    /// Where the data of plugins is stored
    pub stores: StoresChoice,
    /// Source of keys and URLs of models, and of granted variables
    pub environment: Environment,
    /// Names of the models that exist; by default, a missing model is only found when it is called
    pub models: Option<Vec<String>>,
    /// What answers requests to models
    pub model_source: ModelSource,
    /// Prices of models; by default the table that ships with hotcell, overridden by the user's `prices.json`
    pub prices: Option<Prices>,
    /// Folder with tokenizers of models; by default the user's own, `tokenizers` beside `config.toml`
    pub tokenizers: Option<PathBuf>,
    /// The user's own `mcp.json`; by default the one in the user's configuration folder
    pub servers: Option<PathBuf>,
    /// Whether a person can be asked before a run starts
    pub interactive: bool,
    /// Called about work that takes long
    pub progress: Option<OnProgress>,
    /// Clock of runs
    pub clock: Arc<dyn Clock>,
    /// Folders outside of which nothing but plugins is read when an agent is loaded; by default, there is no such restriction
    pub within: Option<Vec<PathBuf>>,
    /// Weight of its share of the cells, a part of which other hosts of the process leave free. Hosts without a weight have one share
    /// together, of which nothing is left free
    pub share: Option<u32>,
}

impl Default for HostOptions {
    fn default() -> Self {
        HostOptions {
            journal: JournalChoice::Default,
            cache_dir: None,
            plugins: Vec::new(),
            user_plugins: None,
            trust: None,
            trust_named: false,
            starts_programs: true,
            signatures: None,
            record: None,
            stores: StoresChoice::Default,
            environment: Environment::process(),
            models: None,
            model_source: ModelSource::Providers,
            prices: None,
            tokenizers: None,
            servers: None,
            interactive: false,
            progress: None,
            clock: Arc::new(SystemClock::default()),
            within: None,
            share: None,
        }
    }
}

/// What answers requests to models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSource {
    /// The providers in the environment
    Providers,
    /// The same, and every exchange is appended to this file
    Record(PathBuf),
    /// Exchanges recorded in this file, without network access
    Replay(PathBuf),
}

impl HostOptions {
    /// Settings for tests, and for programs that create the folders they run: the user's settings, plugins, keys and runs are neither
    /// read nor written, and every folder is trusted.
    pub fn isolated() -> Self {
        HostOptions {
            journal: JournalChoice::Memory,
            user_plugins: Some(PathBuf::new()),
            trust: Some(Trust::Everything),
            signatures: Some(SignaturePolicy::default()),
            record: Some(RecordSettings::default()),
            stores: StoresChoice::Memory,
            environment: Environment::of([("", ""); 0]),
            prices: Some(Prices::shipped()),
            tokenizers: Some(PathBuf::new()),
            servers: Some(PathBuf::new()),
            ..HostOptions::default()
        }
    }
}

/// The folder of runs, data of plugins and the like, if the user has a home folder.
pub(crate) fn state_folder() -> Option<PathBuf> {
    dirs::state_dir().or_else(dirs::data_local_dir).map(|folder| folder.join("hotcell"))
}

/// Called about work that takes long.
pub type OnProgress = Arc<dyn Fn(&Progress) + Send + Sync>;

/// Where runs are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalChoice {
    /// In the user's state folder
    Default,
    /// In this file
    File(PathBuf),
    /// In memory, until the process ends
    Memory,
}

/// Where the data of plugins is stored.
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
        /// Number of documents that are done
        documents: usize,
        /// Number of all documents
        total: usize,
        /// Number of chunks that were embedded
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
