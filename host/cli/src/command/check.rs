//! `hotcell check`: what is wrong with graphs, all of it at once, without running anything.

use hotcell_graph::diagnostic::{Severity, render};
use serde_json::json;

use super::{Context, HostArguments, print};
use crate::arguments::Check;
use crate::events;
use crate::exit::{Exit, Failure};
use crate::narration::counted;
use crate::screen::GOOD;

pub(super) fn perform(context: &Context, arguments: Check) -> Result<Exit, Failure> {
    let host =
        context.host(HostArguments { plugins: arguments.plugins, without_runs: true, ..HostArguments::default() })?;
    let mut errors = 0;
    let mut warnings = 0;
    for path in &arguments.paths {
        let (found, graph) = match context.try_load(&host, path) {
            Ok(agent) => (agent.warnings, Some((agent.graph.name.clone(), agent.graph.len()))),
            Err(refused) => (refused.diagnostics, None),
        };
        let wrong = found.iter().filter(|found| found.severity == Severity::Error).count();
        errors += wrong;
        warnings += found.len() - wrong;
        if arguments.json {
            for diagnostic in &found {
                events::line(&events::diagnostic(path, diagnostic))?;
            }
            continue;
        }
        if !found.is_empty() {
            print(&render(&found, context.colours_output()))?;
        }
        if let Some((name, nodes)) = graph {
            let good = if context.colours_output() { format!("{GOOD}ok{GOOD:#}") } else { "ok".into() };
            print(&format!("{good}: {} (graph `{name}`, {})", path.display(), counted(nodes as u64, "node")))?;
        }
    }
    let exit = if errors > 0 { Exit::Refused } else { Exit::Done };
    if arguments.json {
        events::line(&json!({
            "event": "result",
            "graphs": arguments.paths.len(),
            "errors": errors,
            "warnings": warnings,
            "exit_code": exit as u8,
        }))?;
    }
    Ok(exit)
}
