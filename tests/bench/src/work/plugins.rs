//! Plugins: finding many in a folder, what that keeps in memory, and neighbours of a hostile one.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotcell_runtime::plugins::{AgentFolder, Catalogue, Grants, Plugin, Trust};
use hotcell_runtime::{Agent, Host, Outcome};
use serde_json::json;

use super::Failure;
use super::scripts::{TEXT, host, session};
use super::tools::{TOOL, described, tool_description};
use super::waiting::resident;
use crate::measure::{Row, Samples, Value};

const PROBE: &[u8] = include_bytes!(env!("HOTCELL_PROBE"));
/// Plugins in the folder.
const PLUGINS: usize = 1_000;
/// Runs that work at the same time.
const RUNS: usize = 16;
/// Plugins that they call.
const CALLED: usize = 100;
/// Calls of each run: 10,000 of all together.
const CALLS: usize = 625;
/// Two nodes that fail: one loops until its fuel is used up, the other one writes log lines until then.
const HOSTILE: &str = "name: hostile\nstart: a\nnodes:\n\
    \x20 a: { type: hostile/do, inputs: { do: loop }, next: b, fallback: b }\n\
    \x20 b: { type: hostile/do, inputs: { do: flood }, next: c, fallback: c }\n\
    \x20 c: { type: end, output: over }\n";

/// Listing a folder of plugins, none of which is run.
pub(crate) async fn listing(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    for number in 0..PLUGINS {
        fs::write(folder.path().join(format!("p{number}.wasm")), plugin(number))?;
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
    // First, because what an earlier list left free would be used again.
    let before = resident()?;
    let catalogue = Catalogue::of_folders(&folders, Some(&index));
    let kept = resident()?.saturating_sub(before) / PLUGINS as u64;
    drop(catalogue);
    let mut cold = Samples::new(format!("{PLUGINS} plugins, never seen"));
    let mut warm = Samples::new(format!("{PLUGINS} plugins, seen before"));
    for _ in 0..rounds {
        let _ = fs::remove_file(&index);
        cold.add(list(Some(&index))?);
        warm.add(list(Some(&index))?);
    }
    Ok(vec![
        Row::time(&cold).at_most(&cold, Duration::from_secs(1)),
        Row::time(&warm).at_most(&warm, Duration::from_millis(100)),
        Row { label: "memory for each of them".to_owned(), value: Value::Bytes(kept), ratio: None, target: None },
    ])
}

/// A component that describes itself as the plugin of this number. All differ, so none is known by its digest.
fn plugin(number: usize) -> Vec<u8> {
    let mut description = tool_description(&format!("plugin-{number}"));
    description["capabilities"] = json!({ "http": [format!("https://api-{number}.example.org")] });
    described(TOOL, &description)
}

/// Runs side by side, with and without one more that loops and floods in every node.
pub(crate) async fn neighbours(rounds: usize) -> Result<Vec<Row>, Failure> {
    let (good, bad) = (tempfile::tempdir()?, tempfile::tempdir()?);
    write_calls(good.path())?;
    write_hostile(bad.path())?;
    let host = host()?;
    let (agent, hostile) = (Arc::new(host.load(good.path())?), Arc::new(host.load(bad.path())?));
    // What is called for the first time is compiled.
    let mut alone = Times::new("alone");
    calls(&host, &agent, &mut alone).await?;
    let (mut alone, mut beside) = (Times::new("alone"), Times::new("beside one that loops and floods"));
    for _ in 0..rounds.min(10) {
        calls(&host, &agent, &mut alone).await?;
        let neighbour = {
            let (host, hostile) = (host.clone(), hostile.clone());
            tokio::spawn(async move {
                // One run after the other, for as long as the others work.
                while host.run(&hostile, Default::default(), session()).await.is_ok() {}
            })
        };
        calls(&host, &agent, &mut beside).await?;
        if neighbour.is_finished() {
            return Err("the hostile run could not be run".into());
        }
        neighbour.abort();
    }
    let row = |label: &str, with: &Samples, without: &Samples, time: fn(&Samples) -> Duration| {
        let ratio = time(with).as_secs_f64() / time(without).as_secs_f64().max(1e-9);
        let mut row = Row::time(with);
        row.label = format!("{}, {label}", with.label);
        row.ratio = Some(("times the time it takes alone".to_owned(), ratio));
        row.target = Some(("<= 1.3 times".to_owned(), ratio <= 1.3));
        row
    };
    Ok(vec![
        Row::time(&alone.calls),
        row("p50", &beside.calls, &alone.calls, Samples::median),
        row("p99", &beside.calls, &alone.calls, Samples::p99),
        Row::time(&alone.runs),
        row("p50", &beside.runs, &alone.runs, Samples::median),
    ])
}

/// Times of calls, and of the runs that make them.
struct Times {
    calls: Samples,
    runs: Samples,
}

impl Times {
    fn new(surroundings: &str) -> Self {
        Times {
            calls: Samples::new(format!("a call, {surroundings}")),
            runs: Samples::new(format!("a run of {CALLS} calls, {surroundings}")),
        }
    }
}

/// All runs to their ends.
async fn calls(host: &Host, agent: &Arc<Agent>, times: &mut Times) -> Result<(), Failure> {
    let runs: Vec<_> = (0..RUNS)
        .map(|_| {
            let (host, agent) = (host.clone(), agent.clone());
            tokio::spawn(async move {
                let begun = Instant::now();
                (host.run(&agent, Default::default(), session()).await, begun.elapsed())
            })
        })
        .collect();
    for run in runs {
        let (report, elapsed) = run.await?;
        let report = report?;
        times.runs.add(elapsed);
        match &report.outcome {
            Outcome::Completed { output } if *output == TEXT.to_uppercase() => {}
            other => return Err(format!("a run did not complete: {other:?}").into()),
        }
        let nodes = report.timings.slowest_first();
        nodes.into_iter().filter(|timing| &*timing.node != "done").for_each(|timing| times.calls.add(timing.total));
    }
    Ok(())
}

/// A folder with the plugins and a graph that calls them in turn.
fn write_calls(folder: &Path) -> Result<(), Failure> {
    fs::create_dir(folder.join("plugins"))?;
    for number in 0..CALLED {
        let description = tool_description(&format!("plugin-{number}"));
        fs::write(folder.join(format!("plugins/p{number}.wasm")), described(TOOL, &description))?;
    }
    super::tools::write_graph(folder, (0..CALLS).map(|number| format!("plugin-{}", number % CALLED)))
}

fn write_hostile(folder: &Path) -> Result<(), Failure> {
    fs::create_dir(folder.join("plugins"))?;
    let mut description = tool_description("hostile");
    description["tools"][0]["name"] = "do".into();
    description["tools"][0]["parameters"] = json!({ "type": "object" });
    // What it exports beside its tools has to be described.
    description["hooks"] = json!([{ "point": "before-skill-load" }]);
    description["nodes"] = json!([{ "type": "work" }]);
    description["connector"] = json!({ "modes": ["sync"] });
    let file = folder.join("plugins/hostile.wasm");
    fs::write(&file, described(PROBE, &description))?;
    // A hook that came with a folder waits for a grant.
    let mut settings = AgentFolder::open(folder, &Trust::Everything)?;
    settings.grant(&Plugin::read(&file)?, &Grants::default(), &Trust::Everything)?;
    Ok(fs::write(folder.join("graph.yaml"), HOSTILE)?)
}
