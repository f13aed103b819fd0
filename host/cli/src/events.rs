//! The events of a run as JSON lines on standard output, for programs. The last line is of the kind `result`.

use std::io::{self, Write};
use std::path::Path;

use hotcell_graph::diagnostic::Diagnostic;
use hotcell_runtime::{Event, Observer, diagnostic_json};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::untrusted::json_line;

/// Writes every event as a JSON line.
pub(crate) struct JsonLines;

impl Observer for JsonLines {
    fn event(&self, event: &Event<'_>) {
        // A reader that went away must not stop the run; the `result` line reports other errors.
        if let Ok(line) = serde_json::to_string(event) {
            let mut stdout = io::stdout().lock();
            let _ = writeln!(stdout, "{}", json_line(&line)).and_then(|()| stdout.flush());
        }
    }
}

/// Writes one JSON line to standard output.
pub(crate) fn line(value: &Value) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", json_line(&value.to_string()))
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::output(&error))
}

/// The `result` line of a run that gave control back: `told` says what came of it.
pub(crate) fn result(told: Value, exit: Exit) -> Value {
    let line = json!({
        "event": "result",
        "run": told["run"],
        "status": told["status"],
        "exit_code": exit as u8,
    });
    with(line, told)
}

/// The `result` line of a run that did not start or could not go on.
pub(crate) fn refusal(exit: Exit, error: &str) -> Value {
    let status = if exit == Exit::Refused { "refused" } else { "failed" };
    json!({ "event": "result", "status": status, "exit_code": exit as u8, "error": error })
}

/// The line of one finding about the graph at `path`.
pub(crate) fn diagnostic(path: &Path, diagnostic: &Diagnostic) -> Value {
    with(json!({ "event": "diagnostic", "path": path.to_string_lossy() }), diagnostic_json(diagnostic))
}

/// A line with further entries behind its own.
pub(crate) fn with(mut line: Value, further: Value) -> Value {
    if let (Value::Object(line), Value::Object(further)) = (&mut line, further) {
        line.extend(further);
    }
    line
}
