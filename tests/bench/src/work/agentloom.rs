//! Workflows of AgentLoom here and in AgentLoom itself, each from the same file: there the tool is a Python function in the process of
//! the runtime, here it is a sealed component, and the same Python function where hotcell is a package in that process.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hotcell_runtime::{Agent, Host, Outcome, RunInput, report_json};
use serde_json::{Value, json};

use super::Failure;
use super::other::Other;
use super::scripts::{host, session};
use super::tools::{TOOL, described, tool_description};
use crate::measure::{Row, Samples};

const NAME: &str = "agentloom";
const THEIRS: &str = "AgentLoom 0.4.0";
const CHAINS: [u32; 3] = [10, 100, 500];
const FAN_OUT: u32 = 50;
const TEXT: &str = "a text of some length";
/// Calls of tools after which the sides change.
const CALLS_IN_A_ROW: u32 = 500;
/// Runs of a graph of one node in a row.
const SINGLE: u32 = 200;
/// What a run may take longer when a Python program asks for it.
const CALL: Duration = Duration::from_micros(50);
/// How many times faster a step has to be, and in a chain of 500.
const PER_STEP: f64 = 30.0;
const PER_STEP_OF_500: f64 = 200.0;

/// One workflow that all sides run.
struct Work {
    label: String,
    file: PathBuf,
    last: Value,
    steps: u32,
}

impl Work {
    fn written(folder: &Path, label: String, steps: u32, text: &str, last: Value) -> Result<Self, Failure> {
        let file = folder.join(format!("{}.yaml", label.replace(' ', "-")));
        fs::write(&file, text)?;
        Ok(Work { label, file, last, steps })
    }

    fn in_a_row(&self) -> u32 {
        if self.steps == 1 { SINGLE } else { (CALLS_IN_A_ROW / self.steps).max(1) }
    }
}

pub(crate) async fn beside(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("plugins"))?;
    fs::write(folder.path().join("plugins/bench.wasm"), described(TOOL, &tool_description("bench")))?;
    let mut others = Other::start(NAME)?;
    let host = host()?;
    let measured = json!({ "upper": TEXT.to_uppercase(), "length": TEXT.len() });
    let mut work = Vec::new();
    for length in CHAINS {
        let label = format!("chain of {length} tools");
        work.push(Work::written(folder.path(), label, length, &chain(length), measured.clone())?);
    }
    let (label, steps) = (format!("fan-out of {FAN_OUT} tools and a join"), FAN_OUT + 1);
    work.push(Work::written(folder.path(), label, steps, &fan_out(FAN_OUT), measured)?);
    work.push(Work::written(folder.path(), "a run of one node".to_owned(), 1, ONE, json!("there"))?);
    let agents = work.iter().map(|one| Ok(host.load(&one.file)?)).collect::<Result<Vec<Agent>, Failure>>()?;
    let samples = |side: &str| -> Vec<Samples> {
        work.iter().map(|one| Samples::new(format!("{}, per step, {side}", one.label))).collect()
    };
    let mut ours = samples("hotcell, sealed tool");
    let (mut python, mut theirs) = (samples("hotcell in Python, Python function"), samples(THEIRS));
    for round in 0..rounds.min(5) + 1 {
        for (place, one) in work.iter().enumerate() {
            // The first round warms a side, the first turn its caches.
            let counts = |turn: u32| round > 0 && (turn > 0 || one.in_a_row() == 1);
            for turn in 0..one.in_a_row() {
                let time = run(&host, one, &agents[place]).await? / one.steps;
                if counts(turn) {
                    ours[place].add(time);
                }
            }
            let Some(others) = &mut others else { continue };
            for (side, samples) in [("hotcell", &mut python), (NAME, &mut theirs)] {
                if side == NAME && one.steps == 1 {
                    continue;
                }
                for turn in 0..one.in_a_row() {
                    let wanted = json!({ "side": side, "path": one.file, "last": one.last });
                    let time = others.ask(&wanted)? / one.steps;
                    if counts(turn) {
                        samples[place].add(time);
                    }
                }
            }
        }
    }
    let mut rows = Vec::new();
    for place in 0..work.len() {
        let (ours, python, theirs) = (&ours[place], &python[place], &theirs[place]);
        if others.is_none() {
            rows.push(Row::time(ours));
            continue;
        }
        if work[place].steps == 1 {
            let most = ours.median() + CALL;
            rows.extend([Row::time(ours), Row::time(python).beside(python, ours).at_most(python, most)]);
            continue;
        }
        let target = if work[place].steps >= 500 { PER_STEP_OF_500 } else { PER_STEP };
        rows.push(Row::time(ours).faster_than(ours, theirs, target));
        rows.push(Row::time(python).compared_with(python, theirs));
        rows.push(Row::time(theirs));
    }
    if others.is_none() {
        rows.push(Row::left_out(
            "AgentLoom is not installed here: run `host/python/test build` and `tests/bench/agentloom/install`",
        ));
    }
    Ok(rows)
}

async fn run(host: &Host, work: &Work, agent: &Agent) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let report = host.run(agent, RunInput::default(), session()).await?;
    // What a Python program is told of it is part of the time there.
    let told = report_json(&report).to_string();
    let elapsed = begun.elapsed();
    let last = report.state.get("last").map(Value::from);
    match &report.outcome {
        Outcome::Completed { .. } if last.as_ref() == Some(&work.last) => Ok(elapsed),
        _ => Err(format!("{} came to {told}", work.label).into()),
    }
}

/// A run of one node, without any tool, in a language that has such nodes.
const ONE: &str = "manifest_version: 1\nagents:\n  one:\n    state: {fields: [{name: last, type: str, default: nowhere}]}\n    graph:\n      \
                   entry_point: a\n      nodes: [{name: a, type: set_state, args: {values: {last: '\"there\"'}}}]\n      edges: [{source: \
                   a, target: __end__}]\n";

fn head() -> String {
    format!(
        "name: bench\nconfig: {{max_retries: 0, max_concurrent_steps: {FAN_OUT}}}\nstate: {{text: {TEXT}}}\nsteps:\n"
    )
}

/// Each tool gets what the one before gave.
fn chain(length: u32) -> String {
    let mut text = head();
    for number in 0..length {
        let output = if number + 1 == length { "last".to_owned() } else { format!("o{number}") };
        let (before, takes) = match number.checked_sub(1) {
            Some(before) => (format!("n{before}"), format!("state.o{before}.upper")),
            None => (String::new(), "state.text".to_owned()),
        };
        let _ = writeln!(
            text,
            "  - {{id: n{number}, type: tool, tool_name: measure, tool_args: {{text: {takes}}}, output: {output}, depends_on: [{before}]}}"
        );
    }
    text
}

/// Tools side by side, and one that waits for all of them.
fn fan_out(width: u32) -> String {
    let mut text = head();
    let mut all = Vec::new();
    for number in 0..width {
        let _ = writeln!(
            text,
            "  - {{id: n{number}, type: tool, tool_name: measure, tool_args: {{text: state.text}}, output: o{number}}}"
        );
        all.push(format!("n{number}"));
    }
    let all = all.join(", ");
    let _ = writeln!(
        text,
        "  - {{id: join, type: tool, tool_name: measure, tool_args: {{text: state.text}}, output: last, depends_on: [{all}]}}"
    );
    text
}
