//! The addresses of OpenAI's API that chat programs use: agents are models. A run's question is what the assistant says, and the
//! next message answers it. What this API can say and agents do not do is refused by name.

mod completions;
mod conversation;
mod error;
mod events;
mod links;
mod models;
mod parameters;
mod response;
mod responses;

use utoipa_axum::router::OpenApiRouter;

pub(super) use self::error::{OpenAiError, spoken};
use crate::state::Server;

/// What its routes are filed under in the document.
pub(super) const TAG: &str = "OpenAI";
/// What its addresses begin with.
pub(super) const PREFIX: &str = "/v1/";

pub(super) fn routes() -> OpenApiRouter<Server> {
    models::routes().merge(completions::routes()).merge(responses::routes())
}
