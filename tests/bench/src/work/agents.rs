//! A map over many items beside one process for each of them, and what calling an agent costs beside the agent's own nodes.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use hotcell_runtime::{Host, HostOptions, JournalChoice, Outcome, RunInput};

use super::Failure;
use super::scripts::{PYTHON, TEXT, WASM, host, real_python, session, subprocess};
use crate::measure::{Row, Samples};

/// Items of a map.
const ITEMS: usize = 1_000;
/// Processes that are run for comparison; the time of all items follows from them.
const PROCESSES: usize = 50;
/// How many run side by side, of items and of processes.
const AT_ONCE: usize = 8;
/// Agents that one run calls, one after the other.
const CALLS: u32 = 100;

pub(crate) async fn map(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("scripts"))?;
    fs::write(folder.path().join("scripts/one.wasm"), WASM)?;
    let python = folder.path().join("one.py");
    fs::write(&python, PYTHON)?;
    let items = vec![serde_json::json!(TEXT); ITEMS];
    let graph = format!(
        "name: bench\ninitial_state: {{ items: {} }}\nstart: each\nnodes:\n  \
         each: {{ type: map, over: \"{{{{items}}}}\", as: text, branch: one, collect_into: all, output_key: upper, \
         max_concurrency: {AT_ONCE}, next: done }}\n  one: {{ type: script, script: scripts/one.wasm }}\n  \
         done: {{ type: end, output: \"{{{{all[999]}}}}\" }}\n",
        serde_json::Value::from(items)
    );
    fs::write(folder.path().join("graph.yaml"), graph)?;
    let host = host()?;
    let interpreter = real_python().await?;
    let state = serde_json::json!({ "text": TEXT }).to_string();
    run(&host, folder.path(), &TEXT.to_uppercase()).await?;
    let mut sealed = Samples::new(format!("map over {ITEMS} items, sealed .wasm"));
    let mut processes = Samples::new(format!("one python3 process for each of {ITEMS} items, {AT_ONCE} at once"));
    for _ in 0..rounds.min(10) {
        sealed.add(run(&host, folder.path(), &TEXT.to_uppercase()).await?);
        let begun = Instant::now();
        let all = stream::iter(0..PROCESSES).map(|_| subprocess(&interpreter, &python, &state));
        for time in all.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await {
            time?;
        }
        processes.add(begun.elapsed() * (ITEMS / PROCESSES) as u32);
    }
    Ok(vec![Row::time(&sealed).faster_than(&sealed, &processes, 1.0), Row::time(&processes)])
}

pub(crate) async fn child(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    let write = |agent: &str, nodes: &str| -> Result<(), Failure> {
        fs::create_dir_all(folder.path().join(agent))?;
        let text = format!("name: {agent}\nstart: n0\nnodes:\n{nodes}");
        Ok(fs::write(folder.path().join(agent).join("graph.yaml"), text)?)
    };
    let chain = |kind: &str| -> String {
        let node = |number: u32| {
            let next = if number + 1 == CALLS { "done".to_owned() } else { format!("n{}", number + 1) };
            format!("  n{number}: {{ {kind}, next: {next} }}\n")
        };
        (0..CALLS).map(node).collect::<String>() + "  done: { type: end, output: ok }\n"
    };
    // The agent has one node, its end: what is left is what calling it costs.
    write("child", "  n0: { type: end, output: ok }\n")?;
    write("calls", &chain("type: agent, agent: child, prompt: x"))?;
    write("empty", "  n0: { type: end, output: ok }\n")?;
    let journal = JournalChoice::File(folder.path().join("runs.db"));
    let journaled = Host::new(HostOptions { journal, ..HostOptions::isolated() })?;
    let mut rows = Vec::new();
    for (label, host) in [("in memory", host()?), ("journaled", journaled)] {
        let mut samples = Samples::new(format!("calling an agent of one node, {label}"));
        for _ in 0..rounds {
            let whole = run(&host, &folder.path().join("calls"), "ok").await?;
            let empty = run(&host, &folder.path().join("empty"), "ok").await?;
            samples.add(whole.saturating_sub(empty) / CALLS);
        }
        rows.push(Row::time(&samples).at_most(&samples, Duration::from_micros(100)));
    }
    Ok(rows)
}

async fn run(host: &Host, folder: &Path, expected: &str) -> Result<Duration, Failure> {
    let agent = host.load(folder)?;
    let begun = Instant::now();
    let report = host.run(&agent, RunInput { input: Some("x".to_owned()), ..RunInput::default() }, session()).await?;
    let elapsed = begun.elapsed();
    match &report.outcome {
        Outcome::Completed { output } if output == expected => Ok(elapsed),
        other => Err(format!("the graph did not answer: {other:?}").into()),
    }
}
