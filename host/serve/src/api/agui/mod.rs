//! AG-UI: pages that show what an agent does while it does it. What a run asks are interrupts, which the next request resumes.

mod events;

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use hotcell_runtime::{Agent, PROMPT, RunRecord, RunStatus};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::events::Events;
use super::event_stream::sse;
use super::extract;
use super::in_thread;
use super::new_run::located;
use super::turn::{self, Beginning, Started};
use crate::access::Asker;
use crate::answerer::Answerer;
use crate::input::{answer_text, content_text};
use crate::leash::Leash;
use crate::live::Begun;
use crate::once;
use crate::problem::{Problem, shown};
use crate::runs::IfBusy;
use crate::state::Server;
use crate::view::Object;

/// What its routes are filed under in the document.
const TAG: &str = "AG-UI";

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(run))
}

/// What an agent is asked for. What an agent has of its own (tools, context, state) is refused by name if it is given.
#[derive(Deserialize, ToSchema)]
#[schema(as = AgUiInput)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// The thread: it keeps what was said before
    thread_id: String,
    /// What the client calls this; the run has a name of its own (`Content-Location`)
    run_id: String,
    /// The version of the protocol that the client speaks
    #[serde(rename = "protocolVersion")]
    _protocol_version: Option<String>,
    #[serde(rename = "parentRunId")]
    parent_run_id: Option<String>,
    /// All that was said so far; what the person said last is what the agent is told
    #[schema(value_type = Vec<Object>)]
    messages: Vec<Value>,
    /// Answers to interrupts
    resume: Option<Vec<Resume>>,
    /// An object with further inputs of the agent by their names
    #[schema(value_type = Option<Object>)]
    forwarded_props: Option<Value>,
    #[schema(value_type = Option<Object>)]
    state: Option<Value>,
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Value>,
    #[schema(value_type = Option<Vec<Object>>)]
    context: Option<Value>,
}

/// The answer to an interrupt.
#[derive(Deserialize, ToSchema)]
#[schema(as = AgUiResume)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Resume {
    /// The interrupt
    interrupt_id: String,
    /// Whether it is answered; otherwise the run is cancelled
    status: ResumeStatus,
    /// The answer: a text, or any JSON value where a tool was to be called
    #[serde(default)]
    payload: Value,
    #[serde(rename = "metadata")]
    #[schema(value_type = Option<Object>)]
    _metadata: Option<Object>,
}

impl Resume {
    /// The question of a run that it is about.
    fn question_of(&self, run: &RunRecord) -> Option<&str> {
        self.interrupt_id.strip_prefix(run.id.as_str())?.strip_prefix(':')
    }
}

/// What is done about an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ResumeStatus {
    Resolved,
    Cancelled,
}

impl Input {
    /// Refuses what is said and not done here.
    fn check(&self) -> Result<(), Problem> {
        let says = |value: &Option<Value>| match value {
            None | Some(Value::Null) => false,
            Some(Value::Object(members)) => !members.is_empty(),
            Some(Value::Array(items)) => !items.is_empty(),
            Some(_) => true,
        };
        let resumes = self.resume.as_ref().is_some_and(|answers| !answers.is_empty());
        for (name, is_said, instead) in [
            ("state", says(&self.state), "the thread keeps the state; `forwardedProps` gives inputs of the agent"),
            ("tools", says(&self.tools), "an agent has its own tools"),
            ("context", says(&self.context), "say it in the message, or give inputs of the agent as `forwardedProps`"),
            ("parentRunId", self.parent_run_id.is_some(), "a run is begun by itself"),
            ("forwardedProps", resumes && says(&self.forwarded_props), "a run that `resume` answers has its inputs"),
        ] {
            if is_said {
                return Err(Problem::unprocessable(format!("`{name}` is not supported: {instead}")));
            }
        }
        Ok(())
    }

    /// What the person said since the assistant said something, and whether the assistant did.
    fn said(&self) -> Result<(String, bool), Problem> {
        let (mut said, mut has_replies) = (Vec::new(), false);
        for (number, message) in self.messages.iter().enumerate() {
            match message.get("role").and_then(Value::as_str) {
                Some("user") => said.push(text(message, number)?),
                Some("assistant") => {
                    has_replies = true;
                    said.clear();
                }
                Some("reasoning" | "activity") => {}
                Some(other) => {
                    let detail =
                        format!("`messages[{number}]` has the role `{}`, which is not supported", shown(other));
                    return Err(Problem::unprocessable(detail));
                }
                None => return Err(Problem::unprocessable(format!("`messages[{number}]` has no role"))),
            }
        }
        Ok((said.join("\n\n"), has_replies))
    }

    /// What a run is given.
    fn input(&self, agent: &Agent, said: String) -> Result<Value, Problem> {
        let mut values = match &self.forwarded_props {
            None | Some(Value::Null) => Object::new(),
            Some(Value::Object(values)) => values.clone(),
            Some(_) => {
                return Err(Problem::unprocessable("`forwardedProps` has to be an object with inputs by their names"));
            }
        };
        if !said.is_empty() && values.insert(PROMPT.to_owned(), said.into()).is_some() {
            return Err(Problem::unprocessable("give a message or a prompt in `forwardedProps`, not both"));
        }
        if values.is_empty() && (agent.graph.takes_text() || agent.graph.is_open) && !self.messages.is_empty() {
            return Err(Problem::unprocessable(
                "`messages` has to end with a message of the role `user`, or `resume` answers",
            ));
        }
        Ok(Value::Object(values))
    }
}

