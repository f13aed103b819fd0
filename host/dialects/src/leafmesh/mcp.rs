//! MCP servers of agents (`mcp`): their functions are tools of the agent's model, named `SERVER_FUNCTION`.

use std::time::Duration;

use hotcell_graph::diagnostic::Diagnostic;

use super::addresses::check_url;
use super::mcp_server::{McpServer, Way};
use super::reading::{Reading, text_values};
use super::schema::{Agent, Body, Mesh};
use crate::document::Need::Optional;
use crate::document::{Fields, Kind, Node, SourceText};

/// How long a call may take where nothing is said.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Warns of servers whose tools no model is offered, and refuses those that are called like another one of the mesh: what one of them is
/// sent, keys included, would go to the other.
pub(super) fn check(agent: &Agent, servers: &[McpServer], mesh: &Mesh, reading: &Reading<'_, '_>) {
    for server in servers {
        let is_other = |known: &McpServer| *known.name == *server.name && known.declared() != server.declared();
        let mut before = mesh.agents.iter().take_while(|other| other.name != agent.name);
        let clashes = |other: &&Agent| matches!(&other.body, Body::Llm(llm) if llm.servers.iter().any(is_other));
        if let Some(other) = before.find(clashes) {
            let message = format!(
                "the MCP server `{}` has other settings than that of the agent `{}`",
                &*server.name, other.name
            );
            let error = Diagnostic::error(message).at(&server.name.span).node(&*agent.name);
            reading.reader.report(error.help("a mesh has one server of each name: give one of them another `name`"));
            continue;
        }
        if let Err(reason) = server.tools(reading.surroundings) {
            let message = format!("the MCP server `{}` cannot be used: {reason}", &*server.name);
            let help = format!("the model of `{}` is not offered its tools until then", agent.name);
            reading.reader.report(Diagnostic::warning(message).at(&server.name.span).node(&*agent.name).help(help));
        }
    }
}

/// Reads the servers of an agent.
pub(super) fn servers<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Vec<McpServer> {
    let mut servers: Vec<McpServer> = Vec::new();
    for (place, item) in fields.list("mcp", Optional).unwrap_or_default().iter().enumerate() {
        let Some(server) = server(reading, fields, item, place) else { continue };
        if servers.iter().any(|other| *other.name == *server.name) {
            let error =
                fields.error(format!("two servers in `mcp` have the name `{}`", &*server.name), &server.name.span);
            reading.reader.report(error.help("give each a `name` of its own"));
            continue;
        }
        servers.push(server);
    }
    servers
}

fn server<'r, 'd>(
    reading: &Reading<'r, 'd>,
    around: &Fields<'r, 'd>,
    item: &'d Node,
    place: usize,
) -> Option<McpServer> {
    let mut fields = reading.fields_of(around, item, format!("entry {} of `mcp`", place + 1))?;
    let span = reading.reader.span(item.place);
    let transport = fields.word("transport", &["http", "stdio"]);
    let command = fields.text("command", Optional);
    let url = fields.text("url", Optional);
    let is_program = match transport {
        Some(transport) => transport == "stdio",
        None => command.is_some(),
    };
    let (transport, others): (_, &[&'static str]) = match is_program {
        true => ("stdio", &["url", "token"]),
        false => ("http", &["command", "args", "env"]),
    };
    for name in others {
        reading.no_effect(&mut fields, name, &format!("the transport is `{transport}`"));
    }
    if let Some(url) = &url {
        check_url(reading, &fields, "url", url);
    }
    let token = fields.text("token", Optional);
    if let (Some(token), Some(node)) = (&token, fields.node("token", Optional)) {
        reading.secret(&fields, "token", token, node);
    }
    fields.text("connection", Optional);
    reading.not_yet(&mut fields, "connection");
    let arguments = fields.texts("args", Optional).unwrap_or_default();
    let environment = text_values(reading, &mut fields, "env");
    let used = match fields.node("use", Optional).map(|node| &node.kind) {
        None | Some(Kind::Null) => None,
        _ => fields.texts("use", Optional),
    };
    let timeout = reading.seconds(&mut fields, "timeout", 3600.0).unwrap_or(TIMEOUT);
    let given = fields.text("name", Optional);
    let (needed, text) = if is_program { ("command", command) } else { ("url", url) };
    let text = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    if text.is_none() {
        let message =
            format!("entry {} of `mcp` has no `{needed}`, which the transport `{transport}` needs", place + 1);
        reading.reader.report(fields.error(message, &span).help("write it, or take the other `transport`"));
    }
    let usual = text.as_deref().map(usual_name).unwrap_or_default();
    let name = given.unwrap_or_else(|| SourceText::implied(&usual, span));
    let is_name = |name: &str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-'))
    };
    let fits = text.is_none() || is_name(&name);
    if !fits {
        let error = fields.error(format!("`{}` cannot be the name of a server in `mcp`", &*name), &name.span);
        reading.reader.report(error.help("give it a `name` of letters, digits, `_` and `-`, 64 at most"));
    }
    fields.finish(|_| None);
    let text = text.filter(|_| fits)?;
    let arguments = arguments.into_iter().map(|argument| argument.to_string()).collect();
    let token = token.map(|token| token.to_string()).filter(|token| !token.is_empty());
    let way = match is_program {
        true => Way::Program { command: text, arguments, environment },
        false => Way::Service { url: text, token },
    };
    Some(McpServer { name, way, timeout, used })
}

/// What a server is called that has no name: its host, or its program.
fn usual_name(text: &str) -> String {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest.split(['/', ':']).next().unwrap_or_default());
    let last = rest.rsplit(['/', '\\']).next().unwrap_or(rest);
    last.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}
