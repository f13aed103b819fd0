//! Plays a case of the dialect `agent-spec`: flows and agents with a scripted model, a scripted web server and a plugin, and
//! documents that are written back.

use std::path::Path;
use std::sync::Arc;

use hotcell_graph::{Object, Value};
use hotcell_loopback::{Loopback, RequestMessage, RequestToolCall, Script, WebRequest, WebServer};
use hotcell_runtime::ir::{Action, Callable, Graph, MapBody};
use hotcell_runtime::{Agent, ComponentsFile, Environment, Host, HostOptions, Loading, Which};

use crate::case_file::{CaseFile, Component, HttpExchange, Message, Status};
use crate::given::{environment, turns};
use crate::http;
use crate::loki::{PlayError, nothing_ran, rejected, run_turns, with_causes};
use crate::observed::{FlowObserved, ModelExchange, Observed};
use crate::roundtrip;
use crate::sherma::only_written;
use crate::stage::Stage;
use crate::world::World;

/// What stands for the port of the web server in the texts of a case.
const PORT: &str = "{HTTP_PORT}";

/// Plays the case of a directory and tells what was seen, with the case as it was played: with the port of its web server.
///
/// # Errors
/// When the case asks for something that cannot be played, or the run does not come to an end.
pub fn play(directory: &Path, stage: &Stage) -> Result<(CaseFile, Observed), PlayError> {
    let text = std::fs::read_to_string(directory.join("case.json"))?;
    let entries: Arc<std::sync::OnceLock<Vec<HttpExchange>>> = Arc::default();
    let known = entries.clone();
    let web = WebServer::start(move |request| http::answer(known.get()?, request))?;
    let case = CaseFile::parse(&text.replace(PORT, &web.port().to_string()))
        .map_err(|error| PlayError::Host(error.to_string()))?;
    refuse_foreign_keys(&case)?;
    // Set once, before anybody could ask.
    let _ = entries.set(case.http.clone());
    let world = World::build(&case, directory)?;
    world.prepare_for_web(web.port())?;
    world.install_plugins(&case.plugins)?;

    let script = Script::from_json(&serde_json::Value::from(case.model.clone()))?;
    let model = Loopback::start(script.with_configured_tools(case.tools.keys().cloned()))?;
    let environment = environment(&case, &model.base_url());
    let options = HostOptions { environment: Environment::of(environment), ..HostOptions::isolated() };
    let host = stage.host.beside(options).map_err(|error| PlayError::Host(with_causes(&error)))?;
    let parts = parts(&case, &world);
    let loading = Loading { agent: case.agent.as_deref().map_or(Which::Only, Which::Named), components: &parts };
    let mut observed = if case.expect.status.0.contains(&Status::Roundtrip) {
        roundtrip::play(&case, &host, &loading, &world)
    } else {
        match host.load_with(world.entry(), &loading) {
            Err(failure) => rejected(&failure, &world),
            Ok(agent) => {
                model.name_tools(tools_of(&agent.graph));
                stage.runtime.block_on(run(&case, &host, &agent, &world, stage))?
            }
        }
    };
    observed.exchange = ModelExchange::of(&model);
    let requests = web.requests();
    let unanswered = |request: &&WebRequest| http::answer(&case.http, request).is_none();
    let flow = observed.flow.get_or_insert_default();
    flow.unanswered = requests.iter().filter(unanswered).cloned().collect();
    flow.web = requests;
    Ok((case, observed))
}

/// Keys of other dialects; silently ignoring one would let the case claim what nobody looked at.
fn refuse_foreign_keys(case: &CaseFile) -> Result<(), PlayError> {
    let expect = &case.expect;
    let foreign = [
        ("prices", !case.prices.is_empty()),
        ("schemas", !case.schemas.is_empty()),
        ("variables", !case.variables.is_empty()),
        ("models", case.models.is_some()),
        ("canary", case.canary),
        ("tools[].server", case.tools.values().any(|tool| tool.server.is_some())),
        ("expect.detail", expect.detail.is_some()),
        ("expect.nodes", expect.nodes.is_some()),
        ("expect.state", expect.state.is_some()),
    ];
    match foreign.into_iter().find(|(_, is_there)| *is_there) {
        Some((key, _)) => Err(PlayError::Foreign { key, dialect: "agent-spec" }),
        None => Ok(()),
    }
}

