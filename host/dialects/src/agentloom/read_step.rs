//! Reading the steps of a workflow.

use std::sync::Arc;
use std::time::Duration;

use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::ir::ModelReasoning;
use hotcell_graph::{Key, Place, Value};

use super::files::Files;
use super::schema::{
    AgentStep, Attempts, Body, Condition, Config, DeclaredTool, Given, LlmCall, Prompt, STEPS, Step, Subworkflow,
    Target,
};
use super::values::{self, MOST_RETRIES, number, refuse, seconds};
use super::{read_agent, read_gate, schemas};
use crate::document::Need::{Optional, Required};
use crate::document::{Fields, Kind, Node, Owner, Reader};

/// Types of steps.
const TYPES: [&str; 6] = ["llm_call", "tool", "router", "subworkflow", "approval_gate", "agent"];
/// What stands before the name of an entry of the state.
const STATE: &str = "state.";

/// Reads a step; none if it has no id.
pub(super) fn step<'d>(reader: &Reader<'d>, node: &'d Node, config: &Config, files: &Files<'_>) -> Option<Step> {
    let id = node.get("id").and_then(|entry| entry.value.as_text()).map(Arc::<str>::from);
    let what = id.as_ref().map_or_else(|| "a step".to_owned(), |id| format!("the step `{id}`"));
    let mut fields = reader.fields(node, Owner { what, node: id, place: node.place })?;
    let id = fields.text("id", Required);
    if let Some(id) = &id
        && id.trim().is_empty()
    {
        reader.report(fields.error("the id of a step is empty", &id.span));
    }
    let kind = fields.text("type", Required);
    let depends_on = fields.texts("depends_on", Optional).unwrap_or_default();
    let output = target(&mut fields, "output");
    let timeout = seconds(&mut fields, "timeout");
    let attempts = attempts(&mut fields, config);
    let known = kind.as_ref().and_then(|kind| TYPES.iter().find(|known| **known == &**kind).copied());
    if let (Some(kind), None) = (&kind, known) {
        reader.report(fields.unknown_word("type", kind, &TYPES));
        return None;
    }
    let body = match known {
        Some("llm_call") => llm_call(&mut fields, files).map(|call| Body::LlmCall(Box::new(call))),
        Some("tool") => tool(&mut fields, files),
        Some("router") => router(&mut fields),
        Some("subworkflow") => subworkflow(&mut fields, files).map(|child| Body::Subworkflow(Box::new(child))),
        Some("approval_gate") => Some(read_gate::gate(&mut fields)),
        Some("agent") => agent(&mut fields, files).map(|agent| Body::Agent(Box::new(agent))),
        _ => None,
    };
    fields.finish(|_| None);
    let body = body.unwrap_or(Body::Broken);
    Some(Step { id: id?, kind: known.unwrap_or_default(), depends_on, output, timeout, attempts, body })
}

