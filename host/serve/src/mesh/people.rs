//! People who are asked: what is open, and their answers.

use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Json};
use hotcell_graph::Value as GraphValue;
use hotcell_runtime::leafmesh::{AgentSettings, HumanSettings};
use hotcell_runtime::{Fact, OpenQuestion};
use http::StatusCode;
use serde_json::{Map, Value, json};
use subtle::ConstantTimeEq as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Mesh;
use super::history::SESSIONS;
use super::reply::{Refused, documented, unsigned};
use super::served::Served;
use super::session::{Ask, of_request_id, standing};
use super::store::{Session, SessionKey, Turn};
use super::tenant::Tenant;
use crate::access::Asker;
use crate::answerer::Answerer;
use crate::api::extract;
use crate::api::listed::Listed;
use crate::api::params::Query;
use crate::once;
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::view::time;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(reply))
}

/// What somebody answers, and how it came.
pub(super) struct Answer<'a> {
    pub(super) data: Map<String, Value>,
    /// Who answers; in whose name, `operator_id` of the data says
    pub(super) by: Answerer<'a>,
    pub(super) is_signed: bool,
    /// Whether an answer counts that is neither signed nor comes with a token
    pub(super) may_be_unsigned: bool,
    pub(super) bearer: Option<&'a str>,
}

/// The seat that asks a question.
fn seat<'m>(mesh: &'m Mesh, ask: &Ask) -> Option<(&'m AgentSettings, &'m HumanSettings)> {
    let agent = mesh.settings.agent(ask.seat())?;
    Some((agent, agent.human.as_ref()?))
}

/// There is no such request.
pub(super) fn no_request(id: &str) -> Problem {
    Problem::not_found(format!("nobody was asked `{}`", shown(id))).kind("unknown-request", "There is no such request")
}

/// The question of an id, which has to wait for its answer.
pub(super) async fn of_id(server: &Server, session: &Session, asks: &[Ask], id: &str) -> Result<Ask, Problem> {
    if let Some(ask) = asks.iter().find(|ask| ask.request_id() == id) {
        return Ok(ask.clone());
    }
    let (run, question) = of_request_id(id).ok_or_else(|| no_request(id))?;
    let of = server.store().run_of_mesh(&run)?;
    if of.is_none_or(|(of, _)| of.number != session.number) {
        return Err(no_request(id));
    }
    let entries = server.runs().store().history(&run).await?.whole()?;
    let is_it = |place: &hotcell_runtime::EntryPath, number: u32| format!("{place}:{number}") == question;
    let (mut was_asked, mut has_expired) = (false, false);
    for entry in &entries {
        match &entry.fact {
            Fact::Asked { number, .. } if is_it(&entry.place, *number) => was_asked = true,
            Fact::Expired { number } if is_it(&entry.place, *number) => has_expired = true,
            Fact::Answered { number, .. } if is_it(&entry.place, *number) => {
                return Err(
                    Problem::conflict("the request was answered").kind("already-answered", "The request was answered")
                );
            }
            _ => {}
        }
    }
    match (was_asked, has_expired) {
        (true, true) => Err(Problem::new(StatusCode::GONE, "the request has timed out")
            .kind("request-expired", "The request has timed out")),
        (true, false) => {
            Err(Problem::conflict("the work in which it was asked has ended").kind("run-ended", "The run has ended"))
        }
        (false, _) => Err(no_request(id)),
    }
}

/// Answers a question. Gives its id.
pub(super) async fn answer(
    server: &Server,
    mesh: &Mesh,
    key: &SessionKey,
    ask: &Ask,
    answer: Answer<'_>,
) -> Result<String, Refused> {
    let Answer { mut data, by, is_signed, may_be_unsigned, bearer } = answer;
    let human = seat(mesh, ask).map(|(_, human)| human);
    let webhook = human.and_then(|human| human.webhook.as_ref());
    match webhook.and_then(|webhook| webhook.inbound_auth_token.as_ref()) {
        Some(token) => {
            let fits = bearer.is_some_and(|bearer| bearer.as_bytes().ct_eq(token.0.as_bytes()).into());
            if !fits && !is_signed {
                return Err(unsigned("it needs `Authorization: Bearer` with the token of the seat, or a signature"));
            }
        }
        None if !is_signed && !may_be_unsigned => return Err(unsigned("it is not signed")),
        None => {}
    }
    for (theirs, ours) in webhook.map(|webhook| &webhook.response_mapping[..]).unwrap_or_default() {
        if let Some(value) = data.remove(theirs) {
            data.insert(ours.clone(), value);
        }
    }
    // Whoever was asked is asked, also when the agent has another name since.
    let operators = human.map_or(&ask.open.question.operator_ids[..], |human| &human.operator_ids[..]);
    let named = data.get("operator_id").and_then(Value::as_str).map(str::to_owned);
    let by = by.named(named.as_deref()).where_asked(operators);
    by.check(&ask.open.question, server.runs().groups())?;
    if let (None, Some(name)) = (&named, by.name()) {
        data.insert("operator_id".to_owned(), name.into());
    }
    let options = &ask.open.question.options;
    let text = match human {
        None if !options.is_empty() => chosen(&data, options)?,
        _ => Value::Object(data.clone()).to_string(),
    };
    let data = Value::Object(data);
    server.runs().answer(&ask.run, Some(&ask.open.question.id), &text, by).await?;
    let name = ask.seat().to_owned();
    let turn = Turn { at: server.clock().now(), run: ask.run.clone(), kind: "answer".to_owned(), name, data };
    server.store().note_turn(key, &turn)?;
    server.meshes().tend(&**server.clock(), &mesh.scope, &ask.run);
    Ok(ask.request_id())
}

