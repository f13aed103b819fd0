//! Which of the agents that an agent always calls are worth calling, as earlier runs say: what [`LEFT_OUT`] has.
//!
//! What is remembered of a run is whether the agents that were called did their work. One is left out where another is worth it with the
//! wanted confidence, and it itself was tried and is not.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use hotcell_graph::Value as GraphValue;
use hotcell_runtime::leafmesh::state::{OUTPUTS, left_out};
use hotcell_runtime::leafmesh::{AgentSettings, LearningSettings};
use hotcell_runtime::{Fact, RunId};
use serde::{Deserialize, Serialize};

use super::meshes::Mesh;
use crate::problem::Problem;
use crate::state::Server;
use crate::store::{Store, StoreError};

/// The fact with what is remembered of an agent.
const LEARNT: &str = "learnt";
/// How often an agent has to be tried before it is left out.
const TRIED: usize = 3;
/// Bytes that the values of flags may have: what an agent gave is not always what it declares.
const MOST_FLAGS: usize = 1000;

/// A call that is remembered.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Call {
    target: String,
    /// The values of the flags of the agent that called it
    flags: String,
    is_good: bool,
    /// In seconds since 1970
    at: u64,
    /// Of which run
    #[serde(default)]
    run: String,
}

fn fact(mesh: &Mesh, agent: &str) -> String {
    mesh.own(&format!("{LEARNT}:{agent}"))
}

fn calls(server: &Server, mesh: &Mesh, agent: &str) -> Result<Vec<Call>, StoreError> {
    Ok(calls_in(server.store().mesh_fact(&fact(mesh, agent))?))
}

