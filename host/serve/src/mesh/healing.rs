//! Agents that are ill: those that failed several times in a row, or too often of late (`self_healing`). Somebody is told, and nothing
//! acts by itself.

use hotcell_runtime::{Fact, NumberedEntry, RunId};
use serde_json::json;

use super::events::{self, NEEDED};
use super::meshes::Mesh;
use super::store::Session;
use crate::state::Server;
use crate::store::StoreError;

/// Looks at an entry of a run, and tells if an agent is ill.
pub(super) fn watch(
    server: &Server,
    mesh: &Mesh,
    session: &Session,
    run: &RunId,
    numbered: &NumberedEntry,
) -> Result<(), StoreError> {
    let Some(healing) = &mesh.settings.healing else { return Ok(()) };
    let Fact::Completed(completed) = &numbered.entry.fact else { return Ok(()) };
    // A copy of an agent fails for it.
    let agent = completed.node.split('#').next().unwrap_or_default();
    if numbered.entry.place.around().is_some() || mesh.settings.agent(agent).is_none() {
        return Ok(());
    }
    let now = server.clock().now();
    let Some(cause) = mesh.doing.health.note(agent, completed.failure.is_some(), healing, now) else { return Ok(()) };
    tracing::warn!(target: "hotcell::serve", agent, cause, "an agent of the mesh is ill");
    let event = json!({ "type": NEEDED, "agent": agent, "cause": cause, "run_id": run.as_str() });
    events::note(server, session, &format!("{run}:{}:{cause}", numbered.number), event).map(drop)
}
