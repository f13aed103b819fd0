//! Agent2Agent (A2A), versions 1.0 and 0.3, as JSON-RPC and as HTTP with JSON: agents of others talk to ours. A task is a run, and a
//! context its thread; a run that waits for an answer is a task that requires input, and a message to it is the answer. Every state
//! is read from the entries of the run.

mod asked;
mod card;
mod error;
mod legacy;
mod message;
mod operations;
mod push;
mod push_store;
mod rest;
mod rpc;
mod streams;
mod task;
mod version;

use utoipa_axum::router::OpenApiRouter;

pub(super) use self::error::{A2aError, A2aErrorReply};
pub(crate) use self::push::take_up;
use crate::state::Server;

/// What its routes are filed under in the document.
pub(super) const TAG: &str = "A2A";
/// What its addresses begin with.
pub(super) const PREFIX: &str = "/a2a/";
/// Where the card of the only agent is.
pub(super) const CARD: &str = "/.well-known/agent-card.json";

pub(super) fn routes() -> OpenApiRouter<Server> {
    card::routes().merge(rpc::routes()).merge(rest::routes())
}
