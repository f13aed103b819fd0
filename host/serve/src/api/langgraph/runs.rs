//! Runs of threads, and what becomes of them, as clients of LangGraph have it.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use hotcell_runtime::{RunRecord, RunStatus};
use http::header::LOCATION;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::AssistantRun;
use super::interrupts::{self, Interrupt};
use super::modes::Mode;
use super::stream::Shape;
use crate::access::Asker;
use crate::access::audit::CANCELS;
use crate::answerer::Answerer;
use crate::api::cancel::Ending;
use crate::api::event_stream::{Seen, follow, seen, sse};
use crate::api::extract;
use crate::api::new_run::{self, OnDisconnect, RunCreate};
use crate::api::params::Query;
use crate::api::turn;
use crate::input::answer_text;
use crate::leash::Leash;
use crate::live::Begun;
use crate::once;
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::view::{Object, RunResult, RunView};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(create_and_wait))
        .routes(routes!(create_and_stream))
        .routes(routes!(get, delete))
        .routes(routes!(cancel))
        .routes(routes!(join))
        .routes(routes!(join_stream))
}

/// A run, as clients of LangGraph see it.
#[derive(Serialize, ToSchema)]
pub(crate) struct AssistantRunView {
    #[serde(flatten)]
    run: RunView,
    /// The agent; none if it is not served here any more
    assistant_id: Option<String>,
}

impl AssistantRunView {
    pub(crate) fn of(run: RunView) -> Self {
        AssistantRunView { assistant_id: run.agent_id.clone(), run }
    }
}

/// A run that was begun, or goes on with an answer.
pub(crate) struct Started {
    pub(crate) begun: Begun,
    /// The last entry from before
    after: u64,
    modes: Vec<Mode>,
    pub(crate) on_disconnect: OnDisconnect,
}

/// Begins a run, or answers the one for which its thread waits.
pub(crate) async fn begin(
    server: &Server,
    caller: &Asker,
    thread: Option<&str>,
    mut wanted: AssistantRun,
    listens: bool,
) -> Result<Started, Problem> {
    wanted.check()?;
    let modes = wanted.modes();
    let on_disconnect = wanted.on_disconnect.unwrap_or_default();
    let (begun, after) = match wanted.resume()? {
        Some(answer) => {
            let thread = thread.ok_or_else(|| {
                let detail = "`command.resume` needs a thread: only its last run can wait for an answer";
                Problem::unprocessable(detail)
            })?;
            resume(server, caller, thread, &wanted.assistant_id, answer, listens).await?
        }
        None => {
            let wanted = RunCreate {
                agent_id: Some(wanted.assistant_id),
                thread_id: thread.map(str::to_owned),
                input: wanted.input,
                messages: None,
                metadata: wanted.metadata,
                if_not_exists: wanted.if_not_exists,
                if_busy: wanted.multitask_strategy,
                on_disconnect: None,
                webhook: wanted.webhook,
            };
            (new_run::begin(server, caller, wanted, listens).await?, 0)
        }
    };
    Ok(Started { begun, after, modes, on_disconnect })
}

/// Whether a run was answered like this before.
async fn was_resumed(server: &Server, run: &RunRecord, answer: &Value) -> Result<bool, Problem> {
    if let Value::Object(by_id) = answer {
        let mut any = false;
        for (question, answer) in by_id {
            any |= server.runs().was_answered(&run.id, Some(question.as_str()), &answer_text(answer.clone())?).await?;
        }
        if any {
            return Ok(true);
        }
    }
    server.runs().was_answered(&run.id, None, &answer_text(answer.clone())?).await
}

/// Answers what the last run of a thread waits for: it goes on.
async fn resume(
    server: &Server,
    caller: &Asker,
    thread: &str,
    assistant: &str,
    answer: Value,
    listens: bool,
) -> Result<(Begun, u64), Problem> {
    let closed = || {
        Problem::conflict(format!("no run of thread `{}` waits for an answer", shown(thread)))
            .kind("question-closed", "The question takes no answer")
    };
    let (_, agent) = server.agents().find(assistant)?;
    let last = server.runs().store().last_of_thread(agent.source(), thread).await?;
    // A request that is made again may have answered it already. Then it answers nothing else that the run asks by now.
    if let Some(last) = last.as_ref().filter(|_| once::is_repeat())
        && (last.status != RunStatus::Waiting || was_resumed(server, last, &answer).await?)
    {
        let hold = server.runs().hold(&last.id);
        return Ok((Begun { run: last.id.clone(), live: hold.live.clone(), events: None }, 0));
    }
    let last = last.filter(|last| !last.status.is_final()).ok_or_else(closed)?;
    let open = turn::asked(&server.runs().store().history(&last.id).await?.whole()?);
    if open.is_empty() {
        return Err(closed());
    }
    let answers = interrupts::answers(&open, answer)?;
    let turn::Started { begun, after } =
        turn::answer_all(server, Answerer::of(caller), &last, &answers, listens).await?;
    Ok((begun, after))
}

