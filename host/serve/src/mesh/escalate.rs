//! Who is told when something goes wrong: after so many failures in a session, after one broken contract or one join that waited in
//! vain, and after so many questions in a row that nobody answered. Each happens once in a session.

use futures::future::join_all;
use hotcell_graph::{Lookup, Object as GraphObject, Path, Template, Value as GraphValue};
use hotcell_runtime::WebCall;
use hotcell_runtime::leafmesh::state::{BUDGET, CONTRACT, FAN_IN};
use hotcell_runtime::leafmesh::{EscalationTarget, ManagerSettings};
use serde_json::{Map, Value, json};

use super::begin::{At, Task, begin};
use super::channels;
use super::events::{self, ANSWERED, ERROR, NEEDED, TIMEOUT};
use super::meshes::Mesh;
use super::store::Session;
use crate::state::Server;
use crate::store::StoreError;

/// Failures each of which is enough.
const AT_ONCE: [&str; 2] = [CONTRACT, FAN_IN];
/// What a message says that has no text of its own.
const MESSAGE: &str = "{{agent}}: {{error_message}}";

/// Tells whoever has to be told of an event. That it was done is noted afterwards: a server that ends in between does it again.
pub(super) async fn after(server: &Server, mesh: &Mesh, session: &Session, event: &Value) -> Result<(), StoreError> {
    let Some(manager) = &mesh.settings.manager else { return Ok(()) };
    let Some(cause) = cause(server, mesh, session, manager, event)? else { return Ok(()) };
    let key = format!("{}:escalated:{cause}", session.number);
    // Two runs of a session may come to it at once.
    let _telling = mesh.doing.telling.lock(&key).await;
    if server.store().has_event(&key)? {
        return Ok(());
    }
    join_all(manager.targets.iter().map(async |target| {
        if let Err(reason) = tell(server, mesh, session, target, (cause, event)).await {
            tracing::warn!(target: "hotcell::serve", session = session.key.id, reason, "somebody could not be told of a failure");
        }
    }))
    .await;
    let told = json!({ "type": NEEDED, "agent": event["agent"], "cause": cause });
    events::note(server, session, &key, told).map(drop)
}

/// What it is that somebody has to be told, if there is something.
fn cause(
    server: &Server,
    mesh: &Mesh,
    session: &Session,
    manager: &ManagerSettings,
    event: &Value,
) -> Result<Option<&'static str>, StoreError> {
    let noted = || server.store().events_of_session(session.number);
    Ok(match event["type"].as_str() {
        Some(ERROR) if event["error_type"].as_str().is_some_and(|kind| AT_ONCE.contains(&kind)) => Some("contract"),
        Some(ERROR) if is_budget_to_tell(mesh, event) => Some("budget"),
        Some(ERROR) => {
            let errors = noted()?.iter().filter(|event| event["type"] == ERROR).count();
            (errors >= manager.max_errors_per_session as usize).then_some("errors")
        }
        Some(TIMEOUT) => {
            // Only what people do interrupts a row.
            let noted = noted()?;
            let of_people = noted.iter().rev().filter(|event| event["type"] == TIMEOUT || event["type"] == ANSWERED);
            let in_a_row = of_people.take_while(|event| event["type"] == TIMEOUT).count();
            manager.timeout_threshold.filter(|most| in_a_row >= *most as usize).map(|_| "timeouts")
        }
        _ => None,
    })
}

/// Whether an agent has used up its budget of which the targets are to be told.
fn is_budget_to_tell(mesh: &Mesh, event: &Value) -> bool {
    let agent = event["agent"].as_str().and_then(|name| mesh.settings.agent(name));
    event["error_type"] == BUDGET && agent.and_then(|agent| agent.budget).is_some_and(|budget| budget.escalates)
}

/// What texts of targets may name.
struct Variables(GraphObject);

impl Lookup for Variables {
    fn lookup(&self, name: &str) -> Option<&GraphValue> {
        self.0.get(name)
    }
}

fn variables(session: &Session, event: &Value) -> Variables {
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let value = |name: &str| match name {
        "session_id" => session.key.id.clone(),
        "severity" | "severity_level" => "high".to_owned(),
        "error_message" => text("message"),
        name => text(name),
    };
    let entry = |name: &str| (hotcell_graph::Key::from(name), GraphValue::from(value(name)));
    Variables(EscalationTarget::VARIABLES.map(entry).into_iter().collect())
}

/// A text, or everything in a value that is one, with its variables put in.
fn filled(value: &GraphValue, variables: &Variables) -> Value {
    match value {
        GraphValue::Text(text) => {
            let template = Template::parse(text);
            for name in template.references().filter_map(Path::root).filter(|name| variables.0.get(name).is_none()) {
                tracing::warn!(target: "hotcell::serve", name, "a text about a failure names something that is not there");
            }
            template.expand_lenient(variables).into()
        }
        GraphValue::List(items) => items.iter().map(|item| filled(item, variables)).collect(),
        GraphValue::Object(entries) => {
            let entry =
                |(name, value): (&hotcell_graph::Key, &GraphValue)| (name.to_string(), filled(value, variables));
            Value::Object(entries.iter().map(entry).collect::<Map<String, Value>>())
        }
        other => other.into(),
    }
}

async fn tell(
    server: &Server,
    mesh: &Mesh,
    session: &Session,
    target: &EscalationTarget,
    (cause, event): (&str, &Value),
) -> Result<(), String> {
    let variables = variables(session, event);
    match target {
        EscalationTarget::Webhook { url, method, headers, payload } => {
            let body = match payload {
                Some(payload) => filled(payload, &variables),
                None => Value::from(&GraphValue::Object(variables.0)),
            };
            let headers = headers.0.clone();
            let body = Some(GraphValue::from(&body));
            let call =
                WebCall { method: method.clone(), url: url.clone(), query: Vec::new(), headers, body, time: None };
            let reply = mesh.agent.send(call).await.map_err(|error| error.to_string())?;
            match (200..300).contains(&reply.status) {
                true => Ok(()),
                false => Err(format!("`{url}` answered with the status {}", reply.status)),
            }
        }
        EscalationTarget::Agent { agent, .. } => {
            let mut input = Map::new();
            input.insert("from_agent".to_owned(), event["agent"].clone());
            let message = Template::parse(MESSAGE).expand_lenient(&variables);
            input.insert("message".to_owned(), message.into());
            for name in ["agent", "error_message", "error_type", "severity"] {
                if let Some(value) = variables.0.get(name) {
                    input.insert(name.to_owned(), value.into());
                }
            }
            let _session = mesh.doing.sessions.lock(&session.key).await;
            let at = At::Agent { name: agent.clone(), input: input.into() };
            let task = Task { key: session.key.clone(), kind: "escalation", at, is_beside: true, once: None };
            begin(server, mesh, task, false).await.map(drop).map_err(|refused| refused.reason())
        }
        EscalationTarget::Channel { provider, channel_id, message } => {
            let text = filled(&GraphValue::from(message.as_deref().unwrap_or(MESSAGE)), &variables);
            let about = format!("{} {cause}", session.key.id);
            let to = (provider.as_str(), channel_id.as_deref());
            channels::report(server, mesh, to, text.as_str().unwrap_or_default(), &about).await
        }
    }
}
