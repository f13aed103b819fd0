//! What a folder brings grants nothing: calls from folder to folder, files that paths lead to, servers, variables.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_loopback::{Loopback, Script};
use hotcell_runtime::diagnostic::Severity;
use hotcell_runtime::plugins::Trust;
use hotcell_runtime::{Environment, Host, HostOptions, Nobody, RunInput, RunReport};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::desk::{Desk, output};

/// Shows a variable that is granted to it.
const LOOK: &str = "echo \"{\\\"said\\\": \\\"[$KEY]\\\"}\"";
const LOOKS: &str = "name: child\nversion: \"1.0\"\nstart: look\nnodes:\n  \
    look: { type: script, script: look.sh, next: done }\n  done: { type: end, output: \"{{said}}\" }\n";

fn calls(agent: &str) -> String {
    format!(
        "name: caller\nversion: \"1.0\"\nstart: a\nnodes:\n  \
         a: {{ type: agent, agent: {agent}, prompt: hello, state_updates: {{ said: \"{{{{output}}}}\" }}, next: done }}\n  \
         done: {{ type: end, output: \"{{{{said}}}}\" }}\n"
    )
}

/// Folders beside each other: `child` is granted a variable, and trusted with it.
struct Folders {
    root: TempDir,
    model: Loopback,
}