/// What a run came to, as clients of LangGraph expect it: the state, and beside it `__interrupt__` if it waits, `__error__` if it
/// failed, `__output__` if it has a result.
pub(crate) fn values(result: RunResult) -> Object {
    let RunResult { run, mut values, output, error, questions, .. } = result;
    if let Some(output) = output {
        values.insert("__output__".to_owned(), output.into());
    }
    if let Some(error) = error {
        values.insert("__error__".to_owned(), json!({ "error": run.standing, "message": error }));
    }
    let asked = questions.iter().filter(|question| question.is_for_users());
    let open: Vec<Interrupt> = asked.map(Interrupt::of).collect();
    if !open.is_empty() {
        values.insert("__interrupt__".to_owned(), json!(open));
    }
    values
}

/// Says where a run is that was begun, and where to go on when the connection breaks.
fn located(thread: &str, run: &str, rejoin: &str, response: impl IntoResponse) -> Response {
    let mut response = new_run::located_at(&format!("/threads/{thread}/runs/{run}"), response);
    if let Ok(value) = HeaderValue::try_from(format!("/threads/{thread}/runs/{run}/{rejoin}")) {
        response.headers_mut().insert(LOCATION, value);
    }
    response
}

/// A stream of a run that was begun.
pub(crate) async fn stream_of(server: &Server, started: Started) -> Result<Response, Problem> {
    let Started { begun: Begun { run, events, .. }, after, modes, on_disconnect } = started;
    let leash = Leash::new(server, &run, on_disconnect == OnDisconnect::Cancel);
    let record = server.runs().find(run.as_str()).await?;
    let shape = Shape::new(server, &record, after, modes).await?;
    Ok(new_run::located(&run, sse(server, &run, after, events, leash, shape)))
}

/// The run of a thread.
pub(super) async fn run_of(server: &Server, thread: &str, run: &str) -> Result<RunRecord, Problem> {
    let record = server.runs().find(run).await?;
    match record.thread() == Some(thread) {
        true => Ok(record),
        false => {
            let detail = format!("there is no run `{}` of thread `{}`", shown(run), shown(thread));
            Err(Problem::not_found(detail))
        }
    }
}

/// Begin a run in a thread, or answer the run that waits there (`command.resume`)
#[utoipa::path(
    post, path = "/threads/{thread_id}/runs", tag = "LangGraph", security(("key" = ["run"])),
    params(("thread_id" = String, Path, description = "The thread")),
    request_body = AssistantRun, responses((status = 200, body = AssistantRunView))
)]
async fn create(
    State(server): State<Server>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Asker>,
    extract::Json(wanted): extract::Json<AssistantRun>,
) -> Result<Response, Problem> {
    let started = begin(&server, &caller, Some(&thread), wanted, false).await?;
    let record = server.runs().find(started.begun.run.as_str()).await?;
    let view = AssistantRunView::of(RunView::of_record(&record, server.agents()));
    Ok(located(&thread, record.id.as_str(), "join", Json(view)))
}

/// Begin a run in a thread, or answer the one that waits there, and wait for what it comes to
///
/// Beside the state: `__interrupt__` if it waits for a person, `__error__` if it failed, `__output__` if it has a result.
#[utoipa::path(
    post, path = "/threads/{thread_id}/runs/wait", tag = "LangGraph", security(("key" = ["run"])),
    params(("thread_id" = String, Path, description = "The thread")),
    request_body = AssistantRun, responses((status = 200, body = Object))
)]
async fn create_and_wait(
    State(server): State<Server>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Asker>,
    extract::Json(wanted): extract::Json<AssistantRun>,
) -> Result<Response, Problem> {
    let started = begin(&server, &caller, Some(&thread), wanted, false).await?;
    let Begun { run, live, .. } = started.begun;
    let mut leash = Leash::new(&server, &run, started.on_disconnect == OnDisconnect::Cancel);
    let result = new_run::result(&server, &run, Some(live)).await;
    leash.let_go();
    Ok(located(&thread, run.as_str(), "join", Json(values(result?))))
}

/// Begin a run in a thread, or answer the one that waits there, and follow it
///
/// The first event is `metadata` with the id of the run, the last one `end`. In between are those of each `stream_mode`: `values`
/// (the state after each node), `updates` (what each node wrote), `messages` with the text of a model as it comes
/// (`messages-tuple`), or `messages/partial` and `messages/complete` with all of a message so far (`messages`), `tasks` (each node that
/// begins, and what came of it), `checkpoints` (the state with its place in the history), `debug` (both), `events` (the graph, its nodes
/// and their models, as they begin and end); and `error` with why it failed. Nothing is told as `custom`.
#[utoipa::path(
    post, path = "/threads/{thread_id}/runs/stream", tag = "LangGraph", security(("key" = ["run"])),
    params(("thread_id" = String, Path, description = "The thread")),
    request_body = AssistantRun, responses((status = 200, content_type = "text/event-stream", body = String))
)]
async fn create_and_stream(
    State(server): State<Server>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Asker>,
    extract::Json(wanted): extract::Json<AssistantRun>,
) -> Result<Response, Problem> {
    let started = begin(&server, &caller, Some(&thread), wanted, true).await?;
    let run = started.begun.run.clone();
    let response = stream_of(&server, started).await?;
    Ok(located(&thread, run.as_str(), "stream", response))
}

