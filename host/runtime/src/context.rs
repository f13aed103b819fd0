//! What loading an agent, and preparing it for its runs, needs of the process: cells, the environment, what the operator
//! decided, connections.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hotcell_engine::Clock;
use hotcell_knowledge::Embedder;
use hotcell_models::{Model, ModelName, Prices, Providers};
pub(crate) use hotcell_plugins::PLUGIN_FOLDER;
use hotcell_plugins::{
    AgentFolder, Catalogue, FolderError, Owner, RecordSettings, SignaturePolicy, Stores, StoresError, Trust,
};

use crate::cells::CellRuntime;
use crate::environment::Environment;
use crate::host::options::{OnProgress, Progress, StoresChoice, state_folder};
use crate::offered::Offered;
use crate::revision::sources::{FolderFor, Sources};
use crate::servers::Connections;

/// What loading needs of the process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LoadContext {
    parts: Arc<Parts>,
    sources: Arc<Sources>,
    offered: Arc<Offered>,
    /// Whether what is loaded is used for long: then what it needs is ready at once, whatever becomes of the files
    is_lasting: bool,
    /// Whether nobody named the agent that is loaded, so that it is trusted only as its folder is
    is_unnamed: bool,
}

/// The parts of a context.
pub(crate) struct Parts {
    pub(crate) cell_runtime: CellRuntime,
    pub(crate) providers: Arc<Providers>,
    /// Who answers requests to models
    pub(crate) model: Arc<dyn Model>,
    pub(crate) environment: Environment,
    /// Folders with plugins, beside that of the agent and the user's own
    pub(crate) plugins: Vec<PathBuf>,
    /// The user's own folder of plugins
    pub(crate) user_plugins: Option<PathBuf>,
    /// What is remembered of plugins from one look to the next
    pub(crate) index: Option<PathBuf>,
    pub(crate) trust: Trust,
    /// Whether MCP servers that are programs may be started
    pub(crate) starts_programs: bool,
    pub(crate) signatures: SignaturePolicy,
    /// What the user decided about recordings
    pub(crate) record: RecordSettings,
    pub(crate) stores: StoresChoice,
    pub(crate) opened_stores: OnceLock<Stores>,
    /// The names of the models that exist, where that is known
    pub(crate) models: Option<Vec<String>>,
    /// What models cost
    pub(crate) prices: Arc<Prices>,
    /// The user's own file of MCP servers
    pub(crate) servers: Option<PathBuf>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) embedders: Mutex<HashMap<String, Arc<dyn Embedder>>>,
    /// Whether a person is there who can be asked before a run begins
    pub(crate) interactive: bool,
    pub(crate) progress: Option<OnProgress>,
    /// The clock that runs go by
    pub(crate) clock: Arc<dyn Clock>,
    /// The folders, without links, outside which nothing is read when an agent is loaded; none for anywhere
    pub(crate) within: Option<Arc<[PathBuf]>>,
}

impl LoadContext {
    pub(crate) fn new(parts: Parts) -> Self {
        LoadContext {
            parts: Arc::new(parts),
            sources: Arc::new(Sources::Plain),
            offered: Arc::default(),
            is_lasting: false,
            is_unnamed: false,
        }
    }

    /// The same process, with loading that reads there.
    pub(crate) fn reading(&self, sources: Sources) -> Self {
        LoadContext { sources: Arc::new(sources), ..self.clone() }
    }

    /// The same process, where agents are handed this and nothing else.
    pub(crate) fn offering(&self, offered: Offered) -> Self {
        LoadContext { offered: Arc::new(offered), ..self.clone() }
    }

    /// The same process, for what is used for long.
    pub(crate) fn lasting(&self) -> Self {
        LoadContext { is_lasting: true, ..self.clone() }
    }

    /// The same process, for an agent that nobody named: nothing counts of what its folder brings unless somebody trusts that folder.
    pub(crate) fn unnamed(&self, is_unnamed: bool) -> Self {
        LoadContext { is_unnamed, ..self.clone() }
    }

    /// Whether what is loaded is used for long.
    pub(crate) fn is_lasting(&self) -> bool {
        self.is_lasting
    }

    /// Whether nobody named the agent that is loaded.
    pub(crate) fn is_unnamed(&self) -> bool {
        self.is_unnamed
    }

    /// What the program hands to the agents that it loads.
    pub(crate) fn offered(&self) -> &Arc<Offered> {
        &self.offered
    }

    /// Where loading reads.
    pub(crate) fn sources(&self) -> &Arc<Sources> {
        &self.sources
    }

    pub(crate) fn cell_runtime(&self) -> &CellRuntime {
        &self.parts.cell_runtime
    }

    /// The user's own file of MCP servers.
    pub(crate) fn users_servers(&self) -> Option<&Path> {
        self.parts.servers.as_deref().filter(|file| !file.as_os_str().is_empty())
    }

    pub(crate) fn connections(&self) -> Arc<Connections> {
        self.parts.connections.clone()
    }

    pub(crate) fn is_interactive(&self) -> bool {
        self.parts.interactive
    }

