//! From the tree of a file to [`super::schema::Agent`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hotcell_graph::conversation::{self, Speaker};
use hotcell_graph::diagnostic::{Diagnostic, Span};
use hotcell_graph::formula::ValueType;
use hotcell_graph::ir::{Retry, RetryOn};
use hotcell_graph::{List, Value};

use super::custom;
use super::declared::{reference, unknown};
use super::schema::{Agent, Body, CallLlm, Edge, Field, MESSAGES, Node, PromptRole, Reference, Route, SubAgentTools};
use crate::document::Need::{Optional, Required};
use crate::document::{self, Entry, Fields, Kind, Owner, Reader, SourceText, Spanned};
use crate::json_schema;
use crate::surroundings::Surroundings;

/// Seconds before the second attempt where a node does not say otherwise.
const PAUSE: f64 = 1.0;
/// Seconds of the longest pause between two attempts.
const LONGEST_PAUSE: f64 = 30.0;
/// Rounds of a run where the agent does not say otherwise.
const ROUNDS: u32 = 25;
const KINDS: [&str; 8] =
    ["call_llm", "tool_node", "call_agent", "data_transform", "set_state", "interrupt", "load_skills", "custom"];
/// The types of nodes whose failure a file can handle: the others compute, or wait.
const MAY_FAIL: [&str; 4] = ["call_llm", "tool_node", "call_agent", "custom"];

pub(super) fn agent(reader: &Reader<'_>, entry: &Entry, surroundings: &dyn Surroundings) -> Option<Agent> {
    let name = Spanned { value: Arc::clone(&entry.key), span: reader.span(entry.key_place) };
    // The document outlives the reader; the entry is a part of it.
    let node = reader.document().root.get("agents")?.value.get(&entry.key).map(|entry| &entry.value)?;
    let owner = Owner { what: format!("the agent `{}`", entry.key), node: None, place: entry.key_place };
    let mut fields = reader.fields(node, owner)?;
    let input_schema = json_schema::read(&mut fields, "input_schema", Optional).map(|(_, schema)| schema);
    // It is about structured parts of answers to other agents; what a run gives is a text.
    json_schema::read(&mut fields, "output_schema", Optional);
    let state = fields.entry("state", Optional).map(|entry| state(reader, entry)).unwrap_or_default();
    let mut agent = Agent {
        name,
        fields: state,
        entry: None,
        nodes: Vec::new(),
        edges: Vec::new(),
        rounds: ROUNDS,
        concurrency: None,
        input_schema,
    };
    if let Some(entry) = fields.entry("graph", Required) {
        let owner = Owner { what: "`graph`".into(), node: None, place: entry.key_place };
        if let Some(mut fields) = reader.fields(&entry.value, owner) {
            agent.entry = fields.text("entry_point", Optional);
            let nodes = fields.list("nodes", Required);
            if nodes.is_some_and(<[_]>::is_empty) {
                let error = fields.error(format!("the agent `{}` has no nodes", agent.name.value), &agent.name.span);
                reader.report(error.help("a graph needs at least one node"));
            }
            agent.nodes =
                nodes.unwrap_or_default().iter().filter_map(|item| node_of(reader, item, surroundings)).collect();
            agent.edges = fields
                .list("edges", Optional)
                .unwrap_or_default()
                .iter()
                .filter_map(|item| edge(reader, item))
                .collect();
            fields.finish(|_| None);
        }
    }
    if let Some(entry) = fields.entry("langgraph_config", Optional) {
        let owner = Owner { what: "`langgraph_config`".into(), node: None, place: entry.key_place };
        if let Some(mut fields) = reader.fields(&entry.value, owner) {
            for (name, into) in [("recursion_limit", true), ("max_concurrency", false)] {
                let Some(count) = fields.count(name, Optional) else { continue };
                if count.value == 0 {
                    let error = fields.error(format!("`{name}: 0` lets nothing run"), &count.span);
                    reader.report(error.help("use 1 or more"));
                } else if into {
                    agent.rounds = count.value;
                } else {
                    agent.concurrency = Some(count.value as usize);
                }
            }
            // Labels for traces of another program.
            fields.ignore("tags");
            fields.ignore("metadata");
            fields.finish(|_| None);
        }
    }
    fields.finish(|_| None);
    Some(agent)
}

