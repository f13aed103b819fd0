//! Threads as clients are shown them.

use hotcell_runtime::RunStatus;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::in_thread::last_run;
use crate::problem::Problem;
use crate::state::Server;
use crate::thread_store::Thread;
use crate::view::{Object, time};

/// How a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ThreadStatus {
    /// A run can be begun in it
    Idle,
    /// A run of it is worked on
    Busy,
    /// Its last run waits for a person
    Interrupted,
    /// Its last run failed
    Error,
}

/// A thread.
#[derive(Serialize, ToSchema)]
#[schema(as = Thread)]
pub(super) struct ThreadView {
    /// Its id
    thread_id: String,
    /// The agent of its runs; none before the first one, or if the agent is not served any more
    agent_id: Option<String>,
    /// When it was made
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was last changed, or a run was begun in it
    #[schema(format = DateTime)]
    updated_at: String,
    /// What is kept with it
    #[schema(value_type = Object)]
    metadata: Object,
    /// How it stands
    status: ThreadStatus,
    /// The state that its last run came to; only where threads are looked at, and not if its agent is not served any more
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(super) values: Option<Object>,
    /// What its last run asks, by question; as `values`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(super) interrupts: Option<Object>,
}

/// How a thread stands.
pub(super) async fn status_of(server: &Server, thread: &Thread) -> Result<ThreadStatus, Problem> {
    Ok(match last_run(server, thread).await?.map(|run| run.status) {
        Some(RunStatus::Running | RunStatus::Interrupted) => ThreadStatus::Busy,
        Some(RunStatus::Waiting) => ThreadStatus::Interrupted,
        Some(RunStatus::Failed) => ThreadStatus::Error,
        _ => ThreadStatus::Idle,
    })
}

/// A thread without its state.
pub(super) async fn view(server: &Server, thread: Thread) -> Result<ThreadView, Problem> {
    Ok(ThreadView {
        status: status_of(server, &thread).await?,
        agent_id: thread.agent.as_deref().and_then(|source| server.agents().id_of(source)),
        thread_id: thread.id,
        created_at: time(thread.created),
        updated_at: time(thread.updated),
        metadata: thread.metadata,
        values: None,
        interrupts: None,
    })
}
