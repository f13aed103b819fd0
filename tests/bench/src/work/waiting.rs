//! Runs that wait cost what the journal keeps of them, and nothing that is running.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;

use hotcell_runtime::{Host, HostOptions, JournalChoice, Outcome, RunInput};

use super::Failure;
use super::scripts::{bytes, session};
use crate::measure::Row;

const RUNS: u64 = 10_000;
/// Set in a process that measures one kind of journal and nothing else.
pub(crate) const ALONE: &str = "HOTCELL_BENCH_ALONE";
const IN_MEMORY: &str = "memory";
const IN_A_FILE: &str = "file";
const GRAPH: &str = "name: wait\nversion: \"1.0\"\nstart: ask\nnodes:\n\
    \x20 ask: { type: approval, question: \"Go on with {{initial_prompt}}?\", options: [\"yes\"], \
    routes: { \"yes\": done }, on_other: done }\n\
    \x20 done: { type: end, output: done }\n";

pub(crate) async fn memory(_rounds: usize) -> Result<Vec<Row>, Failure> {
    Ok(vec![
        bytes("each of 10,000 waiting runs (journal in a file, not loaded)", alone(IN_A_FILE)?, 2_000),
        bytes("each of 10,000 waiting runs (in-memory journal)", alone(IN_MEMORY)?, 20_000),
    ])
}

/// Measures in a process of its own: what other benchmarks have freed would be used again here, and nothing be seen to grow.
pub(super) fn alone(journal: &str) -> Result<u64, Failure> {
    let output = Command::new(std::env::current_exe()?).env(ALONE, journal).stderr(Stdio::inherit()).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// Bytes of this process for each run that waits.
pub(crate) async fn each(journal: &str) -> Result<u64, Failure> {
    if journal == super::sessions::HELD {
        return super::sessions::held().await;
    }
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("graph.yaml"), GRAPH)?;
    let journal = match journal {
        IN_MEMORY => JournalChoice::Memory,
        _ => JournalChoice::File(folder.path().join("runs.db")),
    };
    let host = Host::new(HostOptions { journal, ..HostOptions::isolated() })?;
    let agent = Arc::new(host.load(folder.path())?);
    // The first runs pay for what all share.
    wait(&host, &agent, 500).await?;
    let before = resident()?;
    wait(&host, &agent, RUNS).await?;
    Ok(resident()?.saturating_sub(before) / RUNS)
}

async fn wait(host: &hotcell_runtime::Host, agent: &Arc<hotcell_runtime::Agent>, count: u64) -> Result<(), Failure> {
    // A few at a time: what runs at once is not what waits.
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..count {
        if runs.len() >= 16 {
            ended(runs.join_next().await)?;
        }
        let (host, agent) = (host.clone(), agent.clone());
        runs.spawn(async move {
            let given = RunInput { input: Some(format!("order {number}")), ..RunInput::default() };
            host.run(&agent, given, session()).await
        });
    }
    while let Some(run) = runs.join_next().await {
        ended(Some(run))?;
    }
    Ok(())
}

type Ended = Result<Result<hotcell_runtime::RunReport, hotcell_runtime::HostError>, tokio::task::JoinError>;

fn ended(run: Option<Ended>) -> Result<(), Failure> {
    match run.transpose()?.transpose()?.map(|report| report.outcome) {
        None | Some(Outcome::Waiting { .. }) => Ok(()),
        Some(other) => Err(format!("a run does not wait: {other:?}").into()),
    }
}

/// Resident memory of this process in bytes.
pub(super) fn resident() -> Result<u64, Failure> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split_whitespace().nth(1).ok_or("`/proc/self/statm` has no second number")?.parse()?;
    Ok(pages * 4096)
}
