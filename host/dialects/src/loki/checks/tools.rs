//! Models and tools that a graph names.

use hotcell_graph::closest;
use hotcell_graph::diagnostic::{Diagnostic, Severity};

use super::super::schema::{Body, Llm};
use super::super::{SERVER_HELP, global_tools, mcp_function, model_help, tool_name};
use super::Check;
use crate::document::SourceText;
use crate::surroundings::ServerState;

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
    for tool in &check.source.global_tools {
        let remark = global_tools::remark(tool, Severity::Warning, check.surroundings);
        remark.into_iter().for_each(|remark| check.reader.report(remark));
    }
    if let Err(reason) = check.surroundings.own_tools() {
        check.reader.report(Diagnostic::warning(reason.to_string()));
    }
    for server in &check.source.mcp_servers {
        let warning = match check.surroundings.mcp_server(server) {
            ServerState::Usable(_) | ServerState::NotStarted => continue,
            ServerState::Missing => {
                Diagnostic::warning(format!("the MCP server `{}` is not configured", &**server)).help(SERVER_HELP)
            }
            ServerState::Unusable(reason) => Diagnostic::warning(reason),
        };
        check.reader.report(warning.at(&server.span));
    }
    let mut report = |diagnostic| check.reader.report(diagnostic);
    check.source.choice.check(&check.source.mcp_servers, check.surroundings, &mut report);
    if let Some(skills) = &check.source.skills {
        skills.check(check.surroundings, &mut report);
    }
    if let Some(spawning) = &check.source.spawning {
        spawning.check_of_graph(check.surroundings, &mut report);
    }
    for node in check.nodes() {
        let Body::Llm(llm) = &node.body else { continue };
        let mut of_node = |diagnostic: Diagnostic| report(diagnostic.node(&*node.id.value));
        llm.choice.check(&check.source.mcp_servers, check.surroundings, &mut of_node);
        if let Some(skills) = &llm.skills {
            skills.check(check.surroundings, &mut of_node);
        }
        for tool in &llm.tools {
            if let Some(error) = problem(check, tool).or_else(|| not_chosen(check, llm, tool)) {
                check.reader.report(error.at(&tool.span).node(&*node.id.value));
            }
        }
    }
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
    if let Some(server) = tool.strip_prefix("mcp:") {
        let declared = source.mcp_servers.iter().any(|declared| **declared == *server);
        let (problem, help) = if declared {
            match check.surroundings.mcp_server(server) {
                ServerState::Usable(_) | ServerState::NotStarted => return None,
                ServerState::Missing => ("is not configured", SERVER_HELP.to_owned()),
                ServerState::Unusable(reason) => return Some(Diagnostic::error(reason)),
            }
        } else {
            let near = closest(server, source.mcp_servers.iter().map(|declared| &**declared));
            (
                "is not listed in `mcp_servers`",
                match near {
                    Some(near) => format!("did you mean `mcp:{near}`?"),
                    None => "add it to `mcp_servers` at the top of the file".to_owned(),
                },
            )
        };
        return Some(Diagnostic::error(format!("the MCP server of `{}` {problem}", &**tool)).help(help));
    }
    let name = tool_name(tool);
    let own = check.surroundings.own_tools();
    if own.as_ref().is_ok_and(|own| own.iter().any(|own| own.name == name)) || is_mcp_function(check, name) {
        return None;
    }
    if source.global_tools.iter().any(|declared| tool_name(declared) == name) {
        return global_tools::find(tool, check.surroundings).err();
    }
    // Its file may define it, if it could be read.
    let own = match own {
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

/// Whether a declared MCP server has a function of that name.
fn is_mcp_function(check: &Check<'_>, name: &str) -> bool {
    mcp_function(check.source, check.surroundings, name).is_some()
}
