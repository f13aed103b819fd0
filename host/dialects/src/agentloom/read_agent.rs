//! Reading an agent, from a file of its own or from inside of a step.

use std::collections::HashSet;
use std::sync::Arc;

use hotcell_graph::ir::{AgentLoop, Pattern};

use super::files::Files;
use super::schema::{Agent, AgentTool, Memory};
use super::schemas;
use super::values::{amount, expression, milliseconds};
use crate::document::Need::{Optional, Required};
use crate::document::{Fields, Kind, Node, Owner, Reader};

/// The exit condition that every loop has.
const NO_TOOL_CALL: &str = "no_tool_call";
/// How often a model is asked where nothing is said.
const MAX_ITERATIONS: u32 = 10;
/// How often it may be at most.
const MOST_ITERATIONS: u32 = 10_000;

/// Letters of the name of a tool.
const MAX_TOOL_NAME: usize = 64;

/// Reads an agent; what is wrong is reported. None if it has no name or is no mapping.
pub(super) fn agent<'d>(reader: &Reader<'d>, node: &'d Node, files: &Files<'_>) -> Option<Agent> {
    let known = node.get("name").and_then(|entry| entry.value.as_text());
    let what = known.map_or_else(|| "an agent".to_owned(), |name| format!("the agent `{name}`"));
    let mut fields = reader.fields(node, Owner { what, node: None, place: node.place })?;
    let name = fields.text("name", Required);
    if let Some(name) = &name
        && name.trim().is_empty()
    {
        reader.report(fields.error("the name of an agent is empty", &name.span));
    }
    let description = fields.text("description", Optional).map(|text| text.to_string());
    let model = fields.text("model", Optional).map(|text| text.value);
    let system_prompt = fields.text("system_prompt", Optional).map(|text| text.value);
    let tools = tools(&mut fields, files);
    let memory = memory(&mut fields);
    let mut agent = Agent {
        name: name?,
        description,
        model,
        system_prompt,
        tools,
        memory,
        max_iterations: MAX_ITERATIONS,
        returns_at_cap: false,
        exit: None,
        output_schema: None,
        max_cost_usd: None,
        max_latency: None,
        forbidden: Vec::new(),
    };
    loop_policy(&mut fields, &mut agent);
    agent.output_schema = schemas::output_schema(&mut fields, files);
    constraints(&mut fields, &mut agent);
    fields.finish(|_| None);
    Some(agent)
}

/// The agent that a field names by the path of its file or defines.
pub(super) fn named_or_inline<'d>(
    reader: &Reader<'d>,
    node: &'d Node,
    owner: &Owner,
    files: &Files<'_>,
) -> Option<Arc<Agent>> {
    match &node.kind {
        Kind::Map(_) => files.inline(&reader.span(node.place), || agent(reader, node, files)).map(Arc::new),
        _ => {
            let path = reader.text(node, || "`agent`".to_owned(), owner)?;
            files.agent(&path)
        }
    }
}

fn tools(fields: &mut Fields<'_, '_>, files: &Files<'_>) -> Vec<AgentTool> {
    let reader = fields.reader();
    let mut seen = HashSet::new();
    let mut tools = Vec::new();
    for item in fields.list("tools", Optional).unwrap_or_default() {
        let (name, tool) = match &item.kind {
            Kind::Map(_) => match nested(reader, item, fields.owner(), files) {
                Some((name, tool)) => (name, tool),
                None => continue,
            },
            _ => {
                let Some(name) = reader.text(item, || "an item of `tools`".to_owned(), fields.owner()) else {
                    continue;
                };
                let tool = schemas::tool(fields, &name, files).map(AgentTool::Host);
                (name, tool)
            }
        };
        if !seen.insert(name.value.clone()) {
            let error = fields.error(format!("{} has two tools `{}`", fields.owner().what, &*name), &name.span);
            reader.report(error.help("take one of them out, or give it another name"));
            continue;
        }
        tools.extend(tool);
    }
    tools
}

/// Whether providers of models take a name for a tool.
fn is_tool_name(name: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    (1..=MAX_TOOL_NAME).contains(&name.len()) && name.chars().all(is_part)
}

