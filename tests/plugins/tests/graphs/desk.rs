//! An agent's folder with plugins, a scripted model, and runs of it.

use std::path::PathBuf;
use std::sync::Arc;

use hotcell_loopback::{Loopback, Script};
use hotcell_runtime::plugins::{AgentFolder, Grants, Plugin, Trust};
use hotcell_runtime::{CancellationToken, Environment, Given, Host, HostOptions, Nobody, Outcome, RunReport, Session};
use serde_json::{Value, json};
use wasm_encoder::{ComponentSection as _, CustomSection};

const PROBE: &[u8] = include_bytes!(env!("HOTCELL_PROBE"));

/// A graph whose model answers as it is scripted to and may call the tools of `probe`.
pub(crate) const GRAPH: &str = r#"name: probed
version: "1.0"
start: work
global_tools: [probe, other]
nodes:
  work:
    type: llm
    prompt: "{{initial_prompt}}"
    tools: [probe, other]
    state_updates: { answer: "{{output}}" }
    next: done
  done: { type: end, output: "{{answer}}" }
"#;

pub(crate) struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    pub(crate) fn new(graph: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("plugins")).unwrap();
        std::fs::write(folder.path().join("graph.yaml"), graph).unwrap();
        Desk { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts up a plugin with one tool and hooks at these points, and grants it all that it asks for.
    pub(crate) fn plugin(&self, name: &str, tool: &str, points: &[&str], asks: Value, grants: &str) {
        let hooks: Vec<Value> = points.iter().map(|point| json!({ "point": point })).collect();
        // Every export has to be described; a hook that no setting steers does nothing.
        let hooks = if hooks.is_empty() { vec![json!({ "point": "before-skill-load" })] } else { hooks };
        let description = json!({
            "contract": "0.2.0", "name": name,
            "tools": [{ "name": tool, "description": "Does what it is told", "parameters": { "type": "object" } }],
            "hooks": hooks,
            "nodes": [{
                "type": "work",
                "fields": { "type": "object", "properties": { "units": {} } },
                "inputs": { "type": "object", "properties": { "branch": {}, "ask": {}, "more": {} } },
                "branches": ["left", "right"],
            }],
            "connector": { "modes": ["sync", "callback"], "config": { "properties": { "url": {} }, "required": ["url"] } },
            "capabilities": asks,
        });
        let mut bytes = PROBE.to_vec();
        CustomSection { name: "hotcell:description".into(), data: description.to_string().into_bytes().into() }
            .append_to_component(&mut bytes);
        let file = self.path("plugins").join(format!("{name}.wasm"));
        std::fs::write(&file, bytes).unwrap();
        if grants.is_empty() {
            return;
        }
        let plugin = Plugin::read(&file).unwrap();
        let grants: Grants = toml_of(grants);
        let mut folder = AgentFolder::open(self.folder.path(), &Trust::Everything).unwrap();
        folder.grant(&plugin, &grants, &Trust::Everything).unwrap();
    }

    /// Adds to `hotcell.toml`.
    pub(crate) fn settings(&self, text: &str) {
        let file = self.path("hotcell.toml");
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        std::fs::write(file, format!("{before}\n{text}\n")).unwrap();
    }

    pub(crate) fn host(&self, model: &Loopback) -> Host {
        let environment = [
            ("HOTCELL_MODEL", "test:small".to_owned()),
            ("HOTCELL_MODEL_URL", model.base_url()),
            ("HOTCELL_SECRET_KEY", "value-of-the-key".to_owned()),
        ];
        Host::new(HostOptions {
            environment: Environment::of(environment.map(|(name, value)| (name.to_owned(), value))),
            ..HostOptions::isolated()
        })
        .unwrap()
    }

    /// One run, with a model that gives these replies.
    pub(crate) async fn run(&self, replies: Value) -> (RunReport, Loopback) {
        let model = Loopback::start(Script::from_json(&replies).unwrap()).unwrap();
        let host = self.host(&model);
        let agent = host.load(&self.path("graph.yaml")).unwrap_or_else(|failure| panic!("{failure}"));
        let session =
            Session { people: Arc::new(Nobody), observer: Arc::new(Nobody), cancel: CancellationToken::new() };
        let given = Given { input: Some("go".to_owned()), ..Given::default() };
        (host.run(&agent, given, session).await.unwrap(), model)
    }
}

fn toml_of(text: &str) -> Grants {
    hotcell_runtime::plugins::parse_grants(text).unwrap_or_else(|error| panic!("{error}"))
}

/// A model that calls a tool with these arguments and then says `done`.
pub(crate) fn calls(tool: &str, arguments: Value) -> Value {
    json!([{ "tool_calls": [{ "name": tool, "arguments": arguments }] }, { "content": "done" }])
}

/// What the model was told that its tool call came to.
pub(crate) fn told(model: &Loopback) -> String {
    let requests = model.requests();
    let last = requests.last().unwrap();
    let message = last.messages.iter().rev().find(|message| message.role == "tool").unwrap();
    message.content.clone()
}

/// The error of a failed run.
pub(crate) fn error(report: &RunReport) -> String {
    match &report.outcome {
        Outcome::Failed { error, .. } => error.clone(),
        other => panic!("{other:?}"),
    }
}

/// The output of a completed run.
pub(crate) fn output(report: &RunReport) -> String {
    match &report.outcome {
        Outcome::Completed { output } => output.clone(),
        other => panic!("{other:?}"),
    }
}
