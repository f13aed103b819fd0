//! Runs as clients are shown them, and what came of them.

use std::time::SystemTime;

use hotcell_runtime::{ForkOrigin, Outward, Question, RunId, RunRecord, RunStatus, RunSummary};
use serde::Serialize;
use utoipa::ToSchema;

use super::time;
use crate::agents::Agents;
use crate::object::Object;

/// How a run stands, in the words of the Agent Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = RunStatus)]
pub(crate) enum StatusView {
    /// Nobody works on it at the moment; it goes on by itself
    Pending,
    /// It is worked on
    Running,
    /// It failed, or came to a cap after which it goes no further
    Error,
    /// It has a result
    Success,
    /// It waits for an answer, is paused, or was cancelled
    Interrupted,
}

impl StatusView {
    pub(crate) fn of(status: RunStatus) -> Self {
        match status {
            RunStatus::Running => StatusView::Running,
            RunStatus::Interrupted => StatusView::Pending,
            RunStatus::Waiting | RunStatus::Paused | RunStatus::Cancelled => StatusView::Interrupted,
            RunStatus::Completed => StatusView::Success,
            RunStatus::Failed | RunStatus::Stopped => StatusView::Error,
        }
    }

    /// What a run stands like that is shown so.
    pub(crate) fn statuses(self) -> Vec<RunStatus> {
        RunStatus::ALL.into_iter().filter(|status| StatusView::of(*status) == self).collect()
    }
}

/// A run.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub(crate) struct RunView {
    /// Its name
    pub(crate) run_id: String,
    /// The thread that it belongs to, if it belongs to one
    pub(crate) thread_id: Option<String>,
    /// The agent; none if it is not served here any more
    pub(crate) agent_id: Option<String>,
    /// When it began
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    /// When its status last changed
    #[schema(format = DateTime)]
    pub(crate) updated_at: String,
    /// How it stands
    pub(crate) status: StatusView,
    /// How it stands, in hotcell's own words: `running`, `interrupted`, `waiting`, `paused`, `completed`, `failed`, `stopped`, `cancelled`
    pub(crate) standing: &'static str,
    /// The beginning of its result, or why there is none
    pub(crate) outcome: Option<String>,
    /// What whoever began it said about it; not in lists
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) metadata: Option<Object>,
    /// Of which run it is a fork, if it is one; not in lists
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fork: Option<ForkView>,
}

/// Of which run another one is a fork.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ForkOrigin)]
pub(crate) struct ForkView {
    /// The run
    pub(crate) run_id: String,
    /// The last entry that the fork has from there
    pub(crate) at: u64,
    /// Ways to act on the world outside that it may take
    pub(crate) allow_effects: Vec<&'static str>,
    /// The model that is asked in the place of every other one
    pub(crate) model: Option<String>,
}

impl ForkView {
    fn of(run: &RunRecord) -> Option<Self> {
        let ForkOrigin { run, at, allowed, model, .. } = ForkOrigin::of_given(&run.header.given)?;
        let allow_effects = allowed.into_iter().map(Outward::as_str).collect();
        Some(ForkView { run_id: run, at, allow_effects, model })
    }
}

/// How a run stands, and what it belongs to: what is shown of every run, wherever it is known from.
pub(crate) struct Standing<'r> {
    pub(crate) run: &'r RunId,
    pub(crate) thread: Option<&'r str>,
    /// What its agent was loaded from
    pub(crate) source: &'r str,
    pub(crate) created: SystemTime,
    pub(crate) updated: SystemTime,
    pub(crate) status: RunStatus,
    pub(crate) outcome: Option<&'r str>,
}

impl RunView {
    /// A run as lists have it: without its metadata, and without what it is a fork of.
    pub(crate) fn of(run: &Standing<'_>, agents: &Agents) -> Self {
        RunView {
            run_id: run.run.to_string(),
            thread_id: run.thread.map(str::to_owned),
            agent_id: agents.id_of(run.source),
            created_at: time(run.created),
            updated_at: time(run.updated),
            status: StatusView::of(run.status),
            standing: run.status.as_str(),
            outcome: run.outcome.map(str::to_owned),
            metadata: None,
            fork: None,
        }
    }

    pub(crate) fn of_summary(run: &RunSummary, agents: &Agents) -> Self {
        let standing = Standing {
            run: &run.id,
            thread: run.thread.as_deref(),
            source: &run.source,
            created: run.created,
            updated: run.updated,
            status: run.status,
            outcome: run.outcome.as_deref(),
        };
        RunView::of(&standing, agents)
    }

    pub(crate) fn of_record(run: &RunRecord, agents: &Agents) -> Self {
        let standing = Standing {
            run: &run.id,
            thread: run.thread(),
            source: &run.header.source,
            created: run.created,
            updated: run.updated,
            status: run.status,
            outcome: run.outcome.as_deref(),
        };
        RunView {
            metadata: Some(crate::input::metadata_of(run)),
            fork: ForkView::of(run),
            ..RunView::of(&standing, agents)
        }
    }
}

/// What came of a run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunResult)]
pub(crate) struct RunResult {
    /// The run
    pub(crate) run: RunView,
    /// The state that it came to
    #[schema(value_type = Object)]
    pub(crate) values: Object,
    /// Its result, if it has one
    pub(crate) output: Option<String>,
    /// Why it has none, if it failed
    pub(crate) error: Option<String>,
    /// What it asks, if it waits for answers
    #[schema(value_type = Vec<Object>)]
    pub(crate) questions: Vec<Question>,
    /// What a fork would have done to the world outside, and was not let
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) withheld: Vec<WithheldView>,
}

/// Something that a fork would have done to the world outside.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Withheld)]
pub(crate) struct WithheldView {
    /// Where
    pub(crate) place: String,
    /// What, in a few words
    pub(crate) effect: String,
}
