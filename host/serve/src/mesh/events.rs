//! What happens in a mesh, for whoever watches it. It is kept, so that it is told once and can be counted.

use hotcell_runtime::leafmesh::state::{CONTRACT, post_node};
use hotcell_runtime::{Fact, NumberedEntry};
use serde_json::{Value, json};

use super::meshes::Mesh;
use super::store::Session;
use crate::state::Server;
use crate::store::StoreError;

/// An agent failed.
pub(super) const ERROR: &str = "AGENT_ERROR";
/// A person did not answer in time.
pub(super) const TIMEOUT: &str = "HUMAN_INPUT_TIMEOUT";

/// A person answered.
pub(super) const ANSWERED: &str = "HUMAN_INPUT_RECEIVED";

/// Agents were called because the manager names them.
pub(super) const INTERVENTION: &str = "MANAGER_INTERVENTION";

/// Somebody has to look at an agent or at a session.
pub(super) const NEEDED: &str = "INTERVENTION_NEEDED";

/// Notes an event of a session under a key, and tells it. False if it was noted before.
pub(super) fn note(server: &Server, session: &Session, key: &str, mut event: Value) -> Result<bool, StoreError> {
    event["session_id"] = json!(session.key.id);
    event["tenant_id"] = json!(session.key.tenant);
    let is_new = server.store().note_event(session.number, key, &event)?;
    if is_new {
        server.meshes().tell(event);
    }
    Ok(is_new)
}

/// What is told of an entry of a run. `seat` says who was asked there.
pub(super) fn of_entry(mesh: &Mesh, numbered: &NumberedEntry, seat: impl FnOnce() -> Option<String>) -> Option<Value> {
    let entry = &numbered.entry;
    match &entry.fact {
        Fact::Completed(completed) if entry.place.around().is_none() => {
            if let Some(agent) = mesh.settings.agents.iter().find(|agent| post_node(&agent.name) == completed.node) {
                let called = completed.next.as_deref().filter(|called| !called.is_empty())?;
                return Some(json!({ "type": INTERVENTION, "agent": agent.name, "next_agents": called }));
            }
            let failure = completed.failure.as_ref()?;
            // A copy of an agent fails for it.
            let agent = completed.node.split('#').next().unwrap_or_default();
            mesh.settings.agent(agent)?;
            let mut event = json!({ "type": ERROR, "agent": agent, "message": failure });
            if let Some(kind) = &completed.failure_kind {
                event["error_type"] = json!(kind);
                if kind == CONTRACT {
                    event["retry_exhausted"] = json!(true);
                }
            }
            Some(event)
        }
        Fact::Answered { .. } => Some(json!({ "type": ANSWERED, "agent": seat()? })),
        Fact::Expired { .. } => Some(json!({ "type": TIMEOUT, "agent": seat()? })),
        Fact::Stopped { reason } => Some(json!({ "type": ERROR, "error_type": "ChainCapExceeded", "message": reason })),
        _ => None,
    }
}