    pub(crate) fn progress(&self, progress: &Progress) {
        if let Some(told) = &self.parts.progress {
            told(progress);
        }
    }

    /// A model that makes vectors, if it was used before.
    pub(crate) fn embedder(&self, name: &str) -> Option<Arc<dyn Embedder>> {
        self.parts.embedders.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn keep_embedder(&self, name: &str, embedder: Arc<dyn Embedder>) {
        self.parts.embedders.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), embedder);
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.parts.clock
    }

    /// The folders outside which nothing is read when an agent is loaded; none for anywhere.
    pub(crate) fn within(&self) -> Option<Arc<[PathBuf]>> {
        self.parts.within.clone()
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.parts.environment
    }

    pub(crate) fn providers(&self) -> &Arc<Providers> {
        &self.parts.providers
    }

    pub(crate) fn model(&self) -> Arc<dyn Model> {
        self.parts.model.clone()
    }

    pub(crate) fn prices(&self) -> &Arc<Prices> {
        &self.parts.prices
    }

    pub(crate) fn default_model(&self) -> Option<ModelName> {
        self.parts.providers.default_model().cloned()
    }

    pub(crate) fn known_models(&self) -> Option<&[String]> {
        self.parts.models.as_deref()
    }

    /// The plugins within reach of an agent's folder as they are now. None of them is compiled or run.
    pub(crate) fn catalogue(&self, folder: &Path) -> Catalogue {
        Catalogue::of_folders(&self.plugin_folders(folder), self.parts.index.as_deref())
    }

    /// The plugins in the folders of the user as they are now, whatever agent is loaded. None of them is compiled or run.
    pub(crate) fn users_catalogue(&self) -> Catalogue {
        Catalogue::of_folders(&self.users_folders().collect::<Vec<_>>(), self.parts.index.as_deref())
    }

    /// Where plugins of an agent in this folder may be.
    pub(crate) fn plugin_folders(&self, folder: &Path) -> Vec<PathBuf> {
        [folder.join(PLUGIN_FOLDER)].into_iter().chain(self.users_folders()).collect()
    }

    /// Where plugins of the user may be.
    fn users_folders(&self) -> impl Iterator<Item = PathBuf> {
        let further = self.parts.plugins.iter().filter(|folder| !folder.as_os_str().is_empty());
        further.chain(&self.parts.user_plugins).cloned()
    }

    /// Whose the data of a plugin is that was found in the catalogue of a folder.
    pub(crate) fn owner(&self, folder: &Path, file: &Path, plugin: &str) -> Result<Owner, StoresError> {
        let place = file.parent().unwrap_or(Path::new(""));
        if place == folder.join(PLUGIN_FOLDER) {
            return Owner::of_project(folder, plugin);
        }
        if self.parts.user_plugins.as_deref() == Some(place) {
            return Owner::of_user(place, plugin);
        }
        Owner::beside_project(folder, place, plugin)
    }

    /// What the operator said about an agent's folder.
    pub(crate) fn agent_folder(&self, folder: &Path) -> Result<AgentFolder, FolderError> {
        Ok(self.sources.folder(folder, FolderFor::Agent, &self.parts.trust)?.recorded_as(&self.parts.record))
    }

    /// What the operator said about the folder of an agent that they name.
    pub(crate) fn named_folder(&self, folder: &Path) -> Result<AgentFolder, FolderError> {
        let said = self.sources.folder(folder, FolderFor::Person, &self.trust_of(FolderFor::Person))?;
        // Trust in what is named comes from no list, and there is one.
        said.check_list(&self.parts.trust)?;
        Ok(said.recorded_as(&self.parts.record))
    }

    /// What is said about an agent's folder at this moment, as the one who asks would have it.
    pub(crate) fn folder_now(&self, folder: &Path, who: FolderFor) -> Result<AgentFolder, FolderError> {
        AgentFolder::open(folder, &self.trust_of(who))
    }

    /// The trust that counts for whoever asks.
    pub(crate) fn trust_of(&self, who: FolderFor) -> Trust {
        match who {
            FolderFor::Person if self.is_unnamed => self.parts.trust.of_unnamed(),
            FolderFor::Person => self.parts.trust.of_named(),
            FolderFor::Agent => self.parts.trust.clone(),
        }
    }

    pub(crate) fn starts_programs(&self) -> bool {
        self.parts.starts_programs
    }

    pub(crate) fn trust(&self) -> &Trust {
        &self.parts.trust
    }

    pub(crate) fn signatures(&self) -> &SignaturePolicy {
        &self.parts.signatures
    }

    /// The data of plugins, opened when the first one needs it.
    pub(crate) fn stores(&self) -> Result<&Stores, StoresError> {
        if let Some(stores) = self.parts.opened_stores.get() {
            return Ok(stores);
        }
        let file = match &self.parts.stores {
            StoresChoice::Memory => None,
            StoresChoice::File(file) => Some(file.clone()),
            StoresChoice::Default => state_folder().map(|folder| folder.join("stores.db")),
        };
        let stores = Stores::open(file.as_deref())?;
        Ok(self.parts.opened_stores.get_or_init(|| stores))
    }
}
