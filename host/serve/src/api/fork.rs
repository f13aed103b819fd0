//! Forking runs, and comparing them.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Json};
use hotcell_runtime::{
    Entry, Fact, ForkOrigin, ForkRequest, OpenQuestion, Outward, Question, RevisionChoice, RunDiff, RunId, Spent,
    open_questions, value,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract;
use super::inbox::operator;
use super::new_run::located;
use super::params::{Query, bad};
use super::reading;
use crate::access::Asker;
use crate::answerer::Answerer;
use crate::decisions::Given;
use crate::input::{answer_text, origin_of};
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::view::{Object, RunView};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(fork)).routes(routes!(diff))
}

/// A way to act on the world outside of a run.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Effect {
    /// Ask models
    Models,
    /// Make requests over HTTP
    Http,
    /// Call tools that run outside of cells, such as those of MCP servers
    Tools,
    /// Write into stores and directories
    Stores,
    /// Hand over to systems that answer by a callback
    Connectors,
}

impl From<Effect> for Outward {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::Models => Outward::Models,
            Effect::Http => Outward::Http,
            Effect::Tools => Outward::Tools,
            Effect::Stores => Outward::Stores,
            Effect::Connectors => Outward::Connectors,
        }
    }
}

/// A fork that is wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ForkCreate {
    /// The last entry that the fork has of the run; with `answer`, it may be the answer that is replaced
    #[schema(minimum = 1)]
    #[serde(deserialize_with = "extract::number")]
    at: u64,
    /// Another text in the place of the one that the run was given; with entry 1
    input: Option<String>,
    /// Values of the state, as if the node had written them, too, whose turn was completed with the entry; with entry 1, as if the
    /// run had been given them
    #[schema(value_type = Option<Object>)]
    set: Option<Object>,
    /// The answer to a question that is open at that entry
    answer: Option<Value>,
    /// The question, if several are open
    question_id: Option<String>,
    /// Who answers, where the question is for certain people; also who sets values after such a question
    operator_id: Option<String>,
    /// The model that is asked in the place of every other one, as `provider:model`
    model: Option<String>,
    /// System prompts of nodes, by their ids
    prompts: Option<BTreeMap<String, String>>,
    /// With what it goes on: `own` (the revision that the run had at that entry), `current` (what the files say now) or the digest of
    /// another revision of the run
    #[schema(default = "own")]
    revision: Option<String>,
    /// Ways to act on the world outside that the fork may take. What it would do in another way is listed, and not done
    allow_effects: Option<Vec<Effect>>,
    /// Anything that is to be known of the fork
    #[schema(value_type = Option<Object>)]
    metadata: Option<Object>,
}

fn revision(text: Option<&str>) -> Result<RevisionChoice, Problem> {
    match text {
        None | Some("own") => Ok(RevisionChoice::Own),
        Some("current") => Ok(RevisionChoice::Current),
        Some(digest) if digest.len() >= 4 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Ok(RevisionChoice::Digest(digest.to_lowercase()))
        }
        Some(other) => {
            let detail =
                "`revision` has to be `own`, `current`, or a digest of at least four hexadecimal digits, and is";
            Err(Problem::unprocessable(format!("{detail} `{}`", shown(other))))
        }
    }
}

/// The questions that an answer at an entry may be for: those that are open there, and the one that the entry itself answers.
fn open_at(entries: &[Entry], at: u64) -> Vec<OpenQuestion> {
    let mut first = &entries[..usize::try_from(at).unwrap_or(usize::MAX).min(entries.len())];
    if let Some((Entry { fact: Fact::Answered { .. }, .. }, before)) = first.split_last() {
        first = before;
    }
    open_questions(first)
}

/// Refuses to set what somebody was asked before that entry to whoever may not answer it: a no would become a yes.
async fn may_set(server: &Server, run: &RunId, at: u64, by: Answerer<'_>) -> Result<(), Problem> {
    let groups = server.runs().groups();
    reading::each(server, run, at, |numbered| match numbered.entry.fact {
        // What was granted is no part of the state.
        Fact::Asked { question, .. } if question.denial.is_none() => by.check(&question, groups),
        _ => Ok(()),
    })
    .await
}

