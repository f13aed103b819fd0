//! What a host offers to other programs as tools: the tools of plugins, and agents, each as one tool that takes a prompt.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use hotcell_engine::{CallError, Event, Observer, Outcome, People};
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::json_schema::JsonSchema;
use hotcell_journal::Question;
use hotcell_mcp::{CallContext, Called, Catalog, CatalogError, Elicited, OfferedTool};
use hotcell_plugins::FolderError;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, LoadFailure};
use crate::called::{called_with, input_schema};
use crate::host::{Host, Session};
use crate::plugin_tools::PluginTools;
use crate::revision_registry::RevisionRegistry;
use crate::settle::for_models;

/// Tools for other programs.
pub struct ToolCatalog {
    registry: Arc<RevisionRegistry>,
    plugins: Vec<(OfferedTool, PluginTools)>,
    agents: Vec<(OfferedTool, Arc<Agent>)>,
}

impl ToolCatalog {
    /// Nothing yet.
    pub fn new(host: Host) -> Self {
        ToolCatalog::of(Arc::new(RevisionRegistry::new(host)))
    }

    /// Nothing yet, with agents that come from a registry.
    pub fn of(registry: Arc<RevisionRegistry>) -> Self {
        ToolCatalog { registry, plugins: Vec::new(), agents: Vec::new() }
    }

    fn host(&self) -> &Host {
        self.registry.host()
    }

    /// Offers the tools of the plugins within reach of a folder, on the terms that the folder has for them. What cannot be
    /// used is left out; the diagnostics say why.
    ///
    /// # Errors
    /// When what is said about the folder cannot be used.
    pub fn add_plugins(&mut self, folder: &Path) -> Result<Vec<Diagnostic>, FolderError> {
        let (tools, mut diagnostics) = self.host().plugin_tools(folder)?;
        let registry = tools.registry.clone();
        for (name, registered) in registry.plugins() {
            if let Some(reason) = registered.held() {
                diagnostics.push(Diagnostic::warning(reason));
                continue;
            }
            // Loaded now, so that a call never meets a file that was replaced in the meantime.
            if let Err(error) = registry.cell(registered) {
                diagnostics.push(Diagnostic::warning(error.to_string()));
                continue;
            }
            for tool in &registered.plugin.description.tools {
                let full = format!("{name}/{}", tool.name);
                let name = match self.shows(&tool.name) || registry.tool(&tool.name).is_err() {
                    false => tool.name.clone(),
                    true => full.replace([':', '/'], "_"),
                };
                let offered = OfferedTool {
                    name,
                    title: None,
                    description: tool.description.clone(),
                    input_schema: object(&tool.parameters),
                    output_schema: None,
                    read_only: tool.read_only || !registered.terms.grants.changes_something(),
                    open_world: registered.terms.grants.reaches_out(),
                };
                self.plugins.push((offered, tools.clone()));
            }
        }
        Ok(diagnostics)
    }

    /// Offers agents as they are now, each as a tool of its own name. Gives their warnings.
    ///
    /// # Errors
    /// When one of them cannot be loaded.
    pub async fn add_agents(&mut self, paths: &[PathBuf]) -> Result<Vec<Diagnostic>, LoadFailure> {
        let loaded = self.registry.refresh_all(paths).await;
        let agents = loaded.into_iter().collect::<Result<Vec<Arc<Agent>>, _>>()?;
        let warnings = agents.iter().flat_map(|agent| agent.warnings.clone()).collect();
        agents.into_iter().for_each(|agent| self.add_agent(agent));
        Ok(warnings)
    }

    fn add_agent(&mut self, agent: Arc<Agent>) {
        let name = self.free_name(&agent);
        let schema = input_schema(&agent);
        let description = agent.graph.description.clone();
        let offered = OfferedTool {
            name,
            title: Some(agent.graph.name.clone()),
            description: description.unwrap_or_else(|| format!("Runs the agent {}", agent.graph.name)),
            input_schema: object(&schema),
            output_schema: None,
            read_only: false,
            open_world: true,
        };
        self.agents.push((offered, agent));
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.plugins.len() + self.agents.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The agent's own name, else that of its folder, else one with a number.
    fn free_name(&self, agent: &Agent) -> String {
        let folder = agent.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let own: Vec<String> = [Some(agent.graph.name.clone()), folder].into_iter().flatten().collect();
        let mut names = own.iter().map(|name| tool_name(name)).filter(|name| !name.is_empty());
        let first = names.clone().next().unwrap_or_else(|| "agent".to_owned());
        let numbered = (2..).map(|number| format!("{first}_{number}"));
        names
            .find(|name| !self.shows(name))
            .or_else(|| numbered.into_iter().find(|name| !self.shows(name)))
            .unwrap_or(first)
    }

    fn shows(&self, name: &str) -> bool {
        self.all().any(|offered| offered.name == name)
    }

    fn all(&self) -> impl Iterator<Item = &OfferedTool> {
        self.plugins.iter().map(|(offered, _)| offered).chain(self.agents.iter().map(|(offered, _)| offered))
    }

    async fn call_plugin(
        &self,
        name: &str,
        tools: &PluginTools,
        arguments: &Map<String, Value>,
        call: &CallContext,
    ) -> Called {
        let arguments = Value::Object(arguments.clone()).to_string();
        let mut answers = Vec::new();
        loop {
            let report = tokio::select! {
                biased;
                () = call.cancelled().cancelled() => return Called::failed("it was cancelled"),
                report = tools.call(name, &arguments, &answers) => report,
            };
            match report.result {
                Ok(text) => return answered(&text),
                Err(CallError::Failed(reason)) => return Called::failed(for_models(&reason)),
                Err(CallError::Asks(question)) => match ask(call, &question, &[]).await {
                    Some(answer) => answers.push(answer),
                    None => return Called::failed(format!("it asks, and nobody answered: {question}")),
                },
            }
        }
    }

    async fn call_agent(&self, agent: &Agent, arguments: &Map<String, Value>, call: CallContext) -> Called {
        let given = called_with(agent, arguments);
        let cancel: CancellationToken = call.cancelled().clone();
        let told = Arc::new(Told { call });
        let session = Session { people: told.clone(), observer: told.clone(), cancel };
        let report = match self.host().run(agent, given, session).await {
            Ok(report) => report,
            Err(error) => return Called::failed(for_models(&error.to_string())),
        };
        let unhandled = report.failures.iter().find(|failure| !failure.handled).filter(|_| agent.strict);
        match report.outcome {
            Outcome::Completed { output } => match unhandled {
                None => Called::text(output),
                Some(failure) => {
                    Called::failed(format!("node `{}` failed: {}", failure.node, for_models(&failure.error)))
                }
            },
            Outcome::Failed { error, .. } | Outcome::Stopped { reason: error } => Called::failed(for_models(&error)),
            Outcome::Waiting { questions } => {
                let asked: Vec<&str> = questions.iter().map(|question| question.text.as_str()).collect();
                let (run, asked) = (&report.run, asked.join("; "));
                Called::failed(format!(
                    "run {run} waits for a person, who can answer with `hotcell runs answer {run} '...' --resume`: {asked}"
                ))
            }
            Outcome::Paused => Called::failed(format!(
                "run {run} was paused by a person, who can go on with it with `hotcell runs resume {run}`",
                run = report.run
            )),
            Outcome::Interrupted => Called::failed(format!("run {} was stopped; it can be resumed", report.run)),
            Outcome::Cancelled => Called::failed(format!("run {} was cancelled", report.run)),
        }
    }
}

#[async_trait]
impl Catalog for ToolCatalog {
    fn tools(&self) -> Vec<OfferedTool> {
        self.all().cloned().collect()
    }

