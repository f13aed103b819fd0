//! From the tree of a file to [`Source`]: the top level and the settings.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_budget::{Bytes, Fuel, RunBudget};
use hotcell_graph::diagnostic::{Diagnostic, Span};
use hotcell_graph::{Reducer, closest};

use super::elsewhere;
use super::read_field::{at_least_one, duration, key, model};
use super::read_node::node;
use super::schema::{Settings, Source, Variable};
use super::{mcp_tools, skills, spawning};
use crate::document::Need::{Optional, Required};
use crate::document::{Fields, Kind, Owner, Place, Reader, SourceText, Spanned};

/// Reads the whole file; what is wrong is reported to the reader. None if it is no mapping at all.
pub(super) fn source(reader: &Reader<'_>) -> Option<Source> {
    let owner = Owner { what: "the graph".into(), node: None, place: Place::default() };
    let root = &reader.document().root;
    if root.kind == Kind::Null {
        let error = Diagnostic::error("the file is empty")
            .at(&reader.span(root.place))
            .help("a graph needs `name`, `start` and `nodes`");
        reader.report(error);
        return None;
    }
    let mut fields = reader.fields(root, owner)?;
    let name = fields.text("name", Required);
    if let Some(name) = &name
        && name.trim().is_empty()
    {
        reader.report(fields.error("`name` is empty", &name.span).help("give the graph a name"));
    }
    let description = fields.text("description", Optional);
    version(&mut fields);
    let model = model(&mut fields);
    let global_tools = fields.texts("global_tools", Optional).unwrap_or_default();
    let mcp_servers = fields.texts("mcp_servers", Optional).unwrap_or_default();
    let conversation_starters = fields.texts("conversation_starters", Optional).unwrap_or_default();
    let settings = settings(&mut fields);
    let variables = variables(&mut fields);
    let initial_state = initial_state(&mut fields);
    let reducers = reducers(&mut fields);
    let start = fields.text("start", Required);
    let nodes = match fields.map("nodes", Required) {
        Some((entries, place)) => {
            if entries.is_empty() {
                let error =
                    fields.error("`nodes` is empty", &reader.span(place)).help("a graph needs at least one node");
                reader.report(error);
            }
            entries.iter().map(|entry| node(reader, entry)).collect()
        }
        None => Vec::new(),
    };
    let skills = skills::read(&mut fields);
    let choice = mcp_tools::read(&mut fields);
    let agent_depth = spawning::depth(&mut fields);
    let spawning = spawning::read(&mut fields);
    elsewhere::of_graph(&mut fields);
    fields.finish(|unknown| {
        let advice = match unknown {
            "documents" => "knowledge sources belong to a `rag` node",
            "tools" => "tools that nodes may use are listed in `global_tools`",
            "agent_session" => "leave it out: graphs have no sessions",
            "max_loop_iterations" | "log_state_snapshots" | "validate_before_run" | "timeout" | "max_concurrency" => {
                return Some(format!("it belongs under `settings`: `settings: {{ {unknown}: ... }}`"));
            }
            _ => return None,
        };
        Some(advice.to_owned())
    });
    Some(Source {
        name,
        description,
        model,
        global_tools,
        mcp_servers,
        conversation_starters,
        settings,
        skills,
        choice,
        spawning,
        agent_depth,
        variables,
        initial_state,
        reducers,
        start,
        nodes,
    })
}

fn version(fields: &mut Fields<'_, '_>) {
    let Some(node) = fields.node("version", Optional) else { return };
    let reader = fields.reader();
    let raw = reader.document().raw(node.place);
    let written = match &node.kind {
        Kind::Text(text) => &*text.value,
        _ => raw,
    };
    if written != "1.0" {
        let error = fields
            .error(format!("the `version` of the graph schema is `{written}`"), &reader.span(node.place))
            .help("only version `1.0` is supported; this is not the version of your agent");
        reader.report(error);
    }
}

fn settings(fields: &mut Fields<'_, '_>) -> Settings {
    let defaults = Settings::default();
    let Some(entry) = fields.entry("settings", Optional) else { return defaults };
    let owner = Owner { what: "`settings`".into(), node: None, place: entry.key_place };
    let Some(mut fields) = fields.reader().fields(&entry.value, owner) else { return defaults };
    let max_loop_iterations = fields.count("max_loop_iterations", Optional);
    if let Some(Spanned { value: 0, span }) = &max_loop_iterations {
        let warning = Diagnostic::warning("`max_loop_iterations: 0` lets no node run").at(span).help("use 1 or more");
        fields.reader().report(warning);
    }
    let settings = Settings {
        max_loop_iterations: max_loop_iterations.map_or(defaults.max_loop_iterations, |count| count.value),
        log_state_snapshots: flag(&mut fields, "log_state_snapshots", defaults.log_state_snapshots),
        validate_before_run: flag(&mut fields, "validate_before_run", defaults.validate_before_run),
        timeout: duration(&mut fields, "timeout"),
        max_concurrency: at_least_one(&mut fields, "max_concurrency", "no branch could ever run")
            .map_or(defaults.max_concurrency, |count| count as usize),
        budget: budget(&mut fields),
    };
    fields.finish(|_| None);
    settings
}

