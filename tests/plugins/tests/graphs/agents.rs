//! Agents of other folders: whoever guards a run guards the agents that it calls, and a file gets at nothing of the
//! environment that was not granted to it.

use std::path::Path;
use std::sync::Arc;

use hotcell_loopback::{Loopback, Script};
use hotcell_runtime::plugins::Trust;
use hotcell_runtime::{CancellationToken, Environment, Host, HostOptions, Nobody, RunInput, Session};
use serde_json::json;

use crate::desk::{Desk, error, output};

const CALLS: &str = "name: parent\nstart: a\nnodes:\n  \
    a: { type: agent, agent: child, prompt: hello, state_updates: { said: \"{{output}}\" }, next: done }\n  \
    done: { type: end, output: \"{{said}}\" }\n";

/// A folder `parent` with a hook at this point that does what `action` says, and an agent `child` beside it.
fn family(point: &str, action: &str) -> (tempfile::TempDir, Desk) {
    let desk = Desk::new(CALLS);
    desk.plugin("second", "other", &[point], json!({}), "");
    let root = tempfile::tempdir().unwrap();
    let (parent, child) = (root.path().join("parent"), root.path().join("child"));
    std::fs::create_dir_all(parent.join("plugins")).unwrap();
    std::fs::create_dir(&child).unwrap();
    for file in ["plugins/second.wasm", "hotcell.lock"] {
        std::fs::copy(desk.path(file), parent.join(file)).unwrap();
    }
    std::fs::write(parent.join("graph.yaml"), CALLS).unwrap();
    std::fs::write(parent.join("hotcell.toml"), format!("[plugins.second.config]\n{point} = '{action}'\n")).unwrap();
    std::fs::write(child.join("config.yaml"), "name: child\ninstructions: You help.\n").unwrap();
    (root, desk)
}

async fn run(host: &Host, folder: &Path) -> hotcell_runtime::RunReport {
    let agent = host.load(folder).unwrap_or_else(|failure| panic!("{failure}"));
    let session = Session { people: Arc::new(Nobody), observer: Arc::new(Nobody), cancel: CancellationToken::new() };
    host.run(&agent, RunInput { input: Some("go".to_owned()), ..RunInput::default() }, session).await.unwrap()
}

#[tokio::test]
async fn whoever_guards_a_run_guards_the_agents_that_it_calls() {
    for point in ["before-model-call", "before-agent-call", "after-agent-call"] {
        let (root, desk) = family(point, "refuse");
        let model = Loopback::start(Script::from_json(&json!([{ "content": "hi" }])).unwrap()).unwrap();
        let report = run(&desk.host(&model), &root.path().join("parent")).await;
        assert!(error(&report).contains(&format!("refused at `{point}`: `second`")), "{}", error(&report));
        // The model of the agent is asked only where the refusal comes after its answer.
        assert_eq!(model.requests().len(), usize::from(point == "after-agent-call"), "{point}");
    }
    let (root, desk) = family("after-agent-call", r#"{"output":"changed"}"#);
    let model = Loopback::start(Script::from_json(&json!([{ "content": "hi" }])).unwrap()).unwrap();
    assert_eq!(output(&run(&desk.host(&model), &root.path().join("parent")).await), "changed");
}

#[test]
fn a_file_gets_at_no_variable_that_was_not_granted_to_it() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("agent.yaml");
    let text = "manifest_version: 1\nagents:\n  probe:\n    state:\n      fields:\n      - { name: label, type: str, default: \"${PRIVATE_KEY}\" }\n    \
        graph:\n      entry_point: use\n      nodes:\n      - name: use\n        type: set_state\n        args: { values: { label: '\"x\"' } }\n      edges: []\n";
    std::fs::write(&file, text).unwrap();
    let host = Host::new(HostOptions {
        environment: Environment::of([("PRIVATE_KEY", "value-of-the-key")]),
        trust: Some(Trust::Listed(root.path().join("trust.toml"))),
        ..HostOptions::isolated()
    })
    .unwrap();
    let missing = "the environment variable `PRIVATE_KEY` has no value";
    let refused = host.load(&file).unwrap_err().to_string();
    assert!(refused.contains(missing) && refused.contains("[grants.agent]"), "{refused}");
    // What the folder grants itself counts for nothing before somebody trusts it.
    std::fs::write(root.path().join("hotcell.toml"), "[grants.agent]\nenv = ['PRIVATE_KEY']\n").unwrap();
    assert!(host.load(&file).unwrap_err().to_string().contains(missing));
    let mut folder = host.agent_folder(root.path()).unwrap();
    folder.trust(host.trust()).unwrap();
    let said = host.load(&file).map_or_else(|failure| failure.to_string(), |_| String::new());
    assert!(!said.contains(missing), "{said}");
}
