//! Functions of a script file as tools. The file is run in the cell of its language, as it is: there it is described, by its
//! type hints and doc strings or by its comments, and there it is called. Nothing here reads its text.

mod answers;
mod bundle;
mod error;
mod load;
mod modules;
mod packages;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotcell_cells::{Cells, Grants, ScriptCall, StateView, Terms};
use hotcell_dialects::{Called, ToolMarks};
use hotcell_engine::{CallError, CallReport, ToolCall};
use hotcell_graph::value::read_json;
use hotcell_models::ToolSpec;
use hotcell_plugins::Settings;
use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::context::LoadContext;
use crate::permissions::Permissions;
use crate::python::answers::{Described, Marks, Outcome};
use crate::python::error::NoHarness;
pub(crate) use crate::python::error::{FunctionError, ToolFileError};
pub(crate) use crate::python::modules::ProjectModules;
use crate::python::packages::Package;
use crate::recordings;
use crate::scripts::{LoadedScript, exported};
use crate::settle::into_report;
use crate::withholding::withhold;

/// What the cells run: it loads the file, and describes or calls its functions. Each with what the full names of its tools begin
/// with, `py:file/function`, which is also the extension of the files.
const HARNESSES: [(&str, &str); 3] = [
    ("py:", include_str!("python/tool.py")),
    ("sh:", include_str!("shell_tool.sh")),
    ("ts:", include_str!("typescript_tool.js")),
];
/// The extension of files whose harness stands behind their own text and that of what they import, as their cell has no files that it
/// could import.
const BEHIND: &str = "ts";

/// What the text that runs is called where it shows: it is no file of the agent.
const HARNESS: &str = "hotcell-harness";

/// The tools that come with hotcell itself, with the files that define them.
const CARRIED: [(&str, &str, &str); 1] =
    [("execute_command", "execute_command.sh", include_str!("execute_command.sh"))];
/// Behind the full name of a function that is called with a list, the entry `arguments`, by the places of its parameters.
const BY_PLACE: &str = "(*)";
/// Behind the full name of a function that is the only tool of its file and has the file's name.
const BY_FILE: &str = "(file)";
/// The function of such a file.
const ONLY: &str = "run";

/// The Python files of an agent whose functions are tools.
#[derive(Clone)]
pub(crate) struct PythonTools {
    cells: Cells,
    files: Arc<Mutex<Files>>,
    permissions: Arc<Permissions>,
}

/// By their paths, the files that can be used, and why others cannot.
type Files = BTreeMap<String, Result<Arc<PythonFile>, Arc<ToolFileError>>>;

/// One file.
struct PythonFile {
    script: LoadedScript,
    packages: Vec<Package>,
    tools: IndexMap<String, Described>,
    /// What belongs to every call beside what is wanted of it
    wanted: Value,
    /// What runs, where it is not the harness alone
    text: Option<Arc<str>>,
}

