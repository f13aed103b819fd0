//! A capability that a call is denied is a question to whoever runs the server, where the settings say so.

use std::fs;
use std::path::Path;

use hotcell_runtime::plugins::{AgentFolder, Grants, Plugin, Trust};
use hotcell_serve::Role;
use serde_json::{Value, json};

use crate::access::key;
use crate::desk::{Desk, ok, problem, until_async};

/// Two nodes have a plugin put a question, which it is not granted; each goes on if it fails.
const TWICE: (&str, &str) = (
    "twice/graph.yaml",
    "name: twice\nstart: one\nnodes:\n  one:\n    type: acme/say\n    inputs: { do: ask, text: \"Who?\" }\n    state_updates: { one: \"{{output}}\" }\n    next: two\n    fallback: none\n  two:\n    type: acme/say\n    inputs: { do: ask, text: \"Who else?\" }\n    state_updates: { two: \"{{output}}\" }\n    next: done\n    fallback: half\n  done: { type: end, output: \"{{one}} and {{two}}\" }\n  half: { type: end, output: \"{{one}} alone\" }\n  none: { type: end, output: nobody }\n",
);
const SETTINGS: (&str, &str) = ("twice/hotcell.toml", "[denials]\nask = true\n");

/// Puts up the plugin, pinned and granted nothing.
fn put_up(folder: &Path) {
    let plugins = folder.join("plugins");
    fs::create_dir_all(&plugins).expect("made");
    let description = json!({
        "contract": "0.2.0", "name": "acme",
        "tools": [{ "name": "say", "description": "Does what it is told", "parameters": { "type": "object" } }],
        "hooks": [{ "point": "before-skill-load" }], "nodes": [{ "type": "work" }], "connector": { "modes": ["sync"] },
        "capabilities": { "ask": true },
    });
    let file = plugins.join("acme.wasm");
    fs::write(&file, hotcell_plugin_tests::described(&description)).expect("written");
    let plugin = Plugin::read(&file).expect("a plugin");
    let mut folder = AgentFolder::open(folder, &Trust::Everything).expect("a folder");
    folder.grant(&plugin, &Grants::default(), &Trust::Everything).expect("pinned");
}

impl Desk {
    async fn that_asks(settings: &str) -> Self {
        let files = [TWICE, (SETTINGS.0, settings)];
        Desk::set_up(&files, |settings| put_up(&settings.folders[0].join("twice"))).await
    }

    /// The only question that a run waits for.
    async fn question_of(&self, run: &str) -> Value {
        self.stands(run, "waiting").await;
        let inbox = ok(self.get(&format!("/inbox?run_id={run}"))).await;
        assert_eq!(inbox["items"].as_array().map(Vec::len), Some(1), "{inbox}");
        inbox["items"][0].clone()
    }

    /// Answers the question that a run waits for, and waits until it goes no further.
    async fn decided(&self, run: &str, answer: &str) -> Value {
        let asked = self.question_of(run).await;
        let body = json!({ "question_id": asked["id"], "answer": answer });
        ok(self.post(&format!("/runs/{run}/answers"), body)).await;
        ok(self.get(&format!("/runs/{run}/wait"))).await
    }

