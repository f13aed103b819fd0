//! How a host is set up: where it keeps things, what it may use, and whom it tells about work that takes long.

use std::path::PathBuf;
use std::sync::Arc;

use hotcell_engine::{Clock, SystemClock};
use hotcell_models::Prices;
use hotcell_plugins::{RecordSettings, SignaturePolicy, Trust};

use crate::environment::Environment;

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
    /// Whether the folder of an agent that the person names may grant something, too
    pub trust_named: bool,
    /// Whether MCP servers that are programs may be started; without it their functions are not known
    pub starts_programs: bool,
    /// Whose signatures plugins need; none means what the user's `config.toml` says
    pub signatures: Option<SignaturePolicy>,
    /// Whether calls are recorded; none means what the user's `config.toml` says
    pub record: Option<RecordSettings>,
    /// Where plugins keep data of their own
    pub stores: StoresChoice,
    /// Where keys and URLs of models and granted variables come from
    pub environment: Environment,
    /// The names of the models that exist; none means that it shows when they are called
    pub models: Option<Vec<String>>,
    /// Who answers requests to models
    pub model_source: ModelSource,
    /// What models cost; none means the table that ships with hotcell, with the user's own `prices.json` on top
    pub prices: Option<Prices>,
    /// The folder with tokenizers of models; none means the user's own, `tokenizers` beside `config.toml`
    pub tokenizers: Option<PathBuf>,
    /// The user's own file of MCP servers; none means that of the system
    pub servers: Option<PathBuf>,
    /// Whether a person is there who can be asked before a run begins
    pub interactive: bool,
    /// Is told about work that takes long
    pub progress: Option<OnProgress>,
    /// The clock that runs go by
    pub clock: Arc<dyn Clock>,
    /// Folders outside which nothing is read when an agent is loaded, but for plugins; none for anywhere
    pub within: Option<Vec<PathBuf>>,
    /// The weight of its share of the cells, of which a part is left free by other hosts of the process; none means that it has the
    /// one share of all hosts that say nothing, for which nothing is left free
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

/// Where runs, the data of plugins and the like are kept, if the user has a home folder.
pub(crate) fn state_folder() -> Option<PathBuf> {
    dirs::state_dir().or_else(dirs::data_local_dir).map(|folder| folder.join("hotcell"))
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
