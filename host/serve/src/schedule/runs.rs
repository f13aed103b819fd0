//! Beginning runs at their times. What a run is called follows from the schedule and the time for which it is begun, so each time has one,
//! whenever the server ends and whoever changes the schedule meanwhile.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use futures::future::BoxFuture;
use hotcell_runtime::{Agent, RunId};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::definition::Definition;
use super::go_on::{Fired, Missed, Scheduled, go_on};
use super::store::Firing;
use super::times::{Times, instant};
use crate::input::{origin_of, run_input};
use crate::object::Object;
use crate::once;
use crate::problem::Problem;
use crate::state::Server;
use crate::store::{StoreError, microseconds};

/// The member of what is kept of a run that says for which time it was begun.
const SCHEDULE: &str = "schedule";

/// Goes by the schedules from now on as they are now: those of folders, and those that were made over HTTP.
pub(crate) fn begin_all(server: &Server) {
    if !server.ready().is_cancelled() || server.closing().is_cancelled() {
        // They begin when what was left by a server before has been taken up.
        return;
    }
    // What is shown as gone by counts as work until it first waits.
    let _begins = server.clock().working();
    // Nobody goes by what was read before somebody else changed it.
    let _exchanging = server.schedules().exchanging();
    let mut wanted = in_files(server);
    match server.store().schedules() {
        Ok(made) => wanted.extend(made),
        Err(error) => {
            tracing::error!(target: "hotcell::serve", %error, "schedules cannot be read, and stay as they were");
            return;
        }
    }
    for (definition, over) in server.schedules().exchange(wanted, server.closing()) {
        let schedule = RunSchedule { server: server.clone(), definition };
        let begun = server.clock().working();
        server.schedules().spawn(async move {
            if !schedule.definition.body.enabled {
                return;
            }
            let clock = schedule.server.clock().clone();
            over.run_until_cancelled(go_on(&*clock, &schedule, begun)).await;
        });
    }
}

/// The schedules that the folders of agents name.
fn in_files(server: &Server) -> Vec<Definition> {
    let mut folders: BTreeMap<PathBuf, Vec<(String, Arc<Agent>)>> = BTreeMap::new();
    for (id, agent) in server.agents().all() {
        folders.entry(agent.folder.clone()).or_default().push((id, agent));
    }
    let mut wanted = Vec::new();
    for agents in folders.into_values() {
        // Each agent of a folder knows the settings of all.
        let Some((_, first)) = agents.first() else { continue };
        for settings in &first.schedules {
            let meant = |(id, agent): &&(String, Arc<Agent>)| match &settings.agent {
                Some(name) => is_called(id, agent, name),
                None => true,
            };
            let meant: Vec<&str> = agents.iter().filter(meant).map(|(id, _)| &**id).collect();
            let definition = match meant[..] {
                [only] => Definition::in_file(only, settings, server.started()).map_err(|problem| problem.detail),
                [] => Err("no agent of its folder is called as it says".to_owned()),
                _ => Err(format!("it does not say with `agent` which of these it is for: {}", meant.join(", "))),
            };
            match definition {
                Ok(definition) => wanted.push(definition),
                Err(reason) => {
                    let (schedule, folder) = (&settings.name, first.folder.display());
                    tracing::error!(target: "hotcell::serve", schedule, %folder, reason, "a schedule begins no runs");
                }
            }
        }
    }
    wanted
}

/// Whether a schedule means an agent of its folder by a name.
fn is_called(id: &str, agent: &Agent, name: &str) -> bool {
    id == name || agent.graph.name == name || id.ends_with(&format!(".{name}"))
}

/// A schedule that begins runs.
struct RunSchedule {
    server: Server,
    definition: Definition,
}

impl Scheduled for RunSchedule {
    fn name(&self) -> &str {
        &self.definition.id
    }

    fn times(&self) -> &Times {
        &self.definition.times
    }

    fn missed(&self) -> Missed {
        self.definition.body.missed()
    }

    fn done(&self) -> Result<Option<Timestamp>, StoreError> {
        self.server.store().schedule_done(&self.definition.id)
    }

    fn note(&self, done: Timestamp) -> Result<(), StoreError> {
        self.server.store().note_schedule(&self.definition.id, done)
    }

