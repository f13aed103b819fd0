//! The server under load: the real one, in a process of its own, driven over HTTP on loopback.
//!
//! Both sides share the cores of the machine, so what is measured holds the cost of the client, too.

mod client;
mod load;
mod process;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::TcpListener;

use self::client::Client;
use self::load::{Load, closed, open};
use self::process::Process;
use super::Failure;
use super::other::interpreter;
use super::tools::{TOOL, described, tool_description};
use crate::measure::{Row, Samples};

/// Runs a second that are wanted, with the journal in memory and in a file.
const TARGETS: [(&str, f64); 2] = [("in memory", 5_000.0), ("in SQLite", 2_000.0)];
/// The longest that a run may take at half of that, but for one in a hundred.
const P99: Duration = Duration::from_millis(20);
/// Clients that ask one after the other.
const CLIENTS: usize = 64;
/// For each round: clients that follow a run, runs that wait, and milliseconds of load.
const STREAMS: usize = 500;
const WAITING: u64 = 5_000;
const LOAD: u64 = 250;
const STREAM_BYTES: u64 = 20_000;
const WAITING_BYTES: u64 = 2_000;
const READY: Duration = Duration::from_secs(2);

/// Asks a person.
const WAIT: &str = "name: wait\nversion: \"1.0\"\nstart: ask\nnodes:\n\
    \x20 ask: { type: approval, question: \"Go on with {{initial_prompt}}?\", options: [\"yes\"], \
    routes: { \"yes\": done }, on_other: done }\n\
    \x20 done: { type: end, output: done }\n";
/// Asks a model, which does not answer.
const SLOW: &str = "name: slow\nstart: ask\nnodes:\n  ask: { type: llm, prompt: \"x\", next: done }\n\
    \x20 done: { type: end, output: done }\n";

pub(crate) async fn serve(rounds: usize) -> Result<Vec<Row>, Failure> {
    hotcell_runtime::raise_open_files();
    let folder = tempfile::tempdir()?;
    let agents = folder.path().join("agents");
    for (name, text) in [("wait/graph.yaml", WAIT), ("slow/graph.yaml", SLOW)] {
        let file = agents.join(name);
        fs::create_dir_all(file.parent().unwrap_or(&agents))?;
        fs::write(file, text)?;
    }
    let three = agents.join("three");
    fs::create_dir_all(three.join("plugins"))?;
    fs::write(three.join("plugins/bench.wasm"), described(TOOL, &tool_description("bench")))?;
    fs::write(three.join("flow.json"), super::agent_spec::chain(1).to_string())?;
    let time = Duration::from_millis(LOAD * rounds as u64);
    let mut rows = Vec::new();
    for (kind, wanted) in TARGETS {
        let journal = match kind {
            "in memory" => PathBuf::from("memory"),
            _ => folder.path().join("runs.db"),
        };
        rows.extend(runs(&agents, &journal, kind, wanted, time).await?);
    }
    rows.extend(beside(folder.path(), time).await?);
    rows.push(streams(&agents, STREAMS * rounds).await?);
    rows.extend(waiting(&agents, &folder.path().join("waiting.db"), WAITING * rounds as u64).await?);
    Ok(rows)
}

/// A run of the graph with a tool.
fn three(agent: &str) -> Load {
    let body = json!({ "agent_id": agent, "input": { "text": "a text of some length" } });
    Load { path: "/runs/wait".to_owned(), body: body.to_string() }
}

/// Runs a second as fast as it goes, and how long each takes at half of what is wanted.
async fn runs(agents: &Path, journal: &Path, kind: &str, wanted: f64, time: Duration) -> Result<Vec<Row>, Failure> {
    let server = Process::hotcell(agents, journal, None).await?;
    let load = three("three.flow");
    closed(&server.address, &load, CLIENTS, Duration::from_millis(500)).await?;
    let (mut fast, rate) = closed(&server.address, &load, CLIENTS, time).await?;
    fast.label = format!("a run of three nodes, {kind}, {CLIENTS} clients");
    let mut row = Row::time(&fast);
    row.ratio = Some(("runs a second".to_owned(), rate));
    row.target = Some((format!(">= {wanted} a second"), rate >= wanted));
    let mut steady = open(&server.address, &load, wanted / 2.0, time).await?;
    steady.label = format!("the same at {} a second", wanted / 2.0);
    let mut half = Row::time(&steady);
    half.target = Some((format!("p99 <= {P99:?}"), steady.p99() <= P99));
    Ok(vec![row, half])
}

