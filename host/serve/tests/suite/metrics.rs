//! What was counted.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use hotcell_serve::{Keys, Role};
use serde_json::json;

use crate::desk::{ASK, Desk, ECHO, SECRET, SLOW, ok, problem};

/// A program in a cell.
const CELL: [(&str, &str); 2] = [
    (
        "cell/graph.yaml",
        "name: cell\nversion: \"1.0\"\nstart: work\nnodes:\n  work: { type: script, script: scripts/work.js, next: done }\n  done: { type: end, output: \"{{output}}\" }\n",
    ),
    (
        "cell/scripts/work.js",
        "let output = 'nothing';\ntry { await fetch('http://nobody.example/secret-path'); } catch (error) { output = 'denied'; }\nconsole.log(JSON.stringify({ output }));\n",
    ),
];

/// The numbers of a text, by name and labels as they are written.
fn numbers(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let number = |line: &str| {
        let (name, number) = line.rsplit_once(' ').expect("a name and a number");
        (name.to_owned(), number.parse().expect("a number"))
    };
    lines.map(number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_questions_cells_models_and_requests_are_counted() {
    let desk = Desk::with(&[ECHO, ASK, SLOW, CELL[0], CELL[1]]).await;
    desk.model.answers(9);
    let begin = async |agent: &str| {
        let body = json!({ "agent_id": agent, "input": format!("private words {SECRET}") });
        ok(desk.post("/runs/wait", body)).await["run"]["run_id"].as_str().expect("a run").to_owned()
    };
    let mut runs = vec![begin("echo").await, begin("slow").await];
    let cell = ok(desk.post("/runs/wait", json!({ "agent_id": "cell" }))).await;
    assert_eq!(cell["output"], "denied", "{cell}");
    runs.push(begin("ask").await);
    desk.get("/no/such/place").send().await.expect("a reply");
    let reply = desk.get("/metrics").send().await.expect("a reply");
    assert_eq!(reply.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text = reply.text().await.expect("a text");
    let found = numbers(&text);
    for (name, number) in [
        ("hotcell_runs_started_total{agent=\"echo\"}", 1.0),
        ("hotcell_runs_rested_total{agent=\"slow\",status=\"completed\"}", 1.0),
        ("hotcell_runs_rested_total{agent=\"ask\",status=\"waiting\"}", 1.0),
        ("hotcell_run_model_requests_sum{agent=\"slow\"}", 2.0),
        ("hotcell_questions_total{agent=\"ask\",event=\"asked\"}", 1.0),
        ("hotcell_journal_runs{status=\"completed\"}", 3.0),
        ("hotcell_journal_runs{status=\"waiting\"}", 1.0),
        ("hotcell_journal_runs{status=\"failed\"}", 0.0),
        ("hotcell_questions_open", 1.0),
        ("hotcell_agents", 4.0),
        ("hotcell_journal_up", 1.0),
        ("hotcell_node_duration_seconds_count{agent=\"echo\",outcome=\"completed\"}", 1.0),
        ("hotcell_cell_duration_seconds_count{agent=\"cell\",cell=\"scripts/work.js\",outcome=\"completed\"}", 1.0),
        ("hotcell_denials_total{agent=\"cell\",cell=\"scripts/work.js\",capability=\"http\"}", 1.0),
        ("hotcell_http_request_duration_seconds_count{method=\"POST\",route=\"/runs/wait\",status=\"200\"}", 4.0),
        ("hotcell_http_request_duration_seconds_count{method=\"GET\",route=\"unmatched\",status=\"404\"}", 1.0),
        ("hotcell_http_requests_active", 1.0),
    ] {
        assert_eq!(found.get(name), Some(&number), "{name}\n{text}");
    }
    let more_than_none = ["hotcell_cell_fuel_total", "hotcell_input_tokens_total", "hotcell_journal_size_bytes"];
    for name in more_than_none {
        assert!(found.iter().any(|(known, number)| known.starts_with(name) && *number > 0.0), "{name}\n{text}");
    }
    // Names of runs would be without end, and what people say belongs to them.
    for word in runs.iter().map(String::as_str).chain(["private", SECRET, "secret-path", "nobody.example"]) {
        assert!(!text.contains(word), "{word}");
    }
    check_with_promtool(&text);
}

#[expect(clippy::print_stderr, reason = "whoever runs the test has to know what was left out")]
/// What belongs to Prometheus says whether it can be read, where it is installed.
fn check_with_promtool(text: &str) {
    let checking =
        Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut checking) = checking else { return eprintln!("`promtool` is not installed: not checked with it") };
    checking.stdin.take().expect("piped").write_all(text.as_bytes()).expect("written");
    let checked = checking.wait_with_output().expect("it ends");
    assert!(checked.status.success(), "{}\n{text}", String::from_utf8_lossy(&checked.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_for_those_who_operate_the_server() {
    let desk = Desk::with(&[ECHO]).await;
    let keys = Keys::open(&desk.folder().join("runs.serve.db")).expect("the server's file");
    let token = |role| keys.add("test", None, &[role], None).expect("made").reveal();
    let (run, operate) = (token(Role::Run), token(Role::Operate));
    assert_eq!(problem(desk.get("/metrics")).await["status"], 401);
    assert_eq!(problem(desk.get("/metrics").bearer_auth(run)).await["status"], 403);
    let reply = desk.get("/metrics").bearer_auth(operate).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_has_an_id() {
    let desk = Desk::with(&[ECHO]).await;
    let id = async |given: Option<&str>| {
        let request = desk.get("/health");
        let request = given.into_iter().fold(request, |request, given| request.header("x-request-id", given));
        let reply = request.send().await.expect("a reply");
        reply.headers()["x-request-id"].to_str().expect("text").to_owned()
    };
    assert_ne!(id(None).await, id(None).await);
    assert_eq!(id(Some("mine-1")).await, "mine-1");
    for wrong in [String::new(), "a b".to_owned(), "\"},{\"".to_owned(), "x".repeat(65)] {
        let given = id(Some(&wrong)).await;
        assert!(given != wrong && given.len() == 16, "{given}");
    }
}
