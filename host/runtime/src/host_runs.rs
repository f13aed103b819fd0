//! Runs that a host carries out itself for clients that call agents as tools.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use hotcell_engine::{Event, Observer, Outcome, People, RunError, RunInput, RunReport};
use hotcell_journal::{JournalError, Question, RunId, RunRecord, RunStatus, open_questions};
use hotcell_mcp::CallContext;

use crate::agent::Agent;
use crate::agent_tool::{
    AgentRunError, AgentRuns, Answers, Rested, Resting, answer_of, answer_schema, check_answers, is_for_client,
};
use crate::host::{Host, HostError, Session};

impl AgentRuns for Host {
    fn begin<'a>(&'a self, agent: &'a Arc<Agent>, given: RunInput, call: &'a CallContext) -> Resting<'a> {
        Box::pin(async move { self.run(agent, given, session(call)).await.map(rested).map_err(AgentRunError::from) })
    }

    fn go_on<'a>(&'a self, run: &'a RunRecord, answers: Answers, call: &'a CallContext) -> Resting<'a> {
        Box::pin(async move {
            let history = self.journal().history(&run.id).await?;
            let entries = history.whole()?;
            check_answers(&open_questions(&entries), &answers)?;
            for (question, text) in &answers {
                match self.answer(run.id.as_str(), Some(question), text).await {
                    Ok(_) | Err(HostError::Journal(JournalError::NotAsked { .. } | JournalError::Expired { .. })) => {}
                    // Whoever answered before has had it ended.
                    Err(HostError::NothingAsked { .. } | HostError::WhichQuestion { .. }) => {}
                    Err(error) => return Err(AgentRunError::from(error)),
                }
            }
            match self.wake(run.id.as_str(), session(call)).await {
                Ok(Some(report)) => Ok(rested(report)),
                Ok(None) => Ok(Rested::standing(run, Outcome::Paused)),
                Err(HostError::Run(RunError::Ended { .. })) => {
                    let run = self.journal().find(run.id.as_str()).await?;
                    let outcome = outcome_of(&run, Vec::new());
                    let state = self.state_of(&run).await?;
                    Ok(Rested { state, ..Rested::standing(&run, outcome) })
                }
                Err(error) => Err(AgentRunError::from(error)),
            }
        })
    }

    fn find<'a>(&'a self, run: &'a str, _call: &'a CallContext) -> BoxFuture<'a, Option<RunRecord>> {
        Box::pin(async move { self.journal().find(run).await.ok() })
    }

    fn may_answer(&self, _call: &CallContext) -> bool {
        true
    }

    fn how_to_answer(&self, run: &RunId) -> String {
        format!("with `hotcell runs answer {run} '...' --resume`")
    }
}

/// How a run stands, as its record says; `questions` are those for which it waits.
pub fn outcome_of(run: &RunRecord, questions: Vec<Question>) -> Outcome {
    let text = run.outcome.clone().unwrap_or_default();
    match run.status {
        RunStatus::Completed => Outcome::Completed { output: text },
        RunStatus::Stopped => Outcome::Stopped { reason: text },
        RunStatus::Failed => Outcome::Failed { node: None, error: text },
        RunStatus::Waiting => Outcome::Waiting { questions },
        RunStatus::Paused => Outcome::Paused,
        RunStatus::Cancelled => Outcome::Cancelled,
        RunStatus::Running | RunStatus::Interrupted => Outcome::Interrupted,
    }
}

impl Rested {
    /// A run of which no more is known than how it stands.
    fn standing(run: &RunRecord, outcome: Outcome) -> Self {
        Rested { run: run.id.clone(), outcome, failures: Vec::new(), state: Default::default() }
    }
}

fn rested(report: RunReport) -> Rested {
    let state = report.state.to_object();
    Rested { run: report.run, outcome: report.outcome, failures: report.failures, state }
}

fn session(call: &CallContext) -> Session {
    let told = Arc::new(Told { call: call.clone() });
    Session { people: told.clone(), observer: told, cancel: call.cancelled().clone() }
}

/// The client of a call, as a run sees it: whoever answers questions and is told how far it is.
struct Told {
    call: CallContext,
}

#[async_trait]
impl People for Told {
    async fn ask(&self, question: &Question) -> Option<String> {
        if !is_for_client(question) {
            return None;
        }
        let elicited = self.call.elicit(question.text.clone(), answer_schema(question)).await;
        answer_of(&elicited.ok()?)
    }
}

impl Observer for Told {
    fn event(&self, event: &Event<'_>) {
        if let Event::NodeStarted { node, turn, .. } = event {
            self.call.progress(*turn as f64, None, Some((*node).to_owned()));
        }
    }
}
