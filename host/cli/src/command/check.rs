//! `hotcell check`: what is wrong with graphs, all of it at once, without running anything.

use hotcell_graph::diagnostic::{Severity, render};
use hotcell_runtime::{Agent, Loading, Which};
use serde_json::json;

use super::{Context, HostArguments, print};
use crate::arguments::Check;
use crate::events;
use crate::exit::{Exit, Failure};
use crate::narration::counted;
use crate::screen::GOOD;
use crate::untrusted::one_line;

pub(super) fn perform(context: &Context, arguments: Check) -> Result<Exit, Failure> {
    let host = context.host(HostArguments { without_runs: true, ..arguments.more.into() })?;
    let mut errors = 0;
    let mut warnings = 0;
    let loading = Loading { agent: Which::Any, components: &arguments.parts.components };
    for path in &arguments.paths {
        let (found, agent) = match context.try_load(|| host.load_with(path, &loading)) {
            Ok(agent) => (agent.warnings.clone(), Some(agent)),
            Err(refused) => (refused.diagnostics, None),
        };
        let count = |severity| found.iter().filter(|found| found.severity == severity).count();
        errors += count(Severity::Error);
        warnings += count(Severity::Warning);
        if arguments.json {
            for diagnostic in &found {
                events::line(&events::diagnostic(path, diagnostic))?;
            }
            if let Some(agent) = &agent {
                events::line(
                    &json!({ "event": "checked", "path": path, "graph": agent.graph.name, "style": agent.style }),
                )?;
            }
            continue;
        }
        if !found.is_empty() {
            print(&render(&found, context.colours_output()))?;
        }
        if let Some(agent) = agent {
            let good = if context.colours_output() { format!("{GOOD}ok{GOOD:#}") } else { "ok".into() };
            print(&format!("{good}: {} ({})", one_line(&path.to_string_lossy(), usize::MAX), described(&agent)))?;
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

/// Letters of names that are shown.
const NAMES_SHOWN: usize = 10_000;

/// What is in a file that is all right.
fn described(agent: &Agent) -> String {
    let what = match &agent.names[..] {
        [] | [_] => format!(
            "graph `{}`, {}",
            one_line(&agent.graph.name, NAMES_SHOWN),
            counted(agent.graph.len() as u64, "node")
        ),
        several => format!("agents `{}`", one_line(&several.join("`, `"), NAMES_SHOWN)),
    };
    match agent.style {
        Some(style) => format!("{what}; {style}"),
        None => what,
    }
}