/// A place of the state that is written, with or without `state.` in front.
fn target(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<Target> {
    let text = fields.text(name, Optional)?;
    match place(&text) {
        Ok(place) if &**place.root() == STEPS => {
            let error =
                fields.error(format!("`{name}` cannot be in `{STEPS}`, which has what each step gave"), &text.span);
            fields.reader().report(error.help("write another name"));
            None
        }
        Ok(place) => Some(Target { place, span: text.span }),
        Err(problem) => {
            let error = fields.error(format!("`{name}` is not a valid place in the state: {problem}"), &text.span);
            fields.reader().report(error.help("write a name, or a path such as `result.items[0].title`"));
            None
        }
    }
}

fn place(text: &str) -> Result<Place, String> {
    let text = text.trim();
    Place::parse(text.strip_prefix(STATE).unwrap_or(text))
}

fn attempts(fields: &mut Fields<'_, '_>, config: &Config) -> Attempts {
    let mut attempts = Attempts { more: config.max_retries.unwrap_or(3), ..Attempts::default() };
    let Some(node) = fields.node("retry", Optional) else { return attempts };
    let reader = fields.reader();
    let owner = Owner { what: "`retry`".into(), node: fields.owner().node.clone(), place: node.place };
    let Some(mut fields) = reader.fields(node, owner) else { return attempts };
    attempts.more = fields.between("max_retries", 0, MOST_RETRIES).unwrap_or(attempts.more);
    attempts.base = number(&mut fields, "backoff_base").unwrap_or(attempts.base);
    attempts.longest = number(&mut fields, "backoff_max").map_or(attempts.longest, Duration::from_secs_f64);
    attempts.jitter = fields.flag("jitter", Optional).is_none_or(|flag| flag.value);
    if let Some(items) = fields.list("retryable_status_codes", Optional) {
        let code = |item: &Node| match &item.kind {
            Kind::Number(number) if number.is_integer() && (100.0..600.0).contains(&number.to_f64()) => {
                Some(number.to_f64() as u16)
            }
            _ => {
                reader.wrong_type(
                    item,
                    "an item of `retryable_status_codes`",
                    "a status from 100 to 599",
                    fields.owner(),
                );
                None
            }
        };
        attempts.statuses = items.iter().filter_map(code).collect();
    }
    fields.finish(|_| None);
    attempts
}

fn llm_call(fields: &mut Fields<'_, '_>, files: &Files<'_>) -> Option<LlmCall> {
    let reader = fields.reader();
    let text = fields.text("prompt", Required);
    let system_prompt = fields.text("system_prompt", Optional).map(Prompt::of);
    let model = fields.text("model", Optional).map(|text| text.value);
    let temperature = number(fields, "temperature");
    let max_tokens = fields.between("max_tokens", 1, u32::MAX);
    fields.flag("stream", Optional);
    refuse(fields, "attachments", "put the text of documents into the state or into a knowledge base");
    let thinking = thinking(fields);
    let mut tools = Vec::new();
    for item in fields.list("tools", Optional).unwrap_or_default() {
        tools.extend(declared_tool(reader, item, fields.owner(), files));
    }
    let tool_choice = fields.node("tool_choice", Optional).and_then(|node| choice(fields, node, &tools));
    let max_iterations = fields.between("max_tool_iterations", 1, u32::MAX).unwrap_or(5);
    Some(LlmCall {
        prompt: Prompt::of(text?),
        system_prompt,
        model,
        temperature,
        max_tokens,
        thinking,
        tools,
        tool_choice,
        max_iterations,
    })
}

/// How much the model thinks before it answers.
fn thinking(fields: &mut Fields<'_, '_>) -> Option<ModelReasoning> {
    let node = fields.node("thinking", Optional)?;
    let reader = fields.reader();
    let owner = Owner { what: "`thinking`".into(), node: fields.owner().node.clone(), place: node.place };
    let mut fields = reader.fields(node, owner)?;
    let is_enabled = fields.flag("enabled", Required).is_some_and(|flag| flag.value);
    let budget = fields.between("budget_tokens", 1, u32::MAX);
    refuse(&mut fields, "level", "write how many tokens it may take at most: `budget_tokens: 4000`");
    if fields.flag("capture_reasoning", Optional).is_some_and(|flag| flag.value) {
        refuse(&mut fields, "capture_reasoning", "hotcell does not keep what a model thinks; leave it out");
    }
    fields.finish(|_| None);
    is_enabled.then_some(ModelReasoning { budget })
}

fn declared_tool<'d>(reader: &Reader<'d>, node: &'d Node, owner: &Owner, files: &Files<'_>) -> Option<DeclaredTool> {
    let owner = Owner { what: "a tool".into(), node: owner.node.clone(), place: node.place };
    let mut fields = reader.fields(node, owner)?;
    let name = fields.text("name", Required);
    let description = fields.text("description", Optional).map(|text| text.to_string());
    let parameters = fields.node("parameters", Optional);
    let parameters = parameters.and_then(|node| schemas::object(&fields, node, "parameters"));
    let tool = name.as_ref().and_then(|name| schemas::tool(&fields, name, files));
    fields.finish(|_| None);
    Some(DeclaredTool { name: name?.to_string(), tool: tool?, description, parameters })
}

/// Which tools the model has to call, in the form of Chat Completions.
fn choice(fields: &Fields<'_, '_>, node: &Node, tools: &[DeclaredTool]) -> Option<Value> {
    let reader = fields.reader();
    match node.to_value() {
        Value::Text(word) if &*word == "auto" => None,
        Value::Text(word) if matches!(&*word, "required" | "none") => Some(Value::Text(word)),
        Value::Object(object) if object.get("name").and_then(Value::as_text).is_some() && object.len() == 1 => {
            let name = object.get("name").and_then(Value::as_text).unwrap_or_default();
            if !tools.iter().any(|tool| tool.name == name) {
                let error = fields.error(
                    format!("`tool_choice` names the tool `{name}`, which the step does not declare"),
                    &reader.span(node.place),
                );
                reader.report(error);
            }
            let json = serde_json::json!({ "type": "function", "function": { "name": name } });
            Some(Value::from(&json))
        }
        _ => {
            let error = fields
                .error("`tool_choice` must be `auto`, `required`, `none` or `{name: TOOL}`", &reader.span(node.place));
            reader.report(error);
            None
        }
    }
}

