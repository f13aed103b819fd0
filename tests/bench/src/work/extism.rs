//! The same tool through Extism: a program of its own (`extism/` beside this one's source), because Extism brings its own
//! wasmtime. It times its calls itself, so that talking to it is not part of them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::Failure;

/// Where its workspace is, with a `build` in it.
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/extism");

pub(super) struct Extism {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Extism {
    /// Starts it; the text says why there is none to measure.
    pub(super) fn start() -> Result<Self, String> {
        let target = Path::new(WORKSPACE).join("target");
        let program = target.join("release/hotcell-bench-extism");
        let plugin = target.join("wasm32-unknown-unknown/guest/hotcell_bench_extism_guest.wasm");
        if !program.is_file() || !plugin.is_file() {
            return Err("it is not built; run `tests/bench/extism/build` to measure it, too".to_owned());
        }
        let failed = |error: std::io::Error| format!("`{}` does not run: {error}", program.display());
        let mut process =
            Command::new(&program).arg(&plugin).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("it has no standard streams".to_owned());
        };
        Ok(Extism { process, input, output: BufReader::new(output) })
    }

    /// One call in one of its ways, and how long that took.
    pub(super) fn call(&mut self, way: &str, arguments: &str) -> Result<(Duration, String), Failure> {
        writeln!(self.input, "{way} {arguments}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let (time, answer) = line.trim_end().split_once(' ').ok_or("Extism ended without an answer")?;
        Ok((Duration::from_nanos(time.parse()?), answer.to_owned()))
    }
}

impl Drop for Extism {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
