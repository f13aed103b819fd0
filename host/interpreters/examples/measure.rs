//! Times whole sealed calls, each in a fresh instance: `cargo run --release -p hotcell-interpreters --example measure`.
//!
//! With arguments: a script file, then how many calls; else a typical script in each language, 300 calls each.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotcell_budget::Budget;
use hotcell_cells::{Cells, CellsOptions, ScriptCall, StateView, Terms};
use hotcell_interpreters::{Lookup, for_extension};

const STATE: &str = r#"{"words":["a","b","b","c"],"codes":"x, y","n":3}"#;
const TYPICAL: [(&str, &str); 4] = [
    (
        "js",
        "const s = JSON.parse(process.env.GRAPH_STATE); console.log(JSON.stringify({ n: s.n + 1, _next: s.n > 2 ? 'a' : 'b' }));",
    ),
    (
        "ts",
        "enum Way { A = 'a', B = 'b' }\ninterface State { n: number }\nconst s = JSON.parse(process.env.GRAPH_STATE!) as State;\nconsole.log(JSON.stringify({ n: s.n + 1, _next: s.n > 2 ? Way.A : Way.B }));",
    ),
    ("py", "import json, os\ns = json.loads(os.environ['GRAPH_STATE'])\nprint(json.dumps({'n': s['n'] + 1}))"),
    (
        "sh",
        "codes=$(jq -r '.codes // \"\"' <<<\"$GRAPH_STATE\" | tr -d ' ')\nkinds=$(echo \"$codes\" | tr ',' '\\n' | sort -u | wc -l)\njq -cn --arg c \"$codes\" --argjson k \"$kinds\" '{codes: $c, kinds: $k}'",
    ),
];

struct State;

impl StateView for State {
    fn get(&self, _path: &str) -> Option<String> {
        None
    }

    fn all(&self) -> Arc<str> {
        STATE.into()
    }
}

async fn measure(cells: &Cells, extension: &str, source: &str, calls: usize) -> Result<String, Box<dyn Error>> {
    let Lookup::Found(interpreter) = for_extension(extension) else { return Ok(format!("{extension}: not built")) };
    let started = Instant::now();
    let cell = cells.load_carried(interpreter.name, interpreter.wasm_digest, || interpreter.unpack())?;
    let loaded = started.elapsed();
    let source: Arc<str> = source.into();
    let mut times = Vec::with_capacity(calls);
    let mut last = String::new();
    for _ in 0..calls {
        let mut terms = Terms::new("measure");
        terms.budget = Budget::interpreter();
        let call = ScriptCall {
            file_name: format!("measure.{extension}"),
            source: Some(source.clone()),
            state: Arc::new(State),
            terms,
        };
        let started = Instant::now();
        let report = cells.run_script(&cell, call).await;
        times.push(started.elapsed());
        let usage = report.usage;
        last = match report.result {
            Ok(text) => format!("{} ({} fuel, {} KiB)", text.trim_end(), usage.fuel.0, usage.peak_memory.0 / 1024),
            Err(error) => error.to_string(),
        };
    }
    times.sort();
    let at = |share: usize| times.get(calls * share / 100).copied().unwrap_or(Duration::ZERO);
    Ok(format!("{extension}: {:?} p50, {:?} p99; loaded in {loaded:?}; {last}", at(50), at(99)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cells = Cells::new(CellsOptions::default())?;
    let mut out = std::io::stdout();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [file, calls] = arguments.as_slice() {
        let extension = Path::new(file).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let source = std::fs::read_to_string(file)?;
        writeln!(out, "{}", measure(&cells, extension, &source, calls.parse()?).await?)?;
        return Ok(());
    }
    for (extension, source) in TYPICAL {
        writeln!(out, "{}", measure(&cells, extension, source, 300).await?)?;
    }
    Ok(())
}
