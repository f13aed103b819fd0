//! Agents that wake up by themselves. The session of a wake-up is named after its time: so it happens once, whenever the server ends.

use std::sync::{Arc, PoisonError};

use futures::future::BoxFuture;
use hotcell_runtime::leafmesh::state::WAKE_UP_TRIGGER;
use hotcell_runtime::leafmesh::{AgentSettings, WakeUp};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::begin::{At, Task, begin};
use super::meshes::Mesh;
use super::reply::Refused;
use super::store::SessionKey;
use crate::schedule::go_on::{Fired, Missed, Scheduled, go_on};
use crate::schedule::times::Times;
use crate::state::Server;
use crate::store::StoreError;

/// Characters of the name of an agent that are part of the names of its sessions.
const NAME: usize = 80;

/// Wakes the agents of all meshes from now on, as they are now: what was to wake them before does so no more.
pub(super) fn begin_all(server: &Server) {
    server.meshes().all().iter().for_each(|mesh| begin_of(server, mesh));
}

fn begin_of(server: &Server, mesh: &Arc<Mesh>) {
    let over = server.closing().child_token();
    let before =
        std::mem::replace(&mut *mesh.doing.waking.lock().unwrap_or_else(PoisonError::into_inner), over.clone());
    before.cancel();
    for agent in &mesh.settings.agents {
        for (number, wake) in agent.wake_ups.iter().enumerate() {
            let zone = match TimeZone::get(&wake.zone) {
                Ok(zone) => zone,
                Err(error) => {
                    tracing::error!(target: "hotcell::serve", agent = agent.name, %error, "an agent does not wake up");
                    continue;
                }
            };
            let times = Times { cron: wake.cron.clone(), zone };
            let (mesh, agent, wake) = (mesh.clone(), agent.clone(), wake.clone());
            let fact = mesh.own(&format!("woken:{}:{number}", agent.name));
            let wakes = Wakes { server: server.clone(), mesh, agent, number, wake, times, fact };
            let (over, begun) = (over.clone(), server.clock().working());
            server.meshes().tasks.spawn(async move {
                let clock = wakes.server.clock().clone();
                over.run_until_cancelled(go_on(&*clock, &wakes, begun)).await;
            });
        }
    }
}

/// One of the times at which an agent wakes up.
struct Wakes {
    server: Server,
    mesh: Arc<Mesh>,
    agent: AgentSettings,
    number: usize,
    wake: WakeUp,
    times: Times,
    /// By what it is known up to when nothing is left to do
    fact: String,
}

impl Scheduled for Wakes {
    fn name(&self) -> &str {
        &self.agent.name
    }

    fn times(&self) -> &Times {
        &self.times
    }

    fn missed(&self) -> Missed {
        Missed { all: false, grace: self.mesh.settings.misfire_grace }
    }

    fn done(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.server.store().mesh_fact(&self.fact)?.and_then(|text| text.parse().ok()))
    }

    fn note(&self, done: Timestamp) -> Result<(), StoreError> {
        self.server.store().remember(&self.fact, &done.to_string())
    }

    fn fire(&self, due: Timestamp) -> BoxFuture<'_, Result<Fired, StoreError>> {
        Box::pin(async move {
            Ok(match self.wake_up(due).await {
                Ok(()) => Fired::Done,
                // Somebody stopped the system, and a time that comes meanwhile is over.
                Err(refused @ Refused::Documented(..)) => {
                    tracing::warn!(target: "hotcell::serve", agent = self.agent.name, reason = refused.reason(), "an agent was not woken");
                    Fired::Done
                }
                // The next server makes it good.
                Err(_) if self.server.runs().is_draining() => Fired::Ending,
                Err(refused) => Fired::NotYet(refused.reason()),
            })
        })
    }
}

impl Wakes {
    async fn wake_up(&self, due: Timestamp) -> Result<(), Refused> {
        let _working = self.server.clock().working();
        let name: String = self.agent.name.chars().take(NAME).collect();
        let stamp = due.to_string().replace('-', "");
        let (scope, id) = (self.mesh.scope.clone(), format!("wake:{name}:{}:{stamp}", self.number));
        let key = SessionKey { scope, tenant: String::new(), id };
        let _session = self.mesh.doing.sessions.lock(&key).await;
        if self.server.store().session(&key)?.is_some() {
            return Ok(());
        }
        let mut input = Value::from(&hotcell_graph::Value::Object(self.wake.input.clone()));
        input[WAKE_UP_TRIGGER] = json!(true);
        input["trigger_time"] = json!(due.to_string());
        let at = At::Agent { name: self.agent.name.clone(), input };
        let task = Task { key, kind: "wake_up", at, is_beside: false, once: Some(due.to_string()) };
        begin(&self.server, &self.mesh, task, false).await.map(drop)
    }
}
