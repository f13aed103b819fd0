//! The state of threads, now and before.

use std::collections::VecDeque;

use axum::Json;
use axum::extract::{Path, State};
use hotcell_graph::Value as GraphValue;
use hotcell_runtime::{Completed, Fact, NumberedEntry, RunId, RunQuery, RunRecord};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::interrupts::{self, Interrupt};
use super::stream::values_of;
use crate::api::listed::Listed;
use crate::api::params::Query;
use crate::api::{extract, in_thread, page, reading};
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::thread_store::Thread;
use crate::view::{Object, object, time};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(history, list_history))
        .routes(routes!(state_at))
        .routes(routes!(state_at_checkpoint))
}

/// A place in the history of a thread.
#[derive(Clone, Serialize, ToSchema)]
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
    /// Where the state is that it followed from, as far as that is known
    parent_checkpoint: Option<Checkpoint>,
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

impl ThreadState {
    pub(crate) fn values(&self) -> &Object {
        &self.values
    }

    pub(crate) fn into_values(self) -> Object {
        self.values
    }

    /// What is asked, by the task that asks it.
    pub(crate) fn asked(&self) -> Object {
        self.tasks.iter().map(|task| (task.id.clone(), json!(task.interrupts))).collect()
    }
}

pub(super) fn checkpoint(thread: &str, run: &RunRecord, number: u64) -> Checkpoint {
    Checkpoint { thread_id: thread.to_owned(), checkpoint_ns: "", checkpoint_id: Some(format!("{}:{number}", run.id)) }
}

