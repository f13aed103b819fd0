//! People: answers of the command line, and answers that come later from another process.

use std::pin::Pin;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotcell_loopback::{Loopback, Script, WebAnswer, WebServer};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::desk::{Desk, completed};

pub(crate) const APPROVAL: &str = r#"name: approval
version: "1.0"
start: name
nodes:
  name:
    type: input
    question: "Who asks?"
    default: somebody
    state_updates: { name: "{{input}}" }
    next: approve
  approve:
    type: approval
    question: |
      {{name}} wants to send the report.
      Send it?
    options: ["yes", "no"]
    routes: { "yes": sent, "no": kept }
    on_other: kept
    state_updates: { why: "{{choice}}" }
  sent: { type: end, output: "sent for {{name}}" }
  kept: { type: end, output: "kept: {{why}}" }
"#;

#[test]
fn answers_of_the_command_line_are_used_in_order() {
    let desk = Desk::with(APPROVAL, &[]);
    insta::assert_snapshot!(desk.told(&["run", ".", "--answer", "Ada", "--answer", "yes", "--answer", "more"]));
}

#[test]
fn without_an_answer_the_run_waits_for_another_process() {
    let desk = Desk::with(APPROVAL, &[]);
    let mut told = vec![desk.told(&["run", "."])];
    let run = desk.only_run().to_string();
    told.push(desk.told(&["runs", "show", &run]));
    told.push(desk.told(&["runs", "answer", &run, "Ada"]));
    told.push(desk.told(&["runs", "resume", &run]));
    told.push(desk.told(&["runs", "answer", &run[..3], "not before noon", "--resume"]));
    told.push(desk.told(&["runs", "answer", &run, "yes"]));
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_waiting_run_says_so_in_json() {
    let desk = Desk::with(APPROVAL, &[]);
    let output = desk.output(&["run", ".", "--json", "--quiet", "--answer", "Ada"]);
    assert_eq!(output.status.code(), Some(3));
    let stdout = String::from_utf8(output.stdout).unwrap();
    let last: serde_json::Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["status"], "waiting");
    assert_eq!(last["questions"][0]["node"], "approve");
    assert_eq!(last["questions"][0]["options"], serde_json::json!(["yes", "no"]));
}