/// Where a file is looked for, and what it may need.
pub(crate) struct Place<'a> {
    pub(crate) context: &'a LoadContext,
    /// The folder that the settings are for, and to which names of files are relative
    pub(crate) folder: &'a Path,
    pub(crate) settings: &'a Settings,
    /// What the file's own imports may mean
    pub(crate) modules: &'a ProjectModules,
    /// The dotted name by which the file was found; none if it was named itself
    pub(crate) module: Option<&'a str>,
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
    pub(crate) fn new(cells: Cells, permissions: Arc<Permissions>) -> Self {
        PythonTools { cells, files: Arc::default(), permissions }
    }

    /// Whether a name is that of a function of a file.
    pub(crate) fn is_function(name: &str) -> bool {
        prefix(name).is_some()
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files whose functions are tools, by the names under which something is granted to them.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |file: &String| match CARRIED.iter().find(|(_, carried, _)| carried == file) {
            Some((name, ..)) => (*name).to_owned(),
            None => file.clone(),
        };
        self.files().keys().map(name).collect()
    }

    /// The full name of a tool that comes with hotcell itself, if there is one of that name.
    pub(crate) fn carried(&self, name: &str) -> Option<String> {
        CARRIED.iter().find(|(carried, ..)| *carried == name).map(|(name, file, _)| full_name(file, name))
    }

    /// Loads such a tool, so that it can be described and called.
    pub(crate) fn load_carried(&self, place: &Place<'_>, name: &str) -> Option<Result<(), Arc<ToolFileError>>> {
        let (_, file, _) = CARRIED.iter().find(|(carried, ..)| *carried == name)?;
        Some(self.file(place, file).map(|_| ()))
    }

    /// The full name of a function of a file; the file is loaded and described when it is first asked for.
    pub(crate) fn tool(&self, place: &Place<'_>, file: &str, function: &str) -> Result<String, FunctionError> {
        let loaded = self.file(place, file)?;
        match loaded.tools.get(function) {
            Some(Described::Tool { .. }) => Ok(full_name(file, function)),
            Some(Described::Broken { error }) => Err(broken(file, function, error)),
            None => {
                let near = hotcell_graph::closest(function, loaded.tools.keys().map(String::as_str));
                let near = near.map(str::to_owned);
                Err(FunctionError::Missing { function: function.to_owned(), file: file.to_owned(), near })
            }
        }
    }

    /// The full name of the tool of a file that is one tool, `name`: what a shell file declares for itself, or the function `run`.
    pub(crate) fn file_tool(&self, place: &Place<'_>, file: &str, name: &str) -> Result<String, FunctionError> {
        match extension(file) {
            "sh" => self.tool(place, file, name),
            _ => Ok(self.tool(place, file, ONLY)? + BY_FILE),
        }
    }

    /// The full name of a function of a module, by which it is called that way; none if the module has no such function.
    pub(crate) fn function(
        &self,
        place: &Place<'_>,
        file: &str,
        function: &str,
        called: Called,
    ) -> Result<Option<String>, FunctionError> {
        match (self.file(place, file)?.tools.get(function), called) {
            (None, _) => Ok(None),
            (Some(_), Called::ByPlace) => Ok(Some(format!("{}{BY_PLACE}", full_name(file, function)))),
            (Some(Described::Tool { .. }), Called::ByName) => Ok(Some(full_name(file, function))),
            (Some(Described::Broken { error }), Called::ByName) => Err(broken(file, function, error)),
        }
    }

    /// What a file says of a function beside its description, by its full name.
    pub(crate) fn marks(&self, name: &str) -> Option<ToolMarks> {
        let (file, _, function) = self.find(name)?;
        match file.tools.get(&function) {
            Some(Described::Tool { marks: Marks { confirm, allowed, category }, .. }) => {
                Some(ToolMarks { confirm: *confirm, allowed: allowed.clone(), category: category.clone() })
            }
            _ => None,
        }
    }

    /// The names of all functions of a file, in its order, whether they can be used or not.
    pub(crate) fn names_in(&self, place: &Place<'_>, file: &str) -> Result<Vec<String>, Arc<ToolFileError>> {
        Ok(self.file(place, file)?.tools.keys().cloned().collect())
    }

    /// The names and the full names of all functions of a file that are tools, in its order.
    pub(crate) fn all(&self, place: &Place<'_>, file: &str) -> Result<Vec<(String, String)>, FunctionError> {
        let loaded = self.file(place, file)?;
        let usable = |(function, described): (&String, &Described)| match described {
            Described::Tool { .. } => Ok((function.clone(), full_name(file, function))),
            Described::Broken { error } => Err(broken(file, function, error)),
        };
        let own = |described: &Described| !matches!(described, Described::Tool { own: false, .. });
        loaded.tools.iter().filter(|(_, described)| own(described)).map(usable).collect()
    }

    fn file(&self, place: &Place<'_>, file: &str) -> Result<Arc<PythonFile>, Arc<ToolFileError>> {
        let known = self.files().get(file).cloned();
        known.unwrap_or_else(|| {
            let loaded = self.load(place, file).map(Arc::new).map_err(Arc::new);
            self.files().insert(file.to_owned(), loaded.clone());
            loaded
        })
    }

    /// The file and the function of the full name of a function of a Python file.
    pub(crate) fn place(name: &str) -> Option<(&str, &str)> {
        let name = name.strip_prefix("py:")?;
        name.strip_suffix(BY_FILE).unwrap_or(name).rsplit_once('/')
    }

    fn find(&self, name: &str) -> Option<(Arc<PythonFile>, String, String)> {
        let plain = name.strip_suffix(BY_FILE).unwrap_or(name);
        let (file, function) = plain.strip_prefix(prefix(name)?)?.rsplit_once('/')?;
        let loaded = self.files().get(file)?.clone().ok()?;
        Some((loaded, file.to_owned(), function.to_owned()))
    }

    /// What a model is told about a function, by its full name.
    pub(crate) fn describe(&self, full: &str) -> Option<ToolSpec> {
        let (file, path, function) = self.find(full)?;
        if let Some(function) = function.strip_suffix(BY_PLACE) {
            let list = json!({ "arguments": { "type": "array" } });
            let parameters = json!({ "type": "object", "properties": list, "required": ["arguments"] });
            return Some(ToolSpec { name: function.to_owned(), description: String::new(), parameters });
        }
        let Some(Described::Tool { description, parameters, .. }) = file.tools.get(&function).cloned() else {
            return None;
        };
        let spoken = if full.ends_with(BY_FILE) { stem(&path) } else { function };
        Some(ToolSpec { name: spoken, description, parameters })
    }

    /// Calls a function by its full name. A question without an answer ends the call; it is repeated with the answer.
    pub(crate) async fn call(&self, call: &ToolCall<'_>) -> CallReport {
        let ToolCall { name, arguments, answers, variables, budget_scope, site, .. } = call;
        let Some((loaded, file, function)) = self.find(name) else {
            return CallReport::failed(format!("there is no tool `{name}`"));
        };
        let mut arguments = match read_json(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return CallReport::failed(format!("the arguments are not an object: {error}")),
        };
        let function = match function.strip_suffix(BY_PLACE) {
            Some(function) => {
                arguments = arguments["arguments"].take();
                function.to_owned()
            }
            None => function,
        };
        let mut terms = recordings::terms_at(&loaded.script.terms, site);
        if let Err(revoked) = self.permissions.narrow(&mut terms, false) {
            return CallReport::failed(revoked.to_string());
        }
        self.permissions.permit(&mut terms, loaded.script.caller(), site);
        withhold(&mut terms, site);
        let granted = terms.grants.clone();
        // Those of a project are settings of its folder, as grants are.
        for package in &loaded.packages {
            let named = !package.of_project || self.permissions.names_packages(&package.grant.host).unwrap_or(false);
            if named {
                with_packages(&mut terms, std::slice::from_ref(package));
            }
        }
        terms.budget = match budget_scope.clamp(&terms.budget) {
            Ok(budget) => budget,
            Err(overdrawn) => return CallReport::failed(overdrawn.to_string()),
        };
        terms.env.extend(exported(variables));
        let mut wanted = loaded.wanted.clone();
        wanted["function"] = function.into();
        wanted["arguments"] = arguments;
        wanted["answers"] = (*answers).into();
        let call = match script_call(&file, &wanted, loaded.text.as_ref(), terms) {
            Ok(call) => call,
            Err(error) => return CallReport::failed(error.to_string()),
        };
        let report = self.cells.run_script(&loaded.script.cell, call).await;
        self.permissions.tell_denials(loaded.script.caller(), &granted, &report, site);
        let mut report = into_report(&file, report, budget_scope, site);
        report.result = report.result.and_then(|answer| match serde_json::from_str(answer_of(&file, &answer)) {
            Ok(Outcome::Value(value)) => Ok(value.to_string()),
            Ok(Outcome::Asks(question)) => Err(CallError::Asks(question)),
            Ok(Outcome::Error(reason)) => Err(CallError::Failed(reason)),
            Err(error) => Err(CallError::Failed(format!("`{file}` did not answer as it should: {error}"))),
        });
        report
    }
}

