//! Plays a case of the sherma dialect: as [`crate::loki`] does, with conversations that go on from turn to turn.

use hotcell_graph::conversation::last_reply;
use hotcell_graph::{List, Object, Value};
use hotcell_loopback::{Loopback, Script};
use hotcell_runtime::ir::Graph;
use hotcell_runtime::{Agent, Environment, Host, HostOptions};

use crate::case_file::{CaseFile, Status};
use crate::given::{environment, turns};
use crate::loki::{PlayError, of_flows, rejected, run_turns, with_causes};
use crate::observed::{ModelExchange, Observed};
use crate::stage::Stage;
use crate::world::World;

/// Plays a case and tells what was seen.
///
/// # Errors
/// When the case asks for something that cannot be played, or the run does not come to an end.
pub fn play(case: &CaseFile, world: &World, stage: &Stage) -> Result<Observed, PlayError> {
    refuse_foreign_keys(case)?;
    let script = serde_json::Value::from(case.model.clone());
    let script = Script::from_json(&script)?.with_configured_tools(case.tools.keys().cloned());
    let model = Loopback::start(script)?;
    let host = host(case, &model, stage)?;
    let loaded = match &case.agent {
        Some(name) => host.load_named(world.entry(), name),
        None => host.load(world.entry()),
    };
    let mut observed = match loaded {
        Err(failure) => rejected(&failure, world),
        Ok(agent) => stage.runtime.block_on(run(case, &host, &agent, world, stage))?,
    };
    observed.exchange = ModelExchange::of(&model);
    // One server answers for all providers, and gets the whole name of a model.
    for request in &mut observed.exchange.requests {
        if let Some((_, name)) = request.model.split_once(':') {
            request.model = name.to_owned();
        }
    }
    Ok(observed)
}

/// Keys of other dialects; silently ignoring one would let the case claim what nobody looked at.
fn refuse_foreign_keys(case: &CaseFile) -> Result<(), PlayError> {
    let foreign = [
        ("prices", !case.prices.is_empty()),
        ("variables", !case.variables.is_empty()),
        ("models", case.models.is_some()),
        ("canary", case.canary),
        ("tools[].server", case.tools.values().any(|tool| tool.server.is_some())),
    ];
    match foreign.into_iter().chain(of_flows(case)).find(|(_, is_there)| *is_there) {
        Some((key, _)) => Err(PlayError::Foreign { key, dialect: "sherma" }),
        None => Ok(()),
    }
}

fn host(case: &CaseFile, model: &Loopback, stage: &Stage) -> Result<Host, PlayError> {
    let environment = environment(case, &model.base_url());
    let options = HostOptions { environment: Environment::of(environment), ..HostOptions::isolated() };
    stage.host.beside(options).map_err(|error| PlayError::Host(with_causes(&error)))
}

/// Runs every turn of the case; the last one is the one whose outcome counts.
async fn run(case: &CaseFile, host: &Host, agent: &Agent, world: &World, stage: &Stage) -> Result<Observed, PlayError> {
    let mut observed = run_turns(case, host, agent, world, stage, turns(case)?).await?;
    only_written(&mut observed, &agent.graph);
    // The output is the last reply in the conversation, and one is there while a person is asked.
    if observed.status == Status::Interrupted {
        let messages = observed.state.as_object().and_then(|state| state.get("messages")).and_then(Value::as_list);
        observed.output = messages.and_then(last_reply).map(str::to_owned);
    }
    observed.state = in_words_of_cases(&observed.state);
    Ok(observed)
}

/// Leaves of the nodes that ran those that are written in the configuration.
pub(crate) fn only_written(observed: &mut Observed, graph: &Graph) {
    let written = |name: &String| {
        let node = graph.find(name).map(|index| graph.node(index));
        node.is_none_or(|node| node.implied_by.is_none())
    };
    observed.visited.retain(written);
}

/// The state with its messages in the form of a case: `role` instead of `type`, `arguments` instead of `args`.
fn in_words_of_cases(state: &Value) -> Value {
    let Value::Object(state) = state else { return state.clone() };
    let mut state = state.clone();
    if let Some(messages) = state.get("messages").and_then(Value::as_list) {
        let messages: List = messages.iter().map(message).collect();
        state.insert("messages", Value::List(messages));
    }
    Value::Object(state)
}

fn message(value: &Value) -> Value {
    let Value::Object(message) = value else { return value.clone() };
    let role = match message.get("type").and_then(Value::as_text) {
        Some("human") => "user",
        Some("ai") => "assistant",
        Some(other) => other,
        None => return value.clone(),
    };
    let mut shown: Object = message.clone();
    shown.insert("role", Value::from(role));
    if let Some(calls) = message.get("tool_calls").and_then(Value::as_list) {
        let call = |call: &Value| match call {
            Value::Object(call) => {
                let mut shown = call.clone();
                shown.insert("arguments", call.get("args").cloned().unwrap_or_default());
                Value::Object(shown)
            }
            other => other.clone(),
        };
        shown.insert("tool_calls", Value::List(calls.iter().map(call).collect()));
    }
    Value::Object(shown)
}
