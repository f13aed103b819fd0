//! Death at any moment loses nothing that was committed.

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::{Duration, Instant};

use hotcell_journal::Entry;

use crate::desk::{Desk, chain, completed};

const NODES: usize = 12;

/// Waits until `ready` holds; only a hang makes this fail.
fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !ready() {
        assert!(begun.elapsed() < Duration::from_secs(120), "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn entries(desk: &Desk) -> Vec<Entry> {
    desk.runs().first().map(|run| desk.entries(&run.id)).unwrap_or_default()
}

/// Kills the process as soon as `committed` nodes are in the journal, which is while the next one runs.
fn kill_after(desk: &Desk, mut child: Child, committed: usize) {
    wait_until("a node to be committed", || match desk.runs().first() {
        Some(run) => completed(&desk.entries(&run.id)).len() >= committed,
        None => false,
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A run that was killed as soon as `committed` of its nodes were in the journal, and what was there then. On a busy machine
/// a run may be over before it can be killed; then another one is begun whose nodes take longer.
fn killed_after(committed: usize) -> (Desk, Vec<Entry>) {
    for milliseconds in [25, 100, 400, 1_600] {
        let desk = chain(NODES, milliseconds);
        kill_after(&desk, desk.spawn(&["run", "."]), committed);
        let before = entries(&desk);
        if completed(&before).len() < NODES + 1 {
            return (desk, before);
        }
    }
    panic!("every run was over before it was killed");
}

/// Everything that was committed stays as it is, no turn is there twice, and the result is made of it.
fn assert_nothing_ran_twice(desk: &Desk, before: &[Entry], output: &str) {
    let after = entries(desk);
    assert_eq!(&after[..before.len()], before);
    let turns = completed(&after);
    let places: Vec<&str> = turns.iter().map(|(place, _)| *place).collect();
    let expected: Vec<String> = (1..=NODES + 1).map(|turn| turn.to_string()).collect();
    assert_eq!(places, expected);
    let written: Vec<String> =
        turns.iter().filter_map(|(_, turn)| turn.writes.first()).map(|write| write.value.to_string()).collect();
    assert_eq!(written.len(), NODES);
    assert_eq!(output.trim(), written.join(" "), "the result is what the committed nodes wrote");
}

#[test]
fn a_run_that_is_killed_after_each_node_ends_with_the_same_result() {
    for committed in 0..NODES {
        let (desk, before) = killed_after(committed);
        let run = desk.only_run().to_string();
        let output = desk.output(&["runs", "resume", &run]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert_nothing_ran_twice(&desk, &before, &String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn a_run_that_is_killed_again_and_again_gets_there() {
    let desk = chain(NODES, 25);
    kill_after(&desk, desk.spawn(&["run", "."]), 1);
    let run = desk.only_run().to_string();
    loop {
        let before = entries(&desk);
        let done = completed(&before).len();
        if done >= NODES {
            break;
        }
        kill_after(&desk, desk.spawn(&["runs", "resume", &run]), done + 1);
        assert_eq!(&entries(&desk)[..before.len()], &before[..]);
    }
    let before = entries(&desk);
    let output = desk.output(&["runs", "resume", &run]);
    let shown = if output.status.code() == Some(0) {
        String::from_utf8(output.stdout).unwrap()
    } else {
        // The last kill came after the end was committed.
        desk.record(&run).outcome.unwrap()
    };
    assert_nothing_ran_twice(&desk, &before, &shown);
}

#[cfg(unix)]
#[test]
fn two_processes_cannot_resume_one_run() {
    // As long as it takes; the first process is stopped when all has been seen.
    let desk = chain(2, 20_000);
    kill_after(&desk, desk.spawn(&["run", "."]), 0);
    let run = desk.only_run().to_string();
    let mut first = desk.spawn(&["runs", "resume", &run]);
    let mut narration = BufReader::new(first.stderr.take().unwrap()).lines();
    let begun = narration.next().unwrap().unwrap();
    assert!(begun.contains("▸ graph: chain"), "{begun}");
    insta::assert_snapshot!(desk.told(&["runs", "resume", &run]));
    assert!(String::from_utf8_lossy(&desk.output(&["runs", "list"]).stdout).contains("running"));
    rustix::process::kill_process(rustix::process::Pid::from_child(&first), rustix::process::Signal::INT).unwrap();
    let told: Vec<String> = narration.map(Result::unwrap).collect();
    assert_eq!(first.wait().unwrap().code(), Some(130), "{told:?}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_a_run_that_can_be_resumed() {
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        // On a busy machine a run may be over before it is told to stop; then another one is begun that takes longer.
        let stopped = [700, 2_500, 9_000].into_iter().find_map(|milliseconds| {
            let desk = chain(3, milliseconds);
            let child = desk.spawn(&["run", "."]);
            wait_until("the first node", || !completed(&entries(&desk)).is_empty());
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, signal).unwrap();
            let output = child.wait_with_output().unwrap();
            // So it is where the machine held the run up for so long that it was taken for one that does not react.
            let is_held_up = String::from_utf8_lossy(&output.stderr).contains("does not react");
            (output.status.code() != Some(0) && !is_held_up).then_some((desk, output))
        });
        let (desk, output) = stopped.expect("a run that was stopped");
        let told = desk.describe(&output);
        assert_eq!(output.status.code(), Some(130), "{told}");
        let run = desk.only_run().to_string();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(&format!("hotcell runs resume {run}")), "{stderr}");
        assert!(String::from_utf8_lossy(&desk.output(&["runs", "list"]).stdout).contains("interrupted"));
        let output = desk.output(&["runs", "resume", &run, "--quiet"]);
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
fn a_run_can_be_cancelled_while_another_process_runs_it() {
    let desk = chain(2, 20_000);
    let mut child = desk.spawn(&["run", ".", "--json"]);
    let mut narration = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(narration.next().unwrap().unwrap().contains("▸ graph: chain"));
    let run = desk.only_run().to_string();
    assert_eq!(desk.output(&["runs", "cancel", &run]).status.code(), Some(0));
    let told: Vec<String> = narration.map(Result::unwrap).collect();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{told:?}");
    assert!(told.iter().any(|line| line.contains("was cancelled by another process")), "{told:?}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let last: serde_json::Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["status"], "cancelled");
    assert_eq!(desk.output(&["runs", "resume", &run]).status.code(), Some(2));
}
