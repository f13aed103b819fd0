//! How well a mesh does what is expected of it: its scenarios (`evolution.test_scenarios`) are run one after the other, and
//! each has a score. Nothing changes a mesh because of it.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::Response;
use hotcell_runtime::leafmesh::{Scenario, scoring};
use hotcell_runtime::{Clock, RunId, RunStatus};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Mesh;
use super::begin::{At, Task, admit, begin, check_system};
use super::outcome::Come;
use super::reply::{Refused, documented};
use super::request::new_session;
use super::served::Served;
use super::tenant::Tenant;
use crate::problem::{Problem, shown};
use crate::state::Server;

const RUNNING: &str = "running";
const DONE: &str = "done";

/// A score as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    status: String,
    /// Whose sessions the scenarios are run in
    tenant: String,
    fitness: Option<f64>,
    scenarios: Vec<Scored>,
}

/// A scenario that was run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Scored {
    name: String,
    score: f64,
    timed_out: bool,
    weight: f64,
    session_id: String,
    /// How its run ended, or why it was not begun
    outcome: String,
}

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(begin_score)).routes(routes!(score))
}

fn fact(mesh: &Mesh, id: &str) -> String {
    mesh.own(&format!("score:{id}"))
}

/// Score the mesh by its scenarios
///
/// The scenarios of `evolution.test_scenarios` are run one after the other, each in a session of its own.
#[utoipa::path(
    post, path = "/api/evolution/score", tag = "Mesh", security(("key" = ["operate"])),
    responses((status = 202, body = Value, description = "`id`, for asking how far it is"))
)]
async fn begin_score(State(server): State<Server>, Served(mesh): Served, tenant: Tenant) -> Result<Response, Refused> {
    check_system(&server, &mesh)?;
    if mesh.settings.scenarios.is_empty() {
        let detail = "the mesh has no scenarios: `evolution.enabled` has to be true, with `test_scenarios`";
        return Err(Problem::conflict(detail).kind("no-scenarios", "There is nothing to score by").into());
    }
    let id = new_session();
    let kept = Kept { status: RUNNING.to_owned(), tenant: tenant.0, fitness: None, scenarios: Vec::new() };
    keep(&server, &mesh, &id, &kept)?;
    work_on(&server, mesh, &id, kept);
    Ok(documented(StatusCode::ACCEPTED, json!({ "id": id, "status": RUNNING })))
}

/// Say how far a score is
#[utoipa::path(
    get, path = "/api/evolution/score/{id}", tag = "Mesh", security(("key" = ["operate"])),
    params(("id" = String, Path, description = "The score")),
    responses((status = 200, body = Value, description = "`status`, `fitness` and `scenarios` in the order of the file"))
)]
async fn score(
    State(server): State<Server>,
    Served(mesh): Served,
    tenant: Tenant,
    Path(id): Path<String>,
) -> Result<Response, Refused> {
    let found = server.store().mesh_fact(&fact(&mesh, &id))?.and_then(|text| serde_json::from_str::<Kept>(&text).ok());
    let Some(kept) = found.filter(|kept| kept.tenant == tenant.0) else {
        return Err(Problem::not_found(format!("there is no score `{}`", shown(&id))).into());
    };
    let body = json!({ "id": id, "status": kept.status, "fitness": kept.fitness, "scenarios": kept.scenarios });
    if kept.status == RUNNING {
        // A server before this one may have ended in the middle.
        work_on(&server, mesh, &id, kept);
    }
    Ok(documented(StatusCode::OK, body))
}

fn keep(server: &Server, mesh: &Mesh, id: &str, kept: &Kept) -> Result<(), Problem> {
    let text = serde_json::to_string(kept).unwrap_or_default();
    Ok(server.store().remember(&fact(mesh, id), &text)?)
}

/// Runs the scenarios that were not run yet, unless that is being done.
fn work_on(server: &Server, mesh: Arc<Mesh>, id: &str, kept: Kept) {
    if !server.meshes().scores.take(id) {
        return;
    }
    let (server, id) = (server.clone(), id.to_owned());
    let working = server.clock().working();
    tokio::spawn(async move {
        let closing = server.closing().clone();
        tokio::select! {
            biased;
            () = closing.cancelled() => {}
            ended = run_all(&server, &mesh, &id, kept) => {
                if let Err(problem) = ended {
                    tracing::error!(target: "hotcell::serve", id, reason = problem.detail, "the score cannot be kept");
                }
            }
        }
        server.meshes().scores.let_go(&id);
        drop(working);
    });
}

