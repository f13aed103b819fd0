//! Flows of the Open Agent Specification here and in its reference runtime, each from the same file: there the tool is a
//! Python function in the process of the runtime, here it is a sealed component.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hotcell_graph::value::parse_json;
use hotcell_runtime::{Agent, Host, Outcome, RunInput};
use serde_json::{Value, json};

use super::Failure;
use super::other::{Other, interpreter, worker};
use super::process::hotcell;
use super::scripts::{host, session};
use super::tools::{TOOL, described, tool_description};
use crate::measure::{Row, Samples};

const NAME: &str = "wayflow";
const THEIRS: &str = "WayFlow 26.3.1";
const SIZES: [u32; 3] = [10, 100, 1_000];
const TEXT: &str = "a text of some length";
/// Calls of tools after which the sides change.
const CALLS_IN_A_ROW: u32 = 500;
/// How many times faster a node has to be, a process has to start, and how many times less memory it may take.
const PER_NODE: f64 = 50.0;
const START_UP: f64 = 20.0;
const MEMORY: f64 = 5.0;

/// One flow that both sides run.
struct Work {
    label: String,
    file: PathBuf,
    inputs: Value,
    outputs: Value,
    /// How many tools are called
    calls: u32,
}

impl Work {
    /// How often each side runs it before the other one has its turn: a run that follows the other side begins with the
    /// caches as that left them.
    fn in_a_row(&self) -> u32 {
        (CALLS_IN_A_ROW / self.calls).max(1)
    }
}

pub(crate) async fn beside(rounds: usize) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("plugins"))?;
    fs::write(folder.path().join("plugins/bench.wasm"), described(TOOL, &tool_description("bench")))?;
    let mut theirs = Other::start(NAME)?;
    let host = host()?;
    let mut work = Vec::new();
    for size in SIZES {
        let upper = TEXT.to_uppercase();
        let (inputs, outputs) = (json!({ "text": TEXT }), json!({ "upper": upper }));
        work.push(written(folder.path(), format!("chain of {size} tools"), &chain(size), inputs, outputs, size)?);
    }
    for size in SIZES {
        let all = |text: String| vec![text; size as usize];
        let inputs = json!({ "texts": all(TEXT.to_owned()) });
        let outputs = json!({ "collected_upper": all(TEXT.to_uppercase()) });
        work.push(written(folder.path(), format!("map over {size}"), &mapped(), inputs, outputs, size)?);
    }
    // Both sides load a flow once and run it several times.
    let agents = work.iter().map(|one| Ok(host.load(&one.file)?)).collect::<Result<Vec<Agent>, Failure>>()?;
    let samples = |side: &str| -> Vec<Samples> {
        work.iter().map(|one| Samples::new(format!("{}, per call, {side}", one.label))).collect()
    };
    let (mut ours, mut others) = (samples("hotcell"), samples(THEIRS));
    for round in 0..rounds.min(5) + 1 {
        for (place, one) in work.iter().enumerate() {
            for turn in 0..one.in_a_row() {
                let here = run(&host, one, &agents[place]).await?;
                // The first round warms this side, the first turn its caches.
                if round > 0 && (turn > 0 || one.in_a_row() == 1) {
                    ours[place].add(here / one.calls);
                }
            }
            for turn in 0..one.in_a_row() {
                let there = ask(&mut theirs, one)?;
                if round > 0 && (turn > 0 || one.in_a_row() == 1) {
                    there.into_iter().for_each(|there| others[place].add(there / one.calls));
                }
            }
        }
    }
    let mut rows = Vec::new();
    for (ours, other) in ours.iter().zip(&others) {
        let row = Row::time(ours);
        rows.push(if theirs.is_some() { row.faster_than(ours, other, PER_NODE) } else { row });
        if theirs.is_some() {
            rows.push(Row::time(other));
        }
    }
    rows.extend(processes(folder.path(), &work[0], rounds)?);
    if theirs.is_none() {
        rows.push(Row::left_out("WayFlow is not installed here: run `tests/bench/wayflow/install`"));
    }
    Ok(rows)
}

fn ask(theirs: &mut Option<Other>, work: &Work) -> Result<Option<Duration>, Failure> {
    let Some(theirs) = theirs else { return Ok(None) };
    let wanted = json!({ "path": work.file, "inputs": work.inputs, "outputs": work.outputs });
    theirs.ask(&wanted).map(Some)
}

