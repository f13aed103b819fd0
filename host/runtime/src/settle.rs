//! What a call into a cell leaves behind: its bill, its log, its recording, and what kept it from succeeding.
//!
//! Everything that a run calls is settled here, so that nobody's work is forgotten in the run's account.

use std::sync::Arc;

use hotcell_budget::{Account, BudgetScope};
use hotcell_cells::{CellError, LogListener, Report};
use hotcell_engine::{CallError, CallReport, CallSite};

use crate::notices;
use crate::recordings;

/// Puts what a plugin or script logs into the log, while it runs.
pub(crate) fn log_of(name: &str) -> LogListener {
    let name = name.to_owned();
    Arc::new(move |line| match line.progress {
        Some((done, total)) => {
            tracing::info!(target: "hotcell::plugin", plugin = name, done, total, "{}", line.message);
        }
        None => tracing::info!(target: "hotcell::plugin", plugin = name, level = ?line.level, "{}", line.message),
    })
}

/// Takes what a call used out of the budget scope, and gives its result and who used what for it. What others used they have
/// paid for themselves.
pub(crate) fn settle<T>(
    name: &str,
    report: Report<T>,
    budget_scope: &BudgetScope,
    site: &CallSite,
) -> (Result<T, CallError>, Account) {
    budget_scope.spend(&report.usage);
    recordings::keep(name, report.recording, site);
    let mut account = Account::of(name, report.usage);
    for (who, usage) in report.nested {
        account.add(who, usage);
    }
    if report.dropped_log_lines > 0 {
        tracing::warn!(target: "hotcell::plugin", plugin = name, "{} more lines were dropped", report.dropped_log_lines);
    }
    if !report.stderr.is_empty() {
        tracing::debug!(target: "hotcell::plugin", plugin = name, "stderr: {}", report.stderr);
    }
    let result = report.result.map_err(|error| match error {
        CellError::Suspended { question } => CallError::Asks(question),
        other => {
            // Whoever reads that it failed wants to read what would let it succeed.
            let mut text = other.to_string();
            for denial in &report.denials {
                text.push('\n');
                text.push_str(&denial.to_string());
            }
            CallError::Failed(text)
        }
    });
    (result, account)
}

/// The same for calls whose result is a text.
pub(crate) fn into_report(
    name: &str,
    report: Report<String>,
    budget_scope: &BudgetScope,
    site: &CallSite,
) -> CallReport {
    // What failed says itself what it wrote.
    let notices = match report.result {
        Ok(_) => notices::of(name, &report.stderr).into_iter().chain(notices::of_denials(&report.denials)).collect(),
        Err(_) => Vec::new(),
    };
    let (result, account) = settle(name, report, budget_scope, site);
    CallReport { result, account, notices }
}
