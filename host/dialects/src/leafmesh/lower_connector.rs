//! What an agent has another system do, by a connector that comes with hotcell.
//!
//! What a vendor's interface is like only the connector knows. Here it is set up (which servers, which secrets) and handed a job.

use std::sync::Arc;
use std::time::Duration;

use hotcell_graph::ir::{Action, Arguments, Composed, Expression, JobAction, Tool, ToolAction, ToolKind};
use hotcell_graph::{Key, Object, Value};

use super::agent_state::{ANSWER, INPUT, RERUN};
use super::expressions::{FROM_AGENT, UPSTREAM, composed, entry, key, object, or_else};
use super::schema::{Agent, Connector};
use super::state::{CALLBACKS, CONNECTOR_TIMEOUT, SCOPE, SERVED};
use crate::surroundings::{DeclaredComponent, DeclaredServer, ServerWay, Surroundings};

/// How long a connector works that is asked until it is done, where nobody says.
const MOST_POLLED: Duration = Duration::from_secs(300);
/// How long a callback is waited for where nobody says.
const CALLBACK: Duration = Duration::from_secs(120);
/// The entries of what is sent that say where the result is to go, and for which session.
const CALLBACK_URL: &str = "_leafmesh_callback_url";
const CALLBACK_SESSION: &str = "_leafmesh_session_id";
/// What stands for the text of a tool.
pub(super) const TEXT: &str = "text";

/// The component of an agent that has a connector: what it is called, and what is set up.
pub(super) fn component(agent: &str, connector: &Connector) -> DeclaredComponent {
    let policy = &connector.policy;
    DeclaredComponent {
        name: agent.to_owned(),
        component: connector.name.to_string(),
        servers: connector.servers.clone(),
        further_hosts: policy.allowed_hosts.clone(),
        secrets: connector.secrets.0.clone(),
        // One call may be several requests.
        timeout: Some(step_of(connector).saturating_mul(4)),
    }
}

/// The action of an agent that has a connector; the error is why it cannot work.
pub(super) fn action(agent: &Agent, connector: &Connector, surroundings: &dyn Surroundings) -> Result<Action, String> {
    if connector.is_program() {
        return Ok(program(agent, connector, surroundings));
    }
    let component = component(&agent.name, connector);
    surroundings.declare_component(&component).map_err(|reason| reason.to_string())?;
    let is_callback = connector.text("mode") == Some("callback");
    let step = step_of(connector);
    let seconds = |name: &str| seconds(connector, name);
    let deadline = match (is_callback, is_polled(connector)) {
        (true, _) => seconds("callback_timeout").unwrap_or(CALLBACK),
        (false, true) => seconds("max_poll_seconds").unwrap_or(MOST_POLLED),
        (false, false) => step,
    };
    let served = |name: &str| or_else(entry(or_else(key(SERVED), Object::default()), name), Value::Null);
    let mut arguments = vec![sent(connector)];
    if is_callback {
        arguments.push(object([(CALLBACK_SESSION, entry(key(INPUT), "session_id"))]));
    }
    let settings = Expression::Value(settings(connector).into());
    let job = JobAction {
        name: agent.name.clone(),
        tools: component.tool(""),
        settings: composed(Composed::Overlaid(vec![settings, object([("scope", served(SCOPE))])])),
        arguments: composed(Composed::Overlaid(arguments)),
        step,
        deadline,
        callback: is_callback.then(|| served(CALLBACKS)),
        late: CONNECTOR_TIMEOUT,
        bind: ANSWER,
    };
    Ok(Action::Job(Box::new(job)))
}

/// The function of an MCP server that is a program. Whether it may be started the operator says.
fn program(agent: &Agent, connector: &Connector, surroundings: &dyn Surroundings) -> Action {
    let text = |name: &str| connector.text(name).unwrap_or_default().to_owned();
    let list = connector.settings.get("args").and_then(Value::as_list);
    let arguments = list.into_iter().flat_map(|list| list.iter().filter_map(Value::as_text)).map(str::to_owned);
    let map = connector.settings.get("env").and_then(Value::as_object);
    let environment = map.into_iter().flat_map(Object::iter);
    let way = ServerWay::Program {
        command: text("command"),
        arguments: arguments.collect(),
        environment: environment.map(|(name, value)| (name.to_string(), value.to_display().into_owned())).collect(),
        folder: None,
    };
    let timeout = Some(step_of(connector));
    let server = DeclaredServer { name: agent.name.to_string(), way, prefix: String::new(), timeout, retry: None };
    surroundings.note_server(&server);
    let name = text("tool_name");
    let form = connector.request_form.clone().unwrap_or_else(|| Object::default().into());
    let with_form = composed(Composed::Overlaid(vec![sent(connector), Expression::Value(form)]));
    let tool = Tool {
        name: name.as_str().into(),
        spoken: name.clone(),
        description: String::new(),
        inputs: Vec::new(),
        kind: ToolKind::Host(format!("mcp:{}/{name}", agent.name)),
        confirm: false,
    };
    Action::Tool(Box::new(ToolAction {
        tool: Arc::new(tool),
        inputs: with_form,
        arguments: Arguments::AsTheyAre,
        bind: ANSWER,
    }))
}

/// What is sent of the input: what may be, without what the policy takes out.
fn sent(connector: &Connector) -> Expression {
    let own = ["session_id", FROM_AGENT, UPSTREAM].map(Key::from);
    let mut sent = composed(Composed::Public(composed(Composed::Without(key(INPUT), own.into())), vec![RERUN.into()]));
    if let Some(fields) = &connector.policy.send_fields {
        sent = composed(Composed::Only(sent, fields.clone()));
    }
    if !connector.policy.redact.is_empty() {
        sent = composed(Composed::Redacted(sent, connector.policy.redact.clone()));
    }
    sent
}

/// What the connector is told of itself.
fn settings(connector: &Connector) -> Object {
    let mut settings = connector.settings.clone();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            settings.insert(name, value);
        }
    };
    let number = |number: u32| Value::from(i64::from(number));
    let names = connector.secrets.0.iter().map(|(name, _)| Value::from(name.as_str()));
    set("secrets", Some(super::expressions::list(names)));
    set("request_form", connector.request_form.clone());
    // What configures the run there, and is no part of its input.
    set("form_apart", (&*connector.name == "langgraph").then_some(Value::Bool(true)));
    set("callback_field", Some(CALLBACK_URL.into()));
    set("max_response_bytes", connector.policy.max_response_bytes.map(number));
    set("quarantine_after", connector.policy.quarantine_after.map(number));
    settings
}

fn seconds(connector: &Connector, name: &str) -> Option<Duration> {
    let seconds = connector.settings.get(name)?.to_display().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// How long one step may take.
fn step_of(connector: &Connector) -> Duration {
    let usual = match &*connector.name {
        "autogen" => 120,
        _ if is_polled(connector) => 30,
        _ => 60,
    };
    let said = seconds(connector, "http_timeout").or_else(|| seconds(connector, "timeout"));
    said.unwrap_or(Duration::from_secs(usual))
}

/// Whether it is asked until it is done.
fn is_polled(connector: &Connector) -> bool {
    super::connectors::is_polled(&connector.name)
}
