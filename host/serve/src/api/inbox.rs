//! People: what runs ask, and what is answered.

use axum::extract::{Path, State};
use axum::{Extension, Json};
use hotcell_runtime::{OpenQuestion, RunQuery, RunStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::listed::MOST_BYTES;
use super::params::Query;
use super::{agents, extract, reading};
use crate::access::Asker;
use crate::answerer::Answerer;
use crate::input::answer_text;
use crate::problem::Problem;
use crate::state::Server;
use crate::view::InboxItem;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(inbox)).routes(routes!(answer))
}

/// A page of questions.
#[derive(Serialize, ToSchema)]
struct InboxPage {
    /// The questions, those of the newest run first
    items: Vec<InboxItem>,
    /// Where the next page begins, for `after`; none if there are no more
    next: Option<String>,
}

/// List the questions that wait for an answer, over all runs
#[utoipa::path(
    get, path = "/inbox", tag = "People", security(("key" = ["answer", "operate", "administer"])),
    params(
        ("agent_id" = Option<String>, Query, description = "Only questions of runs of this agent"),
        ("run_id" = Option<String>, Query, description = "Only questions of this run"),
        ("mine" = Option<bool>, Query, description = "Only questions that the caller may answer"),
        ("operator_id" = Option<String>, Query, description = "Name of a person for whom the caller would answer; only questions that this person may answer"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many runs are looked at, at most"),
        ("after" = Option<String>, Query, description = "Where the page begins: `next` of the page before"),
    ),
    responses((status = 200, body = InboxPage))
)]
async fn inbox(
    State(server): State<Server>,
    Extension(caller): Extension<Asker>,
    mut query: Query,
) -> Result<Json<InboxPage>, Problem> {
    // Of a run that is worked on, one branch may ask while others go on.
    let statuses = vec![RunStatus::Waiting, RunStatus::Running];
    let sources = agents::sources(&server, query.text("agent_id").as_deref())?;
    let mut wanted = RunQuery { statuses, sources, limit: query.limit(50)?, ..RunQuery::default() };
    if let Some(run) = query.text("run_id") {
        wanted.run = Some(server.runs().find(&run).await?.id);
    }
    wanted.after = query.text("after");
    let (is_mine, operator) = (query.flag("mine")?, query.text("operator_id"));
    query.end()?;
    let groups = server.runs().groups();
    let by = Answerer::of(&caller).named(operator.as_deref()).by_hand();
    let is_wanted = |open: &OpenQuestion| !is_mine && operator.is_none() || by.check(&open.question, groups).is_ok();
    let page = server.runs().store().list(&wanted).await?;
    let (mut items, mut left) = (Vec::new(), MOST_BYTES);
    for (number, run) in page.runs.iter().enumerate() {
        let mut asked = Vec::new();
        for open in reading::open_questions(&server, &run.id).await?.into_iter().filter(is_wanted) {
            let attachments = server.runs().attachments().shown_in(&open.question)?;
            asked.push(InboxItem::of(run, open, attachments, server.agents(), groups));
        }
        let size: usize = asked.iter().map(|item| serde_json::to_vec(item).map_or(0, |json| json.len())).sum();
        left = match left.checked_sub(size) {
            Some(left) => left,
            // Nobody could read what comes after it otherwise.
            None if number == 0 => 0,
            None => {
                let detail =
                    format!("the questions have more than {MOST_BYTES} bytes; ask for fewer runs with `limit`");
                return Err(Problem::unprocessable(detail).with("limit", number));
            }
        };
        items.extend(asked);
    }
    Ok(Json(InboxPage { items, next: page.next }))
}

/// An answer.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AnswerCreate {
    /// The question; it can be left out where one question is open
    question_id: Option<String>,
    /// A text, or any JSON value where a tool was to be called
    answer: Value,
    /// Who answers, where the question is for certain people (`operator_ids`); 255 bytes at most. Whoever has a token of OpenID Connect is
    /// its subject
    operator_id: Option<String>,
}

/// Who is said to answer. An answer that is an object may say it itself, as a mesh expects it.
pub(super) fn operator(said: Option<String>, answer: &Value) -> Result<Option<String>, Problem> {
    let within = answer.get("operator_id").and_then(Value::as_str).map(str::to_owned);
    match (said, within) {
        (Some(said), Some(within)) if said != within => {
            Err(Problem::unprocessable("`operator_id` and the `operator_id` of the answer have to be the same"))
        }
        (said, within) => Ok(said.or(within)),
    }
}

/// What was answered.
#[derive(Serialize, ToSchema)]
struct Answered {
    /// The run, which goes on
    run_id: String,
    /// The question
    question_id: String,
}

/// Answer a question of a run, which goes on
///
/// The first answer counts; for every further one there is a conflict (409). A question for certain people or groups is answered in the name
/// of one of them (`operator_id`). A question with the reason `denial` asks for a capability: it is answered with `once`, `run`, `always` or
/// `refuse`. It takes the role `administer`, as does a question for groups that nobody defined; every other one takes the role `answer`.
#[utoipa::path(
    post, path = "/runs/{run_id}/answers", tag = "People", security(("key" = ["answer", "administer"])),
    params(("run_id" = String, Path, description = "The run")),
    request_body = AnswerCreate, responses((status = 200, body = Answered))
)]
async fn answer(
    State(server): State<Server>,
    Extension(caller): Extension<Asker>,
    Path(run): Path<String>,
    extract::Json(given): extract::Json<AnswerCreate>,
) -> Result<Json<Answered>, Problem> {
    if server.runs().is_draining() {
        return Err(Problem::unavailable("the server is shutting down; send the answer again"));
    }
    let operator = operator(given.operator_id, &given.answer)?;
    let text = answer_text(given.answer)?;
    let run = server.runs().find(&run).await?.id;
    let by = Answerer::of(&caller).named(operator.as_deref()).by_hand();
    let answered = server.runs().answer(&run, given.question_id.as_deref(), &text, by).await?;
    Ok(Json(Answered { run_id: run.to_string(), question_id: answered.question.id }))
}