fn state<'d>(reader: &Reader<'d>, entry: &'d Entry) -> Vec<Field> {
    const TYPES: [&str; 6] = ["str", "int", "float", "bool", "list", "dict"];
    let owner = Owner { what: "`state`".into(), node: None, place: entry.key_place };
    let Some(mut fields) = reader.fields(&entry.value, owner) else { return Vec::new() };
    let mut seen: HashMap<Arc<str>, Span> = HashMap::new();
    let mut found = Vec::new();
    for item in fields.list("fields", Optional).unwrap_or_default() {
        let what = match named(item, "name") {
            Some(name) => format!("the field `{name}` of the state"),
            None => "a field of the state".to_owned(),
        };
        let owner = Owner { what, node: None, place: item.place };
        let Some(mut fields) = reader.fields(item, owner) else { continue };
        let (name, kind) = (fields.text("name", Required), fields.text("type", Required));
        let default = fields.node("default", Optional);
        if let Some(kind) = &kind
            && !TYPES.contains(&&**kind)
        {
            reader.report(unknown(&fields, "type", kind, &TYPES));
        }
        if let (Some(name), Some(kind)) = (name, kind) {
            if let Some(first) = seen.insert(Arc::clone(&name.value), name.span.clone()) {
                let error = fields.error(format!("the field `{}` occurs twice in the state", &*name), &name.span);
                reader.report(error.related(&first, "first here").help("remove one of them"));
            }
            let default = default.and_then(|node| default_of(&fields, &name, &kind, node));
            let (is_list, is_float) = (&*kind == "list", &*kind == "float");
            found.push(Field { is_list, is_float, holds: holds(&kind), name, default });
        }
        fields.finish(|_| None);
    }
    fields.finish(|_| None);
    found
}

/// What a field of a type is declared to hold.
fn holds(kind: &str) -> ValueType {
    match kind {
        "str" => ValueType::string(),
        "int" => ValueType::int(),
        "float" => ValueType::double(),
        "bool" => ValueType::bool(),
        "list" => ValueType::list(),
        "dict" => ValueType::map(),
        _ => ValueType::any(),
    }
}

fn default_of(fields: &Fields<'_, '_>, name: &str, kind: &str, node: &document::Node) -> Option<Value> {
    let fits = match (&node.kind, kind) {
        (Kind::Text(_), "str") | (Kind::Bool(_), "bool") | (Kind::List(_), "list") | (Kind::Map(_), "dict") => true,
        (Kind::Number(number), "int") => number.is_integer(),
        (Kind::Number(_), "float") => true,
        _ => !["str", "int", "float", "bool", "list", "dict"].contains(&kind),
    };
    let reader = fields.reader();
    let mut problem =
        (!fits).then(|| format!("the default of `{name}` is {}, which is not of type `{kind}`", node.describe()));
    let mut value = node.to_value();
    if name == MESSAGES && kind == "list" && fits {
        match conversation::add(&List::default(), &value) {
            Ok(messages) => value = Value::List(messages),
            Err(reason) => problem = Some(format!("the default of `{name}`: {reason}")),
        }
    } else if let (Value::Number(number), "float") = (&value, kind) {
        // A float stays one, however its default is written.
        value = hotcell_graph::value::Number::from_f64(number.to_f64()).map_or(value, Value::Number);
    }
    if let Some(problem) = problem {
        reader.report(fields.error(problem, &reader.span(node.place)));
        return None;
    }
    Some(value)
}

/// The node that something belongs to, known before its fields are read, so that every error of theirs can say it.
fn named(item: &document::Node, field: &str) -> Option<Arc<str>> {
    item.get(field)?.value.as_text().map(Arc::from)
}

/// What nodes have in their `args`.
const OF_ARGS: [&str; 15] = [
    "agent",
    "expression",
    "input",
    "llm",
    "metadata",
    "prompt",
    "response_format",
    "skill_ids",
    "state_updates",
    "tools",
    "use_sub_agents_as_tools",
    "use_tools_from_loaded_skills",
    "use_tools_from_registry",
    "value",
    "values",
];

