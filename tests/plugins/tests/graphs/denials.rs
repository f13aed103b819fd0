//! Capabilities that calls are denied and that whoever runs hotcell grants while the run waits.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hotcell_loopback::{Loopback, Script};
use hotcell_runtime::plugins::{AgentFolder, Trust};
use hotcell_runtime::{
    Fact, Host, HostError, HostOptions, JournalChoice, Nobody, Outcome, People, Question, RunInput, RunReport,
};
use serde_json::{Value, json};

use crate::desk::{Desk, output};

const ASKS: &str = "[denials]\nask = true";

/// Decides on capabilities, one after the other, and answers everything else with `Ada`.
struct Operator {
    decisions: Mutex<Vec<&'static str>>,
    /// What was asked for
    asked: Mutex<Vec<String>>,
}

impl Operator {
    fn saying(decisions: &[&'static str]) -> Arc<Self> {
        Arc::new(Operator { decisions: Mutex::new(decisions.to_vec()), asked: Mutex::default() })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl People for Operator {
    async fn ask(&self, question: &Question) -> Option<String> {
        if question.denial.is_none() {
            return Some("Ada".to_owned());
        }
        self.asked.lock().unwrap().push(question.text.clone());
        Some(self.decisions.lock().unwrap().remove(0).to_owned())
    }

    fn may_grant(&self) -> bool {
        true
    }
}

/// An agent whose only node has the plugin `probe` do this, and that goes on if it fails.
fn desk(inputs: &Value) -> Desk {
    Desk::new(&format!(
        "name: asks\nstart: work\nnodes:\n  work:\n    type: probe/probe\n    inputs: {inputs}\n    \
         state_updates: {{ said: \"{{{{output}}}}\" }}\n    next: done\n    fallback: lost\n  \
         done: {{ type: end, output: \"{{{{said}}}}\" }}\n  lost: {{ type: end, output: lost }}\n"
    ))
}

/// An agent with a script.
fn script(text: &str) -> Desk {
    let desk = Desk::new(
        "name: asks\nstart: work\nnodes:\n  work: { type: script, script: scripts/work.js, next: done }\n  done: { type: end, output: \"{{said}}\" }\n",
    );
    desk.write("scripts/work.js", text);
    desk.settings(ASKS);
    desk
}

/// A script that asks a server and says what came of it.
fn fetching(url: &str) -> String {
    format!(
        "let said = 'reached';\ntry {{ await fetch('{url}/x?private=1'); }} catch {{ said = 'denied'; }}\n\
         console.log(JSON.stringify({{ said }}));\n"
    )
}

fn model() -> Loopback {
    Loopback::start(Script::from_json(&json!([])).unwrap()).unwrap()
}

async fn run(desk: &Desk, host: &Host, people: Arc<dyn People>) -> RunReport {
    let given = RunInput { input: Some("go".to_owned()), ..RunInput::default() };
    desk.start(host, given, people).await.unwrap()
}

/// What came of a run, and what was asked for.
async fn decided(desk: &Desk, decisions: &[&'static str]) -> (String, Vec<String>) {
    let (model, operator) = (model(), Operator::saying(decisions));
    let report = run(desk, &desk.host(&model), operator.clone()).await;
    (output(&report), operator.asked())
}

#[tokio::test]
async fn a_call_is_made_again_with_what_it_is_granted() {
    let asked = "`probe` asks for `ask`, questions to a person, which is not granted";
    for (decision, expected) in [("once", "Ada"), ("run", "Ada"), ("always", "Ada"), ("refuse", "lost")] {
        let desk = desk(&json!({ "do": "ask", "text": "Who?" }));
        desk.plugin("probe", "probe", &[], json!({ "ask": true }), "clock = 'coarse'");
        desk.settings(ASKS);
        assert_eq!(decided(&desk, &[decision]).await, (expected.to_owned(), vec![asked.to_owned()]), "{decision}");
        let settings = std::fs::read_to_string(desk.path("hotcell.toml")).unwrap();
        assert_eq!(settings.contains("[grants.probe]\nask = true"), decision == "always", "{settings}");
        // What was granted for always is there for the next run, and nothing else is.
        let next = decided(&desk, &["refuse"]).await;
        let expected = if decision == "always" { ("Ada", 0) } else { ("lost", 1) };
        assert_eq!((next.0.as_str(), next.1.len()), expected, "{decision}");
    }
}

#[tokio::test]
async fn a_tool_of_another_plugin_is_granted_to_a_run_that_goes_on_in_another_process() {
    let desk = desk(&json!({ "do": "tool", "tool": "other", "arguments": { "do": "say", "text": "hello" } }));
    desk.plugin("probe", "probe", &[], json!({ "tool": ["other"], "kv": true }), "kv = true");
    desk.plugin("second", "other", &[], json!({}), "");
    desk.settings(ASKS);
    let model = model();
    let host = || {
        let journal = JournalChoice::File(desk.path("runs.db"));
        Host::new(HostOptions { journal, ..desk.options(&model) }).unwrap()
    };
    let report = run(&desk, &host(), Arc::new(Nobody)).await;
    let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
    let denial: Value = serde_json::from_str(&questions[0].denial.as_ref().unwrap().to_json()).unwrap();
    assert_eq!(
        (&denial["plugin"], &denial["capability"], &denial["name"]),
        (&json!("probe"), &json!("tool"), &json!("other"))
    );
    assert_eq!(denial["digest"].as_str().map(str::len), Some(64), "{denial}");
    assert_eq!(denial["request"], "`tool` `other`");

    let host = host();
    let name = report.run.as_str();
    assert!(matches!(host.answer(name, None, "run").await, Err(HostError::OperatorOnly { .. })));
    assert!(matches!(host.answer_as_operator(name, None, "yes").await, Err(HostError::NoDecision { .. })));
    host.answer_as_operator(name, None, "run").await.unwrap();
    let report = host.resume(name, Desk::session(Arc::new(Nobody))).await.unwrap();
    assert_eq!(output(&report), "hello");
    // Both tries are there, and what the first one was denied.
    let entries = host.journal().history(&report.run).await.unwrap().whole().unwrap();
    let tries = entries.iter().filter(|entry| matches!(&entry.fact, Fact::Effect { kind, .. } if kind == "plugin"));
    assert_eq!(tries.count(), 2);
}

#[tokio::test]
async fn what_a_plugin_did_already_is_not_done_again() {
    let desk = desk(&json!({ "do": "remember around", "tool": "other", "arguments": { "do": "say", "text": "x" } }));
    desk.plugin("probe", "probe", &[], json!({ "tool": ["other"], "kv": true }), "kv = true");
    desk.plugin("second", "other", &[], json!({}), "");
    desk.settings(ASKS);
    assert_eq!(decided(&desk, &[]).await, ("lost".to_owned(), Vec::new()));
}

#[tokio::test]
async fn what_cannot_be_granted_is_not_asked_for() {
    let every = json!({ "tool": ["*"], "secret": [{ "name": "KEY" }] });
    let secret = "secret = [{ name = 'KEY', servers = ['https://x.org'] }]";
    let tool = |name: &str| json!({ "do": "tool", "tool": name, "arguments": {} });
    let long = "x".repeat(300);
    for (inputs, asks, grants) in [
        // Its description does not ask for it.
        (json!({ "do": "ask", "text": "Who?" }), json!({ "llm": true }), "clock = 'coarse'"),
        // A call is prepared with it.
        (json!({ "do": "remember", "text": "x" }), json!({ "kv": true }), "clock = 'coarse'"),
        // It stands for more than itself, or cannot be shown.
        (tool("*"), every.clone(), secret),
        (tool("a\u{1b}[2J"), every.clone(), secret),
        (tool(&long), every.clone(), secret),
        // It has the value of a secret in it.
        (tool("value-of-the-key"), every.clone(), secret),
    ] {
        let desk = desk(&inputs);
        desk.plugin("probe", "probe", &[], asks, grants);
        desk.settings(ASKS);
        assert_eq!(decided(&desk, &[]).await, ("lost".to_owned(), Vec::new()), "{inputs}");
    }
    for url in ["http://127.0.0.1:9", "http://localhost:9", "https://192.168.1.1", "https://*.example.org"] {
        assert_eq!(decided(&script(&fetching(url)), &[]).await.1, Vec::<String>::new(), "{url}");
    }
}

#[tokio::test]
async fn a_script_asks_for_servers_in_a_folder_that_somebody_trusts() {
    let desk = script(&fetching("https://api.example.org"));
    let model = model();
    let trust = Trust::Listed(desk.path("trust.toml"));
    let host = || Host::new(HostOptions { trust: Some(trust.clone()), ..desk.options(&model) }).unwrap();
    let report = run(&desk, &host(), Operator::saying(&[])).await;
    assert_eq!(output(&report), "denied");
    AgentFolder::open(&desk.path(""), &trust).unwrap().trust(&trust).unwrap();
    let operator = Operator::saying(&["refuse"]);
    let report = run(&desk, &host(), operator.clone()).await;
    assert_eq!(output(&report), "denied");
    // Which server and how, and nothing of what is sent to it.
    let expected = "`scripts/work.js` asks for `http` for `GET https://api.example.org`, which is not granted";
    assert_eq!(operator.asked(), [expected]);
}