fn calls_in(kept: Option<String>) -> Vec<Call> {
    kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Remembers the calls that an agent made in a run, as its last ones, under a name. Many runs may end at once.
fn keep(store: &Store, fact: &str, run: &str, found: Vec<Call>, most: usize) -> Result<(), StoreError> {
    store.revise(fact, |kept| {
        let mut calls = calls_in(kept);
        // A server before this one may have ended before it noted that the run is done.
        calls.retain(|call| call.run != run);
        calls.extend(found);
        let last = calls.split_off(calls.len().saturating_sub(most));
        serde_json::to_string(&last).ok()
    })
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// What is left out of a run that begins; nothing where nothing is learnt.
pub(super) fn told(server: &Server, mesh: &Mesh) -> Result<Vec<String>, StoreError> {
    let Some(learning) = mesh.settings.manager.as_ref().and_then(|manager| manager.learning) else {
        return Ok(Vec::new());
    };
    let now = seconds(server.clock().now());
    let mut left = Vec::new();
    for agent in mesh.settings.agents.iter().filter(|agent| !agent.learnable.is_empty()) {
        left.extend(worthless(agent, &calls(server, mesh, &agent.name)?, &learning, now));
    }
    Ok(left)
}

/// What an agent does not call any more.
fn worthless(agent: &AgentSettings, calls: &[Call], learning: &LearningSettings, now: u64) -> Vec<String> {
    let decay = Duration::from_secs(u64::from(learning.decay_days) * 24 * 60 * 60).as_secs_f64();
    let mut by_flags: BTreeMap<&str, BTreeMap<&str, (f64, f64, usize)>> = BTreeMap::new();
    for call in calls.iter().filter(|call| agent.learnable.contains(&call.target)) {
        let weight = (-(now.saturating_sub(call.at) as f64) / decay).exp();
        let of = by_flags.entry(&call.flags).or_default().entry(&call.target).or_default();
        of.0 += if call.is_good { weight } else { 0.0 };
        of.1 += weight;
        of.2 += 1;
    }
    // Nobody is certain after one call.
    let confidence = |(good, all, _): &(f64, f64, usize)| (good + 1.0) / (all + 2.0);
    let mut left = Vec::new();
    for (flags, targets) in &by_flags {
        if !targets.values().any(|of| confidence(of) >= learning.confidence) {
            continue;
        }
        let is_worthless = |of: &(f64, f64, usize)| of.2 >= TRIED && confidence(of) < learning.confidence.min(0.5);
        let worthless = targets.iter().filter(|(_, of)| is_worthless(of));
        left.extend(worthless.map(|(target, _)| format!("{}{flags}", left_out(&agent.name, target))));
    }
    left
}

/// Remembers what came of the calls of a run that has ended.
pub(super) async fn note(server: &Server, mesh: &Mesh, run: &RunId) -> Result<(), Problem> {
    let Some(learning) = mesh.settings.manager.as_ref().and_then(|manager| manager.learning) else { return Ok(()) };
    let entries = server.runs().store().history(run).await?.whole()?;
    let own = entries.iter().filter(|entry| entry.place.around().is_none());
    let completed: Vec<_> = own
        .filter_map(|entry| if let Fact::Completed(completed) = &entry.fact { Some(completed) } else { None })
        .collect();
    let at = seconds(server.clock().now());
    for agent in mesh.settings.agents.iter().filter(|agent| !agent.learnable.is_empty()) {
        let mut found = Vec::new();
        for done in completed.iter().filter(|done| done.node == agent.name && done.failure.is_none()) {
            let outputs = done.writes.iter().rev().find(|write| &*write.key == OUTPUTS);
            let output =
                outputs.and_then(|write| write.value.as_object()?.get(&agent.name).cloned()).unwrap_or_default();
            let flags = flags(agent, &output);
            if flags.len() > MOST_FLAGS {
                continue;
            }
            for target in done.next.iter().flatten().filter(|target| agent.learnable.contains(target)) {
                let of_target: Vec<_> = completed.iter().filter(|other| other.node == **target).collect();
                if of_target.is_empty() {
                    continue;
                }
                let is_good = of_target.iter().all(|other| other.failure.is_none());
                found.push(Call { target: target.clone(), flags: flags.clone(), is_good, at, run: run.to_string() });
            }
        }
        if !found.is_empty() {
            keep(server.store(), &fact(mesh, &agent.name), run.as_str(), found, learning.memory_size as usize)?;
        }
    }
    Ok(())
}

/// Gives an agent that had another name what is remembered of it, and of whoever calls it.
pub(super) fn take_over(server: &Server, mesh: &Mesh, before: &str, now: &str) -> Result<(), StoreError> {
    if let Some(of_before) = server.store().mesh_fact(&fact(mesh, before))? {
        server.store().remember_first(&fact(mesh, now), &of_before)?;
    }
    for agent in mesh.settings.agents.iter().filter(|agent| !agent.learnable.is_empty()) {
        server.store().revise(&fact(mesh, &agent.name), |kept| {
            let mut calls = calls_in(kept);
            let mut is_changed = false;
            for call in calls.iter_mut().filter(|call| call.target == before) {
                now.clone_into(&mut call.target);
                is_changed = true;
            }
            is_changed.then(|| serde_json::to_string(&calls).ok()).flatten()
        })?;
    }
    Ok(())
}

/// The values of an agent's flags in what it gave.
fn flags(agent: &AgentSettings, output: &GraphValue) -> String {
    let value = |flag: &String| {
        let value = output.as_object().and_then(|output| output.get(flag.as_str()).cloned());
        format!(";{}", value.map(|value| value.to_display().into_owned()).unwrap_or_default())
    };
    agent.flags.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(run: &str) -> Call {
        Call { target: "desk".into(), flags: String::new(), is_good: true, at: 0, run: run.into() }
    }

    fn runs(store: &Store) -> Vec<String> {
        let mut runs: Vec<String> =
            calls_in(store.mesh_fact("router").unwrap()).into_iter().map(|call| call.run).collect();
        runs.sort();
        runs
    }

    #[test]
    fn runs_that_end_at_once_lose_nothing_of_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.db");
        let names: Vec<String> =
            (0..8).flat_map(|thread| (0..20).map(move |run| format!("{thread}-{run:02}"))).collect();
        std::thread::scope(|scope| {
            for names in names.chunks(20) {
                // As from two processes: each has a connection of its own.
                let store = Store::open(Some(&path)).unwrap();
                scope.spawn(move || {
                    for name in names {
                        keep(&store, "router", name, vec![call(name)], 1000).unwrap();
                    }
                });
            }
        });
        assert_eq!(runs(&Store::open(Some(&path)).unwrap()), names);
    }

    #[test]
    fn a_run_is_remembered_once_and_only_the_last_ones_are() {
        let store = Store::open(None).unwrap();
        for name in ["a", "b", "b", "c"] {
            keep(&store, "router", name, vec![call(name)], 2).unwrap();
        }
        assert_eq!(runs(&store), ["b", "c"]);
    }
}