/// The state that a thread has come to.
pub(crate) async fn thread_state(server: &Server, thread: Thread) -> Result<ThreadState, Problem> {
    let Some(last) = in_thread::last_run(server, &thread).await? else {
        return Ok(ThreadState {
            checkpoint: Checkpoint { thread_id: thread.id.clone(), checkpoint_ns: "", checkpoint_id: None },
            parent_checkpoint: None,
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
    let (number, parent) = ends(server, &run.id).await?;
    state_of(server, &thread.id, &run, number.unwrap_or_default(), parent).await
}

/// The number of the last entry of a run, and that of the last turn before it.
async fn ends(server: &Server, run: &RunId) -> Result<(Option<u64>, Option<u64>), Problem> {
    let (mut last, mut parent, mut turn) = (None, None, None);
    reading::each(server, run, u64::MAX, |numbered| {
        parent = turn.or(parent);
        turn = is_turn(&numbered).then_some(numbered.number);
        last = Some(numbered.number);
        Ok(())
    })
    .await?;
    Ok((last, parent))
}

/// Whether a turn of the run's own graph was completed with an entry.
fn is_turn(numbered: &NumberedEntry) -> bool {
    matches!(numbered.entry.fact, Fact::Completed(_)) && numbered.entry.place.around().is_none()
}

/// The state that a run of a thread has come to with an entry, and the turn from which it followed.
async fn state_of(
    server: &Server,
    thread: &str,
    run: &RunRecord,
    number: u64,
    parent: Option<u64>,
) -> Result<ThreadState, Problem> {
    let values = object((&GraphValue::Object(server.runs().state_of(run).await?)).into());
    let open = interrupts::open(server, run).await?;
    let asks = |question| Interrupt::of(question);
    let tasks = open.iter().map(|open| Task {
        id: open.question.id.clone(),
        name: open.question.node.clone(),
        error: None,
        interrupts: vec![asks(&open.question)],
    });
    let tasks: Vec<Task> = tasks.collect();
    Ok(ThreadState {
        thread_id: thread.to_owned(),
        run_id: Some(run.id.to_string()),
        values,
        next: tasks.iter().map(|task| task.name.clone()).collect(),
        checkpoint: checkpoint(thread, run, number),
        parent_checkpoint: parent.map(|parent| checkpoint(thread, run, parent)),
        metadata: crate::input::metadata_of(run),
        created_at: Some(time(run.updated)),
        tasks,
        interrupts: open.iter().map(|open| asks(&open.question)).collect(),
    })
}

/// The state that a thread had at a checkpoint.
async fn state_then(server: &Server, thread: &str, checkpoint_id: &str) -> Result<ThreadState, Problem> {
    in_thread::find(server, thread)?;
    let none = || {
        let detail = format!("thread `{}` has no checkpoint `{}`", shown(thread), shown(checkpoint_id));
        Problem::not_found(detail)
    };
    let (run, number) = place(checkpoint_id).ok_or_else(none)?;
    let run = match server.runs().find(&run).await {
        Ok(run) if run.thread() == Some(thread) => run,
        Ok(_) => return Err(none()),
        Err(problem) if problem.status == 404 => return Err(none()),
        Err(problem) => return Err(problem),
    };
    let (last, parent) = ends(server, &run.id).await?;
    if last == Some(number) {
        return state_of(server, thread, &run, number, parent).await;
    }
    let mut fold = server.runs().fold_of(&run).await?;
    let (mut last, mut parent, mut goes_on) = (None, None, Vec::new());
    reading::each(server, &run.id, number, |NumberedEntry { number: of_entry, at, entry }| {
        let is_turn = fold.follow(&entry).map_err(|error| Problem::internal(&error))?;
        last = Some((of_entry, at));
        if let (true, Fact::Completed(Completed { next, .. })) = (is_turn, entry.fact) {
            goes_on = next.unwrap_or_default();
            if of_entry < number {
                parent = Some(of_entry);
            }
        }
        Ok(())
    })
    .await?;
    let (_, at) = last.filter(|(of_entry, _)| *of_entry == number).ok_or_else(none)?;
    Ok(ThreadState {
        thread_id: thread.to_owned(),
        run_id: Some(run.id.to_string()),
        values: values_of(&fold),
        next: goes_on,
        checkpoint: checkpoint(thread, &run, number),
        parent_checkpoint: parent.map(|parent| checkpoint(thread, &run, parent)),
        metadata: crate::input::metadata_of(&run),
        created_at: Some(time(at)),
        tasks: Vec::new(),
        interrupts: Vec::new(),
    })
}

/// Refuses states of graphs within nodes.
pub(crate) fn no_subgraphs(wanted: bool) -> Result<(), Problem> {
    match wanted {
        false => Ok(()),
        true => Err(Problem::unprocessable(
            "`subgraphs` is not supported: `GET /runs/{run_id}/entries` has what happens in graphs within nodes",
        )),
    }
}

/// Show the state of a thread at a checkpoint
#[utoipa::path(
    get, path = "/threads/{thread_id}/state/{checkpoint_id}", tag = "LangGraph", security(("key" = ["run", "operate"])),
    params(
        ("thread_id" = String, Path, description = "The thread"),
        ("checkpoint_id" = String, Path, description = "A `checkpoint_id` of its history"),
        ("subgraphs" = Option<bool>, Query, description = "States of graphs within nodes are not shown: `false`"),
    ),
    responses((status = 200, body = ThreadState))
)]
async fn state_at(
    State(server): State<Server>,
    Path((id, checkpoint_id)): Path<(String, String)>,
    mut query: Query,
) -> Result<Json<ThreadState>, Problem> {
    no_subgraphs(query.flag("subgraphs")?)?;
    query.end()?;
    Ok(Json(state_then(&server, &id, &checkpoint_id).await?))
}

/// A place in the history of a thread whose state is wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct StateWanted {
    /// A checkpoint of the history of the thread, with its `checkpoint_id`
    #[schema(value_type = Object)]
    checkpoint: Value,
    /// States of graphs within nodes are not shown: `false`
    #[serde(default)]
    subgraphs: bool,
}

/// Show the state of a thread at a checkpoint that is given as an object
#[utoipa::path(
    post, path = "/threads/{thread_id}/state/checkpoint", tag = "LangGraph", security(("key" = ["run", "operate"])),
    params(("thread_id" = String, Path, description = "The thread")),
    request_body = StateWanted, responses((status = 200, body = ThreadState))
)]
async fn state_at_checkpoint(
    State(server): State<Server>,
    Path(id): Path<String>,
    extract::Json(wanted): extract::Json<StateWanted>,
) -> Result<Json<ThreadState>, Problem> {
    no_subgraphs(wanted.subgraphs)?;
    let wrong = || Problem::unprocessable("`checkpoint` has to have the `checkpoint_id` of a state of the history");
    let checkpoint_id = wanted.checkpoint.get("checkpoint_id").and_then(Value::as_str).ok_or_else(wrong)?;
    Ok(Json(state_then(&server, &id, checkpoint_id).await?))
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
    let (limit, _) = page::bounds(wanted.limit, None)?;
    let before = wanted.before.as_ref().map(before).transpose()?;
    Ok(Json(states_before(&server, &id, limit, before).await?))
}

