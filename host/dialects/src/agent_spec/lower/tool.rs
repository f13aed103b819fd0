//! Tools, and the requests of `RemoteTool` and `ApiNode`.

use std::sync::Arc;
use std::time::Duration;

use hotcell_graph::ir::{Expression, Retry, Slot, Tool, ToolKind, WebAnswer, WebRequest};
use hotcell_graph::types::to_text;
use hotcell_graph::{Key, Object, Value};

use super::{Lowering, template};
use crate::agent_spec::model::{Component, ComponentId, Property};
use crate::surroundings::{DeclaredServer, Imported, MutualTls, ServerWay};

/// Letters that the name of a tool may have for a model.
pub(super) const LONGEST_NAME: usize = 64;

impl Lowering<'_> {
    /// A tool.
    pub(super) fn tool(&mut self, id: ComponentId) -> Arc<Tool> {
        let component = self.component(id);
        let kind = match (&*component.component_type, &component.plugin) {
            ("ServerTool" | "BuiltinTool", _) => self.server_tool(component),
            ("ClientTool", _) => ToolKind::Client,
            ("RemoteTool", _) => {
                let answer = match &component.outputs[..] {
                    [] => WebAnswer::Text,
                    [only] if only.ty.is_text() => WebAnswer::Text,
                    [_] => WebAnswer::Json,
                    _ => WebAnswer::Object,
                };
                let retry = self.retry(component);
                ToolKind::Web(Box::new(WebRequest { retry, ..request(component, answer) }))
            }
            ("MCPTool" | "PluginMCPTool", _) => self.function(component),
            (kind, Some(plugin)) => ToolKind::Host(format!("{}/{kind}", plugin.name)),
            (other, None) => {
                self.refuse(component, format!("`{other}` is not a tool that can be called here"));
                ToolKind::Refused(String::new())
            }
        };
        Arc::new(Tool {
            name: component.name.clone(),
            spoken: spoken(&component.name),
            description: component.text("description").unwrap_or_default().to_owned(),
            inputs: component.inputs.iter().map(slot).collect(),
            kind,
            confirm: confirms(component),
        })
    }

    /// A tool that the file leaves to the host; that there is one was checked.
    fn server_tool(&mut self, component: &Component) -> ToolKind {
        match self.surroundings.named_tool(&component.name) {
            Imported::Usable(name) => ToolKind::Host(name),
            Imported::Unusable(reason) => ToolKind::Refused(reason),
            Imported::Missing { .. } => ToolKind::Refused(format!("there is no tool `{}` here", component.name)),
        }
    }

    /// A function of an MCP server. The server is contacted when it is called.
    fn function(&mut self, component: &Component) -> ToolKind {
        let Some(id) = component.child("client_transport") else { return ToolKind::Refused(String::new()) };
        let name = self.server(id);
        let function = format!("mcp:{name}/{}", component.name);
        self.retry_function(component, &function);
        ToolKind::Host(function)
    }

    /// Makes the server behind a transport known, and gives the name under which it is.
    pub(super) fn server(&mut self, id: ComponentId) -> String {
        if let Some(name) = self.servers.get(&id) {
            return name.clone();
        }
        let transport = self.component(id);
        // Grants are given to the name; two servers with one name are told apart by their ids.
        let taken = self.servers.values().any(|name| **name == *transport.name);
        let name = if taken { transport.id.to_string() } else { transport.name.to_string() };
        self.servers.insert(id, name.clone());
        let texts = |field: &str| -> Vec<(String, String)> {
            let object = transport.value(field).and_then(Value::as_object);
            let entry = |(key, value): (&Key, &Value)| (key.to_string(), to_text(value));
            object.into_iter().flat_map(|object| object.iter()).map(entry).collect()
        };
        let text = |field: &str| transport.text(field).unwrap_or_default().to_owned();
        let tls =
            || MutualTls { key_file: text("key_file"), certificate_file: text("cert_file"), ca_file: text("ca_file") };
        let service = |events: bool, tls: Option<MutualTls>| ServerWay::Service {
            url: text("url"),
            headers: texts("headers").into_iter().chain(texts("sensitive_headers")).collect(),
            events,
            tls,
        };
        let way = match &*transport.component_type {
            "StdioTransport" | "PluginStdioTransport" => {
                self.says_utf8(transport);
                let arguments = transport.value("args").and_then(Value::as_list);
                ServerWay::Program {
                    command: text("command"),
                    arguments: arguments.into_iter().flat_map(|list| list.iter()).map(to_text).collect(),
                    environment: texts("env"),
                    folder: transport.text("cwd").map(str::to_owned),
                }
            }
            "SSETransport" | "PluginSSETransport" => service(true, None),
            "SSEmTLSTransport" | "PluginSSEmTLSTransport" => service(true, Some(tls())),
            "StreamableHTTPTransport" | "PluginStreamableHTTPTransport" => service(false, None),
            "StreamableHTTPmTLSTransport" | "PluginStreamableHTTPmTLSTransport" => service(false, Some(tls())),
            other => {
                self.refuse(transport, format!("hotcell knows no way to an MCP server by `{other}`"));
                return name;
            }
        };
        if let Some(auth) = transport.child("auth").map(|auth| self.component(auth)) {
            let kind = &auth.component_type;
            let why = "a person signs in with a browser for it, which nobody can do here";
            let instead = "hand in the token beside the configuration, in `sensitive_headers` of the transport";
            self.refuse(auth, format!("`{kind}` is not supported, as {why}: {instead}"));
        }
        let timeout = self.session_timeout(transport);
        let retry = self.retry_calls(transport);
        let server = DeclaredServer { name: name.clone(), way, prefix: String::new(), timeout, retry };
        self.surroundings.note_server(&server);
        name
    }

    /// Refuses what a program is said to speak in other letters than any program does that speaks MCP.
    fn says_utf8(&mut self, transport: &Component) {
        for (field, usual) in [("encoding", "utf-8"), ("encoding_error_handler", "strict")] {
            if transport.text(field).is_some_and(|said| !said.eq_ignore_ascii_case(usual)) {
                self.refuse_field(transport, field, format!("`{field}` cannot be anything but `{usual}`"));
            }
        }
    }

    /// How long calls in a session may take: the only parameter of a session that is known, or how long a transport of the
    /// reference runtime waits for an event.
    fn session_timeout(&mut self, transport: &Component) -> Option<Duration> {
        let mut timeout = match transport.value("sse_read_timeout") {
            Some(Value::Number(number)) => Duration::try_from_secs_f64(number.to_f64()).ok(),
            _ => None,
        };
        let parameters = transport.value("session_parameters").and_then(Value::as_object);
        for (name, value) in parameters.into_iter().flat_map(Object::iter) {
            match (&**name, value) {
                (_, Value::Null) => {}
                ("read_timeout_seconds", Value::Number(number)) => {
                    timeout = Duration::try_from_secs_f64(number.to_f64()).ok().filter(|timeout| !timeout.is_zero());
                    if timeout.is_none() {
                        self.refuse(transport, format!("`read_timeout_seconds` cannot be `{value}`"));
                    }
                }
                (name, _) => {
                    self.refuse(
                        transport,
                        format!("the session parameter `{name}` is not supported; `read_timeout_seconds` is"),
                    );
                }
            }
        }
        timeout
    }
}