/// What all calls of a run may use together.
fn budget(fields: &mut Fields<'_, '_>) -> RunBudget {
    let Some(entry) = fields.entry("budget", Optional) else { return RunBudget::default() };
    let owner = Owner { what: "`budget`".into(), node: None, place: entry.key_place };
    let Some(mut fields) = fields.reader().fields(&entry.value, owner) else { return RunBudget::default() };
    let budget = RunBudget {
        calls: amount(&mut fields, "calls"),
        fuel: amount(&mut fields, "fuel").map(Fuel),
        wall_clock_ms: amount(&mut fields, "wall_clock_ms"),
        http_requests: amount(&mut fields, "http_requests"),
        http_bytes: amount(&mut fields, "http_bytes").map(Bytes),
        file_bytes: amount(&mut fields, "file_bytes").map(Bytes),
        files: amount(&mut fields, "files"),
        model_requests: amount(&mut fields, "model_requests"),
        tokens: amount(&mut fields, "tokens"),
        ..RunBudget::default()
    };
    fields.finish(|_| None);
    budget
}

/// A whole number of any size, 0 included.
fn amount(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<u64> {
    let number = fields.number(name, Optional)?;
    if number.value < 0.0 || number.value.fract() != 0.0 || number.value > u64::MAX as f64 {
        let error = fields
            .error(
                format!("`{name}` must be a whole number that is not negative, not `{}`", number.value),
                &number.span,
            )
            .help(format!("leave `{name}` out for no cap"));
        fields.reader().report(error);
        return None;
    }
    Some(number.value as u64)
}

fn flag(fields: &mut Fields<'_, '_>, name: &'static str, default: bool) -> bool {
    fields.flag(name, Optional).map_or(default, |flag| flag.value)
}

pub(super) fn variables(fields: &mut Fields<'_, '_>) -> Vec<Variable> {
    let mut variables = Vec::new();
    let mut declared = HashMap::new();
    let reader = fields.reader();
    for item in fields.list("variables", Optional).unwrap_or_default() {
        let owner = Owner { what: "a variable".into(), node: None, place: item.place };
        let Some(mut fields) = reader.fields(item, owner) else { continue };
        let name = fields.text("name", Required);
        let description = fields.text("description", Required);
        let default = fields.text("default", Optional);
        if let Some(name) = &name {
            check_variable_name(reader, name, &mut declared);
        }
        fields.finish(|_| None);
        if let Some(name) = name {
            // That it is missing was reported; whatever refers to the variable is right all the same.
            let description = description.unwrap_or_else(|| SourceText::implied("", name.span.clone()));
            variables.push(Variable { name, description, default });
        }
    }
    variables
}

fn check_variable_name(reader: &Reader<'_>, name: &SourceText, declared: &mut HashMap<String, Span>) {
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || matches!(c, '=' | '\0')) {
        let error = Diagnostic::error(format!("`{}` cannot be the name of a variable", &**name))
            .at(&name.span)
            .help("use letters, digits and `_`: scripts see it in the environment as `LLM_AGENT_VAR_<NAME>`");
        reader.report(error);
    }
    // Scripts see the name in upper case, so two names that differ only in case are one.
    let Some(first) = declared.insert(name.to_uppercase(), name.span.clone()) else { return };
    let error = Diagnostic::error(format!("the variable `{}` is declared twice", &**name))
        .at(&name.span)
        .related(&first, "first here")
        .help("remove one of them");
    reader.report(error);
}

fn initial_state(fields: &mut Fields<'_, '_>) -> Vec<(Spanned<Arc<str>>, hotcell_graph::Value)> {
    let reader = fields.reader();
    let Some((entries, _)) = fields.map("initial_state", Optional) else { return Vec::new() };
    entries.iter().map(|entry| (key(reader, entry), entry.value.to_value())).collect()
}

fn reducers(fields: &mut Fields<'_, '_>) -> Vec<(Spanned<Arc<str>>, Reducer)> {
    let reader = fields.reader();
    let Some((entries, _)) = fields.map("reducers", Optional) else { return Vec::new() };
    let mut reducers = Vec::new();
    for entry in entries {
        let what = || format!("the reducer of `{}`", entry.key);
        let Some(name) = reader.text(&entry.value, what, fields.owner()) else { continue };
        if let Some(reducer) = Reducer::from_name(&name) {
            reducers.push((key(reader, entry), reducer));
            continue;
        }
        let all: Vec<&str> = Reducer::all().iter().map(|reducer| reducer.name()).collect();
        let help = match closest(&name, all.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the reducers are `{}`", all.join("`, `")),
        };
        let error = fields
            .error(format!("the key `{}` has the reducer `{}`, which does not exist", entry.key, &*name), &name.span)
            .help(help);
        reader.report(error);
    }
    reducers
}