async fn run(host: &Host, work: &Work, agent: &Agent) -> Result<Duration, Failure> {
    let inputs = parse_json(&work.inputs.to_string())?;
    let state = inputs.as_object().cloned().unwrap_or_default();
    let begun = Instant::now();
    let report = host.run(agent, RunInput { state, ..RunInput::default() }, session()).await?;
    let elapsed = begun.elapsed();
    match &report.outcome {
        Outcome::Completed { output } if serde_json::from_str::<Value>(output)? == work.outputs => Ok(elapsed),
        other => Err(format!("{} came to {other:?}", work.label).into()),
    }
}

/// Whole processes that run one small flow: how long they take, and how much memory.
fn processes(folder: &Path, work: &Work, rounds: usize) -> Result<Vec<Row>, Failure> {
    let inputs = work.inputs.to_string();
    let mut ours = Samples::new("whole process, a flow of 10 tools, hotcell");
    let mut theirs = Samples::new("whole process, a flow of 10 tools, WayFlow 26.3.1");
    let (mut our_memory, mut their_memory) = (Memory::default(), Memory::default());
    let program = hotcell()?;
    let journal = folder.join("runs.db");
    for round in 0..rounds.min(5) + 1 {
        let arguments = ["run", "--quiet", "--no-input", "--inputs", &inputs, "--journal"];
        let arguments = arguments.map(OsStr::new).into_iter().chain([journal.as_os_str(), work.file.as_os_str()]);
        let (elapsed, memory) = watched(&program, arguments)?;
        if round > 0 {
            ours.add(elapsed);
            our_memory.keep(&memory);
        }
        let Some(python) = interpreter(NAME) else { continue };
        let worker = worker(NAME);
        let arguments = [worker.as_os_str(), work.file.as_os_str(), OsStr::new(&inputs)];
        let (elapsed, memory) = watched(&python, arguments)?;
        if round > 0 {
            theirs.add(elapsed);
            their_memory.keep(&memory);
        }
    }
    let time = Row::time(&ours);
    if their_memory.whole == 0 {
        return Ok([time].into_iter().chain(our_memory.rows("hotcell")).collect());
    }
    let mut rows = vec![time.faster_than(&ours, &theirs, START_UP), Row::time(&theirs)];
    for (own, (other, bytes)) in
        our_memory.rows("hotcell").into_iter().zip(their_memory.rows(THEIRS).into_iter().zip(their_memory.both()))
    {
        rows.extend([own.times_less_than(bytes, THEIRS, MEMORY), other]);
    }
    Ok(rows)
}

/// The most memory that a process had.
#[derive(Default)]
struct Memory {
    /// With the pages of files that are mapped, of its program first of all, which the system shares and can drop
    whole: u64,
    /// Without them: what only this process has
    own: u64,
}

impl Memory {
    fn keep(&mut self, other: &Memory) {
        self.whole = self.whole.max(other.whole);
        self.own = self.own.max(other.own);
    }

    fn both(&self) -> [u64; 2] {
        [self.whole, self.own]
    }

    fn rows(&self, whose: &str) -> [Row; 2] {
        [
            Row::bytes(format!("most memory of that process, {whose}"), self.whole),
            Row::bytes(format!("the part of it that is in no file, {whose}"), self.own),
        ]
    }
}

/// Runs a program and says how long it took and how much memory it had.
fn watched<'a>(program: &Path, arguments: impl IntoIterator<Item = &'a OsStr>) -> Result<(Duration, Memory), Failure> {
    // The most memory of a child is something that nothing here can ask for without unsafe code.
    let output =
        Command::new("python3").arg("-c").arg(WATCH).arg(program).args(arguments).stdin(Stdio::null()).output()?;
    let answer: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("`{}` says `{}`", program.display(), String::from_utf8_lossy(&output.stderr)))?;
    let bytes = |key: &str| answer[key].as_u64().unwrap_or_default();
    let elapsed = Duration::from_secs_f64(answer["seconds"].as_f64().unwrap_or_default());
    Ok((elapsed, Memory { whole: bytes("whole"), own: bytes("own") }))
}

/// Runs a command and says how long it took and what the most memory was that it had. Looking on costs a little time, which
/// both sides lose.
const WATCH: &str = "import json, subprocess, sys, time

def memory():
    try:
        with open(f'/proc/{child.pid}/status') as status:
            fields = dict(line.split(':', 1) for line in status)
        return [int(fields.get(name, '0').split()[0]) * 1024 for name in ('VmHWM', 'RssAnon')]
    except (OSError, ValueError):
        return [0, 0]

begun = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
whole = own = 0
while child.poll() is None:
    now = memory()
    whole, own = max(whole, now[0]), max(own, now[1])
    time.sleep(0.0005)
seconds = time.perf_counter() - begun
if child.returncode:
    sys.exit(f'it ended with {child.returncode}')
print(json.dumps({'seconds': seconds, 'whole': whole, 'own': own}))";

