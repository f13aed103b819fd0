//! The knowledge bases of an agent: built before its first run, opened once, asked by its nodes.

mod error;
mod outside;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use hotcell_budget::Account;
use hotcell_cells::Grants;
use hotcell_dialects::KnowledgeBaseSource;
use hotcell_engine::{Found, Knowledge, Lookup, People, PortError};
use hotcell_journal::Question;
use hotcell_knowledge::{
    Build, Embedder, Endpoint, KnowledgeBase, LocalEmbedder, Outside, Progress as BuildProgress, Protocol,
    RemoteEmbedder, RemoteReranker, Reranker, Settings,
};
use hotcell_models::{ModelError, ModelName};

use self::outside::{ByPolicy, ByTool, InCell};
use crate::context::LoadContext;
use crate::host::options::Progress;
pub use crate::knowledge::error::{KnowledgeError, KnowledgeProblem};
use crate::permissions::{Permissions, Revoked};
use crate::tools::AgentTools;

/// What grants to a node that looks things up are given to, before the node's id.
pub(crate) const GRANT_PREFIX: &str = "rag:";
/// The variable that names the embedding model of nodes that name none.
pub(crate) const MODEL_VARIABLE: &str = "HOTCELL_EMBEDDING_MODEL";
/// The embedding models on this machine: `local:DIRECTORY`.
const LOCAL: &str = "local:";

/// What an agent looks things up in.
pub(crate) struct AgentKnowledge {
    folder: PathBuf,
    sources: Vec<KnowledgeBaseSource>,
    /// By node: what its documents may be fetched from.
    grants: HashMap<String, Arc<Grants>>,
    permissions: Option<Arc<Permissions>>,
    tools: Option<Arc<AgentTools>>,
    open: Mutex<HashMap<String, Arc<KnowledgeBase>>>,
}

impl AgentKnowledge {
    pub(crate) fn new(
        folder: &Path,
        sources: Vec<KnowledgeBaseSource>,
        tools: Arc<AgentTools>,
        permissions: Arc<Permissions>,
        grants: impl Fn(&str) -> Arc<Grants>,
    ) -> Self {
        let grants = sources
            .iter()
            .map(|source| (source.node.clone(), grants(&format!("{GRANT_PREFIX}{}", source.node))))
            .collect();
        let (tools, permissions) = (Some(tools), Some(permissions));
        AgentKnowledge { folder: folder.to_owned(), sources, grants, permissions, tools, open: Mutex::default() }
    }