/// Fork a run: begin another one that has its first entries, goes on from there, and may differ
///
/// What lies before is not done again. What would act on the world outside is withheld and listed, unless it is allowed. Nothing of
/// the run itself is changed. A fork with an `answer` also needs the role `answer`, and so does one with `set` at an entry after a question.
#[utoipa::path(
    post, path = "/runs/{run_id}/fork", tag = "Runs", security(("key" = ["operate"])),
    params(("run_id" = String, Path, description = "The run")),
    request_body = ForkCreate, responses((status = 200, body = RunView))
)]
async fn fork(
    State(server): State<Server>,
    Extension(caller): Extension<Asker>,
    Path(run): Path<String>,
    extract::Json(wanted): extract::Json<ForkCreate>,
) -> Result<Response, Problem> {
    let sets = wanted.set.as_ref().is_some_and(|set| !set.is_empty());
    if wanted.answer.is_none() && !sets && wanted.operator_id.is_some() {
        return Err(Problem::unprocessable(
            "`operator_id` says who answers or sets values; give `answer` or `set`, too",
        ));
    }
    let source = server.runs().find(&run).await?;
    if sets {
        let by = Answerer::of(&caller).named(wanted.operator_id.as_deref()).by_hand();
        may_set(&server, &source.id, wanted.at, by).await?;
    }
    let mut decision = None;
    if let Some(answer) = &wanted.answer {
        // A fork that may act outside would otherwise be a way around whoever is to be asked.
        let operator = operator(wanted.operator_id, answer)?;
        let by = Answerer::of(&caller).named(operator.as_deref()).by_hand();
        let groups = server.runs().groups();
        by.check(&Question::default(), groups)?;
        let entries = server.runs().store().history(&source.id).await?.whole()?;
        for open in open_at(&entries, wanted.at) {
            if wanted.question_id.as_ref().is_none_or(|id| *id == open.question.id) {
                by.check(&open.question, groups)?;
                let group = by.group(&open.question, groups);
                decision = Some((open.question.id, by.name().map(str::to_owned), group));
            }
        }
    }
    let revision = revision(wanted.revision.as_deref())?;
    let answer = wanted.answer.map(answer_text).transpose()?;
    if answer.is_none() && wanted.question_id.is_some() {
        return Err(Problem::unprocessable("`question_id` says which question is answered; give the `answer`, too"));
    }
    let set = match value::Value::from(&Value::Object(wanted.set.unwrap_or_default())) {
        value::Value::Object(set) => set,
        _ => hotcell_graph::Object::default(),
    };
    let request = ForkRequest {
        origin: ForkOrigin {
            run: source.id.to_string(),
            at: wanted.at,
            allowed: wanted.allow_effects.unwrap_or_default().into_iter().map(Outward::from).collect(),
            model: wanted.model,
            prompts: wanted.prompts.unwrap_or_default().into_iter().map(|(node, text)| (node.into(), text)).collect(),
        },
        input: wanted.input,
        set,
        answer: answer.map(|answer| (wanted.question_id, answer)),
        id: None,
        kept: origin_of(json!({ "metadata": wanted.metadata.unwrap_or_default() })),
    };
    let fork = server.runs().fork(&source, request, revision).await?.run;
    if let Some((question, operator, group)) = decision {
        let about = (fork.as_str(), question.as_str());
        let given = Given { caller: Some(caller.id()), operator: operator.as_deref(), group: group.as_deref() };
        if let Err(error) = server.store().decide(about, &source.header.source, given) {
            tracing::error!(target: "hotcell::serve", run = %fork, %error, "it is not noted who answered in a fork");
        }
    }
    let record = server.runs().find(fork.as_str()).await?;
    Ok(located(&fork, Json(RunView::of_record(&record, server.agents()))))
}

/// How two runs differ.
#[derive(Serialize, ToSchema)]
#[schema(as = RunDiff)]
struct RunDiffView {
    /// The first run
    a: ComparedRun,
    /// The second run
    b: ComparedRun,
    /// Where they first did something else; none if they did the same everywhere
    first: Option<PlaceDiff>,
    /// Every place where they did something else; 1000 at most
    places: Vec<PlaceDiff>,
    /// Whether there are more than that
    more: bool,
    /// What differs in the states that they came to
    state: Vec<ValueDiff>,
    /// Turns that did the same and used something else
    used: Vec<UsageDiff>,
}

/// One of the runs that are compared.
#[derive(Serialize, ToSchema)]
struct ComparedRun {
    /// Its name
    run_id: String,
    /// How it stands, in hotcell's own words
    standing: &'static str,
    /// The beginning of its result, or why it has none
    outcome: Option<String>,
    /// How many entries it has
    entries: u64,
    /// Everything that was used for it
    used: SpentView,
}