    fn fire(&self, due: Timestamp) -> BoxFuture<'_, Result<Fired, StoreError>> {
        Box::pin(async move {
            let _working = self.server.clock().working();
            let id = &self.definition.id;
            if self.definition.body.until.is_some_and(|until| microseconds(due.into()) > until) {
                return Ok(Fired::Done);
            }
            let came = match self.server.store().fire_schedule(id, due)? {
                Some(Firing { run: Some(_), .. }) => return Ok(Fired::Done),
                // It was tried, and what came of that was not noted.
                Some(firing) if firing.reason.is_none() => match self.found(due).await {
                    Ok(Some(run)) => Ok(run),
                    Ok(None) => self.begin(due).await,
                    // It has to be looked first.
                    Err(problem) => return Ok(Fired::NotYet(problem.detail)),
                },
                // It is the first try, or none before it began anything.
                _ => self.begin(due).await,
            };
            match came {
                Ok(run) => {
                    self.server.store().fired_schedule(id, due, Ok(&run))?;
                    Ok(Fired::Done)
                }
                // The next server makes it good.
                Err(_) if self.server.runs().is_draining() => Ok(Fired::Ending),
                Err(problem) => {
                    self.server.store().fired_schedule(id, due, Err(&problem.detail))?;
                    match problem.status {
                        503 => Ok(Fired::NotYet(problem.detail)),
                        // Within a minute there is a place.
                        _ if problem.is_too_many_a_minute() => Ok(Fired::NotYet(problem.detail)),
                        _ => {
                            let reason = problem.detail;
                            tracing::warn!(target: "hotcell::serve", schedule = id, %due, reason, "no run was begun");
                            Ok(Fired::Done)
                        }
                    }
                }
            }
        })
    }
}

impl RunSchedule {
    /// What a run says of the time for which it was begun.
    fn mark(&self, due: Timestamp) -> Value {
        json!({ "id": self.definition.id, "due": due.to_string() })
    }

    /// The run that was begun for a time, by a server that ended before it noted that, or by this one if it was kept from that.
    async fn found(&self, due: Timestamp) -> Result<Option<String>, Problem> {
        let name = run_of(&self.definition.id, due);
        Ok(self.server.runs().is_there(&name).await?.then(|| name.to_string()))
    }

    async fn begin(&self, due: Timestamp) -> Result<String, Problem> {
        let body = &self.definition.body;
        let (_, agent) = self.server.agents().find(&body.agent_id)?;
        if let Some(thread) = &body.thread_id {
            self.server.store().create_thread(thread, &Object::new())?;
            let bound = self.server.store().bind_thread(thread, agent.source())?;
            if bound.as_deref() != Some(agent.source()) {
                return Err(Problem::conflict(format!("thread `{thread}` belongs to another agent")));
            }
        }
        let mut given = run_input(&agent, body.input.clone(), None, body.thread_id.clone(), body.metadata.clone())?;
        given.origin = origin_of(json!({ "metadata": body.metadata, SCHEDULE: self.mark(due) }));
        given.id = Some(run_of(&self.definition.id, due).to_string());
        match self.server.runs().start(&agent, given, body.if_busy, false).await {
            Ok(begun) => Ok(begun.run.to_string()),
            // Somebody may have been at it who was not heard of any more: this schedule, before it was changed.
            Err(problem) => self.found(due).await?.ok_or(problem),
        }
    }
}

/// What the run of a schedule for one of its times is called.
fn run_of(schedule: &str, due: Timestamp) -> RunId {
    once::name_of(&format!("{schedule} {due}"))
}

/// What came of the last times of a schedule, the newest first. Where that could not be noted, because the schedule was changed while its
/// run began, the run itself says it.
pub(crate) async fn firings_of(server: &Server, schedule: &str, limit: usize) -> Result<Vec<Firing>, Problem> {
    let mut firings = server.store().schedule_firings(schedule, limit)?;
    for firing in firings.iter_mut().filter(|firing| firing.run.is_none() && firing.reason.is_none()) {
        let name = run_of(schedule, firing.due);
        if server.runs().is_there(&name).await? {
            server.store().fired_schedule(schedule, firing.due, Ok(name.as_str()))?;
            firing.run = Some(name.to_string());
        }
    }
    Ok(firings)
}

/// When a schedule comes next, after what was done of it.
pub(crate) fn next_of(server: &Server, definition: &Definition) -> Result<Option<SystemTime>, StoreError> {
    if !definition.body.enabled {
        return Ok(None);
    }
    let now = instant(server.clock().now());
    let done = server.store().schedule_done(&definition.id)?.unwrap_or(now).max(now);
    let next = definition.times.next(done).map(SystemTime::from);
    Ok(next.filter(|next| definition.body.until.is_none_or(|until| microseconds(*next) <= until)))
}
