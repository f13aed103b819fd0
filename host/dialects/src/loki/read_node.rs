//! From the tree of a file to the nodes of [`Source`](super::schema::Source).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use hotcell_graph::closest;
use hotcell_graph::diagnostic::{Diagnostic, Span};
use hotcell_graph::ir::{Comparison, LengthCheck};

use super::elsewhere;
use super::output_schema::output_schema;
use super::read_field::{at_least_one, duration, key, model};
use super::schema::{
    Agent, Approval, Body, End, Input, Llm, Map, Node, PluginNode, PluginValues, Rag, Retrieval, Route, Script,
    ScriptPath, Tree, Update,
};
use super::{INPUT_KEY, mcp_tools, skills};
use crate::document::Need::{Optional, Required};
use crate::document::{Entry, Fields, Kind, Owner, Reader, SourceText, Spanned};

const TYPES: [&str; 8] = ["agent", "script", "approval", "input", "llm", "rag", "map", "end"];

/// How long a script may run when the node does not say.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a child agent may run when the node does not say.
const AGENT_TIMEOUT: Duration = Duration::from_secs(300);
/// How long a retrieval may take when the node does not say.
const RAG_TIMEOUT: Duration = Duration::from_secs(120);

/// Reads an entry of `nodes`. There is always a node, so that what points to it is not reported as well.
pub(super) fn node<'d>(reader: &Reader<'d>, entry: &'d Entry) -> Node {
    let id = key(reader, entry);
    let mut node = Node {
        id: id.clone(),
        description: None,
        next: Vec::new(),
        next_span: None,
        updates: Vec::new(),
        body: Body::Unknown,
    };
    if id.value.trim().is_empty() {
        reader.report(Diagnostic::error("a node has an empty id").at(&id.span).help("give it a name"));
    }
    let owner =
        Owner { what: format!("node `{}`", id.value), node: Some(Arc::clone(&id.value)), place: entry.key_place };
    let Some(mut fields) = reader.fields(&entry.value, owner) else { return node };
    check_id(&mut fields, &id);
    node.description = fields.text("description", Optional);
    let Some(written) = fields.text("type", Required) else { return node };
    if written.contains('/') {
        fields.set_owner_name(format!("nodes of type `{}`", &*written));
        next(&mut fields, &mut node);
        node.updates = updates(&mut fields);
        node.body = plugin_node(&mut fields, written);
        fields.finish(|_| None);
        return node;
    }
    let Some(kind) = kind(&mut fields, &written) else { return node };
    fields.set_owner_name(format!("`{kind}` nodes"));
    next(&mut fields, &mut node);
    node.updates = updates(&mut fields);
    node.body = match kind {
        "agent" => agent(&mut fields),
        "script" => script(&mut fields),
        "approval" => approval(&mut fields),
        "input" => input(&mut fields),
        "llm" => llm(&mut fields),
        "rag" => rag(&mut fields),
        "map" => map(&mut fields),
        _ => Body::End(End { output: fields.text("output", Optional) }),
    };
    fields.finish(|unknown| match (unknown, kind) {
        ("fallback", _) => Some("only `script` and `llm` nodes have a fallback".into()),
        ("tools", _) => Some("only `llm` nodes choose tools".into()),
        ("reasoning_effort", _) => Some("only `llm` nodes have a model of their own".into()),
        ("inputs" | "teammates", _) => Some(format!("only `agent` nodes have `{unknown}`")),
        _ => None,
    });
    node
}

fn check_id(fields: &mut Fields<'_, '_>, key: &Spanned<Arc<str>>) {
    let Some(id) = fields.text("id", Optional) else { return };
    if *id != *key.value {
        let error = fields
            .error(format!("the `id` of node `{}` is `{}`", key.value, &*id), &id.span)
            .label("must be the same as the key")
            .related(&key.span, "the key")
            .help(format!("write `id: {}`, or leave `id` out", key.value));
        fields.reader().report(error);
    }
}