fn node_of<'d>(reader: &Reader<'d>, item: &'d document::Node, surroundings: &dyn Surroundings) -> Option<Node> {
    let owner = Owner { what: "a node".into(), node: named(item, "name"), place: item.place };
    let mut fields = reader.fields(item, owner)?;
    let name = fields.text("name", Required);
    let kind = fields.text("type", Required);
    let args = fields.entry("args", Optional);
    let on_error = fields.entry("on_error", Optional);
    fields.finish(|unknown| {
        OF_ARGS.contains(&unknown).then(|| format!("it belongs into `args`: `args: {{{unknown}: ...}}`"))
    });
    let name = name?;
    let owner = |what: String| Owner { what, node: Some(Arc::clone(&name.value)), place: item.place };
    let (retry, fallback) = on_error.map(|entry| self::on_error(reader, entry, &name)).unwrap_or_default();
    // A node that cannot be read is a node all the same: what leads to it is not wrong.
    let Some(kind) = kind else { return Some(Node { name, body: Body::Unknown, fallback }) };
    if let (Some(entry), true) = (on_error, KINDS.contains(&&*kind) && !MAY_FAIL.contains(&&*kind)) {
        let message = format!("`on_error` is not for `{}` nodes, and `{}` is one", &*kind, &*name);
        let error = Diagnostic::error(message).at(&reader.span(entry.key_place)).node(&*name);
        reader.report(error.help(format!("nodes of the types `{}` may have it", MAY_FAIL.join("`, `"))));
    }
    if let (Some(retry), true) = (&retry, MAY_FAIL.contains(&&*kind) && &*kind != "call_llm") {
        let error =
            Diagnostic::error(format!("`retry` is only for `call_llm` nodes, and `{}` is a `{}`", &*name, &*kind));
        reader.report(error.at(&retry.span).node(&*name).help("remove it, or use `fallback`"));
    }
    // An entry that is left out has no fields; required ones are then missing where the node is.
    let empty = const { &document::Node { place: document::Place { start: 0, end: 0 }, kind: Kind::Map(Vec::new()) } };
    let node = args.map_or(empty, |entry| &entry.value);
    let Some(mut fields) = reader.fields(node, owner(format!("the `args` of a `{}` node", &*kind))) else {
        return Some(Node { name, body: Body::Unknown, fallback });
    };
    let body = match &*kind {
        "call_llm" => Body::CallLlm(Box::new(call_llm(&mut fields, retry))),
        "tool_node" => Body::ToolNode(references(&mut fields, "tools")),
        "call_agent" => Body::CallAgent {
            agent: fields
                .entry("agent", Required)
                .and_then(|entry| reference(reader, &entry.value, "agent", Some(&name.value))),
            input: fields.text("input", Required),
        },
        "data_transform" => Body::Transform(fields.text("expression", Required)),
        "set_state" => Body::SetState(expressions(&mut fields, "values", Required).unwrap_or_default()),
        "interrupt" => Body::Interrupt(fields.text("value", Optional)),
        "load_skills" => Body::LoadSkills(fields.text("skill_ids", Required)),
        "custom" => Body::Custom(custom::read(&mut fields, &name, surroundings).map(Box::new)),
        _ => {
            reader.report(unknown(&fields, "node type", &kind, &KINDS));
            return Some(Node { name, body: Body::Unknown, fallback });
        }
    };
    fields.finish(|_| None);
    Some(Node { name, body, fallback })
}

