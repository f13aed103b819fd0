//! The whole command, as a person starts it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Failure;
use crate::measure::{Row, Samples};

const GRAPH: &str = "name: three\nversion: \"1.0\"\nstart: one\nnodes:\n\
    \x20 one: { type: script, script: scripts/one.js, next: two }\n\
    \x20 two: { type: script, script: scripts/two.sh, next: done }\n\
    \x20 done: { type: end, output: \"{{first}} {{second}}\" }\n";

/// The `hotcell` of this build: it lies beside this program.
pub(super) fn hotcell() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe()?.with_file_name("hotcell");
    if program.is_file() {
        return Ok(program);
    }
    Err(format!("there is no `{}`; build it with `cargo build --release -p hotcell`", program.display()).into())
}

pub(crate) async fn start_up(rounds: usize) -> Result<Vec<Row>, Failure> {
    let program = hotcell()?;
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("scripts"))?;
    fs::write(folder.path().join("graph.yaml"), GRAPH)?;
    fs::write(folder.path().join("scripts/one.js"), "console.log(JSON.stringify({ first: 1 }));\n")?;
    fs::write(folder.path().join("scripts/two.sh"), "echo '{\"second\": 2}'\n")?;
    let journal = folder.path().join("runs.db");
    let run = || -> Result<Duration, Failure> {
        let begun = Instant::now();
        let output = Command::new(&program)
            .arg("run")
            .arg(folder.path())
            .arg("--journal")
            .arg(&journal)
            .stdin(Stdio::null())
            .output()?;
        let elapsed = begun.elapsed();
        match String::from_utf8_lossy(&output.stdout).trim() {
            "1 2" => Ok(elapsed),
            other => Err(format!("it answered `{other}`: {}", String::from_utf8_lossy(&output.stderr)).into()),
        }
    };
    run()?;
    let mut samples = Samples::new("hotcell run, three nodes (JavaScript, shell, end)");
    for _ in 0..rounds {
        samples.add(run()?);
    }
    Ok(vec![Row::time(&samples).at_most(&samples, Duration::from_millis(60))])
}
