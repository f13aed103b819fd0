//! Declarative agents here and in the implementation that their language comes from, each from the same file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hotcell_graph::formula::{Formula, Vocabulary};
use hotcell_graph::{List, State, Value, conversation};
use hotcell_runtime::{Agent, Host, HostOptions, JournalChoice, Outcome, RunInput};
use serde_json::json;

use super::Failure;
use super::other::Other;
use super::scripts::{host, session};
use crate::measure::{Row, Samples};

/// How many times faster a node has to be.
const TARGET: f64 = 100.0;
/// How many times the time beside few messages an expression may take beside many.
const FLAT: f64 = 1.5;
const CHAINS: [u32; 3] = [10, 100, 1_000];
const LOOP: u32 = 1_000;
const MESSAGES: [u32; 4] = [10, 100, 1_000, 10_000];
const EXPRESSION: &str = "size(state.messages) + state.c";
/// Evaluations of ours that are timed together: one is shorter than a look at the clock.
const EVALUATIONS: u32 = 10_000;

/// One graph that both sides run.
struct Work {
    label: String,
    file: PathBuf,
    /// What `n` comes to, and how many nodes that takes
    steps: u32,
}

/// Times of one piece of work: ours in memory, ours in a journal, theirs.
struct Times {
    memory: Samples,
    journaled: Samples,
    theirs: Samples,
}

pub(crate) async fn beside(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    let mut theirs = Other::start("sherma")?;
    let memory = host()?;
    let journal = JournalChoice::File(folder.path().join("runs.db"));
    let journaled = memory.beside(HostOptions { journal, ..HostOptions::isolated() })?;
    let mut work: Vec<Work> = Vec::new();
    for length in CHAINS {
        work.push(written(folder.path(), format!("chain of {length}"), &chain(length), length)?);
    }
    work.push(written(folder.path(), format!("loop of {LOOP}"), &looped(LOOP), LOOP)?);
    let mut all: Vec<Times> = Vec::new();
    for one in &work {
        let samples = |side: &str| Samples::new(format!("{}, per node, {side}", one.label));
        let (memory, journaled) = (samples("hotcell in memory"), samples("hotcell journaled"));
        all.push(Times { memory, journaled, theirs: samples("sherma 1.8.0 in memory") });
    }
    for round in 0..rounds.min(10) + 1 {
        for (one, times) in work.iter().zip(&mut all) {
            let (ours, kept) = (run(&memory, one).await?, run(&journaled, one).await?);
            let other = match &mut theirs {
                Some(theirs) => {
                    let wanted = json!({ "path": one.file, "agent": "bench", "expected": one.steps });
                    Some(theirs.ask(&wanted)?)
                }
                None => None,
            };
            // The first round warms both sides.
            if round > 0 {
                times.memory.add(ours / one.steps);
                times.journaled.add(kept / one.steps);
                other.into_iter().for_each(|other| times.theirs.add(other / one.steps));
            }
        }
    }
    let mut rows = Vec::new();
    for Times { memory, journaled, theirs: other } in &all {
        let (ours, kept) = (Row::time(memory), Row::time(journaled));
        if theirs.is_some() {
            // What is kept on disk has no counterpart there, so nothing is promised of it.
            rows.extend([
                ours.faster_than(memory, other, TARGET),
                kept.compared_with(journaled, other),
                Row::time(other),
            ]);
        } else {
            rows.extend([ours, kept]);
        }
    }
    rows.extend(expressions(&mut theirs, rounds)?);
    if theirs.is_none() {
        rows.push(Row::left_out("sherma 1.8.0 is not installed here: run `tests/bench/sherma/install`"));
    }
    Ok(rows)
}