fn call_llm(fields: &mut Fields<'_, '_>, retry: Option<Spanned<Retry>>) -> CallLlm {
    let reader = fields.reader();
    let node = fields.owner().node.clone();
    let flag = |fields: &mut Fields<'_, '_>, name| fields.flag(name, Optional).is_some_and(|flag| flag.value);
    let mut call = CallLlm {
        llm: fields.entry("llm", Optional).and_then(|entry| reference(reader, &entry.value, "llm", node.as_ref())),
        prompt: Vec::new(),
        tools: references(fields, "tools").unwrap_or_default(),
        from_registry: flag(fields, "use_tools_from_registry"),
        from_skills: flag(fields, "use_tools_from_loaded_skills"),
        sub_agents: sub_agent_tools(fields),
        schema: None,
        updates: expressions(fields, "state_updates", Optional),
        retry: retry.map(|retry| retry.value).unwrap_or_default(),
    };
    for item in fields.list("prompt", Required).unwrap_or_default() {
        let owner = Owner { what: "an item of `prompt`".into(), node: node.clone(), place: item.place };
        let Some(mut fields) = reader.fields(item, owner) else { continue };
        let (role, content) = (fields.text("role", Required), fields.text("content", Required));
        if let (Some(role), Some(content)) = (role, content) {
            let known = match &*role {
                "system" => Some(PromptRole::Speaker(Speaker::System)),
                "human" => Some(PromptRole::Speaker(Speaker::Human)),
                "ai" => Some(PromptRole::Speaker(Speaker::Ai)),
                "messages" => Some(PromptRole::Messages),
                _ => None,
            };
            match known {
                Some(known) => call.prompt.push((known, content)),
                None => reader.report(unknown(&fields, "prompt role", &role, &["system", "human", "ai", "messages"])),
            }
        }
        fields.finish(|_| None);
    }
    if let Some(entry) = fields.entry("response_format", Optional) {
        if call.has_tools() {
            let error = fields.error("`response_format` and tools exclude each other", &reader.span(entry.key_place));
            reader.report(error.help("ask for the structure in a node of its own, without tools"));
        }
        let owner = Owner { what: "`response_format`".into(), node, place: entry.key_place };
        if let Some(mut fields) = reader.fields(&entry.value, owner) {
            fields.text("name", Optional);
            fields.text("description", Optional);
            call.schema = json_schema::read(&mut fields, "schema", Required).map(|(_, schema)| schema);
            fields.finish(|_| None);
        }
    }
    call
}

fn sub_agent_tools(fields: &mut Fields<'_, '_>) -> SubAgentTools {
    let Some(entry) = fields.entry("use_sub_agents_as_tools", Optional) else { return SubAgentTools::None };
    let reader = fields.reader();
    match &entry.value.kind {
        Kind::Bool(false) => SubAgentTools::None,
        Kind::Bool(true) => SubAgentTools::All(reader.span(entry.key_place)),
        Kind::Text(text) if &*text.value == "all" => SubAgentTools::All(reader.span(entry.key_place)),
        Kind::List(items) => {
            let node = fields.owner().node.clone();
            let one = |item| reference(reader, item, "use_sub_agents_as_tools", node.as_ref());
            SubAgentTools::These(items.iter().filter_map(one).collect())
        }
        _ => {
            let error = fields.error(
                "`use_sub_agents_as_tools` takes `true`, `false`, `all` or a list",
                &reader.span(entry.value.place),
            );
            reader.report(error);
            SubAgentTools::None
        }
    }
}

fn references(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<Vec<Reference>> {
    let node = fields.owner().node.clone();
    let items = fields.list(name, Optional)?;
    Some(items.iter().filter_map(|item| reference(fields.reader(), item, name, node.as_ref())).collect())
}

/// A mapping from fields of the state to expressions.
fn expressions(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    need: document::Need,
) -> Option<Vec<(Spanned<Arc<str>>, SourceText)>> {
    let (entries, _) = fields.map(name, need)?;
    let reader = fields.reader();
    let one = |entry: &'_ Entry| {
        let key = Spanned { value: Arc::clone(&entry.key), span: reader.span(entry.key_place) };
        (key, entry.key.clone())
    };
    let mut found = Vec::new();
    for entry in entries {
        let (key, name) = one(entry);
        if let Some(text) = reader.text(&entry.value, || format!("the expression of `{name}`"), fields.owner()) {
            found.push((key, text));
        }
    }
    Some(found)
}