/// List the states of a thread, the newest first: one for each node that was completed
#[utoipa::path(
    get, path = "/threads/{thread_id}/history", tag = "Threads", security(("key" = ["run", "operate"])),
    params(
        ("thread_id" = String, Path, description = "The thread"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many at most"),
        ("before" = Option<String>, Query, description = "Only those before the one with this `checkpoint_id`"),
    ),
    responses((status = 200, body = Vec<ThreadState>))
)]
async fn list_history(
    State(server): State<Server>,
    Path(id): Path<String>,
    mut query: Query,
) -> Result<Json<Vec<ThreadState>>, Problem> {
    let limit = query.limit(10)?;
    let before = query.text("before").map(|id| before(&Value::String(id))).transpose()?;
    query.end()?;
    Ok(Json(states_before(&server, &id, limit, before).await?))
}

/// The states of a thread before an entry of a run, the newest first.
async fn states_before(
    server: &Server,
    id: &str,
    limit: usize,
    mut before: Option<(String, u64)>,
) -> Result<Vec<ThreadState>, Problem> {
    let thread = in_thread::find(server, id)?;
    let Some(source) = thread.agent else { return Ok(Vec::new()) };
    let mut query =
        RunQuery { thread: Some(id.to_owned()), sources: Some(vec![source]), limit: 100, ..RunQuery::default() };
    let mut states = Listed::new();
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
            // One more, from which the last one followed.
            states_of(server, id, &run, until, limit + 1, &mut states).await?;
            if states.len() > limit {
                return Ok(following(states.into_all(), limit));
            }
        }
        query.after = page.next;
        if query.after.is_none() {
            return match before {
                Some((run, _)) => Err(Problem::not_found(format!("the thread has no run `{}`", shown(&run)))),
                None => Ok(following(states.into_all(), limit)),
            };
        }
    }
}

/// The first of these states, each of which followed from the one after it.
fn following(mut states: Vec<ThreadState>, limit: usize) -> Vec<ThreadState> {
    let checkpoints: Vec<Checkpoint> = states.iter().skip(1).map(|state| state.checkpoint.clone()).collect();
    for (state, parent) in states.iter_mut().zip(checkpoints) {
        state.parent_checkpoint = Some(parent);
    }
    states.truncate(limit);
    states
}

/// The run and the entry that the id of a checkpoint names.
fn place(id: &str) -> Option<(String, u64)> {
    let (run, number) = id.rsplit_once(':')?;
    Some((run.to_owned(), number.parse().ok()?))
}

/// The run and the entry that a checkpoint names.
fn before(wanted: &Value) -> Result<(String, u64), Problem> {
    let id = wanted.as_str().or_else(|| {
        let configurable = wanted.get("configurable").unwrap_or(wanted);
        configurable.get("checkpoint_id").and_then(Value::as_str)
    });
    id.and_then(place)
        .ok_or_else(|| Problem::unprocessable("`before` has to be the `checkpoint_id` of a state of the history"))
}

/// Adds the last states of a run before an entry, the newest first, until there are so many.
async fn states_of(
    server: &Server,
    thread: &str,
    run: &RunRecord,
    until: u64,
    limit: usize,
    states: &mut Listed<ThreadState>,
) -> Result<(), Problem> {
    let limit = limit - states.len();
    let mut fold = server.runs().fold_of(run).await?;
    let open = interrupts::open(server, run).await?;
    let mut kept = VecDeque::new();
    reading::each(server, &run.id, until, |NumberedEntry { number, at, entry }| {
        if number >= until {
            return Ok(());
        }
        let is_turn = fold.follow(&entry).map_err(|error| Problem::internal(&error))?;
        if let (true, Fact::Completed(Completed { next, .. })) = (is_turn, entry.fact) {
            kept.push_back((number, at, next.unwrap_or_default(), fold.clone()));
            if kept.len() > limit {
                kept.pop_front();
            }
        }
        Ok(())
    })
    .await?;
    // What is asked is asked where the run is now.
    let mut asked = match until {
        u64::MAX => open.iter().map(|open| Interrupt::of(&open.question)).collect(),
        _ => Vec::new(),
    };
    for (number, at, next, fold) in kept.into_iter().rev() {
        states.push(ThreadState {
            thread_id: thread.to_owned(),
            run_id: Some(run.id.to_string()),
            values: values_of(&fold),
            next,
            checkpoint: checkpoint(thread, run, number),
            parent_checkpoint: None,
            metadata: crate::input::metadata_of(run),
            created_at: Some(time(at)),
            tasks: Vec::new(),
            interrupts: std::mem::take(&mut asked),
        })?;
    }
    Ok(())
}