/// What was used.
#[derive(Serialize, ToSchema)]
#[schema(as = Spent)]
struct SpentView {
    /// Fuel of sealed calls
    fuel: u64,
    /// Requests to models
    model_requests: u64,
    /// Tokens that models read
    input_tokens: u64,
    /// Tokens that models wrote
    output_tokens: u64,
    /// What that costs by the price table, in US dollars
    cost_usd: f64,
}

/// A place where two runs did something else.
#[derive(Serialize, ToSchema)]
struct PlaceDiff {
    /// The place, as in the entries; empty for the run itself
    place: String,
    /// What is compared there: `input`, `turn`, `effect 0`, `question 1`, `answer 1`, `withheld`, `end` and the like
    what: String,
    /// The node, where that is known
    node: Option<String>,
    /// What the first run has there; none if it did nothing there
    #[schema(value_type = Option<Object>)]
    a: Option<Value>,
    /// What the second run has there
    #[schema(value_type = Option<Object>)]
    b: Option<Value>,
}

/// A value of the state that differs.
#[derive(Serialize, ToSchema)]
struct ValueDiff {
    /// Its key
    key: String,
    /// Whether the first run has it
    in_a: bool,
    /// Whether the second run has it
    in_b: bool,
    /// In the first run. Of a value with more than 16 KiB, its size and digest are shown
    a: Option<Value>,
    /// In the second run
    b: Option<Value>,
}

/// What a turn used in each of them.
#[derive(Serialize, ToSchema)]
struct UsageDiff {
    /// The place
    place: String,
    /// The node
    node: String,
    /// In the first run
    a: SpentView,
    /// In the second run
    b: SpentView,
}

impl From<Spent> for SpentView {
    fn from(spent: Spent) -> Self {
        let Spent { fuel, model_requests, input_tokens, output_tokens, cost_usd } = spent;
        SpentView { fuel, model_requests, input_tokens, output_tokens, cost_usd }
    }
}

impl From<hotcell_runtime::ComparedRun> for ComparedRun {
    fn from(run: hotcell_runtime::ComparedRun) -> Self {
        let hotcell_runtime::ComparedRun { run_id, standing, outcome, entries, used } = run;
        ComparedRun { run_id, standing, outcome, entries, used: used.into() }
    }
}

impl From<hotcell_runtime::PlaceDiff> for PlaceDiff {
    fn from(diff: hotcell_runtime::PlaceDiff) -> Self {
        let hotcell_runtime::PlaceDiff { place, what, node, a, b } = diff;
        PlaceDiff { place, what, node, a, b }
    }
}

impl From<RunDiff> for RunDiffView {
    fn from(diff: RunDiff) -> Self {
        let value = |diff: hotcell_runtime::ValueDiff| ValueDiff {
            key: diff.key,
            in_a: diff.a.is_some(),
            in_b: diff.b.is_some(),
            a: diff.a,
            b: diff.b,
        };
        let usage = |diff: hotcell_runtime::UsageDiff| UsageDiff {
            place: diff.place,
            node: diff.node,
            a: diff.a.into(),
            b: diff.b.into(),
        };
        RunDiffView {
            a: diff.a.into(),
            b: diff.b.into(),
            first: diff.first.map(PlaceDiff::from),
            places: diff.places.into_iter().map(PlaceDiff::from).collect(),
            more: diff.more,
            state: diff.state.into_iter().map(value).collect(),
            used: diff.used.into_iter().map(usage).collect(),
        }
    }
}

/// Compare two runs by place
#[utoipa::path(
    get, path = "/runs/diff", tag = "Runs", security(("key" = ["run", "operate"])),
    params(
        ("a" = String, Query, description = "The first run"),
        ("b" = String, Query, description = "The second run"),
    ),
    responses((status = 200, body = RunDiffView))
)]
async fn diff(State(server): State<Server>, mut query: Query) -> Result<Json<RunDiffView>, Problem> {
    let mut named = |name: &str| query.text(name).ok_or_else(|| bad(format!("say which runs: `{name}` is missing")));
    let (a, b) = (named("a")?, named("b")?);
    query.end()?;
    let (a, b) = (server.runs().find(&a).await?, server.runs().find(&b).await?);
    Ok(Json(server.runs().host().compare(&a, &b).await?.into()))
}
