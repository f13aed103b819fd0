//! What the journal costs: commits of one run and of many at once, pages of a long list, going on with a long run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hotcell_engine::Engine;
use hotcell_graph::Object;
use hotcell_journal::{Entry, Fact, RunHeader, RunQuery, RunStatus, RunStore, SqliteStore};
use tokio_util::sync::CancellationToken;

use super::Failure;
use super::engine::{graph, ports, run};
use crate::measure::{Row, Samples};

const NODES: u32 = 200;
const TOGETHER: u32 = 16;
/// How many runs the list has. `HOTCELL_BENCH_RUNS` sets another number; a million takes minutes to make.
const LISTED: u64 = 100_000;
/// How long the runs are that are gone on with.
const LENGTHS: [u32; 2] = [10_000, 100_000];

/// Nodes of one run, and of sixteen at once, into one file.
pub(crate) async fn commits(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    let mut rows = measure_commits(SqliteStore::open(&folder.path().join("runs.db"))?, "", NODES, rounds).await?;
    let safe = SqliteStore::open_safe_from_power_loss(&folder.path().join("safe.db"))?;
    rows.extend(measure_commits(safe, ", safe from a loss of power", NODES / 4, rounds.min(5)).await?);
    Ok(rows)
}

async fn measure_commits(store: SqliteStore, how: &str, nodes: u32, rounds: usize) -> Result<Vec<Row>, Failure> {
    let engine = Engine::new(ports(), Arc::new(store));
    let graph = Arc::new(graph(nodes));
    let mut alone = Samples::new(format!("one run, each node committed{how}"));
    let mut together = Samples::new(format!("sixteen runs at once{how}"));
    for _ in 0..rounds {
        let begun = Instant::now();
        run(&engine, &graph).await?;
        alone.add(begun.elapsed() / nodes);
        let begun = Instant::now();
        let mut runs = tokio::task::JoinSet::new();
        for _ in 0..TOGETHER {
            let (engine, graph) = (engine.clone(), graph.clone());
            runs.spawn(async move { run(&engine, &graph).await });
        }
        while let Some(done) = runs.join_next().await {
            done??;
        }
        together.add(begun.elapsed() / (nodes * TOGETHER));
    }
    let one = Row::time(&alone);
    let one = if how.is_empty() { one.at_most(&alone, Duration::from_micros(15)) } else { one };
    Ok(vec![one, Row::time(&together).faster_than(&together, &alone, 3.0)])
}

/// The first page of a long list, as it is and filtered.
pub(crate) async fn list(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    let count = match std::env::var("HOTCELL_BENCH_RUNS") {
        Ok(count) => count.parse()?,
        Err(_) => LISTED,
    };
    let store = Arc::new(SqliteStore::open(&folder.path().join("runs.db"))?);
    fill(&store, count).await?;
    let page = RunQuery { limit: 50, ..RunQuery::default() };
    let day = Duration::from_secs(86_400);
    let rare = || RunQuery { graph: Some("graph 7".into()), ..page.clone() };
    let queries = [
        ("the first page", page.clone()),
        ("failed runs", RunQuery { statuses: vec![RunStatus::Failed], ..page.clone() }),
        (
            "running and interrupted runs",
            RunQuery { statuses: vec![RunStatus::Running, RunStatus::Interrupted], ..page.clone() },
        ),
        ("runs of one agent", rare()),
        ("failed runs of one agent", RunQuery { statuses: vec![RunStatus::Failed], ..rare() }),
        ("runs by a rare word", RunQuery { text: Some("needle".into()), ..page.clone() }),
        ("runs by a frequent word", RunQuery { text: Some("order".into()), ..page.clone() }),
        ("runs older than a day", RunQuery { before: std::time::SystemTime::now().checked_sub(day), ..page.clone() }),
    ];
    let mut rows = Vec::new();
    for (label, query) in queries {
        let mut samples = Samples::new(format!("{label}, of {count}"));
        for _ in 0..rounds {
            let begun = Instant::now();
            store.list(&query).await?;
            samples.add(begun.elapsed());
        }
        rows.push(Row::time(&samples).at_most(&samples, Duration::from_millis(50)));
    }
    Ok(rows)
}

/// Runs that have ended, of a hundred agents.
async fn fill(store: &Arc<SqliteStore>, count: u64) -> Result<(), Failure> {
    let mut parts = tokio::task::JoinSet::new();
    for part in 0..u64::from(TOGETHER) {
        let store = store.clone();
        parts.spawn(async move {
            for number in (part..count).step_by(TOGETHER as usize) {
                let word = if number == count / 2 { "needle" } else { "tea" };
                let input = format!("order {number} of {word}");
                let given: Object = [("input".into(), input.as_str().into())].into_iter().collect();
                let graph = format!("graph {}", number % 100);
                let header = RunHeader { graph, source: "bench".into(), digest: String::new(), kept: false, given };
                let result = if number % 1_000 == 0 { Err("it failed".to_owned()) } else { Ok("done".to_owned()) };
                let writer = store.create(&header, None).await?;
                writer.append(vec![Entry::of_run(Fact::Ended { result, node: None })]).await?;
            }
            Ok::<(), Failure>(())
        });
    }
    while let Some(part) = parts.join_next().await {
        part??;
    }
    Ok(())
}

/// Going on with a run that died at its last node.
pub(crate) async fn resume(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    let mut rows = Vec::new();
    for length in LENGTHS {
        let mut samples = Samples::new(format!("a run of {length} nodes, per node"));
        let graph = Arc::new(graph(length));
        for _ in 0..rounds.min(5) {
            let store = Arc::new(SqliteStore::open(&folder.path().join("runs.db"))?);
            let whole = Engine::new(ports(), store.clone());
            run(&whole, &graph).await?;
            let page = store.list(&RunQuery { limit: 1, ..RunQuery::default() }).await?;
            let done = page.runs.first().ok_or("there is no run")?;
            let mut entries = store.history(&done.id).await?.whole()?;
            entries.truncate(entries.len().saturating_sub(2));
            let header = store.find(done.id.as_str()).await?.header;
            let writer = store.create(&header, None).await?;
            let died = writer.run().clone();
            writer.append(entries.split_off(1)).await?;
            drop(writer);
            let begun = Instant::now();
            whole.resume(&died, graph.clone(), CancellationToken::new()).await?;
            samples.add(begun.elapsed() / length);
        }
        rows.push(Row::time(&samples).at_most(&samples, Duration::from_micros(10)));
    }
    Ok(rows)
}
