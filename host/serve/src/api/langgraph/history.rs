//! The state of threads, now and before.

use std::collections::VecDeque;

use axum::Json;
use axum::extract::{Path, State};
use hotcell_graph::Value as GraphValue;
use hotcell_runtime::{Completed, Fact, NumberedEntry, RunQuery, RunRecord};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::interrupts::{self, Interrupt};
use super::stream::values_of;
use crate::api::{agents, extract, threads};
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::store::Thread;
use crate::view::{Object, object, time};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(history))
}

/// A place in the history of a thread.
#[derive(Serialize, ToSchema)]
pub(super) struct Checkpoint {
    /// The thread
    thread_id: String,
    /// The graph itself: empty
    checkpoint_ns: &'static str,
    /// The run and the number of its entry, as `RUN:NUMBER`; none before the first run
    checkpoint_id: Option<String>,
}

/// A node that waits.
#[derive(Serialize, ToSchema)]
struct Task {
    /// What it is about: the question
    id: String,
    /// The node
    name: String,
    /// Nothing is wrong with one that waits
    error: Option<String>,
    /// What it asks
    interrupts: Vec<Interrupt>,
}

/// The state of a thread.
#[derive(Serialize, ToSchema)]
pub(crate) struct ThreadState {
    /// The thread
    thread_id: String,
    /// The run that it is the state of; none before the first one
    run_id: Option<String>,
    /// The state that the run came to
    #[schema(value_type = Object)]
    values: Object,
    /// The nodes that come next; none where nothing does
    next: Vec<String>,
    /// Where in the history of the thread it is
    checkpoint: Checkpoint,
    /// What was said about the run when it was begun
    #[schema(value_type = Object)]
    metadata: Object,
    /// When it was committed
    #[schema(format = DateTime)]
    created_at: Option<String>,
    /// The nodes that wait
    tasks: Vec<Task>,
    /// What is asked
    interrupts: Vec<Interrupt>,
}

pub(super) fn checkpoint(thread: &str, run: &RunRecord, number: u64) -> Checkpoint {
    Checkpoint { thread_id: thread.to_owned(), checkpoint_ns: "", checkpoint_id: Some(format!("{}:{number}", run.id)) }
}

/// The state that a thread has come to.
pub(crate) async fn thread_state(server: &Server, thread: Thread) -> Result<ThreadState, Problem> {
    let Some(last) = threads::last_run(server, &thread).await? else {
        return Ok(ThreadState {
            checkpoint: Checkpoint { thread_id: thread.id.clone(), checkpoint_ns: "", checkpoint_id: None },
            thread_id: thread.id,
            run_id: None,
            values: Object::new(),
            next: Vec::new(),
            metadata: Object::new(),
            created_at: None,
            tasks: Vec::new(),
            interrupts: Vec::new(),
        });
    };
    let run = server.runs().find(last.id.as_str()).await?;
    let values = object((&GraphValue::Object(server.runs().state_of(&run).await?)).into());
    let open = interrupts::open(server, &run).await?;
    let asks = |question| Interrupt::of(question);
    let tasks = open.iter().map(|open| Task {
        id: open.question.id.clone(),
        name: open.question.node.clone(),
        error: None,
        interrupts: vec![asks(&open.question)],
    });
    let tasks: Vec<Task> = tasks.collect();
    let entries = server.runs().store().history(&run.id).await?.entries.len() as u64;
    Ok(ThreadState {
        run_id: Some(run.id.to_string()),
        values,
        next: tasks.iter().map(|task| task.name.clone()).collect(),
        checkpoint: checkpoint(&thread.id, &run, entries),
        thread_id: thread.id,
        metadata: crate::input::metadata_of(&run),
        created_at: Some(time(run.updated)),
        tasks,
        interrupts: open.iter().map(|open| asks(&open.question)).collect(),
    })
}

/// How much of the history of a thread is wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct HistoryWanted {
    /// How many states at most
    #[schema(minimum = 1, maximum = 1000, default = 10)]
    #[serde(default, deserialize_with = "extract::whole")]
    limit: Option<usize>,
    /// Only those before this checkpoint: its id, or an object with it as `checkpoint_id`
    #[schema(value_type = Option<Object>)]
    before: Option<Value>,
}

