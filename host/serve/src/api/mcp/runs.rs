//! Runs that clients of the protocol begin: runs of the server like any other, which go on whatever becomes of the client.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use hotcell_runtime::mcp::CallContext;
use hotcell_runtime::{
    Agent, AgentRunError, AgentRuns, Answers, CancellationToken, Fact, Outcome, Question, Rested, Resting, RunId,
    RunInput, RunRecord, RunStatus, answer_of, answer_schema, failures, is_for_client, outcome_of,
};
use http::StatusCode;
use serde_json::json;

use crate::access::Asker;
use crate::answerer::Answerer;
use crate::api::new_run::status_of;
use crate::input::origin_of;
use crate::live::Live;
use crate::problem::Problem;
use crate::runs::IfBusy;
use crate::state::Server;

/// Whoever sits at the client that made a call.
fn answerer(call: &CallContext) -> Option<Answerer<'_>> {
    Some(Answerer::of(call.client().get::<Asker>()?).typed())
}

/// The runs of a server, for clients of the protocol.
pub(super) struct ServedRuns(pub(super) Server);

/// How far a run has come, as its client was told.
#[derive(Default)]
struct Far {
    /// The last entry
    entry: u64,
    /// Nodes that were completed
    nodes: u32,
}

/// Entries that are read at once where only the number of the last one counts.
const AT_ONCE: usize = 256;

impl AgentRuns for ServedRuns {
    fn begin<'a>(&'a self, agent: &'a Arc<Agent>, mut given: RunInput, call: &'a CallContext) -> Resting<'a> {
        Box::pin(async move {
            for (name, kept) in origin_of(json!({ "metadata": {} })).iter() {
                given.origin.insert(name.clone(), kept.clone());
            }
            let begun = self.0.runs().start(agent, given, IfBusy::Reject, false).await.map_err(refused)?;
            self.rest(&begun.run, Some(begun.live), call).await
        })
    }

    fn go_on<'a>(&'a self, run: &'a RunRecord, answers: Answers, call: &'a CallContext) -> Resting<'a> {
        Box::pin(async move {
            if self.0.runs().is_draining() && !answers.is_empty() {
                return Err(AgentRunError::ShuttingDown);
            }
            if let Some(by) = answerer(call).filter(|_| self.may_answer(call)) {
                let open = self.0.runs().questions(&run.id).await.map_err(refused)?;
                for open in open.iter().filter(|open| answers.contains_key(&open.question.id)) {
                    by.check(&open.question, self.0.runs().groups()).map_err(refused)?;
                }
                for (question, text) in answers {
                    self.answer(&run.id, &question, &text, by).await.map_err(refused)?;
                }
            }
            self.rest(&run.id, None, call).await
        })
    }

    fn find<'a>(&'a self, run: &'a str, _call: &'a CallContext) -> BoxFuture<'a, Option<RunRecord>> {
        Box::pin(async move { self.0.runs().find(run).await.ok() })
    }

    fn may_answer(&self, call: &CallContext) -> bool {
        answerer(call).is_some_and(|by| by.check(&Question::default(), self.0.runs().groups()).is_ok())
    }

    fn how_to_answer(&self, run: &RunId) -> String {
        format!("with `hotcell runs answer {run} '...' --server {}`", self.0.base_url())
    }
}

fn refused(problem: Problem) -> AgentRunError {
    AgentRunError::Refused(problem.detail)
}

impl ServedRuns {
    /// Answers a question, if it still takes an answer.
    async fn answer(&self, run: &RunId, question: &str, text: &str, by: Answerer<'_>) -> Result<(), Problem> {
        match self.0.runs().answer(run, Some(question), text, by).await {
            Err(problem) if problem.status == StatusCode::CONFLICT.as_u16() => Ok(()),
            other => other.map(drop),
        }
    }

    /// Waits until a run rests, and has whoever sits at the client answer what it asks meanwhile.
    async fn rest(&self, run: &RunId, live: Option<Arc<Live>>, call: &CallContext) -> Result<Rested, AgentRunError> {
        let resting = async {
            let (mut far, mut refused) = (Far::default(), HashSet::new());
            let mut live = live.or_else(|| self.0.runs().live(run));
            loop {
                self.follow(run, call, &mut far).await?;
                let rested = self.rested(run, live.take()).await?;
                let Outcome::Waiting { questions } = &rested.outcome else { return Ok::<Rested, Problem>(rested) };
                let is_asked = |question: &&Question| is_for_client(question) && !refused.contains(&question.id);
                let asked: Vec<Question> = questions.iter().filter(is_asked).cloned().collect();
                let by = answerer(call).filter(|_| !asked.is_empty() && call.can_ask() && self.may_answer(call));
                let Some(by) = by else { return Ok(rested) };
                refused.extend(self.ask(run, asked, call, by).await?);
            }
        };
        tokio::select! {
            biased;
            () = call.cancelled().cancelled() => {
                // A client that is gone has not said that nobody wants the result.
                if !call.has_left() {
                    self.cancel(run).await;
                }
                Err(AgentRunError::Cancelled)
            }
            rested = resting => rested.map_err(refused),
        }
    }

