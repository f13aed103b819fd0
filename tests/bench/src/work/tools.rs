//! A tool beside the same tool on Extism and as a subprocess, and how soon a component answers.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use hotcell_cells::{Cell, Cells, CellsOptions, Terms, ToolCall};
use serde_json::{Value, json};
use wasm_encoder::{ComponentSection as _, CustomSection};

use super::Failure;
use super::extism::Extism;
use super::scripts::{PYTHON, TEXT, host, node_time, real_python, subprocess};
use crate::measure::{Row, Samples};
use crate::table;

pub(super) const TOOL: &[u8] = include_bytes!(env!("HOTCELL_BENCH_TOOL"));
/// The plugin and its tool.
pub(super) const PLUGIN: &str = "bench";
const NAME: &str = "measure";
/// Calls of each way in one round, and nodes of the graph.
const CALLS: usize = 50;

/// What a plugin of this name says about itself that has the tool.
pub(super) fn tool_description(plugin: &str) -> Value {
    json!({
        "contract": "0.2.0", "name": plugin, "version": "1.0.0", "description": "One of many",
        "tools": [{ "name": NAME, "description": "The upper-case form of a text", "parameters": {
            "type": "object", "properties": { "text": { "type": "string" } },
        } }],
    })
}

/// A component with this description in it.
pub(super) fn described(component: &[u8], description: &Value) -> Vec<u8> {
    let mut bytes = component.to_vec();
    CustomSection { name: "hotcell:description".into(), data: description.to_string().into_bytes().into() }
        .append_to_component(&mut bytes);
    bytes
}

/// A graph that calls the tools of these plugins, one after the other.
pub(super) fn write_graph(folder: &Path, plugins: impl IntoIterator<Item = String>) -> Result<(), Failure> {
    let mut text = format!("name: bench\ninitial_state: {{ text: {TEXT} }}\nstart: n0\nnodes:\n");
    let mut plugins = plugins.into_iter().enumerate().peekable();
    while let Some((number, plugin)) = plugins.next() {
        let next = plugins.peek().map_or("done".to_owned(), |(next, _)| format!("n{next}"));
        text.push_str(&format!(
            "  n{number}: {{ type: {plugin}/{NAME}, inputs: {{ text: \"{{{{text}}}}\" }}, state_updates: {{ upper: \
             \"{{{{output.upper}}}}\" }}, next: {next} }}\n"
        ));
    }
    text.push_str("  done: { type: end, output: \"{{upper}}\" }\n");
    Ok(fs::write(folder.join("graph.yaml"), text)?)
}

pub(crate) async fn call(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    let component = described(TOOL, &tool_description(PLUGIN));
    fs::create_dir(folder.path().join("plugins"))?;
    fs::write(folder.path().join("plugins/bench.wasm"), &component)?;
    write_graph(folder.path(), (0..CALLS).map(|_| PLUGIN.to_owned()))?;
    let python = folder.path().join("tool.py");
    fs::write(&python, PYTHON)?;
    let arguments = json!({ "text": TEXT }).to_string();

    let cells = Cells::new(CellsOptions::default())?;
    let cell = cells.load(PLUGIN, &component)?;
    let host = host()?;
    let interpreter = real_python().await?;
    let mut extism =
        Extism::start().inspect_err(|reason| table::problem(&format!("Extism is left out: {reason}"))).ok();
    node_time(&host, folder.path()).await?;

    let mut cell_calls = Samples::new("hotcell, a fresh instance with every limit");
    let mut nodes = Samples::new("the same as a node of a graph");
    let mut ways = [
        ("fresh", Samples::new("Extism 1.41, a fresh instance without limits")),
        ("limited", Samples::new("Extism 1.41, a fresh instance with fuel, time and memory limited")),
        ("reused", Samples::new("Extism 1.41, one instance for all calls")),
    ];
    let mut process = Samples::new("python3 subprocess");
    for _ in 0..rounds {
        for _ in 0..CALLS {
            cell_calls.add(cell_call(&cells, &cell, &arguments).await?);
        }
        for (way, samples) in &mut ways {
            let Some(extism) = &mut extism else { break };
            for _ in 0..CALLS {
                let (time, answer) = extism.call(way, &arguments)?;
                check(&answer)?;
                samples.add(time);
            }
        }
        for time in node_time(&host, folder.path()).await? {
            nodes.add(time);
        }
        process.add(subprocess(&interpreter, &python, &arguments).await?);
    }
    let mut rows = Vec::new();
    if extism.is_some() {
        rows.push(Row::time(&cell_calls).faster_than(&cell_calls, &ways[0].1, 1.0));
        rows.push(Row::time(&nodes).faster_than(&nodes, &ways[0].1, 1.0));
        rows.extend(ways.iter().map(|(_, samples)| Row::time(samples)));
    } else {
        rows.push(Row::time(&cell_calls));
        rows.push(Row::time(&nodes));
    }
    rows.push(Row::time(&process).beside(&process, &cell_calls));
    Ok(rows)
}

/// From nothing but the bytes to the first answer, in a process that has an engine.
pub(crate) async fn first_answer(rounds: usize) -> Result<Vec<Row>, Failure> {
    let cache = tempfile::tempdir()?;
    let component = described(TOOL, &tool_description(PLUGIN));
    let arguments = json!({ "text": TEXT }).to_string();
    let mut engine = Samples::new("setting up the engine, once in a process");
    let mut cold = Samples::new("never compiled before");
    let mut warm = Samples::new("compiled in the cache");
    for round in 0..rounds {
        for (samples, folder) in [(&mut cold, format!("cold-{round}")), (&mut warm, "cold-0".to_owned())] {
            let options = CellsOptions { cache_dir: Some(cache.path().join(folder)), ..CellsOptions::default() };
            let begun = Instant::now();
            let cells = Cells::new(options)?;
            engine.add(begun.elapsed());
            let begun = Instant::now();
            let cell = cells.load(PLUGIN, &component)?;
            cell_call(&cells, &cell, &arguments).await?;
            samples.add(begun.elapsed());
        }
    }
    Ok(vec![Row::time(&warm).at_most(&warm, Duration::from_millis(5)), Row::time(&cold), Row::time(&engine)])
}

async fn cell_call(cells: &Cells, cell: &Cell, arguments: &str) -> Result<Duration, Failure> {
    let (elapsed, answer) = timed_call(cells, cell, arguments).await?;
    check(&answer)?;
    Ok(elapsed)
}

/// Calls the tool of a plugin that has it, and gives how long that took and what it answered.
pub(super) async fn timed_call(cells: &Cells, cell: &Cell, arguments: &str) -> Result<(Duration, String), Failure> {
    let begun = Instant::now();
    let terms = Terms::new(cell.name());
    let call = ToolCall { tool: NAME.to_owned(), arguments: arguments.to_owned(), answers: Vec::new(), terms };
    let report = cells.call_tool(cell, call).await;
    let elapsed = begun.elapsed();
    Ok((elapsed, report.result?))
}

pub(super) fn check(answer: &str) -> Result<(), Failure> {
    let parsed: Value = serde_json::from_str(answer)?;
    if parsed["upper"] == TEXT.to_uppercase() { Ok(()) } else { Err(format!("the tool answered {answer}").into()) }
}
