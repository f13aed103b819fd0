//! An agent's folder with plugins, a scripted model, and runs of it.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use hotcell_loopback::{Loopback, Script};
use hotcell_runtime::plugins::{AgentFolder, Grants, Plugin, Trust};
use hotcell_runtime::{
    Again, CallReexecuted, CancellationToken, Environment, Host, HostError, HostOptions, Nobody, Outcome, People,
    Question, ReexecuteError, RunId, RunInput, RunReport, Session,
};
use serde_json::{Value, json};

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
    file: &'static str,
    callback_url: std::sync::OnceLock<&'static str>,
}

/// Answers every question with the same text.
pub(crate) struct Says(pub(crate) &'static str);

#[async_trait]
impl People for Says {
    async fn ask(&self, _: &Question) -> Option<String> {
        Some(self.0.to_owned())
    }
}

impl Desk {
    pub(crate) fn new(graph: &str) -> Self {
        Desk::of("graph.yaml", graph)
    }

    /// A folder whose agent is in the file of this name.
    pub(crate) fn of(file: &'static str, text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("plugins")).unwrap();
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        Desk { folder, file, callback_url: std::sync::OnceLock::new() }
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let file = self.path(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts up a plugin with one tool and hooks at these points, and grants it all that it asks for.
    pub(crate) fn plugin(&self, name: &str, tool: &str, points: &[&str], asks: Value, grants: &str) {
        self.plugin_like(name, tool, points, asks, grants, |_| {});
    }

    /// The same, with another description.
    pub(crate) fn plugin_like(
        &self,
        name: &str,
        tool: &str,
        points: &[&str],
        asks: Value,
        grants: &str,
        change: impl FnOnce(&mut Value),
    ) {
        let hooks: Vec<Value> = points.iter().map(|point| json!({ "point": point })).collect();
        // Every export has to be described; a hook that no setting steers does nothing.
        let hooks = if hooks.is_empty() { vec![json!({ "point": "before-skill-load" })] } else { hooks };
        let mut description = json!({
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
        change(&mut description);
        let file = self.path("plugins").join(format!("{name}.wasm"));
        std::fs::write(&file, hotcell_plugin_tests::described(&description)).unwrap();
        let plugin = Plugin::read(&file).unwrap();
        // What a test says nothing about was decided; what it asks for and is not granted was not.
        if grants.is_empty() && description["capabilities"] != json!({}) {
            return;
        }
        let grants: Grants = toml_of(grants);
        let mut folder = AgentFolder::open(self.folder.path(), &Trust::Everything).unwrap();
        folder.grant(&plugin, &grants, &Trust::Everything).unwrap();
    }

    /// Says that answers to connectors can be sent to somewhere.
    pub(crate) fn listens(&self) {
        self.callback_url.set("http://127.0.0.1:9").unwrap();
    }

    /// Adds to `hotcell.toml`.
    pub(crate) fn settings(&self, text: &str) {
        let file = self.path("hotcell.toml");
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        std::fs::write(file, format!("{before}\n{text}\n")).unwrap();
    }

    pub(crate) fn host(&self, model: &Loopback) -> Host {
        Host::new(self.options(model)).unwrap()
    }

    pub(crate) fn options(&self, model: &Loopback) -> HostOptions {
        let environment = [
            ("HOTCELL_MODEL", "test:small".to_owned()),
            ("HOTCELL_MODEL_URL", model.base_url()),
            ("HOTCELL_SECRET_KEY", "value-of-the-key".to_owned()),
            ("HOTCELL_CALLBACK_URL", self.callback_url.get().copied().unwrap_or_default().to_owned()),
        ];
        HostOptions {
            environment: Environment::of(environment.map(|(name, value)| (name.to_owned(), value))),
            ..HostOptions::isolated()
        }
    }

    pub(crate) fn session(people: Arc<dyn People>) -> Session {
        Session { people, observer: Arc::new(Nobody), cancel: CancellationToken::new() }
    }

    /// What is wrong with the agent.
    pub(crate) fn refusal(&self) -> String {
        let model = Loopback::start(Script::from_json(&json!([])).unwrap()).unwrap();
        self.host(&model).load(&self.path(self.file)).unwrap_err().to_string()
    }

    /// One run, with a model that gives these replies.
    pub(crate) async fn run(&self, replies: Value) -> (RunReport, Loopback) {
        self.run_with(replies, Arc::new(Nobody)).await
    }

    /// The same, with somebody who answers questions.
    pub(crate) async fn run_with(&self, replies: Value, people: Arc<dyn People>) -> (RunReport, Loopback) {
        let model = Loopback::start(Script::from_json(&replies).unwrap()).unwrap();
        let host = self.host(&model);
        let given = RunInput { input: Some("go".to_owned()), ..RunInput::default() };
        let report = self.start(&host, given, people).await.unwrap();
        (report, model)
    }

    /// One run of a host.
    pub(crate) async fn start(
        &self,
        host: &Host,
        given: RunInput,
        people: Arc<dyn People>,
    ) -> Result<RunReport, HostError> {
        let agent = host.load(&self.path(self.file)).unwrap_or_else(|failure| panic!("{failure}"));
        let report = host.run(&agent, given, Desk::session(people)).await;
        if let Ok(report) = &report {
            again(host, &report.run).await;
        }
        report
    }
}

/// Whatever a test has plugins do, they do the same when their calls are executed again from the journal. Those that have
/// directories, or that a deadline ended, are left out.
async fn again(host: &Host, run: &RunId) {
    let mut told = |call: CallReexecuted| {
        assert!(matches!(call.again, Again::Same { .. } | Again::Left(_)), "{call:?}");
    };
    match host.reexecute(&mut host.finder(), run, None, &mut told).await {
        Ok(_) | Err(ReexecuteError::NothingRecorded(_)) => {}
        Err(error) => panic!("{error}"),
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

/// The state that a run came to.
pub(crate) fn state(report: &RunReport) -> Value {
    let state = hotcell_runtime::value::Value::Object(report.state.to_object());
    serde_json::from_str(&state.to_json()).unwrap()
}

/// The output of a completed run.
pub(crate) fn output(report: &RunReport) -> String {
    match &report.outcome {
        Outcome::Completed { output } => output.clone(),
        other => panic!("{other:?}"),
    }
}
