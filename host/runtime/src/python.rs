//! Functions of a Python file as tools. The file is run in the Python cell, as it is: there it is described, by its type
//! hints and doc strings, and there it is called. Nothing here reads its text.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotcell_budget::BudgetScope;
use hotcell_cells::{Cells, ScriptCall, StateView, Terms};
use hotcell_engine::{CallError, CallReport};
use hotcell_models::ToolSpec;
use hotcell_plugins::Settings;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::context::LoadContext;
use crate::scripts::LoadedScript;
use crate::settle::{into_report, settle};

/// What the cell runs: it loads the file, and describes or calls its functions.
const HARNESS: &str = include_str!("python_tool.py");
/// What the full name of such a tool begins with: `py:file/function`.
const PREFIX: &str = "py:";

/// The Python files of an agent whose functions are tools.
#[derive(Clone)]
pub(crate) struct PythonTools {
    cells: Cells,
    files: Arc<Mutex<Files>>,
}

/// By their paths, the files that can be used, and why others cannot.
type Files = BTreeMap<String, Result<Arc<PythonFile>, String>>;

/// One file.
struct PythonFile {
    script: LoadedScript,
    tools: BTreeMap<String, Described>,
}

/// What the cell says of a function.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Described {
    Tool { description: String, parameters: Value },
    Broken { error: String },
}

#[derive(Deserialize)]
struct DescribedFile {
    tools: BTreeMap<String, Described>,
}

/// What a call came to, as the cell says it.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Value(Value),
    Asks(String),
    Error(String),
}

/// What the harness is told.
struct Wanted(Arc<str>);

impl StateView for Wanted {
    fn get(&self, _: &str) -> Option<String> {
        None
    }

    fn all(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl PythonTools {
    pub(crate) fn new(cells: Cells) -> Self {
        PythonTools { cells, files: Arc::default() }
    }

    /// Whether a name is that of a function of a file.
    pub(crate) fn is_function(name: &str) -> bool {
        name.starts_with(PREFIX)
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Result<Arc<PythonFile>, String>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether functions of that file are tools.
    pub(crate) fn has(&self, file: &str) -> bool {
        self.files().contains_key(file)
    }

    /// The full name of a function of a file in `folder`; the file is loaded and described when it is first asked for.
    pub(crate) fn tool(
        &self,
        context: &LoadContext,
        folder: &Path,
        settings: &Settings,
        file: &str,
        function: &str,
    ) -> Result<String, String> {
        let known = self.files().get(file).cloned();
        let loaded = match known {
            Some(loaded) => loaded,
            None => {
                let loaded = self.load(context, folder, settings, file).map(Arc::new);
                self.files().insert(file.to_owned(), loaded.clone());
                loaded
            }
        }?;
        match loaded.tools.get(function) {
            Some(Described::Tool { .. }) => Ok(format!("{PREFIX}{file}/{function}")),
            Some(Described::Broken { error }) => Err(format!("`{function}` of `{file}` can be no tool: {error}")),
            None => {
                let near = hotcell_graph::closest(function, loaded.tools.keys().map(String::as_str));
                let near = near.map(|near| format!("; there is `{near}`")).unwrap_or_default();
                Err(format!("`{file}` defines no function `{function}`{near}"))
            }
        }
    }

    fn load(
        &self,
        context: &LoadContext,
        folder: &Path,
        settings: &Settings,
        file: &str,
    ) -> Result<PythonFile, String> {
        let script =
            LoadedScript::load(&self.cells, context.cell_runtime(), folder, file, settings, context.environment())?;
        let call = script_call(&script, file, json!({}), script.terms.clone());
        let (cells, cell) = (self.cells.clone(), script.cell.clone());
        let report = context.connections().wait_for(async move { cells.run_script(&cell, call).await })?;
        // Nobody runs yet: what describing costs is bounded by the file's own budget.
        let (answer, _) = settle(file, report, &BudgetScope::default());
        let answer = answer.map_err(|error| match error {
            CallError::Failed(reason) => format!("`{file}` cannot be loaded: {reason}"),
            CallError::Asks(_) => format!("`{file}` asks a question while it is loaded"),
        })?;
        let described: DescribedFile =
            serde_json::from_str(&answer).map_err(|error| format!("`{file}` cannot be described: {error}"))?;
        Ok(PythonFile { script, tools: described.tools })
    }

    /// The file and the function of a full name.
    pub(crate) fn place(name: &str) -> Option<(&str, &str)> {
        name.strip_prefix(PREFIX)?.rsplit_once('/')
    }

    fn find(&self, name: &str) -> Option<(Arc<PythonFile>, String, String)> {
        let (file, function) = PythonTools::place(name)?;
        let loaded = self.files().get(file)?.clone().ok()?;
        Some((loaded, file.to_owned(), function.to_owned()))
    }

    /// What a model is told about a function, by its full name.
    pub(crate) fn describe(&self, name: &str) -> Option<ToolSpec> {
        let (file, _, function) = self.find(name)?;
        let Some(Described::Tool { description, parameters }) = file.tools.get(&function).cloned() else { return None };
        Some(ToolSpec { name: function, description, parameters })
    }

    /// Calls a function by its full name. A question without an answer ends the call; it is repeated with the answer.
    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: &str,
        answers: &[String],
        budget_scope: &BudgetScope,
    ) -> CallReport {
        let Some((loaded, file, function)) = self.find(name) else {
            return CallReport::failed(format!("there is no tool `{name}`"));
        };
        let arguments: Value = match serde_json::from_str(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return CallReport::failed(format!("the arguments are no object: {error}")),
        };
        let mut terms = loaded.script.terms.clone();
        terms.budget = match budget_scope.clamp(&terms.budget) {
            Ok(budget) => budget,
            Err(overdrawn) => return CallReport::failed(overdrawn.to_string()),
        };
        let wanted = json!({ "function": function, "arguments": arguments, "answers": answers });
        let call = script_call(&loaded.script, &file, wanted, terms);
        let mut report = into_report(&file, self.cells.run_script(&loaded.script.cell, call).await, budget_scope);
        report.result = report.result.and_then(|answer| match serde_json::from_str(&answer) {
            Ok(Outcome::Value(value)) => Ok(value.to_string()),
            Ok(Outcome::Asks(question)) => Err(CallError::Asks(question)),
            Ok(Outcome::Error(reason)) => Err(CallError::Failed(reason)),
            Err(error) => Err(CallError::Failed(format!("`{file}` did not answer as it should: {error}"))),
        });
        report
    }
}

fn script_call(script: &LoadedScript, file: &str, mut wanted: Value, terms: Terms) -> ScriptCall {
    wanted["file"] = file.into();
    wanted["source"] = script.source.as_deref().unwrap_or_default().into();
    ScriptCall {
        // What it is called in messages; the text that runs is the harness, which names the file itself.
        file_name: file.to_owned(),
        source: Some(HARNESS.into()),
        state: Arc::new(Wanted(wanted.to_string().into())),
        terms,
    }
}