    /// Waits until a run rests, and tells how far it is.
    async fn follow(&self, run: &RunId, call: &CallContext, far: &mut Far) -> Result<(), Problem> {
        let mut follower = self.0.runs().follow(run.clone(), far.entry);
        while let Some(entries) = follower.next().await? {
            for entry in entries {
                far.entry = entry.number;
                if let Fact::Completed(completed) = &entry.entry.fact {
                    far.nodes += 1;
                    call.progress(f64::from(far.nodes), None, Some(completed.node.to_string()));
                }
            }
        }
        Ok(())
    }

    /// How a run stands that rests.
    async fn rested(&self, run: &RunId, live: Option<Arc<Live>>) -> Result<Rested, Problem> {
        let runs = self.0.runs();
        let record = runs.find(run.as_str()).await?;
        let report = live.and_then(|live| live.report());
        if let Some(report) = report.filter(|report| status_of(&report.outcome) == record.status) {
            let (outcome, failures) = (report.outcome.clone(), report.failures.clone());
            return Ok(Rested { run: run.clone(), outcome, failures, state: report.state.to_object() });
        }
        let questions = match record.status {
            RunStatus::Waiting => runs.questions(run).await?.into_iter().map(|open| open.question).collect(),
            _ => Vec::new(),
        };
        let failures = failures(&runs.store().history(run).await?.whole()?);
        let state = runs.state_of(&record).await?;
        Ok(Rested { run: run.clone(), outcome: outcome_of(&record, questions), failures, state })
    }

    /// Has whoever sits at the client answer questions; each answer is sent when it is there. What is answered elsewhere meanwhile
    /// is not asked any more. Gives those that were not answered.
    async fn ask(
        &self,
        run: &RunId,
        asked: Vec<Question>,
        call: &CallContext,
        by: Answerer<'_>,
    ) -> Result<Vec<String>, Problem> {
        let runs = self.0.runs();
        let wanted: HashMap<String, CancellationToken> =
            asked.iter().map(|question| (question.id.clone(), CancellationToken::new())).collect();
        let mut asking: FuturesUnordered<_> = asked
            .into_iter()
            .map(|question| {
                let wanted = wanted.get(&question.id).cloned().unwrap_or_default();
                async move {
                    let schema = answer_schema(&question);
                    let elicited = wanted.run_until_cancelled(call.elicit(question.text, schema)).await;
                    (question.id, elicited)
                }
            })
            .collect();
        let (mut refused, mut after) = (Vec::new(), 0);
        loop {
            tokio::select! {
                answered = asking.next() => match answered {
                    None => return Ok(refused),
                    // It was answered elsewhere.
                    Some((_, None)) => {}
                    Some((id, Some(elicited))) => match elicited.ok().as_ref().and_then(answer_of) {
                        Some(text) => self.answer(run, &id, &text, by).await?,
                        None => refused.push(id),
                    },
                },
                grown = runs.store().grown(run, after) => {
                    grown?;
                    loop {
                        let page = runs.store().entries(run, after, AT_ONCE).await?;
                        let Some(last) = page.entries.last() else { break };
                        after = last.number;
                    }
                    let open: HashSet<String> =
                        runs.questions(run).await?.into_iter().map(|open| open.question.id).collect();
                    wanted.iter().filter(|(id, _)| !open.contains(*id)).for_each(|(_, wanted)| wanted.cancel());
                }
            }
        }
    }

    /// Ends a run that is worked on. One that waits for a person can be answered by others.
    async fn cancel(&self, run: &RunId) {
        let is_worked_on = match self.0.runs().find(run.as_str()).await {
            Ok(record) => record.status == RunStatus::Running,
            Err(_) => false,
        };
        if is_worked_on && let Err(problem) = self.0.runs().cancel(run).await {
            tracing::debug!(target: "hotcell::serve", %run, reason = problem.detail, "it is not cancelled");
        }
    }
}