fn tool(fields: &mut Fields<'_, '_>, files: &Files<'_>) -> Option<Body> {
    let name = fields.text("tool_name", Required);
    let arguments = fields.map("tool_args", Optional).map(|(entries, _)| entries).unwrap_or_default();
    let arguments = arguments.iter().map(|entry| (Key::clone(&entry.key), given(fields, &entry.value))).collect();
    let tool = schemas::tool(fields, &name?, files)?;
    Some(Body::Tool { tool, arguments })
}

/// A value that is handed over: a text with `state.` in front is a place, other texts are templates.
fn given<'d>(fields: &Fields<'_, 'd>, node: &'d Node) -> Given {
    let text = match values::is_text(node) {
        true => fields.reader().text(node, String::new, fields.owner()),
        false => None,
    };
    let Some(text) = text else { return Given::Value(node.to_value()) };
    match text.strip_prefix(STATE).map(|rest| (rest, Place::parse(rest))) {
        Some((_, Ok(place))) => Given::State(place, text.span.clone()),
        // What only begins like a place is a text.
        _ => Given::Template(Prompt::of(text)),
    }
}

fn router(fields: &mut Fields<'_, '_>) -> Option<Body> {
    let reader = fields.reader();
    let mut conditions = Vec::new();
    let listed = fields.list("conditions", Optional).unwrap_or_default();
    for item in listed {
        let owner = Owner { what: "a condition".into(), node: fields.owner().node.clone(), place: item.place };
        let Some(mut fields) = reader.fields(item, owner.clone()) else { continue };
        let expression = fields.text("expression", Required);
        let target = fields.text("target", Required);
        fields.finish(|_| None);
        let expression =
            expression.and_then(|text| values::expression(reader, "condition", &text, &[("steps", "steps")], &owner));
        if let (Some(expression), Some(target)) = (expression, target) {
            conditions.push(Condition { expression, target });
        }
    }
    let default = fields.text("default", Optional);
    if listed.is_empty() && default.is_none() {
        let warning = Diagnostic::warning(format!("{} will fail: it leads to no step", fields.owner().what));
        let warning = warning.at(&reader.span(fields.owner().place));
        reader.report(warning.help("add `conditions`, each with an `expression` and a `target`, or a `default`"));
    }
    Some(Body::Router { conditions, default })
}

fn subworkflow(fields: &mut Fields<'_, '_>, files: &Files<'_>) -> Option<Subworkflow> {
    let reader = fields.reader();
    let path = fields.text("workflow_path", Optional);
    let inline = fields.node("workflow_inline", Optional);
    let is_isolated = fields.flag("isolated_state", Optional).is_some_and(|flag| flag.value);
    let input_place = fields.map("input", Optional);
    let input: Vec<(Key, Given)> = input_place
        .map(|(entries, _)| entries.iter().map(|entry| (Key::clone(&entry.key), given(fields, &entry.value))).collect())
        .unwrap_or_default();
    if let (Some((_, place)), false) = (input_place, is_isolated) {
        let error = fields.error("`input` is for a child with a state of its own", &reader.span(place));
        reader.report(error.help("add `isolated_state: true`; without it the child sees the whole state"));
    }
    let return_keys = fields.texts("return_keys", Optional);
    let return_keys = return_keys.map(|keys| keys.into_iter().map(|key| key.value).collect());
    let workflow = match (path, inline) {
        (Some(path), None) => files.workflow(&path),
        (None, Some(node)) => files.inline_workflow(reader, node),
        (both, _) => {
            let message = match both {
                Some(_) => "has both `workflow_path` and `workflow_inline`",
                None => "has neither `workflow_path` nor `workflow_inline`",
            };
            let error = fields.error(format!("{} {message}", fields.owner().what), &reader.span(fields.owner().place));
            reader.report(error.help("give it exactly one of them"));
            None
        }
    };
    Some(Subworkflow { workflow: workflow?, is_isolated, input, return_keys })
}

fn agent(fields: &mut Fields<'_, '_>, files: &Files<'_>) -> Option<AgentStep> {
    let reader = fields.reader();
    let node = fields.node("agent", Required);
    let input = fields.node("input", Required).map(|node| given(fields, node));
    let conversation = target(fields, "conversation");
    let agent = node.and_then(|node| read_agent::named_or_inline(reader, node, fields.owner(), files));
    Some(AgentStep { agent: agent?, input: input?, conversation })
}
