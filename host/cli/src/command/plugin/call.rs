//! `hotcell plugin call`: one call of a tool, by hand.

use std::path::{Path, PathBuf};

use hotcell_graph::diagnostic::render;
use hotcell_graph::json_schema::JsonSchema;
use hotcell_harness::PlaceFinder;
use hotcell_runtime::plugins::{GrantOrder, Plugin as Component};
use hotcell_runtime::{CallError, PluginTools};
use serde_json::Value;

use super::author::{component_of, places_of};
use super::{Context, Desk, component_in, explained, is_project};
use crate::arguments::PluginCall;
use crate::command::explain::limit_help;
use crate::command::given::read_input;
use crate::command::{HostArguments, print_data, threads};
use crate::exit::{Exit, Failure};
use crate::narration::describe_usage;
use crate::untrusted::{lines, one_line};

/// Problems with arguments that are told at once.
const MOST_PROBLEMS: usize = 5;

pub(super) fn perform(context: &Context, call: PluginCall) -> Result<Exit, Failure> {
    let text = if call.arguments == "-" { read_input("the arguments")? } else { call.arguments.clone() };
    let arguments: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::refused(format!("the arguments are not JSON: {error}")))?;
    if !arguments.is_object() {
        return Err(Failure::refused("the arguments of a tool are a JSON object, such as `{\"a\": 1}`"));
    }
    context.screen.tell_plugins();
    let (component, tools) = match component(context, &call.plugin)? {
        Some((file, places)) => alone(context, &file, places, &call)?,
        None => installed(context, &call)?,
    };
    let name = format!("{}/{}", component.description.name, call.tool);
    let Some(told) = tools.describe(&name) else { return Err(no_tool(&component, &call.tool)) };
    if let Ok(schema) = JsonSchema::compile(&told.parameters) {
        let problems = schema.problems(&arguments, MOST_PROBLEMS);
        if !problems.is_empty() {
            let problems = one_line(&problems.join("; "), 1_000);
            return Err(Failure::refused(format!("the arguments do not fit: {problems}")).help(format!(
                "`{}` takes {}",
                call.tool,
                one_line(&told.parameters.to_string(), 1_000)
            )));
        }
    }
    let runtime = threads::start()?;
    let arguments = arguments.to_string();
    let mut answered: Vec<String> = Vec::new();
    loop {
        let report = runtime.block_on(tools.call(&name, &arguments, &answered));
        context.screen.worked();
        for notice in &report.notices {
            let help = notice.help.as_deref().map(|help| format!("\n  {}", lines(help).replace('\n', "\n  ")));
            context.screen.line(&format!("{}{}", lines(&notice.text), help.unwrap_or_default()));
        }
        if call.verbose {
            context.screen.line(&format!("used: {}", describe_usage(&report.account.total())));
        }
        match report.result {
            Ok(answer) => {
                print_data(&shown(&answer))?;
                return Ok(Exit::Done);
            }
            Err(CallError::Failed(reason)) => {
                let failure = Failure::failed(lines(&reason));
                return Err(match limit_help(&reason) {
                    Some(help) => failure.help(help),
                    None => failure,
                });
            }
            Err(CallError::Asks(question)) => match call.answers.get(answered.len()) {
                Some(answer) => answered.push(answer.clone()),
                None => {
                    return Err(Failure {
                        exit: Exit::Waiting,
                        ..Failure::refused(format!("it asks: {}", lines(&question)))
                    }
                    .help("answer with `--answer TEXT`"));
                }
            },
        }
    }
}

/// The file of a component that is named itself, or built from the project that is named, which has the source then.
fn component(context: &Context, named: &str) -> Result<Option<(PathBuf, Option<PlaceFinder>)>, Failure> {
    let path = Path::new(named);
    if path.extension().is_some_and(|extension| extension == "wasm") {
        return Ok(Some((path.to_owned(), None)));
    }
    if !is_project(path) {
        return Ok(None);
    }
    let file = component_of(context, path)?;
    let places = places_of(&file);
    Ok(Some((file, Some(places))))
}

fn alone(
    context: &Context,
    file: &Path,
    places: Option<PlaceFinder>,
    call: &PluginCall,
) -> Result<(Component, PluginTools), Failure> {
    let component = component_in(file)?;
    let order = GrantOrder { nothing: !call.grant, ..GrantOrder::default() };
    let host =
        context.host(HostArguments { model: call.model.clone(), without_runs: true, ..HostArguments::default() })?;
    let (tools, _) = host.tools_of_component(file, &component, &order, places)?;
    Ok((component, tools))
}

fn installed(context: &Context, call: &PluginCall) -> Result<(Component, PluginTools), Failure> {
    let desk = Desk::with_model(context, &call.folders, call.model.clone())?;
    let (file, component) = desk.find(&call.plugin).map_err(|failure| {
        // In the folder of a project, its own plugin is not installed.
        if is_project(&call.folders.folder) {
            failure.help("to call the plugin of this project, write `.` in place of its name")
        } else {
            failure
        }
    })?;
    let name = &component.description.name;
    let said = explained(name, &desk.standing(file, component), &call.folders);
    if !said.is_empty() {
        return Err(Failure::refused(format!("`{name}` cannot be used here: {}", said.join("\n  "))));
    }
    let (tools, found) = desk.host.plugin_tools(&call.folders.folder)?;
    if !found.is_empty() {
        context.screen.line(render(&found, context.screen.colour()).trim_end());
    }
    Ok((component.clone(), tools))
}

fn no_tool(component: &Component, tool: &str) -> Failure {
    let tools: Vec<&str> = component.description.tools.iter().map(|tool| tool.name.as_str()).collect();
    let help = match hotcell_graph::closest(tool, tools.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if tools.is_empty() => "it has no tools".to_owned(),
        None => format!("its tools are {}", one_line(&tools.join(", "), 500)),
    };
    let name = &component.description.name;
    Failure::refused(format!("`{name}` has no tool `{}`", one_line(tool, 100))).help(help)
}

/// A text as it is, any other value as JSON.
fn shown(answer: &str) -> String {
    match serde_json::from_str::<Value>(answer) {
        Ok(Value::String(text)) => text,
        _ => answer.to_owned(),
    }
}
