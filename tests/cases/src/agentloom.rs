//! Plays a case of the dialect `agentloom`: workflows and agents, with the schemas and prices of the case.

use std::fs;

use hotcell_graph::Value;
use hotcell_loopback::{Loopback, Script};
use hotcell_runtime::{Agent, Environment, Host, HostOptions};

use crate::case_file::CaseFile;
use crate::given::{environment, prices, turns};
use crate::loki::{PlayError, of_flows, rejected, run_turns, with_causes};
use crate::observed::{ModelExchange, Observed};
use crate::sherma::only_written;
use crate::stage::Stage;
use crate::world::World;

/// Where the host looks for the schemas of models.
const SCHEMAS: &str = "schemas";

/// Plays a case and tells what was seen.
///
/// # Errors
/// When the case asks for something that cannot be played, or the run does not come to an end.
pub fn play(case: &CaseFile, world: &World, stage: &Stage) -> Result<Observed, PlayError> {
    refuse_foreign_keys(case)?;
    write_schemas(case, world)?;
    let script = serde_json::Value::from(case.model.clone());
    let model = Loopback::start(Script::from_json(&script)?.with_configured_tools(case.tools.keys().cloned()))?;
    let host = host(case, &model, stage)?;
    let mut observed = match host.load(world.entry()) {
        Err(failure) => rejected(&failure, world),
        Ok(agent) => stage.runtime.block_on(run(case, &host, &agent, world, stage))?,
    };
    observed.exchange = ModelExchange::of(&model);
    observed.detail = observed.error.as_deref().and_then(detail).map(str::to_owned);
    Ok(observed)
}

/// Keys of other dialects; silently ignoring one would let the case claim what nobody looked at.
fn refuse_foreign_keys(case: &CaseFile) -> Result<(), PlayError> {
    let foreign = [
        ("agent", case.agent.is_some()),
        ("variables", !case.variables.is_empty()),
        ("models", case.models.is_some()),
        ("canary", case.canary),
        ("tools[].server", case.tools.values().any(|tool| tool.server.is_some())),
    ];
    let of_flows = of_flows(case).filter(|(key, _)| !matches!(*key, "expect.detail" | "expect.nodes"));
    match foreign.into_iter().chain(of_flows).find(|(_, is_there)| *is_there) {
        Some((key, _)) => Err(PlayError::Foreign { key, dialect: "agentloom" }),
        None => Ok(()),
    }
}

/// Puts the schemas of the case where an operator would.
fn write_schemas(case: &CaseFile, world: &World) -> Result<(), PlayError> {
    let folder = world.entry().parent().unwrap_or(world.entry()).join(SCHEMAS);
    for (name, schema) in &case.schemas {
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("{name}.json")), schema.0.to_json())?;
    }
    Ok(())
}

fn host(case: &CaseFile, model: &Loopback, stage: &Stage) -> Result<Host, PlayError> {
    let environment = environment(case, &model.base_url());
    let options = HostOptions {
        environment: Environment::of(environment),
        prices: Some(prices(case)),
        ..HostOptions::isolated()
    };
    stage.host.beside(options).map_err(|error| PlayError::Host(with_causes(&error)))
}

/// Runs every turn of the case; the last one is the one whose outcome counts.
async fn run(case: &CaseFile, host: &Host, agent: &Agent, world: &World, stage: &Stage) -> Result<Observed, PlayError> {
    let mut observed = run_turns(case, host, agent, world, stage, turns(case)?).await?;
    only_written(&mut observed, &agent.graph);
    // What was never begun is left out.
    let unfinished = |name: &str| observed.nodes.iter().all(|(known, _)| known != name);
    let skipped: Vec<String> =
        agent.graph.nodes().map(|(_, node)| node.id.to_string()).filter(|name| unfinished(name)).collect();
    observed.nodes.extend(skipped.into_iter().map(|name| (name, "skipped".to_owned())));
    // A step that ran is also in the state, with the same word.
    if let Some(problem) = differs_from_state(&observed) {
        return Err(PlayError::Host(problem));
    }
    Ok(observed)
}

/// What the state says of a step in other words than the events.
fn differs_from_state(observed: &Observed) -> Option<String> {
    let steps = observed.state.as_object()?.get("steps")?.as_object()?;
    steps.iter().find_map(|(name, entry)| {
        let status = entry.as_object()?.get("status").and_then(Value::as_text)?;
        let (_, told) = observed.nodes.iter().find(|(known, _)| **known == **name)?;
        (status != told).then(|| format!("the state says that `{name}` is `{status}`, and the events say `{told}`"))
    })
}

/// The dialect's word for why a workflow ended.
fn detail(error: &str) -> Option<&'static str> {
    let starts = [("run-budget:", "budget_exceeded"), ("the run timed out", "timeout")];
    starts.into_iter().find(|(start, _)| error.starts_with(start)).map(|(_, word)| word)
}
