//! MCP servers that a file declares: each of their functions is a tool.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::diagnostic::Span;

use super::declared::{declarations, unknown};
use super::schema::{Declared, Tool};
use crate::document::Need::{Optional, Required};
use crate::document::{Entry, Fields, SourceText};
use crate::surroundings::{DeclaredServer, ServerState, ServerWay, Surroundings};

const TRANSPORTS: [&str; 3] = ["streamable_http", "sse", "stdio"];
/// Functions with names of this kind are not for models.
const HOOKS: &str = "hooks.";

/// Reads the servers of a file; their functions are added to its tools.
pub(super) fn read(fields: &mut Fields<'_, '_>, tools: &mut Vec<Tool>, surroundings: &dyn Surroundings) {
    let found = declarations(fields, "mcp_servers", "MCP server", |fields, declared| {
        let transport = fields.text("transport", Optional);
        let prefix = fields.text("tool_prefix", Optional);
        let way = match transport.as_deref().unwrap_or(TRANSPORTS[0]) {
            "stdio" => program(fields),
            events @ ("streamable_http" | "sse") => service(fields, events == "sse"),
            _ => {
                for name in ["url", "headers", "command", "args", "env"] {
                    fields.ignore(name);
                }
                transport
                    .iter()
                    .for_each(|word| fields.reader().report(unknown(fields, "transport", word, &TRANSPORTS)));
                None
            }
        };
        let prefix = prefix.map(|prefix| prefix.to_string()).unwrap_or_default();
        let server = DeclaredServer { name: declared.id.to_string(), way: way?, prefix, timeout: None, retry: None };
        Some(tools_of(fields, &declared, &server, surroundings))
    });
    let mut first: HashMap<Arc<str>, Span> =
        tools.iter().map(|tool| (Arc::clone(&tool.declared.id.value), tool.declared.id.span.clone())).collect();
    for tool in found.into_iter().flatten() {
        let (id, span) = (Arc::clone(&tool.declared.id.value), tool.declared.id.span.clone());
        if let Some(first) = first.insert(Arc::clone(&id), span.clone()) {
            let error = fields.error(format!("two tools are called `{id}`"), &span).related(&first, "one is from here");
            fields.reader().report(error.help("give the tools of one server a `tool_prefix`"));
        }
        tools.push(tool);
    }
}

fn program(fields: &mut Fields<'_, '_>) -> Option<ServerWay> {
    for name in ["url", "headers"] {
        not_with(fields, name, "stdio");
    }
    let command = fields.text("command", Required);
    let arguments = fields.texts("args", Optional).unwrap_or_default();
    let environment = texts(fields, "env");
    let arguments = arguments.iter().map(|argument| argument.to_string()).collect();
    Some(ServerWay::Program { command: command?.to_string(), arguments, environment, folder: None })
}

fn service(fields: &mut Fields<'_, '_>, events: bool) -> Option<ServerWay> {
    for name in ["command", "args", "env"] {
        not_with(fields, name, if events { "sse" } else { "streamable_http" });
    }
    let url = fields.text("url", Required);
    let headers = texts(fields, "headers");
    Some(ServerWay::Service { url: url?.to_string(), headers, events, tls: None })
}

/// Refuses a field that a server with this transport does not have.
fn not_with(fields: &mut Fields<'_, '_>, name: &'static str, transport: &str) {
    let Some(entry) = fields.entry(name, Optional) else { return };
    let reader = fields.reader();
    let error = fields
        .error(format!("a server with the transport `{transport}` has no `{name}`"), &reader.span(entry.key_place));
    reader.report(error.help("a program is `transport: stdio` with `command`, a service has a `url`"));
}

/// A mapping of texts.
fn texts<'d>(fields: &mut Fields<'_, 'd>, name: &'static str) -> Vec<(String, String)> {
    let Some((entries, _)) = fields.map(name, Optional) else { return Vec::new() };
    let text = |entry: &'d Entry| {
        let what = || format!("`{}` of `{name}`", entry.key);
        let value = fields.reader().text(&entry.value, what, fields.owner())?;
        Some((entry.key.to_string(), value.to_string()))
    };
    entries.iter().filter_map(text).collect()
}

/// A server that a skill card names: a service.
pub(super) fn of_card(fields: &mut Fields<'_, '_>, surroundings: &dyn Surroundings) -> Vec<Tool> {
    let id = fields.text("id", Required);
    let version = fields.text("version", Optional);
    // Cards write the same transport with a hyphen.
    let transport = fields.text("transport", Optional);
    let events = match transport.as_deref() {
        None | Some("streamable-http" | "streamable_http") => false,
        Some("sse") => true,
        Some(_) => {
            let known = ["streamable-http", "sse"];
            transport.iter().for_each(|word| fields.reader().report(unknown(fields, "transport", word, &known)));
            false
        }
    };
    let (Some(id), Some(way)) = (id, service(fields, events)) else { return Vec::new() };
    let server = DeclaredServer { name: id.to_string(), way, prefix: String::new(), timeout: None, retry: None };
    tools_of(fields, &Declared { id, version }, &server, surroundings)
}

/// The functions of a server as tools, once it is declared.
fn tools_of(
    fields: &Fields<'_, '_>,
    declared: &Declared,
    server: &DeclaredServer,
    surroundings: &dyn Surroundings,
) -> Vec<Tool> {
    let reason = match surroundings.declare_server(server) {
        ServerState::Usable(functions) => {
            let tool = |function: &String| Tool {
                declared: Declared {
                    id: named(&declared.id, format!("{}{function}", server.prefix)),
                    version: declared.version.clone(),
                },
                name: format!("mcp:{}/{function}", server.name),
            };
            return functions.iter().filter(|function| !function.starts_with(HOOKS)).map(tool).collect();
        }
        ServerState::NotStarted => return Vec::new(),
        ServerState::Missing => format!("the MCP server `{}` is not there", server.name),
        ServerState::Unusable(reason) => reason,
    };
    fields.reader().report(fields.error(reason, &declared.id.span));
    Vec::new()
}

/// Another text at the same place.
fn named(place: &SourceText, text: String) -> SourceText {
    let mut named = place.clone();
    named.value = text.into();
    named
}
