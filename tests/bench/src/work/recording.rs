//! What it costs to record what sealed calls take from the host, and how fast recorded calls are executed again.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use hotcell_runtime::plugins::RecordSettings;
use hotcell_runtime::{Host, HostOptions, JournalChoice, Outcome, RunInput};

use super::Failure;
use super::scripts::session;
use super::tools::{PLUGIN, TOOL, described, tool_description, write_graph};
use crate::measure::{Row, Samples};

/// Calls of one run.
const CALLS: usize = 1_000;

/// Runs of a thousand calls of a small Rust tool with recordings and without, in memory and with a journal in a file, and
/// replays of them.
pub(crate) async fn recording(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    let component = described(TOOL, &tool_description(PLUGIN));
    fs::create_dir(folder.path().join("plugins"))?;
    fs::write(folder.path().join("plugins/bench.wasm"), &component)?;
    write_graph(folder.path(), (0..CALLS).map(|_| PLUGIN.to_owned()))?;

    let first = Host::new(HostOptions::isolated())?;
    let host = |on: bool, file: Option<&str>| {
        let journal = file.map_or(JournalChoice::Memory, |file| JournalChoice::File(folder.path().join(file)));
        let record = RecordSettings { on: Some(on), ..RecordSettings::default() };
        first.beside(HostOptions { journal, record: Some(record), ..HostOptions::isolated() })
    };
    let ways = [
        ("a node that calls a tool, in memory", host(false, None)?),
        ("the same, recorded", host(true, None)?),
        ("a node that calls a tool, journaled", host(false, Some("off.db"))?),
        ("the same, recorded", host(true, Some("on.db"))?),
    ];
    let mut times: Vec<Samples> = ways.iter().map(|(label, _)| Samples::new(*label)).collect();
    let mut replays = Samples::new(format!("{CALLS} recorded calls replayed"));
    for round in 0..=rounds.min(20) {
        for ((_, host), samples) in ways.iter().zip(&mut times) {
            let time = run(host, folder.path()).await?;
            // The first round only warms up.
            if round > 0 {
                samples.add(time);
            }
        }
        if round > 0 {
            replays.add(replay(&ways[3].1, &component).await?);
        }
    }
    let row = |of: usize, beside: usize| {
        let ratio = times[of].median().as_secs_f64() / times[beside].median().as_secs_f64().max(1e-9);
        let mut row = Row::time(&times[of]);
        row.ratio = Some((format!("times {}", times[beside].label), ratio));
        row.target = Some(("<= 1.3 times".to_owned(), ratio <= 1.3));
        row
    };
    let all = Row::time(&replays).at_most(&replays, Duration::from_secs(5));
    Ok(vec![Row::time(&times[0]), row(1, 0), Row::time(&times[2]), row(3, 2), all])
}

/// The time of one node of a run.
async fn run(host: &Host, folder: &Path) -> Result<Duration, Failure> {
    let agent = host.load(folder)?;
    let begun = Instant::now();
    let report = host.run(&agent, RunInput::default(), session()).await?;
    match &report.outcome {
        Outcome::Completed { .. } => Ok(begun.elapsed() / CALLS as u32),
        other => Err(format!("the graph did not answer: {other:?}").into()),
    }
}

/// Replays the calls of the latest run.
async fn replay(host: &Host, component: &[u8]) -> Result<Duration, Failure> {
    let query = hotcell_runtime::RunQuery { limit: 1, ..Default::default() };
    let run = host.journal().list(&query).await?.runs.swap_remove(0).id;
    let begun = Instant::now();
    let (cell, name) = host.load_for_replay("new.wasm", component)?;
    let tally = host.replay(&cell, name.as_deref().unwrap_or(PLUGIN), &run, &mut |_| ()).await?;
    match tally.same {
        same if same == CALLS as u64 => Ok(begun.elapsed()),
        _ => Err(format!("{tally:?}").into()),
    }
}