/// The node that sends a request itself, as a tool.
pub(super) fn of_api_node(component: &Component, retry: Option<Retry>) -> Tool {
    Tool {
        name: component.name.clone(),
        spoken: spoken(&component.name),
        description: String::new(),
        inputs: component.inputs.iter().map(slot).collect(),
        kind: ToolKind::Web(Box::new(WebRequest { retry, ..request(component, WebAnswer::Object) })),
        confirm: false,
    }
}

/// Whether a person has to allow each call of a tool.
pub(super) fn confirms(component: &Component) -> bool {
    matches!(component.value("requires_confirmation"), Some(Value::Bool(true)))
}

pub(super) fn slot(property: &Property) -> Slot {
    Slot {
        name: property.title.clone(),
        schema: property.schema.clone(),
        ty: property.ty.clone(),
        default: property.default.clone(),
    }
}

/// The request of a component with `url`, `http_method`, `data`, `query_params` and `headers`.
fn request(component: &Component, answer: WebAnswer) -> WebRequest {
    let value = |name: &str| Expression::Key(Key::from(name));
    let object = |field: &str| match component.value(field).and_then(Value::as_object) {
        Some(object) => template::entries(object, &value),
        None => Expression::Entries(Vec::new()),
    };
    let body = match component.value("data") {
        None | Some(Value::Null) => Expression::Value(Value::Null),
        Some(Value::Object(object)) if object.is_empty() => Expression::Value(Value::Null),
        Some(data) => template::json(data, &value),
    };
    let headers = match (object("headers"), component.value("sensitive_headers").and_then(Value::as_object)) {
        (Expression::Entries(mut entries), Some(secrets)) => {
            // Secrets are no templates: nothing else gets into them.
            let entry = |(key, value): (&Key, &Value)| {
                (Expression::Value(Value::Text(key.clone())), Expression::Value(value.clone()))
            };
            entries.extend(secrets.iter().map(entry));
            Expression::Entries(entries)
        }
        (headers, _) => headers,
    };
    let allowed = component.value("url_allow_list").and_then(Value::as_list);
    WebRequest {
        url: template::url(component.text("url").unwrap_or_default(), value),
        method: template::text(component.text("http_method").unwrap_or_default(), value),
        query: object("query_params"),
        headers,
        body,
        answer,
        allowed: allowed.map(|list| list.iter().map(to_text).collect()),
        retry: None,
    }
}

/// A name as models may write it.
pub(super) fn spoken(name: &str) -> String {
    let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let name: String =
        name.chars().map(|character| if fits(character) { character } else { '_' }).take(LONGEST_NAME).collect();
    if name.is_empty() { "tool".to_owned() } else { name }
}
