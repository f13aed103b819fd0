//! What a mesh costs beside the functions of its agents: from one agent to the next, a condition of an edge, loading.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hotcell_runtime::{Agent, Host, HostOptions, JournalChoice, Outcome, RunInput};
use serde_json::json;

use super::Failure;
use super::scripts::{host, session};
use super::tools::{PLUGIN, TOOL, described};
use crate::measure::{Row, Samples};

const CHAINS: [u32; 4] = [1, 10, 100, 1_000];
/// Agents of which one run is made, so that short chains are not timed one by one.
const TOGETHER: u32 = 1_000;
/// How many times a hop of the shortest chain one of the longest may take.
const FLAT: f64 = 1.5;
/// Edges of an agent of which all but one have a condition that does not hold.
const EDGES: u32 = 21;
/// Agents of the mesh with many conditions.
const WITH_EDGES: u32 = 100;
const MANY_AGENTS: u32 = 500;
const MANY_EDGES: u32 = 10;
/// Functions of one plugin.
const FUNCTIONS: u32 = 200;

pub(crate) async fn mesh(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    let memory = host()?;
    let journal = JournalChoice::File(folder.path().join("runs.db"));
    let journaled = memory.beside(HostOptions { journal, ..HostOptions::isolated() })?;
    let most = CHAINS[CHAINS.len() - 1];
    let mut chains = Vec::new();
    for length in CHAINS {
        chains.push((length, written(&folder.path().join(format!("chain{length}")), length, |_| 1)?));
    }
    let few = written(&folder.path().join("few"), WITH_EDGES, |_| 1)?;
    let many = written(&folder.path().join("many"), WITH_EDGES, |_| EDGES)?;
    let large = written(&folder.path().join("large"), MANY_AGENTS, |_| MANY_EDGES)?;
    // Each answers who calls it, as is usual.
    fs::write(&large, fs::read_to_string(&large)?.replace("communication_type: chain", "communication_type: dual"))?;
    let graph = folder.path().join("graph");
    write_plugins(&graph, most)?;
    write_graph(&graph, most)?;

    let samples = |kind: &str| -> Vec<Samples> {
        CHAINS.iter().map(|length| Samples::new(format!("{kind}, chain of {length}, per agent"))).collect()
    };
    let (mut in_memory, mut in_journal) = (samples("in memory"), samples("journaled"));
    let of_graph =
        |kind: &str| Samples::new(format!("the same functions as nodes of a graph, {most} {kind}, per node"));
    let (mut nodes, mut nodes_in_journal) = (of_graph("in memory"), of_graph("journaled"));
    let mut condition = Samples::new("a condition of an edge");
    let mut loading = Samples::new(format!("loading {MANY_AGENTS} agents with {} edges", MANY_AGENTS * MANY_EDGES));
    for round in 0..rounds.min(10) + 1 {
        let mut times = Vec::new();
        for (length, folder) in &chains {
            times.push((hop(&memory, folder, *length).await?, hop(&journaled, folder, *length).await?));
        }
        let node = (graph_node(&memory, &graph, most).await?, graph_node(&journaled, &graph, most).await?);
        let with = hop(&memory, &many, WITH_EDGES).await?;
        let without = hop(&memory, &few, WITH_EDGES).await?;
        let begun = Instant::now();
        drop(memory.load(&large)?);
        let loaded = begun.elapsed();
        // The first round warms everything.
        if round > 0 {
            for ((own, kept), (ours, journaled)) in in_memory.iter_mut().zip(&mut in_journal).zip(times) {
                own.add(ours);
                kept.add(journaled);
            }
            nodes.add(node.0);
            nodes_in_journal.add(node.1);
            condition.add(with.saturating_sub(without) / (EDGES - 1));
            loading.add(loaded);
        }
    }
    let mut rows = Vec::new();
    for kind in [&in_memory, &in_journal] {
        for samples in kind {
            rows.push(Row::time(samples).no_slower_than(samples, &kind[1], FLAT));
        }
    }
    rows.push(Row::time(&nodes));
    rows.push(Row::time(&nodes_in_journal));
    rows.push(Row::time(&condition).at_most(&condition, Duration::from_micros(1)));
    rows.push(Row::time(&loading).at_most(&loading, Duration::from_millis(100)));
    Ok(rows)
}