#[test]
fn resume_takes_answers_too() {
    let desk = Desk::with(APPROVAL, &[]);
    assert_eq!(desk.output(&["run", ".", "--quiet"]).status.code(), Some(3));
    let run = desk.only_run().to_string();
    let output = desk.output(&["runs", "resume", &run, "--answer", "", "--answer", "yes", "--quiet"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "sent for somebody\n");
}

#[test]
fn an_answer_can_come_from_standard_input() {
    let desk = Desk::with(APPROVAL, &[]);
    desk.output(&["run", ".", "--quiet", "--answer", "Ada"]);
    let run = desk.only_run().to_string();
    let told = desk.told_with_input(&["runs", "answer", &run, "-"], "no,\nnot yet\n");
    assert!(told.starts_with("exit code: 0"), "{told}");
    let output = desk.output(&["runs", "resume", &run, "--quiet"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "kept: no,\nnot yet\n");
}

#[test]
fn a_journal_in_memory_says_that_nothing_is_kept() {
    let desk = Desk::with(APPROVAL, &[]);
    insta::assert_snapshot!(desk.told(&["run", ".", "--journal", "memory", "--answer", "Ada"]));
}

#[test]
fn a_named_journal_is_part_of_the_command_that_is_shown() {
    let desk = Desk::with(APPROVAL, &[]);
    let output = desk.hotcell(&["run", ".", "--journal", "my runs.db"]).env_remove("HOTCELL_JOURNAL").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("--resume --journal 'my runs.db'"), "{told}");
    assert!(desk.path("my runs.db").exists());
}

/// Asks, and has a model think meanwhile.
const BUSY: &str = r#"name: busy
version: "1.0"
start: split
nodes:
  split: { type: script, script: scripts/nothing.sh, next: [before, long] }
  before: { type: script, script: scripts/nothing.sh, next: ask }
  ask:
    type: approval
    question: "Go on?"
    options: ["yes"]
    routes: { "yes": join }
    on_other: join
    state_updates: { said: "{{choice}}" }
  long: { type: llm, prompt: Think, state_updates: { thought: "{{output}}" }, next: join }
  join: { type: script, script: scripts/nothing.sh, next: done }
  done: { type: end, output: "{{said}}" }
"#;

/// A run that has asked, and is still at work.
struct Busy {
    desk: Desk,
    child: Child,
    run: String,
    model: Loopback,
    /// Cancelled when the model may answer
    thought: CancellationToken,
}

fn busy() -> Busy {
    let desk = Desk::with(BUSY, &[("nothing.sh", "echo '{}'")]);
    let thought = CancellationToken::new();
    let until = thought.clone();
    let delays =
        move |_: Duration| -> Pin<Box<dyn Future<Output = ()> + Send>> { Box::pin(until.clone().cancelled_owned()) };
    let replies = json!([{ "content": "first", "delay_ms": 1 }, { "content": "second" }]);
    let model = Loopback::start_with(Script::from_json(&replies).unwrap(), Arc::new(delays)).unwrap();
    let mut command = desk.hotcell(&["run", ".", "--no-input", "--quiet", "--model", "test:small"]);
    command.env("HOTCELL_MODEL_URL", model.base_url()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(120), "the question is not put");
        let shown = desk.runs().first().map(|run| desk.output(&["runs", "show", run.id.as_str()]).stdout);
        let has_asked = shown.is_some_and(|shown| String::from_utf8_lossy(&shown).contains("Go on?"));
        if has_asked && model.requests().len() == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let run = desk.only_run().to_string();
    Busy { desk, child, run, model, thought }
}

#[test]
fn a_run_that_works_takes_an_answer_from_another_process() {
    let Busy { desk, child, run, model: _model, thought } = busy();
    let told = desk.told(&["runs", "answer", &run, "yes"]);
    assert!(told.contains("the run is still working and continues with the answer"), "{told}");
    let listed = desk.output(&["runs", "list", "--status", "running"]).stdout;
    assert!(String::from_utf8_lossy(&listed).contains(&run));
    thought.cancel();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "yes\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_run_that_works_is_cancelled_by_another_process() {
    let Busy { desk, child, run, model: _model, thought: _thought } = busy();
    assert!(desk.output(&["runs", "cancel", &run]).status.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", desk.describe(&output));
    assert_eq!(desk.record(&run).status, hotcell_journal::RunStatus::Cancelled);
}

#[test]
fn a_run_that_works_is_paused_between_two_nodes_until_it_is_resumed() {
    let Busy { desk, child, run, model: _model, thought } = busy();
    let told = desk.told(&["runs", "pause", &run]);
    assert!(told.contains("pauses when its current nodes are done") && told.contains("runs resume"), "{told}");
    thought.cancel();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", desk.describe(&output));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("was paused; everything committed is kept"), "{said}");
    assert_eq!(desk.record(&run).status, hotcell_journal::RunStatus::Paused);
    // The node that ran was not cut off, and nothing began after it.
    let nodes: Vec<String> =
        completed(&desk.entries(&run.as_str().to_owned().into())).iter().map(|(_, turn)| turn.node.clone()).collect();
    assert!(nodes.contains(&"long".to_owned()) && !nodes.contains(&"join".to_owned()), "{nodes:?}");
    let listed = desk.told(&["runs", "list", "--status", "paused"]);
    assert!(listed.contains("paused") && desk.told(&["runs", "show", &run]).contains("paused"), "{listed}");
    // An answer is kept; it does not go on with the run.
    let told = desk.told(&["runs", "answer", &run, "yes"]);
    assert!(told.contains("resume it with"), "{told}");
    assert_eq!(desk.record(&run).status, hotcell_journal::RunStatus::Paused);
    let told = desk.told(&["runs", "resume", &run]);
    assert!(told.starts_with("exit code: 0\n--- stdout\nyes\n") && !told.contains("▸ long"), "{told}");
    let told = desk.told(&["runs", "pause", &run]);
    assert!(told.starts_with("exit code: 2") && told.contains("completed"), "{told}");
}

#[test]
fn a_run_that_waits_is_paused_at_once() {
    let Busy { desk, mut child, run, model, thought } = busy();
    child.kill().unwrap();
    child.wait().unwrap();
    let told = desk.told(&["runs", "pause", &run]);
    assert!(told.contains("paused run") && told.starts_with("exit code: 0"), "{told}");
    let watched = desk.told(&["runs", "watch", &run]);
    assert!(watched.contains("is paused; resume it with"), "{watched}");
    assert!(desk.told(&["runs", "pause", &run]).starts_with("exit code: 0"), "once more is not an error");
    thought.cancel();
    let mut resume = desk.hotcell(&["runs", "resume", &run, "--answer", "yes"]);
    let resumed = resume.env("HOTCELL_MODEL_URL", model.base_url()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&resumed.stdout), "yes\n", "{}", desk.describe(&resumed));
}

/// Asks, and then needs a grant of its folder and a model.
const NEEDS: &str = r#"name: needs
version: "1.0"
start: ask
nodes:
  ask: { type: input, question: "Go on?", next: read }
  read: { type: script, script: scripts/read.py, next: think }
  think: { type: llm, prompt: "{{read}}?", state_updates: { said: "{{output}}" }, next: done }
  done: { type: end, output: "{{read}}: {{said}}" }
"#;

/// Trust and the model are not said again, whichever command goes on with the run and wherever it is given.
#[test]
fn a_run_goes_on_with_the_options_that_it_was_started_with() {
    let reads = "import json\nprint(json.dumps({'read': open('/data/file').read()}))\n";
    let desk = Desk::with(NEEDS, &[("read.py", reads)]);
    desk.write("data/file", "granted");
    desk.write("hotcell.toml", "[grants.\"scripts/read.py\"]\nfs = [{ host = \"data\", guest = \"/data\" }]\n");
    let replies = json!([{ "content": "four" }, { "content": "five" }]);
    let model = Loopback::start(Script::from_json(&replies).unwrap()).unwrap();
    let output = |arguments: &[&str], folder: &str| {
        let mut command = desk.hotcell(arguments);
        command.current_dir(desk.path(folder)).env("HOTCELL_MODEL_URL", model.base_url());
        command.output().unwrap()
    };
    for said in ["four", "five"] {
        let begun = output(&["run", ".", "--quiet", "--trust", "--model", "test:small"], "");
        assert_eq!(begun.status.code(), Some(3), "{}", desk.describe(&begun));
        let run = desk.runs()[0].id.to_string();
        let went_on = match said {
            "four" => output(&["runs", "answer", &run, "yes", "--resume"], "data"),
            _ => {
                output(&["runs", "answer", &run, "yes"], "data");
                output(&["runs", "resume", &run, "--quiet"], "scripts")
            }
        };
        let told = String::from_utf8_lossy(&went_on.stdout).into_owned();
        assert_eq!(told, format!("granted: {said}\n"), "{}", desk.describe(&went_on));
    }
}

#[test]
fn a_gate_tells_another_system_once_before_it_waits() {
    let desk = Desk::new();
    let answer = WebAnswer { status: 200, body: String::new(), is_json: false, headers: Vec::new() };
    let site = WebServer::start(move |_| Some(answer.clone())).unwrap();
    let origin = format!("http://127.0.0.1:{}", site.port());
    let gate = |more: &str| {
        let notify = format!("notify: {{url: '{origin}/hook'{more}}}");
        format!(
            "name: release\nstate: {{what: two}}\nsteps:\n- {{id: sure, type: approval_gate, output: decision, {notify}}}\n"
        )
    };
    desk.write("plain.yaml", &gate(""));
    let body = r#"body_template: '{{"text": "{step_id}: {state.what}"}}'"#;
    desk.write(
        "templated.yaml",
        &gate(&format!(", headers: {{x-team: desk, Content-Type: application/json}}, {body}")),
    );

    // A server that is not granted is not asked, and the gate waits all the same.
    let told = desk.told(&["run", "plain.yaml", "--json"]);
    assert!(told.starts_with("exit code: 3") && told.contains("notify"), "{told}");
    assert!(site.requests().is_empty(), "{told}");

    desk.write("hotcell.toml", &format!("[grants.agent]\nhttp = ['{origin}']\n"));
    let told = desk.told(&["run", "plain.yaml", "--trust"]);
    assert!(told.starts_with("exit code: 3"), "{told}");
    let requests = site.requests();
    assert_eq!((requests.len(), &*requests[0].method, &*requests[0].path), (1, "POST", "/hook"), "{told}");
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    let run = body["run_id"].as_str().unwrap();
    let expected = json!({"run_id": run, "step_id": "sure", "workflow_name": "release", "status": "awaiting_approval"});
    assert_eq!(body, expected);
    let told = desk.told(&["runs", "answer", run, "approved", "--resume"]);
    assert!(told.contains("exit code: 0") && told.contains("approved"), "{told}");
    assert_eq!(site.requests().len(), 1, "it was told once");

    desk.told(&["run", "templated.yaml", "--trust"]);
    let requests = site.requests();
    assert_eq!(String::from_utf8_lossy(&requests[1].body), r#"{"text": "sure: two"}"#);
    assert!(requests[1].headers.contains(&("x-team".to_owned(), "desk".to_owned())), "{:?}", requests[1]);
}