fn kind(fields: &mut Fields<'_, '_>, written: &SourceText) -> Option<&'static str> {
    let found = TYPES.into_iter().find(|kind| *kind == &**written);
    if found.is_none() {
        let all = TYPES.join("`, `");
        let help = match closest(written, TYPES) {
            Some(near) => format!("did you mean `{near}`? The types are `{all}`"),
            None => format!("the types are `{all}`"),
        };
        let error = fields.error(format!("`{}` is not a type of node", &**written), &written.span).help(help);
        fields.reader().report(error);
    }
    found
}

fn next(fields: &mut Fields<'_, '_>, node: &mut Node) {
    let Some(value) = fields.node("next", Optional) else { return };
    let reader = fields.reader();
    node.next_span = Some(reader.span(value.place));
    let targets = match &value.kind {
        Kind::List(_) => reader.texts(value, "next", fields.owner()).unwrap_or_default(),
        Kind::Text(_) => reader.text(value, || "`next`".into(), fields.owner()).into_iter().collect(),
        _ => {
            reader.wrong_type(value, "`next`", "a node id or a list of node ids", fields.owner());
            Vec::new()
        }
    };
    let mut seen = HashSet::new();
    node.next = targets.into_iter().filter(|target| seen.insert(Arc::clone(&target.value))).collect();
}

fn updates(fields: &mut Fields<'_, '_>) -> Vec<Update> {
    let Some((entries, _)) = fields.map("state_updates", Optional) else { return Vec::new() };
    templates(fields, entries, "state_updates")
}

/// Keys with templates, which are a field.
fn templates<'d>(fields: &Fields<'_, 'd>, entries: &'d [Entry], field: &str) -> Vec<Update> {
    let reader = fields.reader();
    entries
        .iter()
        .filter_map(|entry| {
            let value = reader.text(&entry.value, || format!("`{}` in `{field}`", entry.key), fields.owner())?;
            Some(Update { key: key(reader, entry), value })
        })
        .collect()
}

/// What the graph that an agent is begins with.
fn inputs(fields: &mut Fields<'_, '_>) -> Vec<Update> {
    let Some((entries, _)) = fields.map("inputs", Optional) else { return Vec::new() };
    let mut inputs = templates(fields, entries, "inputs");
    if let Some(prompt) = inputs.iter().position(|input| *input.key.value == *INPUT_KEY) {
        let error = fields
            .error(format!("`inputs` cannot set `{INPUT_KEY}`"), &inputs[prompt].key.span)
            .help("what the agent is asked is its `prompt`");
        fields.reader().report(error);
        inputs.remove(prompt);
    }
    inputs
}

fn agent(fields: &mut Fields<'_, '_>) -> Body {
    // Documented: a child agent owns its tools, the field is accepted and means nothing.
    fields.ignore("tools");
    elsewhere::of_agent_node(fields);
    Body::Agent(Agent {
        agent: fields.text("agent", Required),
        prompt: fields.text("prompt", Required),
        inputs: inputs(fields),
        max_attempts: at_least_one(fields, "max_attempts", "the agent would never be called").unwrap_or(1),
        fallback: fields.text("fallback", Optional),
        timeout: duration(fields, "timeout").unwrap_or(AGENT_TIMEOUT),
        output_schema: output_schema(fields),
    })
}

fn script(fields: &mut Fields<'_, '_>) -> Body {
    Body::Script(Script {
        script: fields.text("script", Required).map(|written| {
            let normal = normalise(&written);
            ScriptPath { written, normal }
        }),
        timeout: duration(fields, "timeout").unwrap_or(SCRIPT_TIMEOUT),
        fallback: fields.text("fallback", Optional),
    })
}