fn broken(file: &str, function: &str, reason: &str) -> FunctionError {
    FunctionError::Broken { function: function.to_owned(), file: file.to_owned(), reason: reason.to_owned() }
}

/// Lets a call read folders with packages.
fn with_packages(terms: &mut Terms, packages: &[Package]) {
    if packages.is_empty() {
        return;
    }
    let mut grants = Grants::clone(&terms.grants);
    grants.fs.extend(packages.iter().map(|package| package.grant.clone()));
    terms.grants = Arc::new(grants);
}

/// What the full name of a function begins with, if it is one.
fn prefix(name: &str) -> Option<&'static str> {
    HARNESSES.iter().map(|(prefix, _)| *prefix).find(|prefix| name.starts_with(prefix))
}

/// The harness that has this digest.
pub(crate) fn harness_of(wanted: &str) -> Option<&'static str> {
    let mut texts = HARNESSES.iter().map(|(_, text)| *text);
    texts.find(|text| hotcell_cells::digest(text.as_bytes()) == wanted)
}

fn extension(file: &str) -> &str {
    file.rsplit('.').next().unwrap_or_default()
}

/// The name of a file without its folder and its extension.
fn stem(file: &str) -> String {
    Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn full_name(file: &str, function: &str) -> String {
    format!("{}:{file}/{function}", extension(file))
}

/// The folder in which functions work, as they see it: the first that was granted to them.
pub(crate) fn working_folder(grants: &Grants) -> &str {
    grants.fs.first().map_or("/tmp", |granted| &granted.guest)
}

/// A text with its harness behind it.
fn behind(source: &str) -> String {
    let harness = HARNESSES.iter().find(|(prefix, _)| prefix.strip_suffix(':') == Some(BEHIND));
    format!("{source}\n{}", harness.map_or("", |(_, harness)| harness))
}

/// The answer of a harness: the last line, where the file itself may write before it.
fn answer_of<'a>(file: &str, output: &'a str) -> &'a str {
    match extension(file) {
        BEHIND => output.trim_end().rsplit('\n').next().unwrap_or_default(),
        _ => output,
    }
}

fn script_call(file: &str, wanted: &Value, text: Option<&Arc<str>>, terms: Terms) -> Result<ScriptCall, NoHarness> {
    let harness = HARNESSES.iter().find(|(prefix, _)| prefix.strip_suffix(':') == Some(extension(file)));
    let Some((_, harness)) = harness else {
        return Err(NoHarness { file: file.to_owned() });
    };
    let (file_name, source) = match text {
        Some(text) => (file.to_owned(), text.clone()),
        // The text that runs is the harness, which names the file itself.
        None => (HARNESS.to_owned(), Arc::from(*harness)),
    };
    Ok(ScriptCall { file_name, source: Some(source), state: Arc::new(Wanted(wanted.to_string().into())), terms })
}