async fn run_all(server: &Server, mesh: &Mesh, id: &str, mut kept: Kept) -> Result<(), Problem> {
    let begun = kept.scenarios.len();
    for scenario in mesh.settings.scenarios.iter().skip(begun) {
        let scored = run(server, mesh, &kept.tenant, scenario).await?;
        kept.scenarios.push(scored);
        keep(server, mesh, id, &kept)?;
    }
    kept.fitness = scoring::fitness(kept.scenarios.iter().map(|scored| (scored.weight, scored.score)));
    kept.status = DONE.to_owned();
    keep(server, mesh, id, &kept)
}

/// Runs a scenario and scores it.
async fn run(server: &Server, mesh: &Mesh, tenant: &str, scenario: &Scenario) -> Result<Scored, Problem> {
    let key = Tenant(tenant.to_owned()).session(mesh, &new_session())?;
    let mut scored = Scored {
        name: scenario.name.clone(),
        score: 0.0,
        timed_out: false,
        weight: scenario.weight,
        session_id: key.id.clone(),
        outcome: String::new(),
    };
    let data = match Value::from(&scenario.input) {
        data @ Value::Object(_) => data,
        text => json!({ "message": text }),
    };
    if let Err(problem) = admit(mesh, &scenario.entry_point, &data) {
        scored.outcome = problem.detail;
        return Ok(scored);
    }
    let at = At::Entry { name: scenario.entry_point.clone(), data };
    let clock = server.clock().clone();
    let began = clock.elapsed();
    let started = match begin(server, mesh, Task { key, kind: "score", at, is_beside: false, once: None }, false).await
    {
        Ok(started) => started,
        Err(refused) => {
            scored.outcome = match refused {
                Refused::Problem(problem) => problem.detail,
                Refused::Documented(_, body) => body["detail"].as_str().unwrap_or("it was refused").to_owned(),
            };
            return Ok(scored);
        }
    };
    let run = &started.begun.run;
    let ended = in_time(server, &*clock, run, scenario.timeout).await?;
    let Some((status, come)) = ended else {
        // It may have ended at this moment.
        if let Err(problem) = server.runs().cancel(run).await {
            tracing::debug!(target: "hotcell::serve", %run, reason = problem.detail, "it is not cancelled");
        }
        scored.timed_out = true;
        scored.outcome = format!("it timed out after {} s", scenario.timeout.as_secs_f64());
        return Ok(scored);
    };
    scored.outcome = status.as_str().to_owned();
    if status == RunStatus::Completed {
        let took = clock.elapsed().saturating_sub(began);
        let expected = Value::from(&hotcell_graph::Value::Object(scenario.expected.clone()));
        scored.score = scoring::score(&expected, come.output(), took, scenario.timeout);
    }
    Ok(scored)
}

/// How a run ended, and with what; nothing if that takes longer than it may. A run that waits for a person has not ended.
async fn in_time(
    server: &Server,
    clock: &dyn Clock,
    run: &RunId,
    limit: Duration,
) -> Result<Option<(RunStatus, Come)>, Problem> {
    tokio::select! {
        biased;
        ended = until_ended(server, clock, run) => ended.map(Some),
        () = clock.sleep(limit) => Ok(None),
    }
}

async fn until_ended(server: &Server, clock: &dyn Clock, run: &RunId) -> Result<(RunStatus, Come), Problem> {
    let (mut come, mut last) = (Come::default(), 0);
    let mut follower = server.runs().follow(run.clone(), 0);
    loop {
        while let Some(entries) = waited(clock, follower.next()).await? {
            for numbered in &entries {
                come.add(&numbered.entry);
                last = numbered.number;
            }
        }
        let status = server.runs().find(run.as_str()).await?.status;
        if status.is_final() {
            return Ok((status, come));
        }
        waited(clock, server.runs().store().grown(run, last)).await?;
    }
}

/// What comes of waiting for a run, which is at work by itself.
async fn waited<T>(clock: &dyn Clock, what: impl Future<Output = T>) -> T {
    let _waits = clock.idle();
    what.await
}
