//! What was decided: the questions of runs that have an answer, with who gave it and when, and those that nobody answered in time.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::SystemTime;

use axum::Json;
use axum::extract::State;
use hotcell_runtime::{Fact, NumberedEntry, Question, RunRecord};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents;
use super::params::Query;
use crate::decisions::Decision;
use crate::problem::Problem;
use crate::state::Server;
use crate::view::time;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(decisions))
}

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = DecisionOutcome)]
enum Outcome {
    /// Somebody answered it
    Answered,
    /// Nobody answered it in time
    Expired,
}

/// A question that is decided.
#[derive(Serialize, ToSchema)]
#[schema(as = Decision)]
struct DecisionView {
    /// The run
    run_id: String,
    /// Its thread, if it belongs to one
    thread_id: Option<String>,
    /// Its agent
    agent_id: Option<String>,
    /// The question, among those of its run
    question_id: String,
    /// The node that asked
    node: String,
    /// What was asked
    message: String,
    /// What became of it
    outcome: Outcome,
    /// The answer, if there is one
    answer: Option<String>,
    /// When it was answered, or expired
    #[schema(format = DateTime)]
    decided_at: String,
    /// With what the answer came: the id of a key, the issuer and the subject of a token, or `local` where there are no keys. None if it came by a
    /// provider of chat, from the machine itself, or not at all
    decided_by: Option<String>,
    /// In whose name it was given, if that was said
    operator_id: Option<String>,
}

/// A page of decisions.
#[derive(Serialize, ToSchema)]
struct DecisionPage {
    /// The decisions, the newest first
    items: Vec<DecisionView>,
    /// Where the next page begins, for `after`; none if there are no more
    next: Option<String>,
}

/// What became of a question, as the journal has it.
struct Decided {
    question: Question,
    outcome: Outcome,
    at: SystemTime,
    answer: Option<String>,
}

/// What was decided in a run, by the ids of the questions.
fn decided(entries: Vec<NumberedEntry>) -> BTreeMap<String, Decided> {
    let mut asked: HashMap<String, Question> = HashMap::new();
    let mut decided = BTreeMap::new();
    for NumberedEntry { at, entry, .. } in entries {
        let id = |number: u32| format!("{}:{number}", entry.place);
        let (id, outcome, answer) = match entry.fact {
            Fact::Asked { number, question } => {
                asked.insert(id(number), question);
                continue;
            }
            Fact::Answered { number, text } => (id(number), Outcome::Answered, Some(text)),
            Fact::Expired { number } => (id(number), Outcome::Expired, None),
            _ => continue,
        };
        if let Some(question) = asked.get(&id) {
            decided.insert(id, Decided { question: question.clone(), outcome, at, answer });
        }
    }
    decided
}

/// What became of a question, and who answered it as far as that was noted.
fn view(server: &Server, run: &RunRecord, id: &str, decided: &Decided, noted: Option<&Decision>) -> DecisionView {
    let Decided { question, outcome, at, answer } = decided;
    let noted = noted.filter(|_| *outcome == Outcome::Answered);
    DecisionView {
        run_id: run.id.to_string(),
        thread_id: run.thread().map(str::to_owned),
        agent_id: server.agents().id_of(&run.header.source),
        question_id: id.to_owned(),
        node: question.node.clone(),
        message: question.text.clone(),
        outcome: *outcome,
        answer: answer.clone(),
        decided_at: time(*at),
        decided_by: noted.and_then(|noted| noted.caller.clone()),
        operator_id: noted.and_then(|noted| noted.operator.clone()),
    }
}

/// A run that is there, with what was decided in it; none if it is gone, or its agent is not served.
async fn found(server: &Server, run: &str) -> Result<Option<(RunRecord, BTreeMap<String, Decided>)>, Problem> {
    let run = match server.runs().find(run).await {
        Ok(run) => run,
        Err(problem) if problem.status == 404 => return Ok(None),
        Err(problem) => return Err(problem),
    };
    let entries = server.runs().store().entries(&run.id, 0, usize::MAX).await?.entries;
    Ok(Some((run, decided(entries))))
}

/// List what was decided, over all runs: which question was answered how, by whom, and when
///
/// For a run (`run_id`), what nobody answered in time and what was answered on the machine itself is listed, too, and all of it on one page.
#[utoipa::path(
    get, path = "/inbox/decisions", tag = "People", security(("key" = ["answer", "operate", "administer"])),
    params(
        ("agent_id" = Option<String>, Query, description = "Only decisions of runs of this agent"),
        ("run_id" = Option<String>, Query, description = "Only decisions of this run"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many are looked at, at most"),
        ("after" = Option<String>, Query, description = "Where the page begins: `next` of the page before"),
    ),
    responses((status = 200, body = DecisionPage))
)]
async fn decisions(State(server): State<Server>, mut query: Query) -> Result<Json<DecisionPage>, Problem> {
    let agent = query.text("agent_id");
    let (run, limit) = (query.text("run_id"), query.limit(50)?);
    let before = query.number("after", 1, i64::MAX as u64)?.and_then(|after| i64::try_from(after).ok());
    query.end()?;
    let sources: HashSet<String> =
        agents::sources(&server, agent.as_deref())?.unwrap_or_default().into_iter().collect();
    if let Some(run) = run {
        let record = server.runs().find(&run).await?;
        let items = match sources.contains(&record.header.source) {
            true => of_run(&server, &record).await?,
            false => Vec::new(),
        };
        return Ok(Json(DecisionPage { items, next: None }));
    }
    let noted = server.store().decisions(None, before.unwrap_or(i64::MAX), limit)?;
    let next = noted.last().filter(|_| noted.len() == limit).map(|last| last.number.to_string());
    let mut runs = HashMap::new();
    let mut items = Vec::new();
    for decision in noted.iter().filter(|decision| sources.contains(&decision.source)) {
        let of_run = match runs.entry(decision.run.as_str()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(found(&server, &decision.run).await?),
        };
        let Some((run, all)) = of_run else { continue };
        if let Some(decided) = all.get(&decision.question) {
            items.push(view(&server, run, &decision.question, decided, Some(decision)));
        }
    }
    Ok(Json(DecisionPage { items, next }))
}

/// What was decided in a run, the newest first.
async fn of_run(server: &Server, run: &RunRecord) -> Result<Vec<DecisionView>, Problem> {
    let noted = server.store().decisions(Some(run.id.as_str()), i64::MAX, usize::MAX)?;
    let entries = server.runs().store().entries(&run.id, 0, usize::MAX).await?.entries;
    let by_question: HashMap<&str, &Decision> = noted.iter().map(|one| (one.question.as_str(), one)).collect();
    let mut all: Vec<(String, Decided)> = decided(entries).into_iter().collect();
    all.sort_by_key(|(_, decided)| Reverse(decided.at));
    let views = all.iter().map(|(id, decided)| view(server, run, id, decided, by_question.get(id.as_str()).copied()));
    Ok(views.collect())
}