    /// Nothing to look things up in.
    pub(crate) fn none() -> Self {
        let (folder, sources) = (PathBuf::new(), Vec::new());
        AgentKnowledge {
            folder,
            sources,
            grants: HashMap::new(),
            permissions: None,
            tools: None,
            open: Mutex::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Where the knowledge base of a node is kept.
    pub(crate) fn file(folder: &Path, node: &str) -> PathBuf {
        folder.join(format!("{node}.yaml"))
    }

    /// Builds what is not built and opens everything, so that nothing of that happens in the middle of a run. People
    /// are asked for what the source leaves open.
    ///
    /// # Errors
    /// Why a knowledge base cannot be used that a run needs.
    pub(crate) async fn prepare(&self, context: &LoadContext, people: &dyn People) -> Result<(), KnowledgeError> {
        for source in &self.sources {
            if self.opened().contains_key(&source.node) {
                continue;
            }
            let named = |cause| KnowledgeError { node: source.node.clone(), cause };
            match self.ready(context, source, people).await.map_err(named) {
                Ok(base) => {
                    self.opened().insert(source.node.clone(), Arc::new(base));
                }
                // It is tried again before the next run.
                Err(error) if source.is_optional => {
                    tracing::warn!(target: "hotcell::knowledge", node = source.node, "{error}");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn opened(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<KnowledgeBase>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One knowledge base, built if need be.
    async fn ready(
        &self,
        context: &LoadContext,
        source: &KnowledgeBaseSource,
        people: &dyn People,
    ) -> Result<KnowledgeBase, KnowledgeProblem> {
        let file = Self::file(&self.folder, &source.node);
        if !file.exists() {
            let settings = complete(context, source, people).await?;
            self.build(context, source, settings, file.clone()).await?;
        }
        let about = KnowledgeBase::about_file(&file).await?;
        let model = source.embedding_model.as_deref().unwrap_or(&about.embedding_model);
        let embedder = embedder(context, &self.folder, self.of_node(&source.node)?, model).await?;
        let base = KnowledgeBase::open(&file, embedder).await?;
        Ok(match source.reranker_model.as_deref().or(about.reranker.as_deref()) {
            Some(model) => base.with_reranker(reranker(context, model)?),
            None => base,
        })
    }

    /// What is granted to the knowledge base of a node at this moment.
    fn of_node(&self, node: &str) -> Result<ByPolicy, Revoked> {
        let name = format!("{GRANT_PREFIX}{node}");
        let mut grants = self.grants.get(node).cloned().unwrap_or_default();
        if let Some(permissions) = &self.permissions {
            grants = permissions.grants(&name, &grants)?;
        }
        Ok(ByPolicy { name, grants })
    }

    async fn build(
        &self,
        context: &LoadContext,
        source: &KnowledgeBaseSource,
        complete: Complete,
        file: PathBuf,
    ) -> Result<(), KnowledgeProblem> {
        let ByPolicy { name, grants } = self.of_node(&source.node)?;
        let embedder_policy = ByPolicy { name: name.clone(), grants: grants.clone() };
        let build = Build {
            file,
            folder: self.folder.clone(),
            documents: source.documents.clone(),
            settings: complete.settings,
            embedder: embedder(context, &self.folder, embedder_policy, &complete.embedding_model).await?,
            outside: Outside {
                fetch: Arc::new(ByPolicy { name, grants }),
                loader: Arc::new(ByTool(self.tools.clone())),
                extract: Arc::new(InCell(context.cell_runtime().clone())),
            },
        };
        let told = |progress: BuildProgress| {
            context.progress(&Progress::Indexing {
                node: source.node.clone(),
                documents: progress.documents,
                total: progress.total,
                chunks: progress.chunks,
            });
        };
        let report = build.run(&told).await?;
        context.progress(&Progress::Indexed {
            node: source.node.clone(),
            documents: report.documents,
            chunks: report.chunks,
        });
        let left_out = report.unknown.iter().map(|file| format!("`{file}` was left out: its format is not known"));
        let empty = report.empty.iter().map(|file| format!("`{file}` was left out: it is empty"));
        for warning in report.warnings.iter().cloned().chain(left_out).chain(empty) {
            tracing::warn!(target: "hotcell::knowledge", node = source.node, "{warning}");
        }
        Ok(())
    }
}

#[async_trait]
impl Knowledge for AgentKnowledge {
    fn asks_outside(&self, base: &str) -> bool {
        let source = self.sources.iter().find(|source| source.node == base);
        let is_here = |source: &KnowledgeBaseSource| {
            let model = source.embedding_model.as_deref().unwrap_or_default();
            model.starts_with(LOCAL) && source.reranker_model.is_none()
        };
        !source.is_some_and(is_here)
    }

    async fn look_up(&self, lookup: Lookup<'_>) -> Result<Found, PortError> {
        let base = self.opened().get(lookup.base).cloned();
        let base = base.ok_or_else(|| PortError::new(format!("the knowledge base `{}` is not open", lookup.base)))?;
        let retrieved = base.search(lookup.query, lookup.top_k).await.map_err(PortError::new)?;
        let sources = retrieved.sources().into_iter().map(str::to_owned).collect();
        Ok(Found { context: retrieved.context(), sources, account: Account::default() })
    }
}

/// Everything that a build needs to know.
struct Complete {
    embedding_model: String,
    settings: Settings,
}

/// What the source says, completed by the person who runs it.
async fn complete(
    context: &LoadContext,
    source: &KnowledgeBaseSource,
    people: &dyn People,
) -> Result<Complete, KnowledgeProblem> {
    let defaults = Settings::default();
    let named = context.environment().get(MODEL_VARIABLE);
    // A person who is there has the last word on a model that the source leaves open.
    let model = source.embedding_model.clone().or_else(|| named.clone().filter(|_| !context.is_interactive()));
    let fully_said = model.is_some() && source.chunk_size.is_some() && source.chunk_overlap.is_some();
    let node = source.node.as_str();
    if !fully_said && !context.is_interactive() {
        return Err(KnowledgeProblem::NotBuilt);
    }
    if !fully_said {
        let question = format!("The knowledge base of `{node}` is not built yet. Build it now?");
        let answer = ask(people, node, question, &["yes", "no"], Some("yes")).await?;
        if !answer.eq_ignore_ascii_case("yes") {
            return Err(KnowledgeProblem::Declined);
        }
    }
    let number = |answer: &str, what: &'static str| {
        let wrong = |cause| KnowledgeProblem::NoNumber { answer: answer.to_owned(), what, cause };
        answer.trim().parse::<usize>().map_err(wrong)
    };
    let embedding_model = match model {
        Some(model) => model,
        None => ask(people, node, "Which embedding model?".to_owned(), &[], named.as_deref()).await?,
    };
    let chunk_size = match source.chunk_size {
        Some(size) => size as usize,
        None => {
            let default = defaults.chunk_size.to_string();
            number(
                &ask(people, node, "How many tokens may a chunk have?".to_owned(), &[], Some(&default)).await?,
                "size",
            )?
        }
    };
    let chunk_overlap = match source.chunk_overlap {
        Some(overlap) => overlap as usize,
        None => {
            let default = defaults.chunk_overlap.min(chunk_size / 2).to_string();
            let question = "How many tokens may a chunk share with the one before?".to_owned();
            number(&ask(people, node, question, &[], Some(&default)).await?, "overlap")?
        }
    };
    let settings = Settings {
        chunk_size,
        chunk_overlap,
        reranker: source.reranker_model.clone(),
        batch_size: source.batch_size.map_or(defaults.batch_size, |size| size as usize),
        ..defaults
    };
    Ok(Complete { embedding_model, settings })
}

async fn ask(
    people: &dyn People,
    node: &str,
    text: String,
    options: &[&str],
    default: Option<&str>,
) -> Result<String, KnowledgeProblem> {
    let question = Question {
        node: node.to_owned(),
        text,
        options: options.iter().map(|option| (*option).to_owned()).collect(),
        default: default.map(str::to_owned),
        ..Question::default()
    };
    let answer = people.ask(&question).await.ok_or(KnowledgeProblem::Unanswered)?;
    match (answer.trim(), default) {
        ("", Some(default)) => Ok(default.to_owned()),
        ("", None) => Err(KnowledgeProblem::EmptyAnswer),
        (answer, _) => Ok(answer.to_owned()),
    }
}

/// The model that makes vectors, by its name: `local:DIRECTORY`, or as names of models are.
async fn embedder(
    context: &LoadContext,
    folder: &Path,
    policy: ByPolicy,
    name: &str,
) -> Result<Arc<dyn Embedder>, KnowledgeProblem> {
    // Directories are relative to the agent's folder, so one name may mean several.
    let directory = name.strip_prefix(LOCAL).map(|directory| policy.model(folder, directory)).transpose()?;
    let key = directory.as_ref().map_or_else(|| name.to_owned(), |directory| directory.display().to_string());
    if let Some(known) = context.embedder(&key) {
        return Ok(known);
    }
    let embedder: Arc<dyn Embedder> = match directory {
        Some(directory) => Arc::new(LocalEmbedder::open(name, directory).await?),
        None => {
            let (client, endpoint) = endpoint(context, name)?;
            Arc::new(RemoteEmbedder::new(client, Protocol::OpenAi, endpoint)?)
        }
    };
    context.keep_embedder(&key, embedder.clone());
    Ok(embedder)
}

fn reranker(context: &LoadContext, name: &str) -> Result<Arc<dyn Reranker>, KnowledgeProblem> {
    let (client, endpoint) = endpoint(context, name)?;
    Ok(Arc::new(RemoteReranker::new(client, endpoint)?))
}

fn endpoint(context: &LoadContext, name: &str) -> Result<(hotcell_models::HttpClient, Endpoint), ModelError> {
    let parsed: ModelName = name.parse()?;
    let server = context.providers().server(&parsed)?;
    let key = server.key.map(|key| key.expose().to_owned());
    Ok((server.client, Endpoint { key, ..Endpoint::new(name, server.model, server.base_url) }))
}
