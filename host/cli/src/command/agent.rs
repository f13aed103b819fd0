//! `hotcell agent`: what an agent is made of.

use hotcell_runtime::{InspectedLoop, inspect};

use super::{Context, HostArguments, print, print_data};
use crate::arguments::{Agent, Inspect, WhichAgent};
use crate::exit::{Exit, Failure};
use crate::untrusted::one_line;

/// Letters of a description that are shown.
const SHOWN: usize = 100;

pub(super) fn perform(context: &Context, arguments: Agent) -> Result<Exit, Failure> {
    let Agent::Inspect(Inspect { path, which: WhichAgent { agent }, more, json }) = arguments;
    let host = context.host(HostArguments { without_runs: true, ..more.into() })?;
    let loaded = context.load(|| match &agent {
        Some(name) => host.load_named(&path, name),
        None => host.load(&path),
    })?;
    let found = inspect(&loaded, host.prices(), host.default_model().as_deref());
    if json {
        let text = serde_json::to_string_pretty(&found).map_err(|error| Failure::failed(error.to_string()))?;
        print_data(&text)?;
        return Ok(Exit::Done);
    }
    let mut lines =
        vec![format!("{} ({})", one_line(&loaded.graph.name, SHOWN), one_line(&path.to_string_lossy(), usize::MAX))];
    if let Some(description) = &loaded.graph.description {
        lines.push(format!("  {}", in_one_line(description)));
    }
    if found.is_empty() {
        lines.push("  asks no model".to_owned());
    }
    for one in &found {
        lines.push(String::new());
        lines.extend(described(one));
    }
    print(&lines.join("\n"))?;
    Ok(Exit::Done)
}

/// A description of several lines as one.
fn in_one_line(description: &str) -> String {
    one_line(&description.split_whitespace().collect::<Vec<_>>().join(" "), SHOWN)
}

fn described(one: &InspectedLoop) -> Vec<String> {
    let mut lines = vec![one_line(&one.name, SHOWN)];
    let mut add = |what: &str, text: String| lines.push(format!("  {what:<15}{text}"));
    let model = one.model.as_deref().map(|model| one_line(model, SHOWN));
    add("model", model.unwrap_or_else(|| "chosen when it is run".to_owned()));
    if one.tools.is_empty() {
        add("tools", "none".to_owned());
    }
    for (number, tool) in one.tools.iter().enumerate() {
        let kind = if tool.kind == "agent" { " (agent)" } else { "" };
        let text = format!("{}{kind}  {}", one_line(&tool.name, SHOWN), in_one_line(&tool.description));
        add(if number == 0 { "tools" } else { "" }, text.trim_end().to_owned());
    }
    let requests = match (one.max_requests, one.at_cap) {
        (Some(1), None) => "one request".to_owned(),
        (Some(most), Some(then)) => format!("at most {most}, then it {then}"),
        (Some(most), None) => format!("at most {most}"),
        (None, _) => "no cap".to_owned(),
    };
    add("iterations", requests);
    if let Some((tokens, then)) = one.window {
        add("memory", format!("{tokens} tokens, beyond which {then}"));
    }
    match &one.output_schema {
        Some(schema) => add("output schema", schema.to_string()),
        None => add("output schema", "none: a text".to_owned()),
    }
    let mut constraints = Vec::new();
    constraints.extend(one.max_cost_usd.map(|most| format!("costs at most ${most}")));
    constraints.extend(one.max_time_ms.map(|most| format!("takes at most {most} ms")));
    if !one.forbidden.is_empty() {
        constraints.push(format!("forbidden: {}", one_line(&one.forbidden.join(", "), usize::MAX)));
    }
    add("constraints", if constraints.is_empty() { "none".to_owned() } else { constraints.join("; ") });
    match (one.cost.low_usd, one.cost.high_usd) {
        (Some(low), Some(high)) => add("expected cost", format!("${low:.6} to ${high:.4}")),
        _ => add("expected cost", "not known".to_owned()),
    }
    add("", one.cost.how.clone());
    lines
}
