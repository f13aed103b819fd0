//! What happens in a mesh, for whoever watches it. It is kept, so that it is told once and can be counted.

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
            let failure = completed.failure.as_ref()?;
            mesh.settings.agent(&completed.node)?;
            Some(json!({ "type": ERROR, "agent": completed.node, "message": failure }))
        }
        Fact::Expired { .. } => Some(json!({ "type": TIMEOUT, "agent": seat()? })),
        Fact::Stopped { reason } => Some(json!({ "type": ERROR, "error_type": "ChainCapExceeded", "message": reason })),
        _ => None,
    }
}