fn parts(case: &CaseFile, world: &World) -> Vec<ComponentsFile> {
    let folder = world.entry().parent().unwrap_or(world.entry());
    let part = |component: &Component| match component {
        Component::Path(file) => ComponentsFile { file: folder.join(file), rename: Vec::new() },
        Component::Renamed(renamed) => ComponentsFile {
            file: folder.join(&renamed.file),
            rename: renamed.rename.iter().map(|(key, id)| (key.clone(), id.clone())).collect(),
        },
    };
    case.components.iter().map(part).collect()
}

/// What models may call in a graph and in those that it calls.
fn tools_of(graph: &Graph) -> Vec<String> {
    let mut names = Vec::new();
    for (_, node) in graph.nodes() {
        match &node.action {
            Action::Converse(action) => names.extend(action.tools.iter().filter_map(|offered| match offered {
                Callable::Defined(tool) => Some(tool.spoken.clone()),
                _ => None,
            })),
            Action::Call(action) => names.extend(action.target.graph().into_iter().flat_map(|graph| tools_of(graph))),
            Action::Map(action) => {
                if let MapBody::Graph(items) = &action.body {
                    names.extend(tools_of(&items.graph));
                }
            }
            _ => {}
        }
    }
    names
}

/// Runs every turn of the case; the last one is the one whose outcome counts.
async fn run(case: &CaseFile, host: &Host, agent: &Agent, world: &World, stage: &Stage) -> Result<Observed, PlayError> {
    let mut turns = turns(case)?;
    if let (Some(first), Some(key)) = (turns.first_mut(), &agent.graph.conversation)
        && !case.conversation.is_empty()
    {
        first.state.insert(key.clone(), Value::List(case.conversation.iter().map(message).collect()));
    }
    let mut observed = run_turns(case, host, agent, world, stage, turns).await?;
    only_written(&mut observed, &agent.graph);
    observed.flow = Some(left(&agent.graph, &observed));
    Ok(observed)
}

/// What a run left in its state.
fn left(graph: &Graph, observed: &Observed) -> FlowObserved {
    let state = observed.state.as_object().cloned().unwrap_or_default();
    let messages = graph.conversation.as_ref().and_then(|key| state.get(key)).and_then(Value::as_list);
    let completed = observed.status == Status::Completed;
    let results = graph.results.as_ref().filter(|_| completed);
    FlowObserved {
        outputs: results.and_then(|results| state.get(&results.outputs)).cloned().unwrap_or_default(),
        branch: results.and_then(|results| state.get(&results.branch)).and_then(Value::as_text).map(str::to_owned),
        messages: messages.into_iter().flat_map(|messages| messages.iter()).filter_map(request_message).collect(),
        ..FlowObserved::default()
    }
}

/// A message of a case as one of the conversation.
fn message(message: &Message) -> Value {
    let mut value = Object::default();
    value.insert("role", message.role.as_deref().unwrap_or("user").into());
    let content = message.content.as_ref().map(|content| content.0.clone());
    value.insert("content", content.unwrap_or_else(|| Value::from("")));
    Value::Object(value)
}

/// A message of the conversation as one of a case.
fn request_message(value: &Value) -> Option<RequestMessage> {
    let message = value.as_object()?;
    let text = |key: &str| message.get(key).and_then(Value::as_text);
    let role = match text("type")? {
        "human" => "user",
        "ai" => "assistant",
        other => other,
    };
    let call = |call: &Value| {
        let call = call.as_object()?;
        let text = |key: &str| call.get(key).and_then(Value::as_text).map(str::to_owned);
        let written = || call.get("args").map(Value::to_json);
        Some(RequestToolCall {
            id: text("id").unwrap_or_default(),
            name: text("name")?,
            arguments: text("arguments").or_else(written).unwrap_or_default(),
        })
    };
    let calls = message.get("tool_calls").and_then(Value::as_list);
    Some(RequestMessage {
        role: role.to_owned(),
        content: text("content").unwrap_or_default().to_owned(),
        tool_calls: calls.into_iter().flat_map(|calls| calls.iter()).filter_map(call).collect(),
        tool_call_id: text("tool_call_id").map(str::to_owned),
    })
}

/// A case in which nothing is run and nothing was wrong.
pub(crate) fn written_back() -> Observed {
    nothing_ran(Status::Roundtrip)
}
