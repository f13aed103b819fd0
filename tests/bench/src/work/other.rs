//! Another implementation, in a process of its own that stays: it is handed one piece of work a line and answers with the
//! seconds it took.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::Failure;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The other implementation.
pub(super) struct Other {
    name: &'static str,
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// The interpreter that an implementation was installed for, if it was.
pub(super) fn interpreter(name: &str) -> Option<PathBuf> {
    Some(PathBuf::from(REPOSITORY).join(format!("target/{name}-bench/venv/bin/python")))
        .filter(|python| python.is_file())
}

/// The program that does the work.
pub(super) fn worker(name: &str) -> PathBuf {
    PathBuf::from(REPOSITORY).join(format!("tests/bench/{name}/worker.py"))
}

impl Other {
    /// The implementation that `tests/bench/NAME/install` installs; none if it is not there.
    pub(super) fn start(name: &'static str) -> Result<Option<Self>, Failure> {
        let Some(python) = interpreter(name) else { return Ok(None) };
        let mut process = Command::new(python)
            .arg(worker(name))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let (Some(input), Some(output)) = (input, output) else { return Err("it has no pipes".into()) };
        Ok(Some(Other { name, process, input, output: BufReader::new(output) }))
    }

    pub(super) fn ask(&mut self, wanted: &serde_json::Value) -> Result<Duration, Failure> {
        writeln!(self.input, "{wanted}")?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        let seconds: f64 = serde_json::from_str(&answer)
            .map_err(|_| format!("{} gave up on {wanted}: `{}`", self.name, answer.trim()))?;
        Ok(Duration::from_secs_f64(seconds))
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
