//! Many sessions of a mesh at once: ten agents, eight of which one waits for. What one costs that is worked on, and what it takes
//! while it waits for a person, in the journal and in a process that holds it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use hotcell_engine::People;
use hotcell_runtime::{
    Agent, CancellationToken, Host, HostOptions, JournalChoice, Nobody, Outcome, Question, RunInput, Session,
};
use serde_json::json;

use super::Failure;
use super::mesh::write_plugins;
use super::scripts::{bytes, host, session};
use super::waiting::{alone, resident};
use crate::measure::{Row, Samples};

/// Says that memory is measured of sessions that are held by a process.
pub(crate) const HELD: &str = "mesh";
const SESSIONS: u32 = 1_000;
/// Agents beside the first and the one that waits.
const WORKERS: u32 = 8;
const MOST_BYTES: u64 = 20_000;

/// The mesh: one agent calls the others side by side, and one waits for all of them. With a person, one of them is asked.
fn written(folder: &Path, with_person: bool) -> Result<(), Failure> {
    write_plugins(folder, WORKERS + 2)?;
    let of = |number: u32| format!("{{agent_type: programmatic, communication_type: chain, can_call: [a{number}]}}");
    let names: Vec<String> = (1..=WORKERS).map(|number| format!("a{number}")).collect();
    let last = WORKERS + 1;
    let mut text = format!(
        "name: bench\nmanager: {{enabled: false}}\nagents:\n  a0: {{agent_type: programmatic, communication_type: chain, can_call: [{}]}}\n",
        names.join(", ")
    );
    for name in &names[1..] {
        text.push_str(&format!("  {name}: {}\n", of(last)));
    }
    text.push_str(&match with_person {
        true => format!("  a1: {{agent_type: human, human_interface: default, communication_type: chain, human_timeout_seconds: 2592000, can_call: [a{last}]}}\n"),
        false => format!("  a1: {}\n", of(last)),
    });
    text.push_str(&format!(
        "  a{last}: {{agent_type: programmatic, communication_type: chain, wait_for: \"{}\", wait_for_timeout: 2592000}}\nentry_points:\n  - {{name: count, target: a0}}\n",
        names.join(" AND ")
    ));
    Ok(fs::write(folder.join("mesh.yaml"), text)?)
}

fn given(number: u32) -> RunInput {
    let data = hotcell_graph::Value::from(&json!({ "n": number }));
    let session = format!("s{number}");
    let state = [("entry_point", "count".into()), ("data", data), ("session_id", session.as_str().into())];
    RunInput { state: state.into_iter().map(|(name, value)| (name.into(), value)).collect(), ..RunInput::default() }
}

pub(crate) async fn sessions(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    written(folder.path(), false)?;
    let memory = host()?;
    let journal = JournalChoice::File(folder.path().join("runs.db"));
    let journaled = memory.beside(HostOptions { journal, ..HostOptions::isolated() })?;
    let mut samples = [
        Samples::new(format!("{SESSIONS} sessions at once, in memory, each")),
        Samples::new(format!("{SESSIONS} sessions at once, journaled, each")),
    ];
    for round in 0..rounds.min(5) + 1 {
        for (host, samples) in [&memory, &journaled].into_iter().zip(&mut samples) {
            let took = at_once(host, folder.path()).await?;
            // The first round warms everything.
            if round > 0 {
                samples.add(took / SESSIONS);
            }
        }
    }
    let mut rows: Vec<Row> = samples.iter().map(Row::time).collect();
    rows.push(bytes("each of 1,000 sessions that wait in one process", alone(HELD)?, MOST_BYTES));
    Ok(rows)
}

/// How long so many sessions take that all begin at once.
async fn at_once(host: &Host, folder: &Path) -> Result<Duration, Failure> {
    let agent = Arc::new(host.load(folder.join("mesh.yaml").as_path())?);
    let begun = Instant::now();
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..SESSIONS {
        let (host, agent) = (host.clone(), agent.clone());
        runs.spawn(async move { host.run(&agent, given(number), session()).await });
    }
    while let Some(run) = runs.join_next().await {
        match run??.outcome {
            Outcome::Completed { .. } => {}
            other => return Err(format!("a session came to {other:?}").into()),
        }
    }
    Ok(begun.elapsed())
}

/// Somebody who is there and never answers, and how often he was asked.
#[derive(Default)]
struct Thoughtful(AtomicU64);

#[async_trait]
impl People for Thoughtful {
    async fn ask(&self, _: &Question) -> Option<String> {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::future::pending().await
    }
}

/// Bytes of this process for each session that it holds while a person thinks and an agent waits for the others.
pub(crate) async fn held() -> Result<u64, Failure> {
    let folder = tempfile::tempdir()?;
    written(folder.path(), true)?;
    let journal = JournalChoice::File(folder.path().join("runs.db"));
    let host = Host::new(HostOptions { journal, ..HostOptions::isolated() })?;
    let agent = Arc::new(host.load(folder.path().join("mesh.yaml").as_path())?);
    // The first ones pay for what all share.
    let first = hold(&host, &agent, 100).await?;
    let before = resident()?;
    let held = hold(&host, &agent, SESSIONS).await?;
    let after = resident()?;
    first.cancel();
    held.cancel();
    Ok(after.saturating_sub(before) / u64::from(SESSIONS))
}

/// Begins so many sessions, and returns when all of them wait.
async fn hold(host: &Host, agent: &Arc<Agent>, count: u32) -> Result<CancellationToken, Failure> {
    let (people, cancel) = (Arc::new(Thoughtful::default()), CancellationToken::new());
    for number in 0..count {
        let session = Session { people: people.clone(), observer: Arc::new(Nobody), cancel: cancel.clone() };
        let (host, agent) = (host.clone(), agent.clone());
        tokio::spawn(async move { drop(host.run(&agent, given(number), session).await) });
    }
    let begun = Instant::now();
    while people.0.load(Ordering::Relaxed) < u64::from(count) {
        if begun.elapsed() > Duration::from_secs(120) {
            return Err("the sessions do not come to where they wait".into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The agents beside the person come to their ends.
    tokio::time::sleep(Duration::from_secs(3)).await;
    Ok(cancel)
}
