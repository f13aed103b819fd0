//! Script nodes: a file of the agent's folder, the cell that runs it, and the terms it runs on.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;
use std::sync::Arc;

use async_trait::async_trait;
use hotcell_budget::Budget;
use hotcell_cells::{Cell, Cells, Grants, LoadError, ScriptKind, StateView, Terms, digest};
use hotcell_engine::{CallError, CallReport, ScriptCall, Scripts, SharedState};
use hotcell_files::FileError;
use hotcell_graph::Key;
use hotcell_plugins::{LimitError, NotPinned, Settings};
use thiserror::Error;

use crate::cells::CarriedError;
use crate::context::LoadContext;
use crate::denials::Caller;
use crate::environment::Environment;
use crate::notices::unset_variable;
use crate::permissions::Permissions;
use crate::recordings;
use crate::settle::{into_report, log_of};
use crate::withholding::withhold;

/// Bytes that the text of a script may have.
const MAX_SOURCE: u64 = 8 << 20;
/// Bytes that a compiled script may have.
const MAX_COMPONENT: u64 = 256 << 20;

/// The scripts of an agent, loaded.
pub(crate) struct AgentScripts {
    cells: Cells,
    scripts: HashMap<String, LoadedScript>,
    /// Files that cannot be run, and why
    broken: HashMap<String, ScriptError>,
    permissions: Arc<Permissions>,
}

/// A file that a cell runs.
pub(crate) struct LoadedScript {
    pub(crate) cell: Cell,
    /// The text, for interpreters
    pub(crate) source: Option<Arc<str>>,
    pub(crate) terms: Terms,
    /// The SHA-256 digest of its text or component
    digest: String,
}

/// Why a file cannot be run as a script.
#[derive(Debug, Error)]
pub(crate) enum ScriptError {
    /// It cannot be read
    #[error("cannot read `{path}`: {cause}", path = path.display())]
    Unreadable {
        /// The file
        path: PathBuf,
        /// Why not
        #[source]
        cause: FileError,
    },
    /// It is not the file that is trusted
    #[error(transparent)]
    NotPinned(#[from] NotPinned),
    /// It is compiled, and cannot be loaded
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It is compiled, and no script
    #[error("`{file}` is not a script: it exports neither `run-script` nor a WASI command")]
    NoScript {
        /// The file
        file: String,
    },
    /// What interprets it cannot be used
    #[error(transparent)]
    Interpreter(#[from] CarriedError),
    /// It is no text
    #[error("`{file}` is not UTF-8 text: byte {} is wrong", .cause.utf8_error().valid_up_to())]
    NotText {
        /// The file
        file: String,
        /// Where not
        #[source]
        cause: FromUtf8Error,
    },
    /// What the settings say of its limits is not of its form
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// Where the files of an agent are.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The folder that no path leaves
    pub(crate) project: &'a Path,
    /// The folder, in it, from which paths are read
    pub(crate) folder: &'a Path,
}

impl LoadedScript {
    /// Loads the file at `file`. The error says why it cannot be run.
    pub(crate) fn load(
        context: &LoadContext,
        place: Place<'_>,
        file: &str,
        settings: &Settings,
    ) -> Result<Self, ScriptError> {
        let (cell_runtime, environment) = (context.cell_runtime(), context.environment());
        let path = place.folder.join(file);
        let read = |limit: u64| {
            let folder = context.sources().below(place.project);
            let bytes = folder.read(&path, limit);
            let bytes = bytes.map_err(|cause| ScriptError::Unreadable { path: path.clone(), cause })?;
            settings.check_pinned(file, &bytes)?;
            Ok::<_, ScriptError>(bytes)
        };
        let extension =
            path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default();
        let (cell, source) = if extension == "wasm" {
            let bytes = read(MAX_COMPONENT)?;
            let cell = cell_runtime.cells().load(file, &bytes)?;
            if cell.script_kind().is_none() {
                return Err(ScriptError::NoScript { file: file.to_owned() });
            }
            (cell, None)
        } else {
            let cell = cell_runtime.interpreter(&extension)?;
            let text = String::from_utf8(read(MAX_SOURCE)?);
            let text = text.map_err(|cause| ScriptError::NotText { file: file.to_owned(), cause })?;
            (cell, Some(Arc::from(text)))
        };
        let mut script = Self::of(cell, source, file, settings, environment)?;
        script.terms.origin = Some(path.to_string_lossy().into());
        Ok(script)
    }

    /// A script with this text, which comes with hotcell and is granted what is granted to `name`.
    pub(crate) fn carried(
        context: &LoadContext,
        name: &str,
        extension: &str,
        source: &str,
        settings: &Settings,
    ) -> Result<Self, ScriptError> {
        let cell = context.cell_runtime().interpreter(extension)?;
        Self::of(cell, Some(source.into()), name, settings, context.environment())
    }

    fn of(
        cell: Cell,
        source: Option<Arc<str>>,
        file: &str,
        settings: &Settings,
        environment: &Environment,
    ) -> Result<Self, ScriptError> {
        let base = match cell.script_kind() {
            Some(ScriptKind::Interpreter) => Budget::interpreter(),
            // A compiled program gets the time its node has; fuel and memory are what bounds it.
            Some(ScriptKind::Command) => Budget { output: Budget::interpreter().output, ..command_budget() },
            _ => command_budget(),
        };
        let terms = Terms {
            grants: settings.grants(file),
            held_back: settings.held_back(file),
            env: granted_variables(&settings.grants(file), environment),
            secrets: settings.secrets(file, &|variable| environment.get(variable)),
            config: settings.config(file),
            budget: settings.budget(file, base)?,
            listener: Some(log_of(file)),
            record: settings.record(file),
            ..Terms::new(file)
        };
        let digest = match &source {
            Some(text) => digest(text.as_bytes()),
            None => cell.digest().to_owned(),
        };
        Ok(LoadedScript { cell, source, terms, digest })
    }

    /// What is run when it is called.
    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller::Script(&self.terms.plugin, &self.digest)
    }
}

impl AgentScripts {
    pub(crate) fn new(cells: Cells, permissions: Arc<Permissions>) -> Self {
        AgentScripts { cells, scripts: HashMap::new(), broken: HashMap::new(), permissions }
    }