fn written(
    folder: &Path,
    label: String,
    flow: &Value,
    inputs: Value,
    outputs: Value,
    calls: u32,
) -> Result<Work, Failure> {
    let file = folder.join(format!("{}.json", label.replace(' ', "-")));
    fs::write(&file, flow.to_string())?;
    Ok(Work { label, file, inputs, outputs, calls })
}

fn text(name: &str) -> Value {
    json!({ "title": name, "type": "string" })
}

fn texts(name: &str) -> Value {
    json!({ "title": name, "type": "array", "items": { "type": "string" } })
}

fn tool() -> Value {
    json!({
        "component_type": "ServerTool", "id": "tool", "name": "measure", "description": "Measures a text",
        "inputs": [text("text")], "outputs": [text("upper"), { "title": "length", "type": "integer" }],
    })
}

fn tool_node(id: &str) -> Value {
    json!({ "component_type": "ToolNode", "id": id, "name": id, "tool": { "$component_ref": "tool" } })
}

/// A flow of these nodes between its start and its end, with edges from outputs to inputs.
fn flow(id: &str, nodes: Vec<Value>, data: &[(&str, &str, &str, &str)], named: Value) -> Value {
    let name = |node: &Value| node["id"].as_str().unwrap_or_default().to_owned();
    let at = |id: &str| json!({ "$component_ref": id });
    let ids: Vec<String> = nodes.iter().map(name).collect();
    let control = |pair: &[String]| {
        let id = format!("{id}: {} then {}", pair[0], pair[1]);
        json!({ "component_type": "ControlFlowEdge", "id": id, "name": id, "from_node": at(&pair[0]), "to_node": at(&pair[1]) })
    };
    let edge = |(from, output, to, input): &(&str, &str, &str, &str)| {
        let id = format!("{id}: {from}.{output} to {to}.{input}");
        json!({
            "component_type": "DataFlowEdge", "id": id, "name": id, "source_node": at(from), "source_output": output,
            "destination_node": at(to), "destination_input": input,
        })
    };
    let mut known = named.as_object().cloned().unwrap_or_default();
    known.extend(nodes.iter().map(|node| (name(node), node.clone())));
    json!({
        "component_type": "Flow", "id": id, "name": id, "start_node": at(&ids[0]),
        "inputs": nodes[0]["inputs"], "outputs": nodes[nodes.len() - 1]["outputs"],
        "nodes": ids.iter().map(|id| at(id)).collect::<Vec<_>>(),
        "control_flow_connections": ids.windows(2).map(control).collect::<Vec<_>>(),
        "data_flow_connections": data.iter().map(edge).collect::<Vec<_>>(),
        "$referenced_components": known,
    })
}

fn start(id: &str, input: Value) -> Value {
    json!({ "component_type": "StartNode", "id": id, "name": id, "inputs": [input] })
}

fn end(id: &str, output: Value) -> Value {
    json!({ "component_type": "EndNode", "id": id, "name": id, "outputs": [output] })
}

/// Each tool gets what the one before gave.
pub(super) fn chain(length: u32) -> Value {
    let ids: Vec<String> = (0..length).map(|number| format!("n{number}")).collect();
    let mut nodes = vec![start("start", text("text"))];
    nodes.extend(ids.iter().map(|id| tool_node(id)));
    nodes.push(end("end", text("upper")));
    let mut data: Vec<(&str, &str, &str, &str)> = vec![("start", "text", &ids[0], "text")];
    data.extend(ids.windows(2).map(|pair| (&*pair[0], "upper", &*pair[1], "text")));
    data.push((&ids[ids.len() - 1], "upper", "end", "upper"));
    let mut flow = flow("chain", nodes, &data, json!({ "tool": tool() }));
    flow["agentspec_version"] = json!("25.4.1");
    flow
}

/// The tool for each of a list of texts.
fn mapped() -> Value {
    let inner = flow(
        "inner",
        vec![start("inner start", text("text")), tool_node("inner call"), end("inner end", text("upper"))],
        &[("inner start", "text", "inner call", "text"), ("inner call", "upper", "inner end", "upper")],
        json!({ "tool": tool() }),
    );
    let map = json!({
        "component_type": "MapNode", "id": "each", "name": "each", "subflow": inner, "reducers": { "upper": "append" },
        "inputs": [{ "title": "iterated_text", "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] }],
        "outputs": [texts("collected_upper")],
    });
    let mut flow = flow(
        "mapped",
        vec![start("start", texts("texts")), map, end("end", texts("collected_upper"))],
        &[("start", "texts", "each", "iterated_text"), ("each", "collected_upper", "end", "collected_upper")],
        json!({}),
    );
    flow["agentspec_version"] = json!("25.4.1");
    flow
}