/// The same graph in LangGraph's own server, with its journal in memory.
async fn beside(folder: &Path, time: Duration) -> Result<Vec<Row>, Failure> {
    let Some(python) = interpreter("langgraph") else {
        return Ok(vec![Row::left_out(
            "LangGraph's server is not installed here: run `tests/bench/langgraph/install`",
        )]);
    };
    let project = folder.join("langgraph");
    fs::create_dir(&project)?;
    fs::write(project.join("graph.py"), include_str!("../../../langgraph/graph.py"))?;
    let settings = json!({ "dependencies": ["."], "graphs": { "three": "./graph.py:graph" } });
    fs::write(project.join("langgraph.json"), settings.to_string())?;
    let port = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port().to_string();
    let mut command = Command::new(python.with_file_name("langgraph"));
    command.args(["dev", "--no-browser", "--no-reload", "--n-jobs-per-worker", "64", "--port", &port]);
    command.current_dir(&project).env("LANGSMITH_TRACING", "false").env("LOG_LEVEL", "ERROR");
    let server = Process::other(&mut command, format!("127.0.0.1:{port}"), "/ok").await?;
    let body = json!({ "assistant_id": "three", "input": { "text": "a text of some length" } });
    let load = Load { path: "/runs/wait".to_owned(), body: body.to_string() };
    closed(&server.address, &load, CLIENTS, Duration::from_secs(3)).await?;
    let (mut samples, rate) = closed(&server.address, &load, CLIENTS, time.max(Duration::from_secs(5))).await?;
    samples.label = format!("LangGraph's server 0.16.7, the same in Python, in memory, {CLIENTS} clients");
    let mut row = Row::time(&samples);
    row.ratio = Some(("runs a second".to_owned(), rate));
    Ok(vec![row])
}

/// Memory of the server for each client that follows a run.
async fn streams(agents: &Path, count: usize) -> Result<Row, Failure> {
    // It takes requests and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    let model = format!("http://{}", silent.local_addr()?);
    let server = Process::hotcell(agents, Path::new("memory"), Some(&model)).await?;
    let mut client = Client::connect(&server.address).await?;
    let run = begin(&mut client, "slow", "x").await?;
    let path = format!("/runs/{run}/stream");
    let mut open = Vec::with_capacity(count);
    // The first ones pay for what all share.
    for _ in 0..100.min(count) {
        let mut client = Client::connect(&server.address).await?;
        client.follow(&path).await?;
        open.push(client);
    }
    let before = server.resident()?;
    while open.len() < count {
        let mut client = Client::connect(&server.address).await?;
        client.follow(&path).await?;
        open.push(client);
    }
    let added = count.saturating_sub(100).max(1) as u64;
    let bytes = server.resident()?.saturating_sub(before) / added;
    Ok(super::scripts::bytes(&format!("each of {count} clients that follow a run"), bytes, STREAM_BYTES))
}

/// Begins a run and gives its name.
async fn begin(client: &mut Client, agent: &str, input: &str) -> Result<String, Failure> {
    let reply = client.ask("POST", "/runs", &json!({ "agent_id": agent, "input": input }).to_string()).await?;
    let body: Value = serde_json::from_slice(&reply.body)?;
    let run = body["run_id"].as_str().ok_or_else(|| format!("{}: {body}", reply.status))?;
    Ok(run.to_owned())
}

/// Memory of the server for each run that waits, and how soon another server with the same journal takes work.
async fn waiting(agents: &Path, journal: &Path, count: u64) -> Result<Vec<Row>, Failure> {
    let server = Process::hotcell(agents, journal, None).await?;
    wait(&server.address, 500).await?;
    let before = server.resident()?;
    let begun = Instant::now();
    wait(&server.address, count).await?;
    let each = begun.elapsed().div_f64(count as f64);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let bytes = server.resident()?.saturating_sub(before) / count.max(1);
    server.kill()?;
    let again = Process::hotcell(agents, journal, None).await?;
    let mut ready = Samples::new(format!("a server with {count} waiting runs takes work after its start"));
    ready.add(again.ready);
    let mut began = Samples::new("a run that comes to wait, begun by 16 clients");
    began.add(each);
    Ok(vec![
        super::scripts::bytes(&format!("each of {count} runs that wait, in the server's memory"), bytes, WAITING_BYTES),
        Row::time(&began),
        Row::time(&ready).at_most(&ready, READY),
    ])
}

/// Begins so many runs that ask a person, and returns when all of them wait.
async fn wait(address: &str, count: u64) -> Result<(), Failure> {
    let body = json!({ "agent_id": "wait", "input": "an order" }).to_string();
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..16 {
        let (address, body) = (address.to_owned(), body.clone());
        let share = count / 16 + u64::from(number < count % 16);
        clients.spawn(async move {
            let mut client = Client::connect(&address).await?;
            for _ in 0..share {
                let reply = client.ask("POST", "/runs/wait", &body).await?;
                if reply.status != 200 {
                    return Err(format!("{}: {}", reply.status, String::from_utf8_lossy(&reply.body)).into());
                }
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(done) = clients.join_next().await {
        done??;
    }
    Ok(())
}