    /// Makes every run of `file` fail with this error.
    pub(crate) fn leave_broken(&mut self, file: &str, error: ScriptError) {
        self.broken.insert(file.to_owned(), error);
    }

    /// Loads the script at `file`. The error says why it cannot be run.
    pub(crate) fn load(
        &mut self,
        context: &LoadContext,
        place: Place<'_>,
        file: &str,
        settings: &Settings,
    ) -> Result<(), ScriptError> {
        if self.scripts.contains_key(file) {
            return Ok(());
        }
        let script = LoadedScript::load(context, place, file, settings)?;
        self.scripts.insert(file.to_owned(), script);
        Ok(())
    }
}

fn command_budget() -> Budget {
    Budget { fuel: Budget::interpreter().fuel, wall_clock: Budget::interpreter().wall_clock, ..Budget::default() }
}

/// The variables of a graph as its scripts find them in their environment.
pub(crate) fn exported(variables: &[(Key, String)]) -> impl Iterator<Item = (String, String)> {
    variables.iter().map(|(name, value)| (format!("LLM_AGENT_VAR_{}", name.to_uppercase()), value.clone()))
}

/// The granted variables of the host, with their values.
pub(crate) fn granted_variables(grants: &Grants, environment: &Environment) -> Vec<(String, String)> {
    grants.env.iter().filter_map(|name| Some((name.clone(), environment.get(name)?))).collect()
}

#[async_trait]
impl Scripts for AgentScripts {
    fn is_closed(&self, file: &str) -> bool {
        // What is taken away from these grants before the call cannot add anything.
        self.scripts.get(file).is_none_or(|script| *script.terms.grants == Grants::default())
    }

    async fn run(&self, call: ScriptCall) -> CallReport {
        let Some(script) = self.scripts.get(&call.file) else {
            let reason = self.broken.get(&call.file).map(ScriptError::to_string);
            return CallReport::failed(reason.unwrap_or_else(|| "it is not loaded".to_owned()));
        };
        let mut terms = recordings::terms_at(&script.terms, &call.site);
        if let Err(revoked) = self.permissions.narrow(&mut terms, false) {
            return CallReport::failed(revoked.to_string());
        }
        self.permissions.permit(&mut terms, script.caller(), &call.site);
        withhold(&mut terms, &call.site);
        let granted = terms.grants.clone();
        terms.env.extend(exported(&call.variables));
        if let Some(timeout) = call.timeout {
            terms.budget.wall_clock = timeout;
        }
        terms.budget = match call.budget_scope.clamp(&terms.budget) {
            Ok(budget) => budget,
            Err(overdrawn) => return CallReport::failed(overdrawn.to_string()),
        };
        let report = self
            .cells
            .run_script(
                &script.cell,
                hotcell_cells::ScriptCall {
                    file_name: call.file.clone(),
                    source: script.source.clone(),
                    state: Arc::new(StateOfRun(call.state)),
                    terms,
                },
            )
            .await;
        self.permissions.tell_denials(script.caller(), &granted, &report, &call.site);
        let mut report = into_report(&call.file, report, &call.budget_scope, &call.site);
        if let Err(CallError::Failed(failure)) = &mut report.result
            && let Some(hint) = unset_variable(failure, &script.terms)
        {
            failure.push('\n');
            failure.push_str(&hint);
        }
        report
    }
}

/// The state of a run as cells see it.
pub(crate) struct StateOfRun(pub(crate) SharedState);

impl StateView for StateOfRun {
    fn get(&self, path: &str) -> Option<String> {
        self.0.get(path)
    }

    fn all(&self) -> Arc<str> {
        self.0.all()
    }
}