/// An agent that is a tool.
fn nested<'d>(
    reader: &Reader<'d>,
    node: &'d Node,
    owner: &Owner,
    files: &Files<'_>,
) -> Option<(crate::document::SourceText, Option<AgentTool>)> {
    let owner = Owner { what: "a tool".into(), node: owner.node.clone(), place: node.place };
    let mut fields = reader.fields(node, owner)?;
    let name = fields.text("name", Required);
    if let Some(name) = &name
        && !is_tool_name(name)
    {
        let error = fields.error(format!("`{}` is not a valid tool name", &**name), &name.span);
        reader.report(error.help(format!("use letters, digits, `_` and `-`, {MAX_TOOL_NAME} at most")));
    }
    let kind = fields.text("type", Required);
    if let Some(kind) = &kind
        && &**kind != "agent"
    {
        reader.report(fields.unknown_word("type", kind, &["agent"]));
    }
    let agent = fields.node("agent", Required);
    let agent = agent.and_then(|node| named_or_inline(reader, node, fields.owner(), files));
    fields.finish(|_| None);
    let name = name?;
    let tool = agent.map(|agent| AgentTool::Agent { name: name.to_string(), agent });
    Some((name, tool))
}

fn memory(fields: &mut Fields<'_, '_>) -> Option<Memory> {
    let node = fields.node("memory", Optional)?;
    let reader = fields.reader();
    let owner = Owner { what: "`memory`".into(), node: fields.owner().node.clone(), place: node.place };
    let mut fields = reader.fields(node, owner)?;
    fields.word("type", &["conversation"]);
    let tokens = fields.between("token_budget", 1, u32::MAX);
    let trim = fields.word("trim_policy", &["summarize_oldest", "drop_oldest"]);
    fields.finish(|_| None);
    Some(Memory { tokens: tokens?, summarizes: trim != Some("drop_oldest") })
}

fn loop_policy(fields: &mut Fields<'_, '_>, agent: &mut Agent) {
    let Some(node) = fields.node("loop_policy", Optional) else { return };
    let reader = fields.reader();
    let owner = Owner { what: "`loop_policy`".into(), node: fields.owner().node.clone(), place: node.place };
    let Some(mut fields) = reader.fields(node, owner) else { return };
    if let Some(most) = fields.between("max_iterations", 1, MOST_ITERATIONS) {
        agent.max_iterations = most;
    }
    let policy = fields.word("on_max_iterations", &["error", "warn_and_return"]);
    agent.returns_at_cap = policy == Some("warn_and_return");
    if let Some(condition) = fields.text("exit_condition", Optional)
        && condition.trim() != NO_TOOL_CALL
    {
        let names = [("reply", AgentLoop::REPLY_KEY), ("iterations", AgentLoop::REQUESTS_KEY)];
        agent.exit = expression(reader, "`exit_condition`", &condition, &names, fields.owner());
    }
    fields.finish(|_| None);
}

fn constraints(fields: &mut Fields<'_, '_>, agent: &mut Agent) {
    let Some(node) = fields.node("constraints", Optional) else { return };
    let reader = fields.reader();
    let owner = Owner { what: "`constraints`".into(), node: fields.owner().node.clone(), place: node.place };
    let Some(mut fields) = reader.fields(node, owner) else { return };
    agent.max_cost_usd = amount(&mut fields, "max_cost_usd");
    agent.max_latency = milliseconds(&mut fields, "max_latency_ms");
    for pattern in fields.texts("forbidden_patterns", Optional).unwrap_or_default() {
        if pattern.is_empty() {
            reader.report(fields.error("a forbidden pattern is empty, so that every reply has it", &pattern.span));
            continue;
        }
        match Pattern::of_text(&pattern) {
            Ok(known) => agent.forbidden.push(known),
            Err(problem) => {
                let error = fields.error("a forbidden pattern is too large to be looked for", &pattern.span);
                let problem = problem.trim_end_matches('.');
                reader.report(error.help(format!("{problem}; repeat less in it, or write `[A-Za-z0-9_]` for `\\w`")));
            }
        }
    }
    fields.finish(|_| None);
}