/// The text of a message.
fn text(message: &Value, number: usize) -> Result<String, Problem> {
    message.get("content").and_then(content_text).ok_or_else(|| {
        let detail = format!("the content of `messages[{number}]` has to be text; other parts are not supported");
        Problem::unprocessable(detail)
    })
}

/// Begin a run of an agent, or answer what the last run of the thread asks, and follow it in the events of AG-UI
///
/// `RUN_STARTED` is the first event, `RUN_FINISHED` or `RUN_ERROR` the last. The reply is a text message; what models say meanwhile is
/// reasoning. A run that asks is finished with the outcome `interrupt`; the next request answers with `resume`.
#[utoipa::path(
    post, path = "/ag-ui/{agent}", tag = TAG, security(("key" = ["run"])), request_body = Input,
    params(("agent" = String, Path, description = "The agent")),
    responses((status = 200, content_type = "text/event-stream", body = String))
)]
async fn run(
    State(server): State<Server>,
    Path(agent): Path<String>,
    Extension(caller): Extension<Asker>,
    extract::Json(wanted): extract::Json<Input>,
) -> Result<Response, Problem> {
    wanted.check()?;
    let (_, agent) = server.agents().find(&agent)?;
    let started = match wanted.resume.as_deref() {
        None | Some([]) => begin(&server, &agent, &wanted).await?,
        Some(answers) => resume(&server, &caller, &agent, &wanted.thread_id, answers).await?,
    };
    let Started { begun, after } = started;
    let events = Events::new(&server, &begun.run, after, wanted.thread_id, wanted.run_id);
    let leash = Leash::new(&server, &begun.run, false);
    Ok(located(&begun.run, sse(&server, &begun.run, after, begun.events, leash, events)))
}

async fn begin(server: &Server, agent: &Arc<Agent>, wanted: &Input) -> Result<Started, Problem> {
    let (said, has_replies) = wanted.said()?;
    let thread = &wanted.thread_id;
    if has_replies && server.runs().store().last_of_thread(agent.source(), thread).await?.is_none() {
        let detail = "no run of this agent belongs to the thread, and the conversation has replies; begin a new one";
        return Err(Problem::conflict(detail).kind("unknown-conversation", "The conversation is not known"));
    }
    let input = wanted.input(agent, said)?;
    let beginning = Beginning { input, metadata: Object::new(), kept: Object::new(), listens: true };
    let given = beginning.given(agent, thread)?;
    let begun = in_thread::start(server, agent, given, true, IfBusy::Reject, true).await?;
    Ok(Started { begun, after: 0 })
}

/// The run that a request has answered already which is made again. A stream is not kept for that, so it is made again from the run.
async fn resumed(server: &Server, last: &RunRecord, answers: &[Resume]) -> Result<Option<Started>, Problem> {
    for answer in answers {
        let Some(question) = answer.question_of(last).filter(|_| answer.status == ResumeStatus::Resolved) else {
            return Ok(None);
        };
        if !server.runs().was_answered(&last.id, Some(question), &answer_text(answer.payload.clone())?).await? {
            return Ok(None);
        }
    }
    let entries = server.runs().store().history(&last.id).await?.whole()?;
    let hold = server.runs().hold(&last.id);
    let begun = Begun { run: last.id.clone(), live: hold.live.clone(), events: None };
    Ok(Some(Started { begun, after: turn::last_turn(&entries) }))
}

/// Answers what the last run of a thread asks.
async fn resume(
    server: &Server,
    caller: &Asker,
    agent: &Arc<Agent>,
    thread: &str,
    answers: &[Resume],
) -> Result<Started, Problem> {
    let closed = |detail: String| Problem::conflict(detail).kind("question-closed", "The question takes no answer");
    let last = server.runs().store().last_of_thread(agent.source(), thread).await?;
    if let Some(last) = last.as_ref().filter(|_| once::is_repeat())
        && let Some(started) = resumed(server, last, answers).await?
    {
        return Ok(started);
    }
    let last = last.filter(|last| last.status == RunStatus::Waiting);
    let last = last.ok_or_else(|| closed(format!("no run of thread `{}` waits for an answer", shown(thread))))?;
    let open = turn::asked(&server.runs().store().history(&last.id).await?.whole()?);
    let mut questions = Vec::with_capacity(answers.len());
    for answer in answers {
        let id = answer.question_of(&last).unwrap_or_default();
        if !open.iter().any(|open| open.question.id == id) {
            return Err(closed(format!("there is no open interrupt `{}`", shown(&answer.interrupt_id))));
        }
        if questions.iter().any(|(asked, _)| asked == id) {
            return Err(Problem::unprocessable("`resume` answers an interrupt twice"));
        }
        if answer.status == ResumeStatus::Resolved {
            questions.push((id.to_owned(), answer_text(answer.payload.clone())?));
        }
    }
    let hold = server.runs().hold(&last.id);
    match questions.len() {
        0 => {
            let after = server.runs().store().last_entry(&last.id).await?;
            let events = Some(hold.live.events());
            server.runs().cancel(&last.id).await?;
            let begun = Begun { run: last.id.clone(), live: hold.live.clone(), events };
            Ok(Started { begun, after })
        }
        count if count == answers.len() => {
            turn::answer_all(server, Answerer::of(caller), &last, &questions, true).await
        }
        _ => Err(Problem::unprocessable("`resume` has to resolve all of its interrupts, or to cancel all of them")),
    }
}