/// Show what a thread came to and how, the newest state first: one for each node that was completed
#[utoipa::path(
    post, path = "/threads/{thread_id}/history", tag = "LangGraph", security(("key" = ["run", "operate"])),
    params(("thread_id" = String, Path, description = "The thread")),
    request_body = HistoryWanted, responses((status = 200, body = Vec<ThreadState>))
)]
async fn history(
    State(server): State<Server>,
    Path(id): Path<String>,
    extract::Json(wanted): extract::Json<HistoryWanted>,
) -> Result<Json<Vec<ThreadState>>, Problem> {
    let (limit, _) = agents::page(wanted.limit, None)?;
    let mut before = wanted.before.as_ref().map(before).transpose()?;
    let thread = threads::find(&server, &id)?;
    let Some(source) = thread.agent else { return Ok(Json(Vec::new())) };
    let mut query =
        RunQuery { thread: Some(id.clone()), sources: Some(vec![source]), limit: 100, ..RunQuery::default() };
    let mut states = Vec::new();
    loop {
        let page = server.runs().store().list(&query).await?;
        for run in page.runs {
            let until = match &before {
                Some((of, number)) if run.id.as_str() == of => *number,
                Some(_) => continue,
                None => u64::MAX,
            };
            before = None;
            let run = server.runs().find(run.id.as_str()).await?;
            states.extend(states_of(&server, &id, &run, until, limit - states.len()).await?);
            if states.len() == limit {
                return Ok(Json(states));
            }
        }
        query.after = page.next;
        if query.after.is_none() {
            return match before {
                Some((run, _)) => Err(Problem::not_found(format!("the thread has no run `{}`", shown(&run)))),
                None => Ok(Json(states)),
            };
        }
    }
}

/// The run and the entry that a checkpoint names.
fn before(wanted: &Value) -> Result<(String, u64), Problem> {
    let id = wanted.as_str().or_else(|| {
        let configurable = wanted.get("configurable").unwrap_or(wanted);
        configurable.get("checkpoint_id").and_then(Value::as_str)
    });
    let parts = id.and_then(|id| id.rsplit_once(':'));
    let found = parts.and_then(|(run, number)| Some((run.to_owned(), number.parse().ok()?)));
    found.ok_or_else(|| Problem::unprocessable("`before` has to be the `checkpoint_id` of a state of the history"))
}

/// The last states of a run before an entry, the newest first.
async fn states_of(
    server: &Server,
    thread: &str,
    run: &RunRecord,
    until: u64,
    limit: usize,
) -> Result<Vec<ThreadState>, Problem> {
    let mut fold = server.runs().fold_of(run).await?;
    let history = server.runs().store().entries(&run.id, 0, usize::MAX).await?;
    let open = interrupts::open(server, run).await?;
    let mut kept = VecDeque::new();
    for numbered in history.entries.into_iter().filter(|numbered| numbered.number < until) {
        let is_turn = fold.follow(&numbered.entry).map_err(|error| Problem::internal(&error))?;
        if is_turn {
            kept.push_back((numbered, fold.clone()));
            if kept.len() > limit {
                kept.pop_front();
            }
        }
    }
    let mut states: Vec<ThreadState> = Vec::with_capacity(kept.len());
    for (at, fold) in kept.into_iter().rev() {
        let NumberedEntry { number, at, entry } = at;
        let Fact::Completed(Completed { next, .. }) = entry.fact else { continue };
        states.push(ThreadState {
            thread_id: thread.to_owned(),
            run_id: Some(run.id.to_string()),
            values: values_of(&fold),
            next: next.unwrap_or_default(),
            checkpoint: checkpoint(thread, run, number),
            metadata: crate::input::metadata_of(run),
            created_at: Some(time(at)),
            tasks: Vec::new(),
            interrupts: Vec::new(),
        });
    }
    // What is asked is asked where the run is now.
    if let Some(newest) = states.first_mut().filter(|_| until == u64::MAX) {
        newest.interrupts = open.iter().map(|open| Interrupt::of(&open.question)).collect();
    }
    Ok(states)
}
