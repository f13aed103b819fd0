//! Models and tools that a graph names.

use std::collections::{HashMap, HashSet};

use hotcell_graph::closest;
use hotcell_graph::diagnostic::{Diagnostic, Severity};

use super::super::schema::{Body, Llm, Node};
use super::super::skills::Named;
use super::super::{SERVER_HELP, global_tools, mcp_function, model_help, tool_name};
use super::Check;
use crate::document::SourceText;
use crate::surroundings::ServerState;

/// What an entry of `tools` begins with that means functions of an MCP server.
const SERVER: &str = "mcp:";

pub(super) fn models(check: &Check<'_>) {
    let unknown =
        |model: &Option<SourceText>| model.clone().filter(|model| check.surroundings.model(model) == Some(false));
    let mut inherits = false;
    for node in check.nodes() {
        let Body::Llm(llm) = &node.body else { continue };
        inherits |= llm.model.name.is_none();
        if let Some(model) = unknown(&llm.model.name) {
            let message = format!("the model `{}` of node `{}` does not exist", &*model, node.id.value);
            check.reader.report(check.error(node, message, &model.span).help(model_help(&model)));
        }
    }
    if let Some(model) = unknown(&check.source.model.name) {
        let message = format!("the model `{}` does not exist", &*model);
        let diagnostic = if inherits { Diagnostic::error(message) } else { Diagnostic::warning(message) };
        check.reader.report(diagnostic.at(&model.span).help(model_help(&model)));
    }
}

pub(super) fn tools(check: &Check<'_>) {
    let users = users(check);
    for tool in &check.source.global_tools {
        // What is wrong with a tool is said once, and as an error where a node needs it.
        let name = tool_name(tool);
        let user = users.get(name).filter(|_| !is_found_before(check, name));
        let weight = if user.is_some() { Severity::Error } else { Severity::Warning };
        if let Some(remark) = global_tools::remark(tool, weight, check.surroundings) {
            check.reader.report(match user.filter(|_| remark.severity == Severity::Error) {
                Some(node) => remark.node(&*node.id.value),
                None => remark,
            });
        }
    }
    if let Err(reason) = check.surroundings.own_tools() {
        check.reader.report(Diagnostic::warning(reason.to_string()));
    }
    for server in &check.source.mcp_servers {
        let problem = match check.surroundings.mcp_server(server) {
            ServerState::Usable(_) | ServerState::NotStarted => continue,
            ServerState::Missing => {
                Diagnostic::error(format!("the MCP server `{}` is not configured", &**server)).help(SERVER_HELP)
            }
            ServerState::Unusable(reason) => Diagnostic::error(reason),
        };
        let problem = match users.get(&*format!("{SERVER}{}", &**server)) {
            Some(node) => problem.node(&*node.id.value),
            None => Diagnostic { severity: Severity::Warning, ..problem },
        };
        check.reader.report(problem.at(&server.span));
    }
    let mut report = |diagnostic| check.reader.report(diagnostic);
    check.source.choice.check(&check.source.mcp_servers, check.surroundings, &mut report);
    let mut told = HashSet::new();
    if let Some(named) = &check.source.skills {
        skills(check, named, None, &mut told);
    }
    if let Some(spawning) = &check.source.spawning {
        spawning.check_of_graph(check.surroundings, &mut report);
    }
    for node in check.nodes() {
        let Body::Llm(llm) = &node.body else { continue };
        let mut of_node = |diagnostic: Diagnostic| report(diagnostic.node(&*node.id.value));
        llm.choice.check(&check.source.mcp_servers, check.surroundings, &mut of_node);
        if let Some(named) = &llm.skills {
            skills(check, named, Some(node), &mut told);
        }
        for tool in &llm.tools {
            if let Some(error) = problem(check, tool).or_else(|| not_chosen(check, llm, tool)) {
                check.reader.report(error.at(&tool.span).node(&*node.id.value));
            }
        }
    }
}

/// Says what is wrong with skills that the graph or a node names, unless it was `told` of another one.
fn skills(check: &Check<'_>, named: &Named, node: Option<&Node>, told: &mut HashSet<String>) {
    named.check(check.surroundings, &mut |problem| {
        if told.insert(problem.message.clone()) {
            check.reader.report(match node {
                Some(node) => problem.node(&*node.id.value),
                None => problem,
            });
        }
    });
}

/// The error of a function of an MCP server that the file names and leaves out by `mcp_tools`.
fn not_chosen(check: &Check<'_>, llm: &Llm, tool: &SourceText) -> Option<Diagnostic> {
    let full_name = mcp_function(check.source, check.surroundings, tool_name(tool))?;
    let keeps = [&check.source.choice, &llm.choice].iter().all(|choice| choice.keeps(&full_name));
    let error = || Diagnostic::error(format!("`mcp_tools` does not let the node have the function `{}`", &**tool));
    (!keeps).then(|| error().help("add it to the patterns of its server in `mcp_tools`"))
}

/// What is wrong with an entry of a node's `tools`.
fn problem(check: &Check<'_>, tool: &SourceText) -> Option<Diagnostic> {
    let source = check.source;
    if let Some(server) = tool.strip_prefix(SERVER) {
        // What is wrong with one that is listed is said where it is.
        if source.mcp_servers.iter().any(|declared| **declared == *server) {
            return None;
        }
        let near = closest(server, source.mcp_servers.iter().map(|declared| &**declared));
        let help = match near {
            Some(near) => format!("did you mean `mcp:{near}`?"),
            None => "add it to `mcp_servers` at the top of the file".to_owned(),
        };
        let message = format!("the MCP server of `{}` is not listed in `mcp_servers`", &**tool);
        return Some(Diagnostic::error(message).help(help));
    }
    let name = tool_name(tool);
    // The same holds for tools.
    let is_listed = || source.global_tools.iter().any(|declared| tool_name(declared) == name);
    if is_found_before(check, name) || is_listed() {
        return None;
    }
    // Its file may define it, if it could be read.
    let own = match check.surroundings.own_tools() {
        Ok(own) => own,
        Err(reason) => return Some(Diagnostic::error(reason.to_string())),
    };
    let declared = source.global_tools.iter().map(|declared| tool_name(declared));
    let help = match closest(name, declared.chain(own.iter().map(|own| &*own.name))) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            "a node can only use tools that `global_tools` or `mcp_servers` list, or that the agent's own `tools.sh`, \
                 `tools.py` or `tools.ts` defines"
                .to_owned()
        }
    };
    Some(Diagnostic::error(format!("the tool `{}` is not among the graph's tools", &**tool)).help(help))
}

/// For each name of a tool that a node uses, and each server as `mcp:NAME`, the first such node.
fn users<'a>(check: &Check<'a>) -> HashMap<&'a str, &'a Node> {
    let mut users = HashMap::new();
    for node in check.nodes() {
        let Body::Llm(llm) = &node.body else { continue };
        for entry in &llm.tools {
            let name = if entry.starts_with(SERVER) { &**entry } else { tool_name(entry) };
            users.entry(name).or_insert(node);
        }
    }
    users
}

/// Whether a name is that of a tool of the agent's own or of a function of a server, which are meant before a tool of
/// `global_tools`.
fn is_found_before(check: &Check<'_>, name: &str) -> bool {
    let own = check.surroundings.own_tools();
    own.is_ok_and(|own| own.iter().any(|own| own.name == name)) || is_mcp_function(check, name)
}

/// Whether a declared MCP server has a function of that name.
fn is_mcp_function(check: &Check<'_>, name: &str) -> bool {
    mcp_function(check.source, check.surroundings, name).is_some()
}
