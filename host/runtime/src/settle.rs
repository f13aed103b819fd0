//! What a call into a cell leaves behind: its bill, its log, its recording, and what kept it from succeeding.
//!
//! Everything that a run calls is settled here, so that nobody's work is forgotten in the run's account.

use std::sync::Arc;

use hotcell_budget::{Account, BudgetScope};
use hotcell_cells::{CellError, LogLevel, LogListener, Report};
use hotcell_engine::{CallError, CallReport, CallSite};

use crate::notices;
use crate::recordings;
use crate::withholding;

/// Puts what a plugin or script logs into the log, while it runs.
pub(crate) fn log_of(name: &str) -> LogListener {
    let name = name.to_owned();
    Arc::new(move |line| {
        let message = &line.message;
        match (line.progress, line.level) {
            (Some((done, total)), _) => {
                tracing::info!(target: "hotcell::plugin", plugin = name, said = true, done, total, "{message}");
            }
            (None, LogLevel::Trace | LogLevel::Debug) => {
                tracing::debug!(target: "hotcell::plugin", plugin = name, said = true, "{message}");
            }
            (None, LogLevel::Info) => {
                tracing::info!(target: "hotcell::plugin", plugin = name, said = true, "{message}");
            }
            (None, LogLevel::Warn) => {
                tracing::warn!(target: "hotcell::plugin", plugin = name, said = true, "{message}");
            }
            (None, LogLevel::Error) => {
                tracing::error!(target: "hotcell::plugin", plugin = name, said = true, "{message}");
            }
        }
    })
}

/// An error without what its reader would have to be the operator for: a model that reads it has no settings to write into.
pub fn for_models(error: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut lines = error.lines();
    while let Some(line) = lines.next() {
        let Some(before) = ADVICE.iter().find_map(|advice| line.split_once(advice)).map(|(before, _)| before) else {
            kept.push(line);
            continue;
        };
        kept.push(before);
        if line.ends_with("write into `hotcell.toml`:") {
            // The table and its line.
            lines.next();
            lines.next();
        }
    }
    kept.join("\n")
}

/// What begins advice for the operator.
const ADVICE: [&str; 4] = [
    "; to grant it, write into `hotcell.toml`",
    "; its description does not ask for it",
    "; `hotcell.toml` would grant it",
    ": to grant it, write into `hotcell.toml`",
];

/// Takes what a call used out of the budget scope, and gives its result and who used what for it. What others used they have
/// paid for themselves.
pub(crate) fn settle<T>(
    name: &str,
    report: Report<T>,
    budget_scope: &BudgetScope,
    site: &CallSite,
) -> (Result<T, CallError>, Account) {
    budget_scope.spend(&report.usage);
    let denied: Vec<&str> = report.denials.iter().map(|denial| denial.capability.name()).collect();
    let failed = matches!(&report.result, Err(error) if !matches!(error, CellError::Suspended { .. }));
    site.tell_called(name, failed, &report.usage, &denied);
    withholding::tell(&report.denials, site);
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

#[cfg(test)]
mod tests {
    use hotcell_cells::{Capability, Denial};

    use super::for_models;

    #[test]
    fn a_model_is_told_what_happened_and_not_what_to_write_into_settings() {
        let denial = Denial::new("a.py", Capability::KeyValue);
        let error = format!("it failed\n{denial}\nafter");
        let told = "it failed\n`a.py` asked for `kv`, a store of its own, which is not granted\nafter";
        assert_eq!(for_models(&error), told);
        let held_back = Denial { held_back: true, ..denial.clone() };
        let unasked = Denial { unasked: true, ..denial };
        for denial in [held_back, unasked] {
            assert_eq!(for_models(&format!("it failed\n{denial}\nafter")), told);
        }
        assert_eq!(for_models("nothing of that kind"), "nothing of that kind");
    }
}
