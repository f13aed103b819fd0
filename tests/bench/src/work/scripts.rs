//! Script nodes beside the subprocesses they replace. All of them do the same: read one text from the state, answer
//! with its upper-case form and its length.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use hotcell_engine::{CallReport, ScriptCall, Scripts, ToolCall, Tools};
use hotcell_models::{Model, ModelError, OnText, Reply, Request, ToolSpec};
use hotcell_runtime::{CancellationToken, Host, HostOptions, Nobody, Outcome, RunInput, Session};
use tokio::process::Command;

use super::Failure;
use crate::measure::{Row, Samples, Value};

pub(super) const WASM: &[u8] = include_bytes!(env!("HOTCELL_BENCH_SCRIPT"));
const JAVASCRIPT: &str = "const s = JSON.parse(process.env.GRAPH_STATE);\n\
    console.log(JSON.stringify({ upper: s.text.toUpperCase(), length: s.text.length }));\n";
pub(super) const PYTHON: &str = "import json, os\ns = json.loads(os.environ[\"GRAPH_STATE\"])\n\
    print(json.dumps({\"upper\": s[\"text\"].upper(), \"length\": len(s[\"text\"])}))\n";
const SHELL: &str = "#!/usr/bin/env bash\ntext=$(echo \"$GRAPH_STATE\" | jq -r .text)\n\
    echo \"$GRAPH_STATE\" | jq -c --arg upper \"${text^^}\" '{upper: $upper, length: (.text | length)}'\n";
pub(super) const TEXT: &str = "the quick brown fox jumps over the lazy dog";

/// How many script nodes one measured run has, so that what a run costs does not count as a node.
const NODES: u32 = 50;

/// Nothing outside: for runs that have no scripts, tools or models.
pub(crate) fn nothing() -> Arc<Nothing> {
    Arc::new(Nothing)
}

pub(crate) struct Nothing;

#[async_trait]
impl Scripts for Nothing {
    async fn run(&self, call: ScriptCall) -> CallReport {
        CallReport::failed(format!("no script `{}`", call.file))
    }
}

#[async_trait]
impl Tools for Nothing {
    fn describe(&self, _name: &str) -> Option<ToolSpec> {
        None
    }

    async fn call(&self, call: ToolCall<'_>) -> CallReport {
        CallReport::failed(format!("no tool `{}`", call.name))
    }
}

#[async_trait]
impl Model for Nothing {
    async fn complete(&self, _request: Request, _on_text: Option<OnText<'_>>) -> Result<Reply, ModelError> {
        Err(ModelError::Malformed { reason: "there is no model".to_owned() })
    }
}

pub(crate) fn host() -> Result<Host, Failure> {
    Ok(Host::new(HostOptions::isolated())?)
}

pub(crate) fn session() -> Session {
    Session { people: Arc::new(Nobody), observer: Arc::new(Nobody), cancel: CancellationToken::new() }
}

/// A folder with a graph of `nodes` nodes that all run `script`, and the state they find.
pub(super) fn write_graph(
    folder: &Path,
    script: &str,
    contents: &[u8],
    nodes: u32,
    state: &serde_json::Value,
) -> Result<(), Failure> {
    fs::create_dir_all(folder.join("scripts"))?;
    fs::write(folder.join("scripts").join(script), contents)?;
    let mut text = format!("name: bench\nversion: \"1.0\"\ninitial_state: {state}\nstart: n0\nnodes:\n");
    for number in 0..nodes {
        let next = if number + 1 == nodes { "done".to_owned() } else { format!("n{}", number + 1) };
        text.push_str(&format!("  n{number}: {{ type: script, script: scripts/{script}, next: {next} }}\n"));
    }
    text.push_str("  done: { type: end, output: \"{{upper}}\" }\n");
    fs::write(folder.join("graph.yaml"), text)?;
    Ok(())
}

/// Runs the graph of a folder, which answers with the text in upper case, and gives the times of its other nodes.
pub(super) async fn node_time(host: &Host, folder: &Path) -> Result<Vec<Duration>, Failure> {
    let agent = host.load(folder)?;
    let report = host.run(&agent, RunInput::default(), session()).await?;
    match &report.outcome {
        Outcome::Completed { output } if *output == TEXT.to_uppercase() => {}
        other => return Err(format!("the graph did not answer: {other:?}").into()),
    }
    let nodes = report.timings.slowest_first();
    Ok(nodes.into_iter().filter(|timing| &*timing.node != "done").map(|timing| timing.total).collect())
}

