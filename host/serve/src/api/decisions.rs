//! What was decided: the questions of runs that have an answer, with who gave it and when, and those that nobody answered in time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::SystemTime;

use axum::Json;
use axum::extract::State;
use hotcell_runtime::{Fact, NumberedEntry, RunId, RunRecord};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::listed::MOST_BYTES;
use super::params::Query;
use super::{agents, reading};
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
    /// The group for which it was given, if the question is for groups and does not name them
    group: Option<String>,
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
    node: String,
    message: String,
    outcome: Outcome,
    at: SystemTime,
    answer: Option<String>,
}

/// Reading what was decided: questions and answers may have megabytes each, and only so many bytes of them are kept for one page. One
/// decision always has room: nobody could read those before it otherwise.
struct Reading {
    left: usize,
    /// Questions that are kept
    questions: usize,
    /// What to do about more
    help: &'static str,
}

impl Reading {
    fn new(help: &'static str) -> Self {
        Reading { left: MOST_BYTES, questions: 0, help }
    }

    fn keep_question(&mut self, bytes: usize) -> Result<(), Problem> {
        self.questions += 1;
        self.keep(bytes)
    }

    fn keep(&mut self, bytes: usize) -> Result<(), Problem> {
        self.left = match self.left.checked_sub(bytes) {
            Some(left) => left,
            None if self.questions <= 1 => 0,
            None => {
                let detail = format!("what was asked and answered has more than {MOST_BYTES} bytes; {}", self.help);
                return Err(Problem::unprocessable(detail).with("limit", MOST_BYTES));
            }
        };
        Ok(())
    }

    /// What was decided in a run, by the ids of the questions: all of it, or about these questions.
    async fn decided(
        &mut self,
        server: &Server,
        run: &RunId,
        wanted: Option<&HashSet<&str>>,
    ) -> Result<BTreeMap<String, Decided>, Problem> {
        let mut asked: HashMap<String, (String, String)> = HashMap::new();
        let mut decided = BTreeMap::new();
        reading::each(server, run, u64::MAX, |NumberedEntry { at, entry, .. }| {
            let id = |number: u32| format!("{}:{number}", entry.place);
            let (id, outcome, answer) = match entry.fact {
                Fact::Asked { number, question } => {
                    let id = id(number);
                    if wanted.is_none_or(|wanted| wanted.contains(id.as_str())) {
                        self.keep_question(question.node.len() + question.text.len())?;
                        asked.insert(id, (question.node, question.text));
                    }
                    return Ok(());
                }
                Fact::Answered { number, text } => (id(number), Outcome::Answered, Some(text)),
                Fact::Expired { number } => (id(number), Outcome::Expired, None),
                _ => return Ok(()),
            };
            if let Some((node, message)) = asked.remove(&id) {
                self.keep(answer.as_ref().map_or(0, String::len))?;
                decided.insert(id, Decided { node, message, outcome, at, answer });
            }
            Ok(())
        })
        .await?;
        Ok(decided)
    }
}

/// What became of a question, and who answered it as far as that was noted.
fn view(server: &Server, run: &RunRecord, id: &str, decided: Decided, noted: Option<&Decision>) -> DecisionView {
    let Decided { node, message, outcome, at, answer } = decided;
    let noted = noted.filter(|_| outcome == Outcome::Answered);
    DecisionView {
        run_id: run.id.to_string(),
        thread_id: run.thread().map(str::to_owned),
        agent_id: server.agents().id_of(&run.header.source),
        question_id: id.to_owned(),
        node,
        message,
        outcome,
        answer,
        decided_at: time(at),
        decided_by: noted.and_then(|noted| noted.caller.clone()),
        operator_id: noted.and_then(|noted| noted.operator.clone()),
        group: noted.and_then(|noted| noted.group.clone()),
    }
}

/// A run; none if it is gone.
async fn found(server: &Server, run: &str) -> Result<Option<RunRecord>, Problem> {
    match server.runs().find(run).await {
        Ok(run) => Ok(Some(run)),
        Err(problem) if problem.status == 404 => Ok(None),
        Err(problem) => Err(problem),
    }
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
    let noted: Vec<&Decision> = noted.iter().filter(|decision| sources.contains(&decision.source)).collect();
    let mut wanted: HashMap<&str, HashSet<&str>> = HashMap::new();
    for decision in &noted {
        wanted.entry(&decision.run).or_default().insert(&decision.question);
    }
    let mut reading = Reading::new("ask for less with `limit`");
    let mut runs = HashMap::new();
    for (name, questions) in &wanted {
        if let Some(run) = found(&server, name).await? {
            let decided = reading.decided(&server, &run.id, Some(questions)).await?;
            runs.insert(*name, (run, decided));
        }
    }
    let items = noted.into_iter().filter_map(|decision| {
        let (run, decided) = runs.get_mut(decision.run.as_str())?;
        let decided = decided.remove(&decision.question)?;
        Some(view(&server, run, &decision.question, decided, Some(decision)))
    });
    Ok(Json(DecisionPage { items: items.collect(), next }))
}

/// What was decided in a run, the newest first.
async fn of_run(server: &Server, run: &RunRecord) -> Result<Vec<DecisionView>, Problem> {
    let mut reading = Reading::new("`GET /runs/{run_id}/entries` has it page by page");
    let mut all: Vec<(String, Decided)> = reading.decided(server, &run.id, None).await?.into_iter().collect();
    all.sort_by_key(|(_, decided)| Reverse(decided.at));
    let noted = server.store().decisions(Some(run.id.as_str()), i64::MAX, usize::MAX)?;
    let by_question: HashMap<&str, &Decision> = noted.iter().map(|one| (one.question.as_str(), one)).collect();
    let views = all.into_iter().map(|(id, decided)| {
        let noted = by_question.get(id.as_str()).copied();
        view(server, run, &id, decided, noted)
    });
    Ok(views.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_decided_has_a_size_and_one_decision_always_has_room() {
        let mut reading = Reading::new("ask for less");
        assert!(reading.keep_question(MOST_BYTES + 1).is_ok());
        assert!(reading.keep(1).is_ok(), "its answer belongs to it");
        assert_eq!(reading.keep_question(1).map_err(|problem| problem.status), Err(422));
        let mut reading = Reading::new("ask for less");
        assert!(reading.keep_question(1).is_ok() && reading.keep_question(MOST_BYTES - 1).is_ok());
        assert_eq!(reading.keep(1).map_err(|problem| problem.status), Err(422));
    }
}