/// A relative path without `.` and `..`; none if it leaves the folder it is relative to, or is not relative.
pub(super) fn normalise(path: &str) -> Option<String> {
    if path.starts_with(['/', '\\', '~']) || path.contains(['\0']) || path.get(1..3).is_some_and(|c| c == ":\\") {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn approval(fields: &mut Fields<'_, '_>) -> Body {
    let question = fields.text("question", Required);
    let options = fields.texts("options", Required).unwrap_or_default();
    let routes = routes(fields, Required);
    let on_other = fields.text("on_other", Required);
    Body::Approval(Approval { question, options, routes, on_other })
}

fn routes(fields: &mut Fields<'_, '_>, need: crate::document::Need) -> Vec<Route> {
    let reader = fields.reader();
    let mut routes = Vec::new();
    for entry in fields.map("routes", need).map(|(entries, _)| entries).unwrap_or_default() {
        let what = || format!("the route `{}`", entry.key);
        if let Some(target) = reader.text(&entry.value, what, fields.owner()) {
            routes.push(Route { answer: key(reader, entry), target });
        }
    }
    routes
}

/// A node of a type that a plugin offers.
fn plugin_node(fields: &mut Fields<'_, '_>, plugin_node: SourceText) -> Body {
    Body::PluginNode(Box::new(PluginNode {
        plugin_node,
        mode: fields.text("mode", Optional),
        with: given(fields, "with"),
        inputs: given(fields, "inputs"),
        routes: routes(fields, Optional),
        fallback: fields.text("fallback", Optional),
        timeout: duration(fields, "timeout"),
    }))
}

fn given(fields: &mut Fields<'_, '_>, name: &'static str) -> PluginValues {
    let reader = fields.reader();
    let Some((entries, _)) = fields.map(name, Optional) else { return PluginValues::default() };
    PluginValues {
        entries: entries.iter().map(|entry| (key(reader, entry), tree(reader, &entry.value, fields.owner()))).collect(),
    }
}

fn tree<'d>(reader: &Reader<'d>, node: &'d crate::document::Node, owner: &Owner) -> Tree {
    match &node.kind {
        Kind::Text(_) => match reader.text(node, || "a value".into(), owner) {
            Some(text) => Tree::Text(text),
            None => Tree::Value(node.to_value()),
        },
        Kind::List(items) => Tree::List(items.iter().map(|item| tree(reader, item, owner)).collect()),
        Kind::Map(entries) => Tree::Object(
            entries.iter().map(|entry| (Arc::clone(&entry.key), tree(reader, &entry.value, owner))).collect(),
        ),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => Tree::Value(node.to_value()),
    }
}

fn input(fields: &mut Fields<'_, '_>) -> Body {
    let validation = fields.text("validation", Optional).and_then(|source| {
        let check = length_check(&source);
        if check.is_none() {
            let error = fields
                .error(format!("the `validation` `{}` is not a length check", &*source), &source.span)
                .help("write `len(input) <op> <integer>` with one of `>`, `>=`, `<`, `<=`, `==`");
            fields.reader().report(error);
        }
        check
    });
    Body::Input(Input {
        question: fields.text("question", Required),
        default: fields.text("default", Optional),
        validation,
    })
}

/// `len(input) <op> <integer>`, with blanks around the parts if need be.
fn length_check(source: &str) -> Option<LengthCheck> {
    const OPERATORS: [(&str, Comparison); 5] = [
        (">=", Comparison::GreaterOrEqual),
        ("<=", Comparison::LessOrEqual),
        ("==", Comparison::Equal),
        (">", Comparison::Greater),
        ("<", Comparison::Less),
    ];
    let rest = source.trim().strip_prefix("len(input)")?.trim_start();
    let (rest, operator) =
        OPERATORS.iter().find_map(|(symbol, operator)| Some((rest.strip_prefix(symbol)?, *operator)))?;
    let number = rest.trim_start();
    let length = number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())??;
    Some(LengthCheck { operator, length, source: source.to_owned() })
}

fn llm(fields: &mut Fields<'_, '_>) -> Body {
    let max_iterations = fields.count("max_iterations", Optional);
    if let Some(Spanned { value: 0, span }) = &max_iterations {
        warn(fields, "`max_iterations: 0` allows no request, so the node always fails", span);
    }
    let tools = fields.texts("tools", Optional);
    Body::Llm(Box::new(Llm {
        instructions: fields.text("instructions", Optional),
        prompt: fields.text("prompt", Required),
        has_no_tools: tools.as_ref().is_some_and(Vec::is_empty),
        tools: tools.unwrap_or_default(),
        model: model(fields),
        max_attempts: at_least_one(fields, "max_attempts", "the model would never be called").unwrap_or(1),
        max_iterations: max_iterations.map_or(10, |count| count.value),
        fallback: fields.text("fallback", Optional),
        output_schema: output_schema(fields),
        timeout: duration(fields, "timeout"),
        skills: skills::read(fields),
        choice: mcp_tools::read(fields),
    }))
}