/// The Python behind `python3`: a version manager's wrapper would make the comparison too easy.
pub(super) async fn real_python() -> Result<String, Failure> {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().await?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// One subprocess with the state in its environment, from start to parsed answer.
pub(super) async fn subprocess(program: &str, script: &Path, state: &str) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let output = Command::new(program)
        .arg(script)
        .env("GRAPH_STATE", state)
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(|error| format!("cannot run `{program}`: {error}"))?;
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(|error| {
        format!("`{program}` answered no JSON: {error}: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    let elapsed = begun.elapsed();
    if answer["upper"] != TEXT.to_uppercase() {
        return Err(format!("`{program}` answered {answer}").into());
    }
    Ok(elapsed)
}

pub(crate) async fn wasm(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    let state = serde_json::json!({ "text": TEXT });
    write_graph(folder.path(), "node.wasm", WASM, NODES, &state)?;
    let python = folder.path().join("node.py");
    fs::write(&python, PYTHON)?;
    let host = host()?;
    let interpreter = real_python().await?;
    node_time(&host, folder.path()).await?;
    let (mut sealed, mut process) = (Samples::new("sealed .wasm node"), Samples::new("python3 subprocess"));
    for _ in 0..rounds {
        for time in node_time(&host, folder.path()).await? {
            sealed.add(time);
        }
        process.add(subprocess(&interpreter, &python, &state.to_string()).await?);
    }
    let mut limit = Row::time(&sealed).at_most(&sealed, Duration::from_micros(25));
    limit.label = "sealed .wasm node, p50".to_owned();
    Ok(vec![Row::time(&sealed).faster_than(&sealed, &process, 500.0), limit, Row::time(&process)])
}

pub(crate) async fn source(rounds: usize) -> Result<Vec<Row>, Failure> {
    let host = host()?;
    let state = serde_json::json!({ "text": TEXT });
    let python = real_python().await?;
    let mut rows = Vec::new();
    for (script, contents, program, target) in
        [("node.js", JAVASCRIPT, "node", 60.0), ("node.py", PYTHON, &*python, 7.0), ("node.sh", SHELL, "bash", 6.0)]
    {
        let folder = tempfile::tempdir()?;
        write_graph(folder.path(), script, contents.as_bytes(), 5, &state)?;
        node_time(&host, folder.path()).await?;
        let mut sealed = Samples::new(format!("{script} in its cell"));
        let name = Path::new(program).file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let mut process = Samples::new(format!("{name} subprocess"));
        for _ in 0..rounds {
            for time in node_time(&host, folder.path()).await? {
                sealed.add(time);
            }
            process.add(subprocess(program, &folder.path().join("scripts").join(script), &state.to_string()).await?);
        }
        rows.push(Row::time(&sealed).faster_than(&sealed, &process, target));
        rows.push(Row::time(&process));
    }
    Ok(rows)
}

pub(crate) async fn state(rounds: usize) -> Result<Vec<Row>, Failure> {
    let host = host()?;
    let states = [
        ("state of 1 KB", serde_json::json!({ "text": TEXT, "pad": "x".repeat(1_000) })),
        ("state of 1 MB", serde_json::json!({ "text": TEXT, "pad": "x".repeat(1_000_000) })),
        ("list of 10", serde_json::json!({ "text": TEXT, "list": (0..10).collect::<Vec<_>>() })),
        ("list of 10,000", serde_json::json!({ "text": TEXT, "list": (0..10_000).collect::<Vec<_>>() })),
    ];
    let folders: Vec<tempfile::TempDir> = states.iter().map(|_| tempfile::tempdir()).collect::<Result<_, _>>()?;
    let mut all: Vec<Samples> = states.iter().map(|(label, _)| Samples::new(*label)).collect();
    for (folder, (_, state)) in folders.iter().zip(&states) {
        write_graph(folder.path(), "node.wasm", WASM, NODES, state)?;
        node_time(&host, folder.path()).await?;
    }
    for _ in 0..rounds {
        for (samples, folder) in all.iter_mut().zip(&folders) {
            for time in node_time(&host, folder.path()).await? {
                samples.add(time);
            }
        }
    }
    let least = all.iter().map(Samples::median).min().unwrap_or_default().as_secs_f64();
    Ok(all
        .iter()
        .map(|samples| {
            let ratio = samples.median().as_secs_f64() / least.max(1e-12);
            let mut row = Row::time(samples);
            row.ratio = Some(("times the fastest".to_owned(), ratio));
            row.target = Some(("<= 1.5 times".to_owned(), ratio <= 1.5));
            row
        })
        .collect())
}

/// The row of a number of bytes.
pub(crate) fn bytes(label: &str, bytes: u64, limit: u64) -> Row {
    let target = Some((format!("<= {} KB", limit / 1000), bytes <= limit));
    Row { label: label.to_owned(), value: Value::Bytes(bytes), ratio: None, target }
}
