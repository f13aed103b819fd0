//! Loading a file: what the cell of its language says of its functions, or of one of its models.

use std::path::Path;
use std::sync::Arc;

use hotcell_budget::BudgetScope;
use hotcell_cells::{ScriptCall, Terms};
use hotcell_engine::{CallError, CallSite};
use serde_json::{Value, json};

use crate::context::LoadContext;
use crate::python::answers::Description;
use crate::python::error::{NoModelSchema, ToolFileError};
use crate::python::modules::Modules;
use crate::python::packages::{Package, packages};
use crate::python::{
    BEHIND, CARRIED, HARNESS, Place, PythonFile, PythonTools, Wanted, answer_of, behind, bundle, extension,
    script_call, with_packages, working_folder,
};
use crate::recordings;
use crate::scripts::{self, LoadedScript, ScriptError};
use crate::settle::settle;

/// How often a file may name further modules, each time after those that it named before were looked for.
const MAX_ROUNDS: usize = 64;

impl PythonTools {
    pub(super) fn load(&self, place: &Place<'_>, file: &str) -> Result<PythonFile, ToolFileError> {
        let Place { context, folder, settings, .. } = place;
        let carried = CARRIED.iter().find(|(_, carried, _)| *carried == file);
        let script = match carried {
            Some((name, _, source)) => LoadedScript::carried(context, name, "sh", source, settings)?,
            None => script(place, file)?,
        };
        let agent =
            folder.join(file).parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let mut wanted = json!({ "agent": agent, "folder": working_folder(&script.terms.grants) });
        let source = script.source.as_deref().unwrap_or_default();
        if file.ends_with(".py") {
            let (description, packages) = self.describe_python(place, &script, file, &mut wanted)?;
            return match description {
                Description::Tools(tools) => Ok(PythonFile { script, packages, tools, wanted, text: None }),
                _ => Err(ToolFileError::NoFunctions(file.to_owned())),
            };
        }
        wanted["file"] = file.into();
        wanted["source"] = source.into();
        let text = if extension(file) == BEHIND {
            let ask = |told: Value| self.ask_for_imports(context, &script, file, &told);
            let bundle = bundle::of(file, source, &context.sources().below(folder), folder, ask)?;
            if !bundle.others.is_empty() {
                wanted["others"] = bundle.others.into();
            }
            // What runs is part of a revision, so that a call can be executed again.
            let unknown = || ToolFileError::TextNotKept(file.to_owned());
            let text = || Ok(behind(&bundle.text));
            Some(Arc::from(context.sources().answer(&format!("script {file}"), unknown, text)?))
        } else {
            None
        };
        match self.describe_file(context, &script.terms, &script, file, wanted.clone(), text.as_ref())? {
            Description::Tools(tools) => Ok(PythonFile { script, packages: Vec::new(), tools, wanted, text }),
            Description::Error(reason) => Err(ToolFileError::Load { file: file.to_owned(), reason }),
            Description::Needs(_) => Err(ToolFileError::NeedsModules(file.to_owned())),
            Description::Model(_) | Description::Models(_) => Err(ToolFileError::NoFunctions(file.to_owned())),
        }
    }

    /// The JSON schema of a model of a Python file, as the cell gives it: nothing of the file runs anywhere else.
    pub(crate) fn model(&self, place: &Place<'_>, file: &str, model: &str) -> Result<Value, NoModelSchema> {
        let script = script(place, file).map_err(ToolFileError::from)?;
        let mut wanted = json!({ "model": model });
        match self.describe_python(place, &script, file, &mut wanted)?.0 {
            Description::Model(schema) => Ok(schema),
            Description::Models(known) => {
                let near = hotcell_graph::closest(model, known.iter().map(String::as_str)).map(str::to_owned);
                Err(NoModelSchema::Missing { model: model.to_owned(), file: file.to_owned(), near })
            }
            _ => Err(NoModelSchema::NoSchema { model: model.to_owned(), file: file.to_owned() }),
        }
    }