impl Folders {
    fn new() -> Self {
        let model = Loopback::start(Script::from_json(&json!([{ "content": "hi" }])).unwrap()).unwrap();
        let folders = Folders { root: tempfile::tempdir().unwrap(), model };
        folders.write("child/graph.yaml", LOOKS);
        folders.write("child/look.sh", LOOK);
        folders.write("child/hotcell.toml", "[grants.'look.sh']\nenv = ['KEY']\n");
        folders.trust("child");
        folders
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    fn options(&self) -> HostOptions {
        let environment = [
            ("HOTCELL_MODEL", "test:small".to_owned()),
            ("HOTCELL_MODEL_URL", self.model.base_url()),
            ("KEY", "private".to_owned()),
        ];
        HostOptions {
            environment: Environment::of(environment.map(|(name, value)| (name.to_owned(), value))),
            trust: Some(Trust::Listed(self.path("trust.toml"))),
            ..HostOptions::isolated()
        }
    }

    fn host(&self) -> Host {
        Host::new(self.options()).unwrap()
    }

    fn trust(&self, folder: &str) {
        let host = self.host();
        host.agent_folder(&self.path(folder)).unwrap().trust(host.trust()).unwrap();
    }

    async fn run(&self, folder: &str) -> RunReport {
        self.run_with(self.options(), folder).await
    }

    async fn run_with(&self, options: HostOptions, folder: &str) -> RunReport {
        let host = Host::new(options).unwrap();
        let agent = host.load(&self.path(folder)).unwrap_or_else(|failure| panic!("{failure}"));
        let given = RunInput { input: Some("go".to_owned()), ..RunInput::default() };
        host.run(&agent, given, Desk::session(Arc::new(Nobody))).await.unwrap()
    }

    fn refusal(&self, path: &str) -> String {
        self.host().load(&self.path(path)).unwrap_err().to_string()
    }
}

#[tokio::test]
async fn a_graph_that_nobody_trusts_uses_nothing_that_is_granted_to_the_agents_it_calls() {
    let folders = Folders::new();
    assert_eq!(output(&folders.run("child").await), "[private]", "the person runs it");
    folders.write("stranger/graph.yaml", &calls("child"));
    assert_eq!(output(&folders.run("stranger").await), "[]");
    let agent = folders.host().load(&folders.path("stranger")).unwrap();
    let said: Vec<String> = agent.warnings.iter().map(|warning| warning.message.clone()).collect();
    assert!(
        said.iter().any(|line| line.contains("child") && line.contains("an agent calls it that nobody trusts")),
        "{said:?}"
    );

    // At second hand, too: the one between admits the stranger, and would be admitted itself.
    folders.write("between/graph.yaml", &calls("child"));
    folders.write("outer/graph.yaml", &calls("between"));
    folders.write("child/hotcell.toml", "[callers]\nallow = ['../between']\n[grants.'look.sh']\nenv = ['KEY']\n");
    folders.trust("child");
    assert_eq!(output(&folders.run("between").await), "[private]", "the callee admits it");
    assert_eq!(output(&folders.run("outer").await), "[]");
    folders.trust("between");
    assert_eq!(output(&folders.run("outer").await), "[]", "whoever drives it is still a stranger");
    folders.trust("outer");
    assert_eq!(output(&folders.run("outer").await), "[private]", "the operator trusts all of them");
}

#[tokio::test]
async fn whoever_names_an_agent_trusts_its_folder_alone() {
    let folders = Folders::new();
    folders.write("named/graph.yaml", &calls("beside"));
    for (file, text) in
        [("graph.yaml", LOOKS), ("look.sh", LOOK), ("hotcell.toml", "[grants.'look.sh']\nenv = ['KEY']\n")]
    {
        folders.write(&format!("beside/{file}"), text);
    }
    let named = || HostOptions { trust_named: true, ..folders.options() };
    assert_eq!(output(&folders.run_with(named(), "beside").await), "[private]");
    assert_eq!(output(&folders.run_with(named(), "named").await), "[]", "nobody trusts the folder beside it");
    folders.trust("beside");
    assert_eq!(output(&folders.run_with(named(), "named").await), "[private]");
    // What is not granted is not given either.
    folders.write("variables/agent.yaml", &variables());
    let host = Host::new(named()).unwrap();
    let refused = host.load(&folders.path("variables")).unwrap_err().to_string();
    assert!(refused.contains("the environment variable `KEY` has no value"), "{refused}");
}

fn variables() -> String {
    "manifest_version: 1\nagents:\n  probe:\n    state:\n      fields:\n      - { name: label, type: str, default: \"${KEY}\" }\n    \
     graph:\n      entry_point: use\n      nodes:\n      - name: use\n        type: set_state\n        args: { values: { label: '\"x\"' } }\n      edges: []\n"
        .to_owned()
}

#[tokio::test]
async fn hooks_that_came_with_a_stranger_are_told_of_nothing_and_the_operators_of_everything() {
    let folders = Folders::new();
    let desk = Desk::new("");
    desk.plugin("spy", "other", &["before-node"], json!({}), "");
    folders.write("stranger/graph.yaml", &calls("child"));
    for folder in ["stranger/plugins", "mine"] {
        std::fs::create_dir_all(folders.path(folder)).unwrap();
    }
    let told =
        |report: &RunReport| report.account.iter().find(|(who, _)| *who == "spy").map_or(0, |(_, used)| used.calls);
    std::fs::copy(desk.path("plugins/spy.wasm"), folders.path("stranger/plugins/spy.wasm")).unwrap();
    let refused = folders.refusal("stranger");
    assert!(refused.contains("see prompts and state of runs"), "{refused}");
    std::fs::rename(folders.path("stranger/plugins/spy.wasm"), folders.path("mine/spy.wasm")).unwrap();
    let options = || HostOptions { plugins: vec![folders.path("mine")], ..folders.options() };
    let report = folders.run_with(options(), "stranger").await;
    assert_eq!(told(&report), 2, "a node of the caller, and one of the agent that it calls: {report:?}");
}

#[test]
fn no_path_in_a_file_leaves_the_folder() {
    let folders = Folders::new();
    folders.write("private/credentials", "private");
    folders.write("private/agent.yaml", &variables());
    let absolute = folders.path("private/credentials").display().to_string();
    #[cfg(unix)]
    {
        std::fs::create_dir_all(folders.path("agent")).unwrap();
        std::os::unix::fs::symlink(folders.path("private/credentials"), folders.path("agent/link")).unwrap();
        std::os::unix::fs::symlink(folders.path("private"), folders.path("agent/linked")).unwrap();
    }
    let with = |extra: &str| variables().replace("${KEY}", "x").replacen("agents:", &format!("{extra}\nagents:"), 1);
    for path in ["../private/credentials", &absolute, "link", "linked/credentials", "x/../../private/credentials"] {
        folders.write(
            "agent/agent.yaml",
            &with(&format!("prompts:\n- {{ id: p, version: 1.0.0, instructions_path: \"{path}\" }}")),
        );
        let refused = folders.refusal("agent");
        assert!(refused.contains("leads out of the agent's folder"), "{path}: {refused}");
        folders.write(
            "agent/agent.yaml",
            &with(&format!("skills:\n- {{ id: s, version: 1.0.0, skill_card_path: \"{path}\" }}")),
        );
        let refused = folders.refusal("agent");
        assert!(refused.contains("leads out of"), "{path}: {refused}");
    }
    for path in ["../private/agent.yaml", "linked/agent.yaml"] {
        folders.write(
            "agent/agent.yaml",
            &with(&format!("sub_agents:\n- {{ id: probe, version: 1.0.0, yaml_path: \"{path}\" }}")),
        );
        let refused = folders.refusal("agent");
        assert!(refused.contains("leads out of the agent's folder"), "{path}: {refused}");
    }
    // Loki's scripts, and the file of the agent itself.
    for path in ["../child/look.sh", "linked/credentials"] {
        folders.write("loki/graph.yaml", &LOOKS.replace("look.sh", path));
        #[cfg(unix)]
        let _ = std::os::unix::fs::symlink(folders.path("private"), folders.path("loki/linked"));
        assert!(folders.host().load(&folders.path("loki")).is_err(), "{path}");
    }
    #[cfg(unix)]
    {
        std::fs::create_dir_all(folders.path("whole")).unwrap();
        std::os::unix::fs::symlink(folders.path("child/graph.yaml"), folders.path("whole/graph.yaml")).unwrap();
        let refused = folders.refusal("whole");
        assert!(refused.contains("leads out of the agent's folder"), "{refused}");
    }
}

fn servers(folders: &Folders, folder: &str, servers: &Value) {
    folders.write(&format!("{folder}/mcp.json"), &json!({ "mcpServers": servers }).to_string());
}

const SERVED: &str = "name: served\nversion: \"1.0\"\nstart: work\nmcp_servers: [library]\nnodes:\n  \
    work: { type: llm, prompt: hi, tools: [\"mcp:library\"], state_updates: { answer: \"{{output}}\" }, next: done }\n  \
    done: { type: end, output: \"{{answer}}\" }\n";

#[test]
fn a_look_starts_no_program_and_an_exchanged_server_is_not_started_at_all() {
    let folders = Folders::new();
    let trace = folders.path("started");
    servers(&folders, "served", &json!({ "library": { "command": "touch", "args": [trace] } }));
    folders.write("served/graph.yaml", SERVED);
    folders.write("served/hotcell.toml", "[grants.'mcp:library']\nprocess = true\n");
    folders.trust("served");
    let looking = Host::new(HostOptions { starts_programs: false, ..folders.options() }).unwrap();
    let agent = looking.load(&folders.path("served")).unwrap_or_else(|failure| panic!("{failure}"));
    let warned = agent.warnings.iter().any(|found| found.severity > Severity::Note);
    assert!(!warned && !trace.exists(), "{:?}", agent.warnings);
    // Whoever runs it starts it: this is what the next one is held against.
    let _ = folders.host().load(&folders.path("served"));
    assert!(trace.exists());
    std::fs::remove_file(&trace).unwrap();
    servers(&folders, "served", &json!({ "library": { "command": "touch", "args": [trace, "and-another"] } }));
    let refused = folders.refusal("served");
    assert!(refused.contains("`mcp.json` was changed") && !trace.exists(), "{refused}");
}

#[test]
fn a_variable_that_is_granted_to_one_server_is_not_given_to_another() {
    let folders = Folders::new();
    let with = |server: &str| {
        let mut all =
            json!({ "library": { "url": "http://127.0.0.1:9/mcp" }, "other": { "url": "http://127.0.0.1:9/mcp" } });
        all[server]["headers"] = json!({ "x-key": "${KEY}" });
        servers(&folders, "served", &all);
        folders.write("served/graph.yaml", SERVED);
        folders.write("served/hotcell.toml", "[grants.'mcp:library']\nhttp = ['http://127.0.0.1:9']\nenv = ['KEY']\n");
        folders.trust("served");
        folders.refusal("served")
    };
    assert!(with("other").contains("`headers.x-key` refers to `KEY`, which is not set"), "{}", with("other"));
    assert!(!with("library").contains("which is not set"), "{}", with("library"));
}

#[test]
fn what_is_granted_to_an_agents_file_is_for_the_file_that_was_trusted() {
    let folders = Folders::new();
    folders.write("agent/agent.yaml", &variables());
    folders.write("agent/hotcell.toml", "[grants.agent]\nenv = ['KEY']\n");
    folders.trust("agent");
    assert!(folders.host().load(&folders.path("agent")).is_ok());
    folders.write("agent/agent.yaml", &variables().replace("label", "title"));
    let refused = folders.refusal("agent");
    assert!(
        refused.contains("is not as it was when its folder was trusted") && refused.contains("`KEY` has no value"),
        "{refused}"
    );
    folders.trust("agent");
    assert!(folders.host().load(&folders.path("agent")).is_ok());
    assert!(Path::new(&folders.path("trust.toml")).is_file());
}