/// Look at a run of a thread
#[utoipa::path(
    get, path = "/threads/{thread_id}/runs/{run_id}", tag = "LangGraph", security(("key" = ["run", "operate"])),
    params(("thread_id" = String, Path, description = "The thread"), ("run_id" = String, Path, description = "The run")),
    responses((status = 200, body = AssistantRunView))
)]
async fn get(
    State(server): State<Server>,
    Path((thread, run)): Path<(String, String)>,
) -> Result<Json<AssistantRunView>, Problem> {
    let record = run_of(&server, &thread, &run).await?;
    Ok(Json(AssistantRunView::of(RunView::of_record(&record, server.agents()))))
}

/// Remove a run of a thread that has ended
#[utoipa::path(
    delete, path = "/threads/{thread_id}/runs/{run_id}", tag = "LangGraph", security(("key" = ["operate"])),
    params(("thread_id" = String, Path, description = "The thread"), ("run_id" = String, Path, description = "The run")),
    responses((status = 204, description = "It is removed"))
)]
async fn delete(
    State(server): State<Server>,
    Path((thread, run)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let record = run_of(&server, &thread, &run).await?;
    server.runs().delete(&record).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// End a run of a thread for good
///
/// What it does at this moment is stopped. `rollback` removes it, too, which needs the role `operate`.
#[utoipa::path(
    post, path = "/threads/{thread_id}/runs/{run_id}/cancel", tag = "LangGraph", security(("key" = ["run", "operate"])),
    params(
        ("thread_id" = String, Path, description = "The thread"),
        ("run_id" = String, Path, description = "The run"),
        ("wait" = Option<String>, Query, description = "`1` to answer when nobody works on it any more"),
        ("action" = Option<String>, Query, description = "`interrupt` keeps it, `rollback` removes it"),
    ),
    responses((status = 204, description = "It is cancelled"))
)]
async fn cancel(
    State(server): State<Server>,
    Extension(caller): Extension<Asker>,
    Path((thread, run)): Path<(String, String)>,
    query: Query,
) -> Result<StatusCode, Problem> {
    let ending = Ending::of(query, &caller)?;
    let record = run_of(&server, &thread, &run).await?;
    ending.end(&server, &record.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Wait for what a run of a thread comes to
#[utoipa::path(
    get, path = "/threads/{thread_id}/runs/{run_id}/join", tag = "LangGraph", security(("key" = ["run", "operate"])),
    params(("thread_id" = String, Path, description = "The thread"), ("run_id" = String, Path, description = "The run")),
    responses((status = 200, body = Object))
)]
async fn join(
    State(server): State<Server>,
    Path((thread, run)): Path<(String, String)>,
) -> Result<Json<Object>, Problem> {
    let run = run_of(&server, &thread, &run).await?.id;
    let live = server.runs().live(&run);
    Ok(Json(values(new_run::result(&server, &run, live).await?)))
}

/// Follow a run of a thread
///
/// With `Last-Event-ID`, what comes after that event.
#[utoipa::path(
    get, path = "/threads/{thread_id}/runs/{run_id}/stream", tag = "LangGraph", security(("key" = ["run", "operate"])),
    params(
        ("thread_id" = String, Path, description = "The thread"),
        ("run_id" = String, Path, description = "The run"),
        ("stream_mode" = Option<String>, Query, description = "As `stream_mode` of `POST /threads/{thread_id}/runs/stream`; several with commas, as a JSON list, or one after the other"),
        ("cancel_on_disconnect" = Option<String>, Query, description = "`true` to cancel the run when the connection breaks"),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was seen"),
    ),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        (status = 204, description = "The run has ended, and everything of it was seen"),
    )
)]
async fn join_stream(
    State(server): State<Server>,
    Path((thread, run)): Path<(String, String)>,
    mut headers: HeaderMap,
    mut query: Query,
) -> Result<Response, Problem> {
    // Clients of LangGraph say this who have seen nothing.
    if headers.get("last-event-id").is_some_and(|id| id == "-1") {
        headers.remove("last-event-id");
    }
    let modes = query.text("stream_mode").filter(|modes| !modes.is_empty());
    let modes = modes.map_or_else(|| Ok(vec![Mode::Values]), |modes| Mode::all_named(&modes));
    let cancels = query.flag(CANCELS)?;
    query.end()?;
    let record = run_of(&server, &thread, &run).await?;
    match seen(&server, &record, &headers, None).await? {
        Seen::All => Ok(StatusCode::NO_CONTENT.into_response()),
        Seen::Until(after) => {
            let shape = Shape::new(&server, &record, after, modes?).await?;
            Ok(follow(&server, &record.id, after, cancels, shape))
        }
    }
}
