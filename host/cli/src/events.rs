//! The events of a run as JSON lines on standard output, for programs. The last line is of the kind `result`.

use std::io::{self, Write};
use std::path::Path;

use hotcell_graph::diagnostic::{Diagnostic, Severity, Span};
use hotcell_runtime::{Event, Observer, Outcome, RunReport};
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

/// The `result` line of a run that gave control back.
pub(crate) fn result(report: &RunReport, exit: Exit) -> Value {
    let mut line = json!({
        "event": "result",
        "run": report.run.as_str(),
        "status": status(&report.outcome),
        "exit_code": exit as u8,
        "failures": report.failures,
        "usage": report.account.total(),
        "used_by": report.account,
    });
    match &report.outcome {
        Outcome::Completed { output } => line["output"] = output.as_str().into(),
        Outcome::Failed { node, error } => {
            line["node"] = node.as_deref().into();
            line["error"] = error.as_str().into();
        }
        Outcome::Stopped { reason } => line["error"] = reason.as_str().into(),
        Outcome::Waiting { questions } => line["questions"] = json!(questions),
        Outcome::Interrupted | Outcome::Paused | Outcome::Cancelled => {}
    }
    line
}

/// The `result` line of a run that did not start or could not go on.
pub(crate) fn refusal(exit: Exit, error: &str) -> Value {
    let status = if exit == Exit::Refused { "refused" } else { "failed" };
    json!({ "event": "result", "status": status, "exit_code": exit as u8, "error": error })
}

/// The line of one finding about the graph at `path`.
pub(crate) fn diagnostic(path: &Path, diagnostic: &Diagnostic) -> Value {
    let place = |span: &Span| {
        let (line, column) = span.line_column();
        json!({ "file": span.file.name, "line": line, "column": column, "start": span.start, "end": span.end })
    };
    let related: Vec<Value> = diagnostic
        .related
        .iter()
        .map(|(span, label)| {
            let mut value = place(span);
            value["label"] = label.as_str().into();
            value
        })
        .collect();
    json!({
        "event": "diagnostic",
        "path": path.to_string_lossy(),
        "severity": match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        },
        "message": diagnostic.message,
        "node": diagnostic.node,
        "place": diagnostic.span.as_ref().map(place),
        "label": diagnostic.label,
        "related": related,
        "help": diagnostic.help,
    })
}

fn status(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Completed { .. } => "completed",
        Outcome::Failed { .. } => "failed",
        Outcome::Stopped { .. } => "stopped",
        Outcome::Waiting { .. } => "waiting",
        Outcome::Interrupted => "interrupted",
        Outcome::Paused => "paused",
        Outcome::Cancelled => "cancelled",
    }
}