fn rag(fields: &mut Fields<'_, '_>) -> Body {
    elsewhere::of_rag_node(fields);
    let entry = fields.entry("documents", Required);
    let documents = entry.and_then(|entry| fields.reader().texts(&entry.value, "documents", fields.owner()));
    let documents_span = documents.as_ref().and(entry).map(|entry| fields.reader().span(entry.key_place));
    let query = fields.text("query", Optional);
    let embedding_model = fields.text("embedding_model", Optional);
    let chunk_size = at_least_one(fields, "chunk_size", "a chunk would hold nothing");
    let chunk_overlap = fields.count("chunk_overlap", Optional).map(|count| count.value);
    let build = [
        ("embedding_model", embedding_model.is_some()),
        ("chunk_size", chunk_size.is_some()),
        ("chunk_overlap", chunk_overlap.is_some()),
    ];
    let is_written = |entry: &Entry| entry.value.kind != Kind::Null;
    let is_misread = build.into_iter().any(|(name, is_read)| !is_read && fields.pass(name).is_some_and(is_written));
    Body::Rag(Box::new(Rag {
        documents: documents.unwrap_or_default(),
        documents_span,
        query,
        embedding_model,
        chunk_size,
        chunk_overlap,
        is_misread,
        retrieval: Retrieval {
            top_k: at_least_one(fields, "top_k", "nothing would be retrieved"),
            timeout: duration(fields, "timeout").unwrap_or(RAG_TIMEOUT),
            reranker_model: fields.text("reranker_model", Optional),
            batch_size: at_least_one(fields, "batch_size", "nothing would be sent"),
        },
    }))
}

fn map(fields: &mut Fields<'_, '_>) -> Body {
    let over = fields.text("over", Required).filter(|over| {
        let is_reference = hotcell_graph::Template::parse(over).single_reference().is_some();
        if !is_reference {
            let error = fields
                .error(format!("`over` must be exactly one reference, not `{}`", &**over), &over.span)
                .help("write `over: \"{{key}}\"` with the key that holds the list");
            fields.reader().report(error);
        }
        is_reference
    });
    let is_template = |entry: &Entry| matches!(&entry.value.kind, Kind::Text(text) if text.value.contains("{{"));
    let max_concurrency_from = match fields.pass("max_concurrency").is_some_and(is_template) {
        true => fields.text("max_concurrency", Optional),
        false => None,
    };
    let max_concurrency = match max_concurrency_from {
        Some(_) => None,
        None => at_least_one(fields, "max_concurrency", "no item could ever run").map(|count| count as usize),
    };
    Body::Map(Map {
        over,
        item_key: state_key(fields, "as", Required),
        branch: fields.text("branch", Required),
        collect_into: state_key(fields, "collect_into", Required),
        output_key: state_key(fields, "output_key", Optional),
        max_concurrency,
        max_concurrency_from,
    })
}

/// A field that names a key of the state.
fn state_key(fields: &mut Fields<'_, '_>, name: &'static str, need: crate::document::Need) -> Option<SourceText> {
    let key = fields.text(name, need)?;
    if key.trim().is_empty() || key.contains("{{") {
        let error = fields
            .error(format!("`{name}` must be a key of the state, not `{}`", &*key), &key.span)
            .help("write the bare name, without braces");
        fields.reader().report(error);
        return None;
    }
    Some(key)
}

fn warn(fields: &Fields<'_, '_>, message: &str, span: &Span) {
    let mut warning = Diagnostic::warning(message).at(span);
    warning.node = fields.owner().node.as_deref().map(str::to_owned);
    fields.reader().report(warning);
}
