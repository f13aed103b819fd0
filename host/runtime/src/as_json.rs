//! What came of a run, and what is wrong with an agent, as JSON for programs: the same on every surface.

use hotcell_budget::Account;
use hotcell_engine::{Outcome, RunReport};
use hotcell_graph::diagnostic::{Diagnostic, Severity, Span};
use hotcell_journal::{NodeFailure, RunId};
use serde_json::{Value, json};

use crate::reexecute::{Again, CallReexecuted, Tally};

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

/// What came of a call that was executed again: `run`, `place`, `number`, `name`, `call`, `result`, and what belongs to that result.
pub fn call_json(run: &RunId, call: &CallReexecuted) -> Value {
    let mut line = json!({
        "run": run, "place": call.place.as_str(), "number": call.number, "name": call.name, "call": call.called,
    });
    match &call.again {
        Again::Same { fuel } => {
            line["result"] = "same".into();
            line["fuel_recorded"] = fuel.0.into();
            line["fuel_now"] = fuel.0.into();
        }
        Again::Different { output, fuel: (before, after) } => {
            line["result"] = if output.is_some() { "different".into() } else { "other_fuel".into() };
            line["output"] = json!(output);
            line["fuel_recorded"] = before.0.into();
            line["fuel_now"] = after.0.into();
        }
        Again::Wants(wanted) => {
            line["result"] = "asks_more".into();
            line["asks"] = wanted.as_str().into();
        }
        Again::Left(gap) => {
            line["result"] = "left_out".into();
            line["reason"] = gap.to_string().into();
        }
        Again::Unusable(reason) => {
            line["result"] = "unusable".into();
            line["reason"] = reason.to_string().into();
        }
    }
    line
}

/// What all calls came to that were executed again.
pub fn tally_json(tally: &Tally) -> Value {
    let Tally { same, different, wants, left, unusable, fuel_before, fuel_after } = *tally;
    json!({
        "calls": tally.calls(), "same": same, "different": different, "asks_more": wants, "left_out": left,
        "unusable": unusable, "fuel_recorded": fuel_before, "fuel_now": fuel_after,
    })
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
