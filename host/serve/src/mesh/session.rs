//! How a session stands: what is under way in it, and who is asked.

use hotcell_runtime::{OpenQuestion, RunId, RunStatus};

use super::store::Session;
use crate::problem::Problem;
use crate::state::Server;

/// What a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Nothing is under way, and what was has failed or was cancelled
    Active,
    /// Agents work
    Busy,
    /// Somebody is asked
    Paused,
    /// The last run came to a cap
    Stopped,
    /// The last run came to its end
    Completed,
}

impl Status {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Busy => "busy",
            Status::Paused => "paused",
            Status::Stopped => "stopped",
            Status::Completed => "completed",
        }
    }
}

/// A question that waits for an answer.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) run: RunId,
    pub(super) open: OpenQuestion,
}

impl Ask {
    /// The agent that asks.
    pub(super) fn seat(&self) -> &str {
        let question = &self.open.question;
        // What asks within an agent, for instance whether its tool may be called, has a path that begins with its name.
        let agent = || question.node.split('.').next().unwrap_or_default();
        question.seat.as_deref().unwrap_or_else(agent)
    }

    /// What an answer names it by.
    pub(super) fn request_id(&self) -> String {
        request_id(&self.run, &self.open.question.id)
    }
}

/// What an answer names a question of a run by.
pub(super) fn request_id(run: &RunId, question: &str) -> String {
    format!("{run}:{question}")
}

/// The run and the question that are named by this.
pub(super) fn of_request_id(id: &str) -> Option<(RunId, &str)> {
    let (run, question) = id.split_once(':')?;
    Some((run.to_owned().into(), question))
}

/// How a session stands.
pub(super) struct Standing {
    pub(super) status: Status,
    /// The oldest first
    pub(super) asks: Vec<Ask>,
}

/// Looks how a session stands.
pub(super) async fn standing(server: &Server, session: &Session) -> Result<Standing, Problem> {
    let (mut is_busy, mut asks) = (false, Vec::new());
    let last = server.store().runs_of_session(session.number, 1)?.pop();
    let mut ended = last.as_ref().and_then(|last| last.ended.clone());
    for open in server.store().open_runs(Some(session.number))? {
        let Ok(record) = server.runs().find(open.run.as_str()).await else { continue };
        match record.status {
            RunStatus::Running | RunStatus::Interrupted | RunStatus::Paused | RunStatus::Waiting => {
                let questions = server.runs().questions(&open.run).await?;
                let (questions, others): (Vec<_>, Vec<_>) =
                    questions.into_iter().partition(|open| open.question.is_for_users());
                is_busy |= record.status != RunStatus::Waiting || questions.is_empty() || !others.is_empty();
                asks.extend(
                    questions.into_iter().map(|open_question| Ask { run: open.run.clone(), open: open_question }),
                );
            }
            status if last.as_ref().is_some_and(|last| last.run == open.run) => {
                ended = Some(status.as_str().to_owned());
            }
            _ => {}
        }
    }
    let status = match (asks.is_empty(), is_busy) {
        (false, _) => Status::Paused,
        (true, true) => Status::Busy,
        (true, false) => match ended.as_deref() {
            Some("completed") => Status::Completed,
            Some("stopped") => Status::Stopped,
            _ => Status::Active,
        },
    };
    Ok(Standing { status, asks })
}
