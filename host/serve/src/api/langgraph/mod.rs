//! The addresses that clients of LangGraph use (`langgraph-sdk` 0.4), for the same agents, threads and runs: an assistant is an
//! agent. What these clients can say and hotcell does not do is refused by name.

mod assistants;
mod body;
mod bulk;
mod change;
mod crons;
mod history;
mod interrupts;
mod modes;
mod runs;
mod steps;
mod stream;

use utoipa_axum::router::OpenApiRouter;

pub(super) use self::body::AssistantRun;
pub(super) use self::history::{ThreadState, no_subgraphs, thread_state};
pub(super) use self::runs::{AssistantRunView, begin, stream_of, values};
use crate::state::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    assistants::routes()
        .merge(runs::routes())
        .merge(bulk::routes())
        .merge(history::routes())
        .merge(change::routes())
        .merge(crons::routes())
}