/// Which of the options of a question somebody chose who is no seat of the mesh, for instance whether a tool may be called: in
/// `decision`, otherwise in `message`.
fn chosen(data: &Map<String, Value>, options: &[String]) -> Result<String, Problem> {
    let said = ["decision", "message"].into_iter().find_map(|name| data.get(name)?.as_str());
    let is = |option: &&String| said.is_some_and(|said| option.eq_ignore_ascii_case(said.trim()));
    options.iter().find(is).cloned().ok_or_else(|| {
        let options = options.iter().map(|option| format!("`{option}`")).collect::<Vec<_>>().join(" or ");
        let detail = format!("`decision` has to be {options}");
        Problem::unprocessable(detail).kind("no-option", "The answer is not one of the options")
    })
}

/// What is shown of a question.
fn view(ask: &Ask) -> Value {
    let OpenQuestion { question, .. } = &ask.open;
    let mut view = json!({
        "request_id": ask.request_id(), "agent_name": ask.seat(), "prompt": question.text,
    });
    if let Some(context) = question.context.as_ref().and_then(GraphValue::as_object) {
        for name in ["from_agent", "context", "inputs"] {
            if let Some(value) = context.get(name) {
                view[name] = value.into();
            }
        }
    }
    if !question.options.is_empty() {
        view["options"] = json!(question.options);
    }
    if let Some(expires) = question.expires {
        view["expires_at"] = json!(time(expires));
    }
    view
}

/// List the open questions, by session
#[utoipa::path(
    get, path = "/api/sessions/hitl", tag = "Mesh", security(("key" = ["answer", "operate", "administer"])),
    params(
        ("operator_id" = Option<String>, Query, description = "Only what this person may answer"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "The most sessions to look at"),
    ),
    responses((status = 200, body = Value))
)]
async fn list(
    State(server): State<Server>,
    Extension(caller): Extension<Asker>,
    Served(mesh): Served,
    tenant: Tenant,
    mut query: Query,
) -> Result<Json<Value>, Problem> {
    let mesh = &mesh;
    let (operator, limit) = (query.text("operator_id"), query.limit(SESSIONS)?);
    query.end()?;
    // What a token says is said of its subject alone.
    let is_caller = operator.as_deref().is_some_and(|operator| caller.subject() == Some(operator));
    let own = is_caller.then(|| caller.groups());
    let mut sessions = Listed::new();
    for session in server.store().sessions(&mesh.own(&tenant.0), limit, true)? {
        let mut asks = standing(&server, &session).await?.asks;
        if let Some(operator) = &operator {
            asks.retain(|ask| {
                let asked = &ask.open.question.operator_ids;
                let operators = seat(mesh, ask).map_or(asked, |(_, human)| &human.operator_ids);
                let by = Answerer::vouched().named(Some(operator)).in_groups(own).where_asked(operators);
                by.check(&ask.open.question, server.runs().groups()).is_ok()
            });
        }
        if !asks.is_empty() {
            let requests: Vec<Value> = asks.iter().map(view).collect();
            sessions
                .push(json!({ "session_id": session.key.id, "request_count": requests.len(), "requests": requests }))?;
        }
    }
    Ok(Json(json!({ "sessions": sessions.into_all() })))
}

/// Answer an open question
///
/// `decision`, `message` and `operator_id` have a meaning; everything else is passed on as data.
#[utoipa::path(
    post, path = "/api/sessions/hitl/{request_id}/reply", tag = "Mesh", security(("key" = ["answer"])), request_body = Value,
    params(("request_id" = String, Path, description = "The question")), responses((status = 200, body = Value))
)]
async fn reply(
    State(server): State<Server>,
    Extension(caller): Extension<Asker>,
    Served(mesh): Served,
    tenant: Tenant,
    Path(id): Path<String>,
    extract::Json(data): extract::Json<Map<String, Value>>,
) -> Result<Response, Refused> {
    let mesh = &mesh;
    let (run, question) = of_request_id(&id).ok_or_else(|| no_request(&id))?;
    let session = server.store().run_of_mesh(&run)?.map(|(session, _)| session);
    let session = session.filter(|session| session.key.tenant == tenant.0 && session.key.scope == mesh.scope);
    let session = session.ok_or_else(|| no_request(&id))?;
    let _session = mesh.doing.sessions.lock(&session.key).await;
    let body = json!({ "status": "resumed", "session_id": session.key.id, "request_id": id });
    // The request may have been carried out before its reply was lost.
    let text = Value::Object(data.clone()).to_string();
    if once::is_repeat() && server.runs().was_answered(&run, Some(question), &text).await? {
        return Ok(documented(StatusCode::OK, body));
    }
    let asks = standing(&server, &session).await?.asks;
    let ask = of_id(&server, &session, &asks, &id).await?;
    // A key counts as much as a signature.
    let by = Answerer::of(&caller);
    let given = Answer { data, by, is_signed: true, may_be_unsigned: true, bearer: None };
    answer(&server, mesh, &session.key, &ask, given).await?;
    Ok(documented(StatusCode::OK, body))
}
