//! What the engine costs beside the work of its nodes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotcell_engine::{Engine, Outcome, Ports, RunInput, RunRequest};
use hotcell_graph::diagnostic::Span;
use hotcell_graph::ir::{Action, Expression, Graph, Join, Next, Node, NodeIds, Update};
use hotcell_graph::{Template, Value};
use hotcell_journal::{MemoryStore, RunStore, SqliteStore};
use tokio_util::sync::CancellationToken;

use super::Failure;
use super::scripts::nothing;
use crate::measure::{Row, Samples};

const LENGTHS: [u32; 3] = [1, 100, 1_000];

pub(crate) async fn chain(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    let mut rows = Vec::new();
    for (label, limit, file) in [
        ("in memory", Duration::from_micros(5), None),
        ("journaled", Duration::from_micros(60), Some(folder.path().join("runs.db"))),
    ] {
        let mut all: Vec<Samples> =
            LENGTHS.iter().map(|length| Samples::new(format!("{label}, chain of {length}, per node"))).collect();
        for _ in 0..rounds {
            for (samples, length) in all.iter_mut().zip(LENGTHS) {
                // Short chains are repeated, and what a run costs beside its nodes is taken off by an empty run.
                let repeats = 1_000 / length;
                let whole = runs(&engine(&file)?, Arc::new(graph(length)), repeats).await?;
                let empty = runs(&engine(&file)?, Arc::new(graph(0)), repeats).await?;
                samples.add(whole.saturating_sub(empty) / (length * repeats));
            }
        }
        let longest = all[LENGTHS.len() - 1].median();
        for samples in &all {
            let mut row = Row::time(samples).at_most(samples, limit);
            let ratio = samples.median().as_secs_f64() / longest.as_secs_f64().max(1e-12);
            row.ratio = Some(("times a node of the longest chain".to_owned(), ratio));
            rows.push(row);
        }
    }
    Ok(rows)
}

async fn runs(engine: &Engine, graph: Arc<Graph>, repeats: u32) -> Result<Duration, Failure> {
    let begun = Instant::now();
    for _ in 0..repeats {
        run(engine, &graph).await?;
    }
    Ok(begun.elapsed())
}

/// Runs a graph to its end.
pub(crate) async fn run(engine: &Engine, graph: &Arc<Graph>) -> Result<(), Failure> {
    let request = RunRequest {
        graph: graph.clone(),
        source: String::new(),
        digest: String::new(),
        kept: false,
        given: RunInput::default(),
        follows: None,
    };
    match engine.start(request, CancellationToken::new()).await?.outcome {
        Outcome::Completed { .. } => Ok(()),
        other => Err(format!("the chain did not complete: {other:?}").into()),
    }
}

fn engine(file: &Option<PathBuf>) -> Result<Engine, Failure> {
    let journal: Arc<dyn RunStore> = match file {
        Some(path) => Arc::new(SqliteStore::open(path)?),
        None => Arc::new(MemoryStore::default()),
    };
    Ok(Engine::new(ports(), journal))
}

pub(crate) fn ports() -> Ports {
    let nothing = nothing();
    Ports {
        scripts: nothing.clone(),
        tools: nothing.clone(),
        model: nothing,
        default_model: None,
        prices: Arc::default(),
        people: Arc::new(hotcell_engine::Nobody),
        observer: Arc::new(hotcell_engine::Nobody),
        hooks: Arc::new(hotcell_engine::Nobody),
        plugin_nodes: Arc::new(hotcell_engine::Nobody),
        knowledge: Arc::new(hotcell_engine::Nobody),
        web: Arc::new(hotcell_engine::Nobody),
        agents: Arc::new(hotcell_engine::Nobody),
        clock: Arc::new(hotcell_engine::SystemClock::default()),
        meter: Arc::new(hotcell_engine::Tally::default()),
    }
}

/// `length` nodes that each set one key, and an end.
pub(crate) fn graph(length: u32) -> Graph {
    let names: Vec<String> = (0..length).map(|number| format!("n{number}")).chain(["done".to_owned()]).collect();
    let ids = NodeIds::new(names.iter().map(String::as_str));
    let node = |id: &str, action, updates, next| Node {
        updates,
        join: Join::All,
        ..Node::new(id, "set", action, next, &Span::none())
    };
    let mut nodes = Vec::with_capacity(names.len());
    for (number, pair) in names.windows(2).enumerate() {
        let update = Update { key: "value".into(), value: Expression::Value(Value::from(number as i64)) };
        let next = Next::To(ids.get(&pair[1]).into_iter().collect());
        nodes.push(node(&pair[0], Action::Pass, vec![update], next));
    }
    let output = Expression::Lenient(Template::parse("{{value}}"));
    nodes.push(node("done", Action::End { output }, Vec::new(), Next::To(Vec::new())));
    Graph::new("chain", nodes, &names[0]).unwrap_or_else(|| unreachable!("the names differ"))
}