    /// What the cell says of a Python file, once it has the modules that the file imports. What it was told at last is in `wanted`.
    fn describe_python(
        &self,
        place: &Place<'_>,
        script: &LoadedScript,
        file: &str,
        wanted: &mut Value,
    ) -> Result<(Description, Vec<Package>), ToolFileError> {
        let Place { context, settings, .. } = place;
        let source = script.source.as_deref().unwrap_or_default();
        let mut modules = Modules::of(file, place.module, source, place.modules)?;
        let packages = packages(context, settings)?;
        wanted["module"] = modules.name().into();
        wanted["packages"] = packages.iter().map(|package| package.grant.guest.as_str()).collect();
        let mut terms = script.terms.clone();
        with_packages(&mut terms, &packages);
        for _ in 0..MAX_ROUNDS {
            wanted["modules"] = modules.to_json();
            match self.describe_file(context, &terms, script, file, wanted.clone(), None)? {
                Description::Needs(names) => modules.look_for(&names)?,
                Description::Error(reason) => return Err(ToolFileError::Load { file: file.to_owned(), reason }),
                description => return Ok((description, packages)),
            }
        }
        Err(ToolFileError::Endless(file.to_owned()))
    }

    fn describe_file(
        &self,
        context: &LoadContext,
        terms: &Terms,
        script: &LoadedScript,
        file: &str,
        wanted: Value,
        text: Option<&Arc<str>>,
    ) -> Result<Description, ToolFileError> {
        // What it answers is part of a revision, each time for what it was told.
        let told = blake3::hash(wanted.to_string().as_bytes()).to_hex();
        let unknown = || ToolFileError::FunctionsNotKept(file.to_owned());
        let answer = context.sources().answer(&format!("functions {file} {told}"), unknown, || {
            let terms = recordings::terms_at(terms, &CallSite::outside());
            self.run_now(context, script, file, script_call(file, &wanted, text, terms)?)
        })?;
        serde_json::from_str(answer_of(file, &answer))
            .map_err(|cause| ToolFileError::Description { file: file.to_owned(), cause })
    }

    /// What the cell says of the imports of a file, as JSON.
    fn ask_for_imports(
        &self,
        context: &LoadContext,
        script: &LoadedScript,
        file: &str,
        wanted: &Value,
    ) -> Result<String, ToolFileError> {
        let told = blake3::hash(wanted.to_string().as_bytes()).to_hex();
        let unknown = || ToolFileError::FunctionsNotKept(file.to_owned());
        context.sources().answer(&format!("imports {file} {told}"), unknown, || {
            let terms = recordings::terms_at(&script.terms, &CallSite::outside());
            let state = Arc::new(Wanted(wanted.to_string().into()));
            let source = Some(bundle::SCRIPT.into());
            self.run_now(context, script, file, ScriptCall { file_name: HARNESS.to_owned(), source, state, terms })
        })
    }

    /// What the cell of a file says when nobody runs yet, as JSON.
    fn run_now(
        &self,
        context: &LoadContext,
        script: &LoadedScript,
        file: &str,
        call: ScriptCall,
    ) -> Result<String, ToolFileError> {
        let (cells, cell) = (self.cells.clone(), script.cell.clone());
        let report = context.connections().wait_for(async move { cells.run_script(&cell, call).await })?;
        // What that costs is bounded by the file's own budget.
        let (answer, _) = settle(file, report, &BudgetScope::default(), &CallSite::outside());
        answer.map_err(|error| match error {
            CallError::Failed(reason) => ToolFileError::Load { file: file.to_owned(), reason },
            CallError::Asks(_) => ToolFileError::Asks(file.to_owned()),
        })
    }
}

/// A file of the agent's folder, or of the project if it was found as a module.
fn script(place: &Place<'_>, file: &str) -> Result<LoadedScript, ScriptError> {
    let Place { context, folder, settings, .. } = place;
    // A file that was found as a module may lie elsewhere in the project.
    let project = place.module.and_then(|_| place.modules.root_of(file)).unwrap_or(folder);
    LoadedScript::load(context, scripts::Place { project, folder }, file, settings)
}
