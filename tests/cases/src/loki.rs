//! Plays a case of the Loki dialect: through the host library, with the scripted model behind real HTTP.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use hotcell_graph::diagnostic::{Diagnostic, Severity};
use hotcell_graph::{Key, Object, Value};
use hotcell_loopback::{Loopback, Script, ScriptError};
use hotcell_runtime::mcp::{HttpServer, HttpSettings, Identity, serve_http};
use hotcell_runtime::{
    Agent, CancellationToken, Environment, Host, HostError, HostOptions, LoadFailure, Outcome, RunInput, RunReport,
    Session, ToolCatalog,
};
use thiserror::Error;

use crate::canary::Canary;
use crate::case_file::{Answer, CaseFile, Json, Status};
use crate::given::environment;
use crate::observed::{ModelExchange, Observed};
use crate::stage::Stage;
use crate::witness::Witness;
use crate::world::{World, WorldError};

/// The model of graphs that name none, where every name exists.
const DEFAULT_MODEL: &str = "test:default";

/// Why a case could not be played to an end that can be compared.
#[derive(Debug, Error)]
pub enum PlayError {
    /// A key of the case means nothing for this dialect
    #[error("`{key}` means nothing in a case of the dialect `{dialect}`")]
    Foreign {
        /// The key
        key: &'static str,
        /// The dialect
        dialect: &'static str,
    },
    /// The input is no text
    #[error("`{0}` of a Loki case has to be a text")]
    Input(&'static str),
    /// The input is neither a text nor an object
    #[error("`{0}` has to be a text or an object")]
    Form(&'static str),
    /// The model's replies cannot be understood
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The scratch copy failed
    #[error(transparent)]
    World(#[from] WorldError),
    /// A local server could not be started
    #[error("a server on 127.0.0.1 could not be started: {0}")]
    Server(#[from] io::Error),
    /// The host could not be set up
    #[error("the host could not be set up: {0}")]
    Host(String),
    /// The run did not end in time
    #[error("it did not end within {0} s")]
    Late(u64),
    /// A call did something else when it was executed again
    #[error("executed again from its recording, it does something else:\n{0}")]
    OtherwiseAgain(String),
    /// The host gave up without being asked to
    #[error("the run was interrupted although nobody cancelled it")]
    Interrupted,
}

/// Plays a case and tells what was seen.
///
/// # Errors
/// When the case asks for something that cannot be played, or the run does not come to an end.
pub fn play(case: &CaseFile, world: &World, stage: &Stage) -> Result<Observed, PlayError> {
    refuse_foreign_keys(case)?;
    let script = serde_json::Value::from(case.model.clone());
    let script = Script::from_json(&script)?.with_configured_tools(case.tools.keys().cloned());
    let model = Loopback::start(script)?;
    let canary = if case.canary { Some(Canary::start()?) } else { None };
    let host = host(case, &model, stage)?;
    let _servers = serve(world, &host, stage)?;
    let mut observed = match host.load(world.entry()) {
        Err(failure) => rejected(&failure, world),
        Ok(agent) => stage.runtime.block_on(run(case, &host, &agent, canary.as_ref(), world, stage))?,
    };
    observed.exchange = ModelExchange::of(&model);
    observed.canary_connections = canary.map_or(0, |canary| canary.connections());
    Ok(observed)
}

/// What was observed of a case whose agent cannot be loaded.
pub(crate) fn rejected(failure: &LoadFailure, world: &World) -> Observed {
    let (errors, warnings): (Vec<_>, Vec<_>) =
        failure.diagnostics.iter().partition(|diagnostic| diagnostic.severity == Severity::Error);
    Observed { error: Some(lines(&errors, world)), warnings: lines(&warnings, world), ..nothing_ran(Status::Rejected) }
}

/// Keys of other dialects; silently ignoring one would let the case claim what nobody looked at.
fn refuse_foreign_keys(case: &CaseFile) -> Result<(), PlayError> {
    let expect = &case.expect;
    let foreign = [
        ("agent", case.agent.is_some()),
        ("schemas", !case.schemas.is_empty()),
        ("prices", !case.prices.is_empty()),
        (
            "expect.interrupts[].tool",
            expect.interrupts.iter().flatten().any(|pause| pause.tool.is_some() || pause.arguments.is_some()),
        ),
    ];
    if let Some((key, _)) = foreign.into_iter().chain(of_flows(case)).find(|(_, is_there)| *is_there) {
        return Err(PlayError::Foreign { key, dialect: "loki" });
    }
    Ok(())
}

/// Keys that only cases of flows have, and whether the case has them.
pub(crate) fn of_flows(case: &CaseFile) -> impl Iterator<Item = (&'static str, bool)> + use<> {
    let expect = &case.expect;
    [
        ("components", !case.components.is_empty()),
        ("conversation", !case.conversation.is_empty()),
        ("plugins", !case.plugins.is_empty()),
        ("http", !case.http.is_empty()),
        ("turns[].message", case.turns.iter().flatten().any(|turn| turn.message.is_some())),
        ("answers[].tool", case.answers.iter().any(|answer| matches!(answer, Answer::Client(_)))),
        ("expect.status: roundtrip", expect.status.0.contains(&Status::Roundtrip)),
        ("expect.detail", expect.detail.is_some()),
        ("expect.nodes", expect.nodes.is_some()),
        ("expect.branch", expect.branch.is_some()),
        ("expect.messages", expect.messages.is_some()),
        ("expect.messages_exclude", expect.messages_exclude.is_some()),
        ("expect.http_requests", expect.http_requests.is_some()),
        ("expect.equivalent_to", expect.equivalent_to.is_some()),
    ]
    .into_iter()
}

/// Starts the MCP servers of the case on 127.0.0.1: hotcell itself, with the tools of the case as sealed plugins.
fn serve(world: &World, host: &Host, stage: &Stage) -> Result<Vec<HttpServer>, PlayError> {
    let mut running = Vec::new();
    let mut known = Vec::new();
    for (name, folder) in world.servers()? {
        let mut offering = ToolCatalog::new(host.clone());
        offering.add_plugins(&folder).map_err(|error| PlayError::Host(error.to_string()))?;
        let identity = Identity { name: name.clone(), version: "1".to_owned() };
        let served = serve_http(Arc::new(offering), identity, HttpSettings::default(), &stage.end);
        let server = stage.runtime.block_on(served).map_err(|error| PlayError::Host(error.to_string()))?;
        known.push((name, format!("http://{}/mcp", server.address())));
        running.push(server);
    }
    if !known.is_empty() {
        world.connect(&known)?;
    }
    Ok(running)
}

fn host(case: &CaseFile, model: &Loopback, stage: &Stage) -> Result<Host, PlayError> {
    let default_model = case.models.as_ref().and_then(|models| models.first()).map_or(DEFAULT_MODEL, String::as_str);
    let mut environment = environment(case, &model.base_url());
    environment.push(("HOTCELL_MODEL".to_owned(), default_model.to_owned()));
    let options = HostOptions {
        environment: Environment::of(environment),
        models: case.models.clone(),
        ..HostOptions::isolated()
    };
    stage.host.beside(options).map_err(|error| PlayError::Host(with_causes(&error)))
}

/// Runs every turn of the case against the loaded agent. A Loki graph keeps nothing from one run to the next,
/// whatever the thread; the last run is the one whose outcome counts.
async fn run(
    case: &CaseFile,
    host: &Host,
    agent: &Agent,
    canary: Option<&Canary>,
    world: &World,
    stage: &Stage,
) -> Result<Observed, PlayError> {
    let inputs: Vec<Option<String>> = match &case.turns {
        Some(turns) => turns.iter().map(|turn| text("turns[].input", turn.input.as_ref())).collect::<Result<_, _>>()?,
        None => vec![text("input", case.input.as_ref())?],
    };
    let given = |input| RunInput { input, variables: variables(case, canary), ..RunInput::default() };
    run_turns(case, host, agent, world, stage, inputs.into_iter().map(given)).await
}

/// Runs turn after turn against one loaded agent; answers that one turn leaves go to the next, and the outcome of the last
/// one counts.
///
/// # Errors
/// When a run does not come to an end.
pub(crate) async fn run_turns(
    case: &CaseFile,
    host: &Host,
    agent: &Agent,
    world: &World,
    stage: &Stage,
    turns: impl IntoIterator<Item = RunInput>,
) -> Result<Observed, PlayError> {
    let mut answers = case.answers.clone();
    let warnings = lines(&agent.warnings.iter().collect::<Vec<_>>(), world);
    let mut observed = Observed { warnings, ..nothing_ran(Status::Completed) };
    for given in turns {
        let witness = Arc::new(Witness::new(&agent.graph, answers));
        let session = Session { people: witness.clone(), observer: witness.clone(), cancel: CancellationToken::new() };
        let report = tokio::time::timeout(stage.limit, host.run(agent, given, session))
            .await
            .map_err(|_| PlayError::Late(stage.limit.as_secs()))?;
        observed.interrupts.extend(witness.pauses());
        observed.visited = witness.visited();
        observed.nodes = witness.nodes();
        answers = witness.unused_answers();
        match report {
            Ok(report) => {
                observed.tool_calls.extend(witness.tool_calls());
                outcome(&mut observed, report, world)?;
            }
            Err(error) => refused(&mut observed, &error, world),
        }
        if observed.status == Status::Rejected {
            break;
        }
    }
    if let Some(reexecution) = &stage.reexecution {
        reexecution.of(host).await.map_err(PlayError::OtherwiseAgain)?;
    }
    Ok(observed)
}

pub(crate) fn outcome(observed: &mut Observed, report: RunReport, world: &World) -> Result<(), PlayError> {
    observed.state = Value::Object(report.state.to_object());
    (observed.status, observed.output, observed.error) = match report.outcome {
        Outcome::Completed { output } => (Status::Completed, Some(output), None),
        Outcome::Failed { error, .. } if observed.visited.is_empty() => {
            (Status::Rejected, None, Some(world.shorten(&error)))
        }
        Outcome::Failed { error, .. } | Outcome::Stopped { reason: error } => {
            (Status::Failed, None, Some(world.shorten(&error)))
        }
        Outcome::Waiting { .. } => (Status::Interrupted, None, None),
        Outcome::Interrupted | Outcome::Paused | Outcome::Cancelled => return Err(PlayError::Interrupted),
    };
    Ok(())
}

/// A run that the host refuses before its first node counts as rejected; later it has failed.
pub(crate) fn refused(observed: &mut Observed, error: &HostError, world: &World) {
    observed.status = if observed.visited.is_empty() { Status::Rejected } else { Status::Failed };
    observed.output = None;
    observed.error = Some(world.shorten(&with_causes(error)));
}

fn variables(case: &CaseFile, canary: Option<&Canary>) -> HashMap<Key, Value> {
    let given = case.variables.iter().map(|(name, value)| (name.as_str().into(), value.0.clone()));
    let canary = canary.map(|canary| ("canary_port".into(), Value::from(canary.port().to_string())));
    given.chain(canary).collect()
}

fn text(key: &'static str, input: Option<&Json>) -> Result<Option<String>, PlayError> {
    match input {
        None => Ok(None),
        Some(Json(Value::Text(text))) => Ok(Some(text.to_string())),
        Some(_) => Err(PlayError::Input(key)),
    }
}

/// Diagnostics one a line, without the source lines: what a case looks for has to be said, not quoted.
pub(crate) fn lines(diagnostics: &[&Diagnostic], world: &World) -> String {
    let lines: Vec<String> = diagnostics.iter().map(|diagnostic| world.shorten(&diagnostic.to_string())).collect();
    lines.join("\n")
}

pub(crate) fn with_causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let error_text = error.to_string();
        if !text.contains(&error_text) {
            text += &format!(": {error_text}");
        }
        cause = error.source();
    }
    text
}

pub(crate) fn nothing_ran(status: Status) -> Observed {
    Observed {
        status,
        detail: None,
        nodes: Vec::new(),
        error: None,
        warnings: String::new(),
        output: None,
        state: Value::Object(Object::default()),
        visited: Vec::new(),
        interrupts: Vec::new(),
        tool_calls: Vec::new(),
        exchange: ModelExchange::default(),
        canary_connections: 0,
        flow: None,
    }
}