/// One evaluation with many messages in the state.
fn expressions(theirs: &mut Option<Other>, rounds: usize) -> Result<Vec<Row>, Failure> {
    let vocabulary = Vocabulary {
        fields: ["messages".into(), "c".into()].into_iter().collect(),
        state: Some("state".into()),
        ..Vocabulary::default()
    };
    let formula = Formula::compile(EXPRESSION, &vocabulary).map_err(|error| error.message)?;
    let states: Vec<State> = MESSAGES.iter().map(|count| state(*count)).collect();
    let samples = |side: &str| -> Vec<Samples> {
        MESSAGES.iter().map(|count| Samples::new(format!("an expression beside {count} messages, {side}"))).collect()
    };
    let (mut ours, mut other) = (samples("hotcell"), samples("sherma 1.8.0"));
    for _ in 0..rounds.min(10) {
        for (place, count) in MESSAGES.into_iter().enumerate() {
            let begun = Instant::now();
            for _ in 0..EVALUATIONS {
                let value = formula.evaluate(std::hint::black_box(&states[place]))?;
                if value != Value::from(i64::from(count) + 1) {
                    return Err(format!("it came to {}", value.to_json()).into());
                }
            }
            ours[place].add(begun.elapsed() / EVALUATIONS);
            if let Some(theirs) = theirs {
                let times = (1_000 / count).max(1);
                other[place].add(theirs.ask(&json!({ "expression": EXPRESSION, "messages": count, "times": times }))?);
            }
        }
    }
    let mut rows = Vec::new();
    for (ours_here, other_here) in ours.iter().zip(&other) {
        let row = Row::time(ours_here);
        rows.push(if theirs.is_some() { row.faster_than(ours_here, other_here, TARGET) } else { row });
        if theirs.is_some() {
            rows.push(Row::time(other_here));
        }
    }
    let last = if theirs.is_some() { rows.len() - 2 } else { rows.len() - 1 };
    let (least, most) = (&ours[0], &ours[MESSAGES.len() - 1]);
    // The last word on ours is that many messages cost what few do.
    rows[last] = Row::time(most).no_slower_than(most, least, FLAT);
    Ok(rows)
}

fn state(messages: u32) -> State {
    let message = |number| {
        Value::Object(conversation::message(conversation::Speaker::Human, format!("message {number}").as_str()))
    };
    let mut state = State::default();
    state.set("messages".into(), Value::List((0..messages).map(message).collect::<List>()));
    state.set("c".into(), Value::from(1_i64));
    state
}

fn written(folder: &Path, label: String, graph: &str, steps: u32) -> Result<Work, Failure> {
    let file = folder.join(format!("{}.yaml", label.replace(' ', "-")));
    let text = format!(
        "manifest_version: 1\nagents:\n  bench:\n    state: {{fields: [{{name: n, type: int, default: 0}}]}}\n    \
         langgraph_config: {{recursion_limit: 10000}}\n    graph:\n{graph}"
    );
    std::fs::write(&file, text)?;
    Ok(Work { label, file, steps })
}

const STEP: &str = "type: set_state, args: {values: {n: state.n + 1}}";

fn chain(length: u32) -> String {
    let mut text = "      entry_point: n0\n      nodes:\n".to_owned();
    for number in 0..length {
        let _ = writeln!(text, "        - {{name: n{number}, {STEP}}}");
    }
    text.push_str("      edges:\n");
    for number in 0..length {
        let target = if number + 1 == length { "__end__".to_owned() } else { format!("n{}", number + 1) };
        let _ = writeln!(text, "        - {{source: n{number}, target: {target}}}");
    }
    text
}

fn looped(times: u32) -> String {
    format!(
        "      entry_point: n0\n      nodes:\n        - {{name: n0, {STEP}}}\n      edges:\n        - source: n0\n          \
         branches: [{{condition: state.n < {times}, target: n0}}]\n          default: __end__\n"
    )
}

async fn run(host: &Host, work: &Work) -> Result<Duration, Failure> {
    let agent: Agent = host.load(&work.file)?;
    let begun = Instant::now();
    let report = host.run(&agent, RunInput::default(), session()).await?;
    let elapsed = begun.elapsed();
    let n = report.state.get("n").cloned().unwrap_or_default();
    match &report.outcome {
        Outcome::Completed { .. } if n == Value::from(i64::from(work.steps)) => Ok(elapsed),
        other => Err(format!("{} came to {} and {other:?}", work.label, n.to_json()).into()),
    }
}
