//! What clients are shown: agents, threads, runs and entries as JSON.

use std::time::SystemTime;

use hotcell_runtime::{
    Agent, Fact, ForkOrigin, NumberedEntry, Outward, Question, RunId, RunRecord, RunStatus, RunSummary, input_schema,
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::agents::Agents;
pub(crate) use crate::object::{Object, object};

/// An agent that is served.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Agent)]
pub(crate) struct AgentView {
    /// What runs name it by
    pub(crate) agent_id: String,
    /// Its own name
    pub(crate) name: String,
    /// What it does
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Its language, and prompts to begin with
    #[schema(value_type = Object)]
    pub(crate) metadata: Object,
    /// What of the protocol it can do
    #[schema(value_type = Object)]
    pub(crate) capabilities: Object,
    /// Why it is not served as its files are now, but as it was before; none if it is
    pub(crate) load_error: Option<LoadErrorView>,
}

/// Why an agent is not served as its files are now.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoadError)]
pub(crate) struct LoadErrorView {
    /// What is wrong with them, one line for each error
    pub(crate) detail: String,
    /// Since when
    #[schema(format = DateTime)]
    pub(crate) since: String,
}

impl AgentView {
    pub(crate) fn of(id: &str, agent: &Agent, agents: &Agents) -> Self {
        let metadata = json!({
            "language": format!("{:?}", agent.dialect).to_lowercase(),
            "revision": agent.digest(),
            "conversation_starters": agent.conversation_starters,
            "origin": if agents.was_sent(agent.source()) { "sent" } else { "folder" },
        });
        let capabilities = json!({ "ap.io.messages": agent.graph.takes_text(), "ap.io.streaming": true });
        AgentView {
            agent_id: id.to_owned(),
            name: agent.graph.name.clone(),
            description: agent.graph.description.clone(),
            metadata: object(metadata),
            capabilities: object(capabilities),
            load_error: agents
                .trouble_of(id)
                .map(|trouble| LoadErrorView { detail: trouble.detail.clone(), since: time(trouble.since) }),
        }
    }
}

/// What an agent takes and gives, as JSON schemas.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentSchemas)]
pub(crate) struct AgentSchemas {
    /// The agent
    pub(crate) agent_id: String,
    /// What `input` of a run has to be, if it is an object. A text stands for `{"prompt": text}`
    #[schema(value_type = Object)]
    pub(crate) input_schema: Object,
    /// What `output` of a run is
    #[schema(value_type = Object)]
    pub(crate) output_schema: Object,
    /// What `values` of a run are
    #[schema(value_type = Object)]
    pub(crate) state_schema: Object,
}

impl AgentSchemas {
    pub(crate) fn of(id: &str, agent: &Agent) -> Self {
        let mut input = object(input_schema(agent));
        let graph = &agent.graph;
        if let Some(Value::Object(properties)) = input.get_mut("properties") {
            for key in &graph.open_state {
                properties.entry(&**key).or_insert_with(|| json!({ "description": "A value of the state" }));
            }
        }
        if graph.is_open {
            input.insert("additionalProperties".to_owned(), true.into());
        }
        let keys = graph.initial_state.iter().map(|(key, _)| key.to_string()).map(|key| (key, json!({})));
        let properties: Object = keys.collect();
        AgentSchemas {
            agent_id: id.to_owned(),
            input_schema: input,
            output_schema: object(json!({ "type": "string" })),
            state_schema: object(json!({ "type": "object", "properties": properties, "additionalProperties": true })),
        }
    }
}

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

/// An entry of a run: a fact that was committed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Entry)]
pub(crate) struct EntryView {
    /// Which entry of the run it is, from 1
    pub(crate) seq: u64,
    /// Its name among all entries of all runs; what `Last-Event-ID` takes
    pub(crate) event_id: String,
    /// The run
    pub(crate) run_id: String,
    /// When it was written
    #[schema(format = DateTime)]
    pub(crate) at: String,
    /// What it is about: a turn of a node, such as `7`, or a part of it; empty for the run itself
    pub(crate) place: String,
    /// What it says: `started`, `resumed`, `retried`, `forked`, `withheld`, `revised`, `completed`, `effect`, `failed`, `attempt`, `timer_set`,
    /// `timer_fired`, `asked`, `answered`, `expired`, `waiting`, `pause_asked`, `paused`, `cancelled`, `stopped` or `ended`
    pub(crate) kind: &'static str,
    /// What belongs to that kind of fact
    #[schema(value_type = Object)]
    pub(crate) data: Value,
}

impl EntryView {
    pub(crate) fn of(run: &RunId, numbered: &NumberedEntry) -> Self {
        let (kind, data) = fact(numbered);
        EntryView {
            seq: numbered.number,
            event_id: format!("{run}:{}", numbered.number),
            run_id: run.to_string(),
            at: time(numbered.at),
            place: numbered.entry.place.to_string(),
            kind,
            data,
        }
    }
}

fn fact(numbered: &NumberedEntry) -> (&'static str, Value) {
    let place = &numbered.entry.place;
    match &numbered.entry.fact {
        Fact::Started(header) => {
            let given = |name: &str| header.given.get(name).map(Value::from);
            let (input, variables, state) = (given("input"), given("variables"), given("state"));
            (
                "started",
                json!({
                    "graph": header.graph, "revision": header.digest, "thread_id": header.thread(), "input": input,
                    "variables": variables, "state": state,
                }),
            )
        }
        Fact::Resumed => ("resumed", json!({})),
        Fact::Retried => ("retried", json!({})),
        Fact::Forked => ("forked", json!({})),
        Fact::Withheld { effect } => ("withheld", json!({ "effect": effect })),
        Fact::Revised { digest } => ("revised", json!({ "revision": digest })),
        Fact::Completed(completed) => {
            let writes: Object =
                completed.writes.iter().map(|write| (write.key.to_string(), Value::from(&write.value))).collect();
            (
                "completed",
                json!({
                    "node": completed.node, "writes": writes, "next": completed.next, "output": completed.output,
                    "failure": completed.failure, "failure_kind": completed.failure_kind, "handled": completed.handled,
                    "elapsed_ms": completed.elapsed.as_secs_f64() * 1e3, "usage": completed.account.total(),
                    "used_by": completed.account,
                }),
            )
        }
        Fact::Effect { number, kind, subject, answer, account } => {
            // The session of a callback lets whoever has it answer.
            let answer = if kind == "callback" { Value::Null } else { Value::from(answer) };
            let subject = if kind == "callback" { "" } else { subject.as_str() };
            (
                "effect",
                json!({
                    "number": number, "effect": kind, "subject": subject, "answer": answer, "usage": account.total(),
                    "used_by": account,
                }),
            )
        }
        Fact::Failed { number, error, account } => {
            ("failed", json!({ "number": number, "error": error, "usage": account.total(), "used_by": account }))
        }
        Fact::Attempt { attempt, error, account } => {
            ("attempt", json!({ "attempt": attempt, "error": error, "usage": account.total(), "used_by": account }))
        }
        Fact::TimerSet { node, at } => ("timer_set", json!({ "node": node, "until": time(*at) })),
        Fact::TimerFired { node } => ("timer_fired", json!({ "node": node })),
        Fact::Asked { number, question } => {
            let question = Question { id: format!("{place}:{number}"), ..question.clone() };
            ("asked", json!({ "question": question }))
        }
        Fact::Answered { number, text } => {
            ("answered", json!({ "question_id": format!("{place}:{number}"), "answer": text }))
        }
        Fact::Expired { number } => ("expired", json!({ "question_id": format!("{place}:{number}") })),
        Fact::Waiting => ("waiting", json!({})),
        Fact::PauseAsked => ("pause_asked", json!({})),
        Fact::Paused => ("paused", json!({})),
        Fact::Cancelled => ("cancelled", json!({})),
        Fact::Stopped { reason } => ("stopped", json!({ "reason": reason })),
        Fact::Ended { result: Ok(output), .. } => ("ended", json!({ "output": output })),
        Fact::Ended { result: Err(error), node } => ("ended", json!({ "error": error, "node": node })),
    }
}

/// A time as RFC 3339 has it.
pub(crate) fn time(at: SystemTime) -> String {
    jiff::Timestamp::try_from(at).unwrap_or_default().to_string()
}