/// The plugin that has the function of an agent.
fn plugin_of(agent: u32) -> String {
    format!("{PLUGIN}{}", agent / FUNCTIONS)
}

/// Plugins with the functions of so many agents.
pub(super) fn write_plugins(folder: &Path, agents: u32) -> Result<(), Failure> {
    fs::create_dir_all(folder.join("plugins"))?;
    for first in (0..agents).step_by(FUNCTIONS as usize) {
        let tool = |number| json!({ "name": format!("a{number}"), "description": "One more", "parameters": { "type": "object" } });
        let name = plugin_of(first);
        let description = json!({
            "contract": "0.2.0", "name": name, "version": "1.0.0", "description": "Functions of agents",
            "tools": (first..agents.min(first + FUNCTIONS)).map(tool).collect::<Vec<_>>(),
        });
        fs::write(folder.join(format!("plugins/{name}.wasm")), described(TOOL, &description))?;
    }
    Ok(())
}

/// The folder of a mesh whose agents call each other in a row. All edges but the last of an agent have a condition that does not
/// hold.
fn written(folder: &Path, agents: u32, edges: impl Fn(u32) -> u32) -> Result<PathBuf, Failure> {
    write_plugins(folder, agents)?;
    let mut text = "name: bench\nmanager: {enabled: false}\nmesh: {max_chain_events: 100000}\nagents:\n".to_owned();
    for number in 0..agents {
        let _ = write!(text, "  a{number}: {{agent_type: programmatic, communication_type: chain");
        if number + 1 < agents {
            text.push_str(", can_call: [");
            for edge in 1..edges(number) {
                let to = (number + 1 + edge) % agents;
                let _ = write!(text, "{{agent: a{to}, condition: \"n < 0 and length == {edge}\"}}, ");
            }
            let _ = write!(text, "{{agent: a{}}}]", number + 1);
        }
        text.push_str("}\n");
    }
    text.push_str("entry_points:\n  - {name: count, target: a0}\n");
    fs::write(folder.join("mesh.yaml"), text)?;
    Ok(folder.join("mesh.yaml"))
}

/// The time of one agent in a chain of so many.
async fn hop(host: &Host, file: &Path, length: u32) -> Result<Duration, Failure> {
    let agent: Agent = host.load(file)?;
    let repeats = (TOGETHER / length).max(1);
    let begun = Instant::now();
    for _ in 0..repeats {
        let data = hotcell_graph::Value::from(&json!({ "n": 0 }));
        let state = [("entry_point".into(), "count".into()), ("data".into(), data)].into_iter().collect();
        let input = RunInput { state, ..RunInput::default() };
        let report = host.run(&agent, input, session()).await?;
        let n = report.state.get("output").map(hotcell_graph::Value::to_json);
        match &report.outcome {
            Outcome::Completed { .. } => {}
            other => return Err(format!("a chain of {length} came to {n:?} and {other:?}").into()),
        }
    }
    Ok(begun.elapsed() / (repeats * length))
}

fn write_graph(folder: &Path, nodes: u32) -> Result<(), Failure> {
    let mut text = "name: bench\ninitial_state: { n: 0 }\nstart: n0\nnodes:\n".to_owned();
    for number in 0..nodes {
        let next = if number + 1 == nodes { "done".to_owned() } else { format!("n{}", number + 1) };
        let plugin = plugin_of(number);
        let _ = writeln!(
            text,
            "  n{number}: {{ type: {plugin}/a{number}, inputs: {{ n: \"{{{{n}}}}\" }}, state_updates: {{ n: \
             \"{{{{output.n}}}}\" }}, next: {next} }}"
        );
    }
    text.push_str("  done: { type: end, output: \"{{n}}\" }\n");
    Ok(fs::write(folder.join("graph.yaml"), text)?)
}

/// The time of one node of the graph that calls the same functions.
async fn graph_node(host: &Host, folder: &Path, length: u32) -> Result<Duration, Failure> {
    let agent = host.load(folder)?;
    let begun = Instant::now();
    let report = host.run(&agent, RunInput::default(), session()).await?;
    match &report.outcome {
        Outcome::Completed { .. } => Ok(begun.elapsed() / length),
        other => Err(format!("the graph came to {other:?}").into()),
    }
}
