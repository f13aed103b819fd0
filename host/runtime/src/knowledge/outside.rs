//! What building a knowledge base needs of the world, each under the rules of its kind: addresses through the same policy as a
//! guest's requests, formats that have to be parsed in a sealed cell, loaders as tools of plugins.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hotcell_budget::{Budget, BudgetScope, Bytes, Fuel};
use hotcell_cells::policy::{decide_host_path, path_grant};
use hotcell_cells::{Grants, Terms};
use hotcell_engine::{CallError, CallSite, Nobody, SharedState, ToolCall, Tools};
use hotcell_knowledge::{Extract, Fetch, Fetched, Format, Loader, OutsideError};
use serde_json::{Value, json};

use super::error::{ExtractError, KnowledgeProblem, LoaderError};
use crate::cells::CellRuntime;
use crate::tools::AgentTools;

/// Where the cell finds a document that it is to read.
const DOCUMENTS: &str = "/documents";

/// Addresses, as far as the operator granted their servers to the node.
pub(super) struct ByPolicy {
    pub(super) name: String,
    pub(super) grants: Arc<Grants>,
}

impl ByPolicy {
    /// The directory of an embedding model on this machine, which the operator has to have granted: its files are read by
    /// native code, and the name comes from an agent's file or from a knowledge base that somebody else made.
    pub(super) fn model(&self, folder: &Path, directory: &str) -> Result<PathBuf, KnowledgeProblem> {
        let place = folder.join(directory);
        if decide_host_path(&self.grants, &place).is_allowed() {
            return Ok(place);
        }
        let help = path_grant(&self.name, directory, "/model");
        Err(KnowledgeProblem::ModelNotGranted { help })
    }
}

#[async_trait]
impl Fetch for ByPolicy {
    async fn get(&self, url: &str) -> Result<Fetched, OutsideError> {
        let budget = Budget {
            http_requests: 16,
            http_bytes: Bytes(64 << 20),
            wall_clock: Duration::from_secs(120),
            ..Budget::default()
        };
        let terms = Terms { grants: self.grants.clone(), budget, ..Terms::new(self.name.clone()) };
        let fetched = hotcell_cells::fetch(&terms, url).await.map_err(OutsideError::new)?;
        Ok(Fetched { content_type: fetched.content_type, bytes: fetched.bytes })
    }
}

/// Loaders are tools of plugins: `name:path` calls the tool `name` with `path`.
pub(super) struct ByTool(pub(super) Option<Arc<AgentTools>>);

#[async_trait]
impl Loader for ByTool {
    async fn load(&self, loader: &str, path: &str) -> Result<String, OutsideError> {
        self.call(loader, path).await.map_err(OutsideError::new)
    }
}

impl ByTool {
    async fn call(&self, loader: &str, path: &str) -> Result<String, LoaderError> {
        let arguments = json!({ "path": path }).to_string();
        let tools = self.0.as_ref().ok_or(LoaderError::NoTools)?;
        if tools.describe(loader).is_none() {
            return Err(LoaderError::Missing(loader.to_owned()));
        }
        let call = ToolCall {
            name: loader,
            arguments: &arguments,
            answers: &[],
            state: SharedState::new(Default::default()),
            variables: Arc::default(),
            budget_scope: Arc::new(BudgetScope::default()),
            hooks: Arc::new(Nobody),
            site: CallSite::outside(),
        };
        match tools.call(call).await.result {
            Ok(text) => Ok(text_of(&text)),
            Err(CallError::Failed(reason)) => Err(LoaderError::Failed(reason)),
            Err(CallError::Asks(question)) => Err(LoaderError::Asks(question)),
        }
    }
}

/// What a tool answered: a text, or an object with one.
fn text_of(answer: &str) -> String {
    match serde_json::from_str(answer) {
        Ok(Value::String(text)) => text,
        Ok(Value::Object(object)) => match object.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => answer.to_owned(),
        },
        _ => answer.to_owned(),
    }
}

/// Formats that have to be parsed are parsed in a cell that sees the one document and nothing else.
pub(super) struct InCell(pub(super) CellRuntime);

#[async_trait]
impl Extract for InCell {
    async fn text(&self, format: Format, bytes: Vec<u8>) -> Result<String, OutsideError> {
        self.call(format, bytes).await.map_err(OutsideError::new)
    }
}

impl InCell {
    async fn call(&self, format: Format, bytes: Vec<u8>) -> Result<String, ExtractError> {
        let cell = self.0.documents()?;
        let folder = tempfile::Builder::new().prefix("hotcell-document-").tempdir()?;
        tokio::fs::write(folder.path().join("document"), bytes).await?;
        let format = match format {
            Format::Pdf => "pdf",
            Format::Html => "html",
        };
        let grants = Grants {
            fs: vec![hotcell_cells::DirectoryGrant::new(folder.path(), DOCUMENTS, hotcell_cells::Access::Read)],
            ..Grants::default()
        };
        let terms = Terms { grants: Arc::new(grants), budget: reading(), ..Terms::new("documents") };
        let call = hotcell_cells::ToolCall {
            tool: "read_document".to_owned(),
            arguments: json!({ "path": format!("{DOCUMENTS}/document"), "format": format }).to_string(),
            answers: Vec::new(),
            terms,
        };
        let report = self.0.cells().call_tool(&cell, call).await;
        Ok(text_of(&report.result?))
    }
}

/// What reading one document may use: a large book is read in seconds, and nothing may take for ever.
fn reading() -> Budget {
    Budget {
        fuel: Fuel(200_000_000_000),
        memory: Bytes(1 << 30),
        wall_clock: Duration::from_secs(120),
        output: Bytes(64 << 20),
        transfer: Bytes(256 << 20),
        ..Budget::default()
    }
}
