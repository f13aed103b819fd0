//! Plugins: finding many in a folder, and neighbours of a hostile one.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotcell_runtime::Outcome;
use hotcell_runtime::plugins::Catalogue;
use serde_json::json;
use wasm_encoder::{ComponentSection as _, CustomSection};

use super::Failure;
use super::scripts::{host, session, write_graph};
use crate::measure::{Row, Samples};

const COMPONENT: &[u8] = include_bytes!(env!("HOTCELL_BENCH_SCRIPT"));
/// Plugins in the folder.
const PLUGINS: usize = 1_000;
/// Runs that work at the same time.
const RUNS: usize = 16;
/// Nodes of each run.
const NODES: u32 = 400;
/// A script that loops and floods.
const HOSTILE: &[u8] = b"for (;;) { try { console.error('x'.repeat(10000)); } catch {} }";

/// Listing a folder of plugins, none of which is run.
pub(crate) async fn listing(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    for number in 0..PLUGINS {
        std::fs::write(folder.path().join(format!("p{number}.wasm")), plugin(number))?;
    }
    let index = folder.path().join("index.json");
    let folders = [folder.path().to_owned()];
    let list = |index: Option<&Path>| -> Result<Duration, Failure> {
        let started = Instant::now();
        let found = Catalogue::of_folders(&folders, index).plugins().count();
        if found != PLUGINS {
            return Err(format!("{found} plugins were found instead of {PLUGINS}").into());
        }
        Ok(started.elapsed())
    };
    let mut cold = Samples::new(format!("{PLUGINS} plugins, never seen"));
    let mut warm = Samples::new(format!("{PLUGINS} plugins, seen before"));
    for _ in 0..rounds {
        let _ = std::fs::remove_file(&index);
        cold.add(list(Some(&index))?);
        warm.add(list(Some(&index))?);
    }
    Ok(vec![
        Row::time(&cold).at_most(&cold, Duration::from_secs(1)),
        Row::time(&warm).at_most(&warm, Duration::from_millis(100)),
    ])
}

/// A component that describes itself as the plugin of this number. All differ, so none is known by its digest.
fn plugin(number: usize) -> Vec<u8> {
    let description = json!({
        "contract": "0.2.0", "name": format!("plugin-{number}"), "version": "1.0.0",
        "description": "One of many", "capabilities": { "http": [format!("https://api-{number}.example.org")] },
    });
    let mut bytes = COMPONENT.to_vec();
    CustomSection { name: "hotcell:description".into(), data: description.to_string().into_bytes().into() }
        .append_to_component(&mut bytes);
    bytes
}

/// Runs side by side, with and without one more that loops and floods in every node.
pub(crate) async fn neighbours(rounds: usize) -> Result<Vec<Row>, Failure> {
    let host = host()?;
    let (good, hostile) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let state = json!({ "text": "hello" });
    write_graph(good.path(), "node.wasm", COMPONENT, NODES, &state)?;
    write_graph(hostile.path(), "node.js", HOSTILE, 1, &state)?;
    let (good, hostile) = (Arc::new(host.load(good.path())?), Arc::new(host.load(hostile.path())?));
    let mut alone = Samples::new(format!("{RUNS} runs of {NODES} sealed nodes, alone"));
    let mut beside = Samples::new("the same beside one that loops and floods");
    for _ in 0..rounds {
        for (samples, with_hostile) in [(&mut alone, false), (&mut beside, true)] {
            let neighbour = with_hostile.then(|| {
                let (host, agent) = (host.clone(), hostile.clone());
                tokio::spawn(async move { drop(host.run(&agent, Default::default(), session()).await) })
            });
            let runs: Vec<_> = (0..RUNS)
                .map(|_| {
                    let (host, agent) = (host.clone(), good.clone());
                    tokio::spawn(async move {
                        let started = Instant::now();
                        let report = host.run(&agent, Default::default(), session()).await;
                        (started.elapsed(), report)
                    })
                })
                .collect();
            for run in runs {
                let (elapsed, report) = run.await?;
                match report?.outcome {
                    Outcome::Completed { .. } => samples.add(elapsed),
                    other => return Err(format!("a run did not complete: {other:?}").into()),
                }
            }
            if let Some(neighbour) = neighbour {
                neighbour.abort();
            }
        }
    }
    let ratio = beside.median().as_secs_f64() / alone.median().as_secs_f64().max(1e-9);
    let mut row = Row::time(&beside);
    row.ratio = Some(("times the time it takes alone".to_owned(), ratio));
    row.target = Some(("<= 1.3 times".to_owned(), ratio <= 1.3));
    Ok(vec![Row::time(&alone), row])
}