    async fn call(&self, name: &str, arguments: Map<String, Value>, call: CallContext) -> Result<Called, CatalogError> {
        let all = || self.all().find(|offered| offered.name == name);
        let offered = all().ok_or_else(|| CatalogError::Unavailable(format!("there is no tool `{name}`")))?;
        // Told as the tool's own answer: a model can correct that, and never sees an error of the protocol.
        let problems = misfits(&offered.input_schema, &arguments);
        if !problems.is_empty() {
            return Ok(Called::failed(format!("the arguments of `{name}` cannot be used: {}", problems.join("; "))));
        }
        if let Some((_, tools)) = self.plugins.iter().find(|(offered, _)| offered.name == name) {
            return Ok(self.call_plugin(name, tools, &arguments, &call).await);
        }
        match self.agents.iter().find(|(offered, _)| offered.name == name) {
            Some((_, agent)) => Ok(self.call_agent(agent, &arguments, call).await),
            None => Err(CatalogError::Unavailable(format!("there is no tool `{name}`"))),
        }
    }
}

/// The agents below a folder: the folder itself, or each folder in it that holds one.
pub fn agents_in(folder: &Path) -> Vec<PathBuf> {
    let holds_one =
        |folder: &Path| ["graph.yaml", "config.yaml", "agent.yaml"].iter().any(|file| folder.join(file).is_file());
    if holds_one(folder) {
        return vec![folder.to_owned()];
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| holds_one(path)).collect();
    found.sort();
    found
}

fn object(schema: &Value) -> Map<String, Value> {
    schema.as_object().cloned().unwrap_or_else(|| Map::from_iter([("type".to_owned(), "object".into())]))
}

/// A name as every client takes it.
fn tool_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    name.trim().chars().map(plain).take(128).collect()
}

/// What of the arguments does not fit the schema.
fn misfits(schema: &Map<String, Value>, arguments: &Map<String, Value>) -> Vec<String> {
    // A plugin whose own schema is broken gets what it is sent.
    let Ok(schema) = JsonSchema::compiled(&Value::Object(schema.clone())) else { return Vec::new() };
    schema.problems(&Value::Object(arguments.clone()), 5)
}

/// JSON of a plugin: an object is also the structured answer.
fn answered(text: &str) -> Called {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::String(text)) => Called::text(text),
        Ok(value @ Value::Object(_)) => Called { structured: Some(value), ..Called::text(text) },
        _ => Called::text(text),
    }
}

/// The answer of the person at the client, if there is one.
async fn ask(call: &CallContext, question: &str, options: &[String]) -> Option<String> {
    let mut answer = json!({ "type": "string", "title": "Your answer" });
    if !options.is_empty() {
        answer["description"] = format!("{}, or any other text", options.join(", ")).into();
    }
    let schema = json!({ "type": "object", "properties": { "answer": answer }, "required": ["answer"] });
    match call.elicit(question, schema).await {
        Ok(Elicited::Accept(value)) => value.get("answer").and_then(Value::as_str).map(str::to_owned),
        Ok(Elicited::Decline | Elicited::Cancel) | Err(_) => None,
    }
}

/// The client of a call, as a run sees it: whoever answers questions and is told how far it is.
struct Told {
    call: CallContext,
}

#[async_trait]
impl People for Told {
    async fn ask(&self, question: &Question) -> Option<String> {
        ask(&self.call, &question.text, &question.options).await
    }
}

impl Observer for Told {
    fn event(&self, event: &Event<'_>) {
        if let Event::NodeStarted { node, turn, .. } = event {
            self.call.progress(*turn as f64, None, Some((*node).to_owned()));
        }
    }
}
