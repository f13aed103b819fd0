//! What came of a run, and what is wrong with an agent, as JSON for programs: the same on every surface.

use hotcell_budget::Account;
use hotcell_engine::{Outcome, RunReport};
use hotcell_graph::diagnostic::{Diagnostic, Severity, Span};
use hotcell_journal::{NodeFailure, RunId};
use serde_json::{Value, json};

/// What came of a run that gave control back: `run`, `status`, and what belongs to that status (`output`; `node` and `error`; `questions`),
/// `failures`, `usage` and `used_by`.
pub fn report_json(report: &RunReport) -> Value {
    outcome_json(&report.run, &report.outcome, &report.failures, &report.account)
}

/// What came of a run of which no more is known than this, as [`report_json`] has it.
pub fn outcome_json(run: &RunId, outcome: &Outcome, failures: &[NodeFailure], account: &Account) -> Value {
    let mut value = json!({
        "run": run.as_str(),
        "status": status(outcome),
        "failures": failures,
        "usage": account.total(),
        "used_by": account,
    });
    match outcome {
        Outcome::Completed { output } => value["output"] = output.as_str().into(),
        Outcome::Failed { node, error } => {
            value["node"] = node.as_deref().into();
            value["error"] = error.as_str().into();
        }
        Outcome::Stopped { reason } => value["error"] = reason.as_str().into(),
        Outcome::Waiting { questions } => value["questions"] = json!(questions),
        Outcome::Interrupted | Outcome::Paused | Outcome::Cancelled => {}
    }
    value
}

/// One finding about an agent: `severity`, `message`, `node`, `place` (file, line and column from 1, bytes from 0), `label`, `related`, `help`.
pub fn diagnostic_json(diagnostic: &Diagnostic) -> Value {
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