    fn written(&self) -> String {
        fs::read_to_string(self.folder().join("agents/twice/hotcell.toml")).expect("read")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capability_is_granted_for_a_call_over_a_restart_and_refused() {
    let desk = Desk::that_asks(SETTINGS.1).await;
    let run = desk.begin(json!({ "agent_id": "twice", "input": "x" })).await;
    let item = desk.question_of(&run).await;
    assert_eq!((&item["reason"], &item["node"]), (&json!("denial"), &json!("one")), "{item}");
    let denial = &item["denial"];
    assert_eq!((&denial["plugin"], &denial["capability"]), (&json!("acme"), &json!("ask")), "{denial}");
    assert_eq!(denial["digest"].as_str().map(str::len), Some(64), "{denial}");
    assert_eq!(denial["request"], "`ask`, questions to a person");
    assert_eq!(item["response_schema"], json!({ "enum": ["once", "run", "always", "refuse"] }));
    let answers = format!("/runs/{run}/answers");
    for wrong in ["yes", "", "ONCE", "once, please"] {
        assert_eq!(problem(desk.post(&answers, json!({ "answer": wrong }))).await["status"], 422, "{wrong}");
    }
    assert_eq!(desk.question_of(&run).await["id"], item["id"]);

    let desk = desk.again().await;
    desk.decided(&run, "once").await;
    // Now the plugin puts its own question.
    assert_eq!(desk.question_of(&run).await["message"], "Who?");
    desk.decided(&run, "Ada").await;
    // That was for one call.
    assert_eq!(desk.question_of(&run).await["reason"], "denial");
    assert_eq!(desk.decided(&run, "refuse").await["output"], "Ada alone");
    assert_eq!(desk.written(), SETTINGS.1);
    // The first answer counts.
    let late = json!({ "question_id": item["id"], "answer": "always" });
    assert_eq!(problem(desk.post(&answers, late)).await["status"], 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_granted_to_a_run_is_not_granted_to_others_and_what_is_for_always_is_written_down() {
    let desk = Desk::that_asks(SETTINGS.1).await;
    let run = desk.begin(json!({ "agent_id": "twice", "input": "x" })).await;
    desk.decided(&run, "run").await;
    desk.decided(&run, "Ada").await;
    let desk = desk.again().await;
    assert_eq!(desk.decided(&run, "Bo").await["output"], "Ada and Bo");
    assert_eq!(desk.written(), SETTINGS.1);

    let next = desk.begin(json!({ "agent_id": "twice", "input": "x" })).await;
    assert_eq!(desk.question_of(&next).await["reason"], "denial");
    desk.decided(&next, "always").await;
    assert_eq!(desk.question_of(&next).await["message"], "Who?");
    let written = desk.written();
    assert!(written.starts_with(SETTINGS.1) && written.contains("[grants.acme]\nask = true"), "{written}");
    let lock = fs::read_to_string(desk.folder().join("agents/twice/hotcell.lock")).expect("pinned");
    assert!(lock.contains("acme"), "{lock}");
    // What is taken back counts no more, for the next call of this run either.
    fs::write(desk.folder().join("agents/twice/hotcell.toml"), SETTINGS.1).expect("written");
    desk.decided(&next, "Ada").await;
    let asked = desk.question_of(&next).await;
    assert_eq!((&asked["reason"], &asked["node"]), (&json!("denial"), &json!("two")), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_whoever_administers_decides() {
    let desk = Desk::that_asks(SETTINGS.1).await;
    let given = json!({ "agent_id": "twice", "input": "x", "thread_id": "t", "if_not_exists": "create" });
    let run = desk.begin(given).await;
    let item = desk.question_of(&run).await;
    let others = key(&desk, &[Role::Run, Role::Answer, Role::Operate]);
    let administer = key(&desk, &[Role::Administer]);
    let post = |key: &str| desk.post(&format!("/runs/{run}/answers"), json!({ "answer": "always" })).bearer_auth(key);
    assert_eq!(problem(post(&others)).await["status"], 403);
    // Nor by the ways in which other clients answer, or with a fork.
    let resume = json!({ "assistant_id": "twice", "command": { "resume": "always" } });
    let resumed = desk.post("/threads/t/runs/wait", resume).bearer_auth(&others).send().await.expect("a reply");
    assert!(resumed.status().is_client_error(), "{}", resumed.status());
    let message = json!({ "agent_id": "twice", "input": "always", "thread_id": "t" });
    let begun = desk.post("/runs", message).bearer_auth(&others).send().await.expect("a reply");
    assert_eq!(begun.status(), 409);
    let entries = ok(desk.get(&format!("/runs/{run}/entries?limit=1000")).bearer_auth(&others)).await;
    let asked = entries["entries"].as_array().expect("entries").iter().rfind(|entry| entry["kind"] == "asked");
    let fork = json!({ "at": asked.expect("it asks")["seq"], "answer": "always" });
    let all = key(&desk, &Role::ALL);
    for (key, status) in [(&others, 403), (&all, 422)] {
        let fork = desk.post(&format!("/runs/{run}/fork"), fork.clone()).bearer_auth(key);
        assert_eq!(problem(fork).await["status"], status);
    }
    assert_eq!(desk.written(), SETTINGS.1);
    let inbox = ok(desk.get("/inbox").bearer_auth(&administer)).await;
    assert_eq!(inbox["items"][0]["id"], item["id"]);
    ok(post(&administer)).await;
    // What a person is asked is not for whoever administers.
    let asked = async || ok(desk.get("/inbox").bearer_auth(&administer)).await["items"][0]["message"].clone();
    until_async("it goes on", async || asked().await == "Who?").await;
    assert_eq!(problem(post(&administer)).await["status"], 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_nobody_is_asked() {
    let desk = Desk::that_asks("").await;
    let result = ok(desk.post("/runs/wait", json!({ "agent_id": "twice", "input": "x" }))).await;
    assert_eq!(result["output"], "nobody", "{result}");
}
