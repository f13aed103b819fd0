//! Agents that wake up by themselves.
//!
//! Of each wake-up the time is kept up to which nothing is left to do, and the session of a wake-up is named after its time: so it
//! happens once, whenever the server ends.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};

use hotcell_runtime::leafmesh::{AgentSettings, LocalMinute, WakeUp};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use serde_json::{Value, json};

use super::begin::{At, Task, begin};
use super::meshes::Mesh;
use super::reply::Refused;
use super::store::SessionKey;
use crate::state::Server;
use crate::store::StoreError;

/// How long is waited before it is tried again to wake an agent, when there was no place for its run.
const AGAIN: Duration = Duration::from_secs(5);
/// Characters of the name of an agent that are part of the names of its sessions.
const NAME: usize = 80;

/// Wakes the agents of the mesh from now on, as it is now: what was to wake them before does so no more.
pub(super) fn begin_all(server: &Server) {
    let Ok(mesh) = server.meshes().only() else { return };
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
            let (server, mesh, agent, wake) = (server.clone(), mesh.clone(), agent.clone(), wake.clone());
            let (over, wakes) = (over.clone(), Wakes { server: server.clone(), mesh, agent, number, wake, zone });
            server.meshes().tasks.spawn(async move {
                if let Some(Err(error)) = over.run_until_cancelled(wakes.go_on()).await {
                    tracing::error!(target: "hotcell::serve", agent = wakes.agent.name, %error, "an agent does not wake up any more");
                }
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
    zone: TimeZone,
}

impl Wakes {
    async fn go_on(&self) -> Result<(), StoreError> {
        let clock = self.server.clock();
        let fact = format!("woken:{}:{}", self.agent.name, self.number);
        let known = self.server.store().mesh_fact(&fact)?.and_then(|text| text.parse().ok());
        let mut done = known.unwrap_or_else(|| instant(clock.now()));
        if known.is_none() {
            self.server.store().remember(&fact, &done.to_string())?;
        }
        let grace = self.mesh.settings.misfire_grace;
        loop {
            // What was missed by more than that is left out.
            let oldest =
                instant(clock.now().checked_sub(grace + Duration::from_secs(60)).unwrap_or(SystemTime::UNIX_EPOCH));
            let Some(mut due) = next(&self.wake, &self.zone, done.max(oldest)) else { return Ok(()) };
            if let Ok(left) = SystemTime::from(due).duration_since(clock.now()) {
                clock.sleep(left).await;
            }
            let now = clock.now();
            // Of several that were missed, the last one is made good.
            while let Some(later) = next(&self.wake, &self.zone, due).filter(|later| SystemTime::from(*later) <= now) {
                due = later;
            }
            while clock.now().duration_since(due.into()).unwrap_or_default() <= grace {
                match self.wake_up(due).await {
                    Ok(()) => break,
                    // Somebody stopped the system, and a time that comes meanwhile is over.
                    Err(refused @ Refused::Documented(..)) => {
                        tracing::warn!(target: "hotcell::serve", agent = self.agent.name, reason = refused.reason(), "an agent was not woken");
                        break;
                    }
                    // The next server makes it good.
                    Err(_) if self.server.runs().is_draining() => return Ok(()),
                    Err(refused) => {
                        tracing::warn!(target: "hotcell::serve", agent = self.agent.name, reason = refused.reason(), "an agent cannot be woken yet");
                        clock.sleep(AGAIN).await;
                    }
                }
            }
            self.server.store().remember(&fact, &due.to_string())?;
            done = due;
        }
    }

    async fn wake_up(&self, due: Timestamp) -> Result<(), Refused> {
        let _working = self.server.clock().working();
        let name: String = self.agent.name.chars().take(NAME).collect();
        let stamp = due.to_string().replace('-', "");
        let key = SessionKey { tenant: String::new(), id: format!("wake:{name}:{}:{stamp}", self.number) };
        let _session = self.mesh.doing.sessions.lock(&key).await;
        if self.server.store().session(&key)?.is_some() {
            return Ok(());
        }
        let mut input = Value::from(&hotcell_graph::Value::Object(self.wake.input.clone()));
        input["wake_up_trigger"] = json!(true);
        input["trigger_time"] = json!(due.to_string());
        let at = At::Agent { name: self.agent.name.clone(), input };
        let task = Task { key, kind: "wake_up", at, is_beside: false };
        begin(&self.server, &self.mesh, task, false).await.map(drop)
    }
}

fn instant(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or_default()
}

/// The first time after another one. A local time that does not exist is the first minute after the gap, and of one that comes twice it
/// is the first.
fn next(wake: &WakeUp, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let local = zone.to_datetime(after);
    let mut minute = LocalMinute {
        year: local.year(),
        month: local.month(),
        day: local.day(),
        hour: local.hour(),
        minute: local.minute(),
    };
    loop {
        minute = wake.cron.next_after(minute)?;
        let LocalMinute { year, month, day, hour, minute: at } = minute;
        let time = DateTime::new(year, month, day, hour, at, 0, 0).ok()?;
        let due = match zone.to_ambiguous_timestamp(time).offset() {
            AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
                offset.to_timestamp(time).ok()?
            }
            AmbiguousOffset::Gap { after, .. } => {
                let before = after.to_timestamp(time).ok()?;
                zone.following(before).next()?.timestamp()
            }
        };
        if due > after {
            return Some(due);
        }
    }
}

#[cfg(test)]
mod tests {
    use hotcell_runtime::leafmesh::Cron;

    use super::*;

    fn times(cron: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let zone = TimeZone::get(zone).expect("a zone");
        let wake =
            WakeUp { cron: Cron::parse(cron).expect("an expression"), zone: String::new(), input: Default::default() };
        let mut times = Vec::new();
        let mut after: Timestamp = after.parse().expect("a time");
        for _ in 0..count {
            after = next(&wake, &zone, after).expect("one more");
            times.push(after.to_string());
        }
        times
    }

    #[test]
    fn a_time_that_does_not_exist_is_after_the_gap_and_one_that_comes_twice_is_the_first() {
        let berlin = "Europe/Berlin";
        let gap = times("30 2 * * *", berlin, "2026-03-28T12:00:00Z", 2);
        assert_eq!(gap, ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
        let twice = times("30 2 * * *", berlin, "2026-10-24T12:00:00Z", 2);
        assert_eq!(twice, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        // Every half hour of the night in which an hour comes twice.
        let often = times("*/30 2 * * *", berlin, "2026-10-24T23:00:00Z", 3);
        assert_eq!(often, ["2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:00:00Z"]);
        assert_eq!(times("0 9 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", 1), ["2026-01-01T03:30:00Z"]);
    }
}