fn on_error<'d>(
    reader: &Reader<'d>,
    entry: &'d Entry,
    node: &SourceText,
) -> (Option<Spanned<Retry>>, Option<SourceText>) {
    let owner =
        |what: &str| Owner { what: what.to_owned(), node: Some(Arc::clone(&node.value)), place: entry.key_place };
    let Some(mut fields) = reader.fields(&entry.value, owner("`on_error`")) else { return (None, None) };
    let fallback = fields.text("fallback", Optional);
    let retry = fields.entry("retry", Optional).and_then(|entry| {
        let span = reader.span(entry.key_place);
        let mut fields = reader.fields(&entry.value, owner("`retry`"))?;
        let attempts = fields.count("max_attempts", Optional);
        if let Some(none) = attempts.as_ref().filter(|attempts| attempts.value == 0) {
            let error = fields.error("`max_attempts: 0` never tries", &none.span);
            reader.report(error.help("the first attempt counts: use 1 or more"));
        }
        let attempts = attempts.map_or(3, |count| count.value.max(1));
        let strategy = fields.text("strategy", Optional);
        if let Some(strategy) = &strategy
            && !matches!(&**strategy, "exponential" | "fixed")
        {
            reader.report(unknown(&fields, "strategy", strategy, &["exponential", "fixed"]));
        }
        let seconds = |fields: &mut Fields<'_, '_>, name, default: f64| {
            let number = fields.number(name, Optional)?;
            if number.value < 0.0 {
                let error = fields.error(format!("`{name}` is negative"), &number.span);
                reader.report(error.help(format!("it is in seconds; {default} is used if it is left out")));
            }
            Some(number)
        };
        let pause = seconds(&mut fields, "delay", PAUSE);
        let longest = seconds(&mut fields, "max_delay", LONGEST_PAUSE);
        let value = |number: &Option<Spanned<f64>>, default| number.as_ref().map_or(default, |number| number.value);
        let (first, most) = (value(&pause, PAUSE), value(&longest, LONGEST_PAUSE));
        if let (true, Some(place)) = (most < first, longest.as_ref().or(pause.as_ref())) {
            let error =
                fields.error(format!("`max_delay` ({most} s) is shorter than `delay` ({first} s)"), &place.span);
            reader.report(error.help("no pause is longer than `max_delay`: raise it, or lower `delay`"));
        }
        // A day is longer than anybody waits, and fits every clock.
        let duration = |seconds: f64| Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0));
        let retry = Retry {
            attempts,
            on: RetryOn::Any,
            pause: duration(first),
            growth: if strategy.as_deref() == Some("fixed") { 1.0 } else { 2.0 },
            longest_pause: duration(most),
            ..Retry::default()
        };
        fields.finish(|_| None);
        Some(Spanned { value: retry, span })
    });
    fields.finish(|_| None);
    (retry, fallback)
}

fn edge<'d>(reader: &Reader<'d>, item: &'d document::Node) -> Option<Edge> {
    let owner = Owner { what: "an edge".into(), node: named(item, "source"), place: item.place };
    let mut fields = reader.fields(item, owner)?;
    let source = fields.text("source", Required);
    let target = fields.text("target", Optional);
    let branches = fields.list("branches", Optional);
    let default = fields.text("default", Optional);
    fields.finish(|_| None);
    let source = source?;
    let error = |message: String| {
        let error = Diagnostic::error(message).at(&source.span).node(&*source);
        reader.report(error.help("an edge has either `target`, or `branches` and perhaps `default`"));
    };
    let route = match (target, branches) {
        (Some(target), None) if default.is_none() => Route::To(target),
        (None, Some(items)) if !items.is_empty() => {
            let branch = |item: &'d document::Node| {
                let owner = Owner { what: "a branch".into(), node: Some(Arc::clone(&source.value)), place: item.place };
                let mut fields = reader.fields(item, owner)?;
                let (condition, target) = (fields.text("condition", Required), fields.text("target", Required));
                fields.finish(|_| None);
                condition.zip(target)
            };
            Route::Branches { branches: items.iter().filter_map(branch).collect(), default }
        }
        (None, _) => {
            error(format!("the edge from `{}` leads nowhere", &*source));
            return None;
        }
        (Some(_), _) => {
            error(format!("the edge from `{}` has `target` and `branches` or `default`", &*source));
            return None;
        }
    };
    Some(Edge { source, route })
}
