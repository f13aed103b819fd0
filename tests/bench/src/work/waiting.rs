//! Runs that wait cost what the journal keeps of them, and nothing that is running.

use std::fs;
use std::sync::Arc;

use hotcell_runtime::{Outcome, RunInput};

use super::Failure;
use super::scripts::{bytes, host, session};
use crate::measure::Row;

const RUNS: u64 = 1_000;
const GRAPH: &str = "name: wait\nversion: \"1.0\"\nstart: ask\nnodes:\n\
    \x20 ask: { type: approval, question: \"Go on with {{initial_prompt}}?\", options: [\"yes\"], \
    routes: { \"yes\": done }, on_other: done }\n\
    \x20 done: { type: end, output: done }\n";

pub(crate) async fn memory(_rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("graph.yaml"), GRAPH)?;
    let host = host()?;
    let agent = Arc::new(host.load(folder.path())?);
    // The first runs pay for what all share.
    wait(&host, &agent, 50).await?;
    let before = resident()?;
    wait(&host, &agent, RUNS).await?;
    let after = resident()?;
    Ok(vec![bytes("each of 1,000 waiting runs (in-memory journal)", after.saturating_sub(before) / RUNS, 20_000)])
}

async fn wait(host: &hotcell_runtime::Host, agent: &Arc<hotcell_runtime::Agent>, count: u64) -> Result<(), Failure> {
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..count {
        let (host, agent) = (host.clone(), agent.clone());
        runs.spawn(async move {
            let given = RunInput { input: Some(format!("order {number}")), ..RunInput::default() };
            host.run(&agent, given, session()).await
        });
    }
    while let Some(run) = runs.join_next().await {
        match run??.outcome {
            Outcome::Waiting { .. } => {}
            other => return Err(format!("a run does not wait: {other:?}").into()),
        }
    }
    Ok(())
}

/// Resident memory of this process in bytes.
pub(super) fn resident() -> Result<u64, Failure> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split_whitespace().nth(1).ok_or("`/proc/self/statm` has no second number")?.parse()?;
    Ok(pages * 4096)
}
