//! Runs: starting one, going on with one, and how it stands afterwards.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use hotcell_budget::{Account, Purse, Usage};
use hotcell_graph::ir::{Action, Graph, Offered};
use hotcell_graph::{Key, State};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::branch::{WriteError, apply};
use crate::drive::Drive;
use crate::event::Event;
use crate::given::{Given, check_state, check_variables, list, missing_of_agent, missing_variables};
use crate::journal::{
    Completed, Entry, Fact, Journal, JournalError, Place, Question, RunHeader, RunId, RunRecord, RunStatus,
};
use crate::ports::{Agents, Ports};
use crate::schedule::initial_state;
use crate::shape::check_input;
use crate::timing::Timings;
use crate::turn::{Remembered, RunContext};

/// The values of a graph's variables.
type Variables = Arc<[(Key, String)]>;

/// Runs graphs. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    ports: Ports,
    journal: Arc<dyn Journal>,
}

/// What to run.
pub struct RunRequest {
    /// The graph
    pub graph: Arc<Graph>,
    /// Where it comes from, for whoever resumes the run
    pub source: String,
    /// Identifies the text of the source
    pub digest: String,
    /// What the run is given
    pub given: Given,
}

/// Why a run did not start or cannot go on.
#[derive(Debug, Error)]
pub enum RunError {
    /// Variables without default were not given
    #[error("{}", missing_variables(.0))]
    MissingVariables(Vec<String>),
    /// Variables were given that the graph does not declare
    #[error("the graph declares no variable {}", list(.0))]
    UnknownVariables(Vec<String>),
    /// Values were given that the graph does not take; the text says which
    #[error("{0}")]
    UnknownState(String),
    /// Structured input does not have the form that the graph declares
    #[error("{0}")]
    Input(String),
    /// The values that were given cannot become state
    #[error(transparent)]
    State(#[from] WriteError),
    /// An agent that the run may call has variables without default, and its caller hands on none of that name
    #[error("{}", missing_of_agent(.agent, .variables))]
    AgentVariables {
        /// The agent
        agent: String,
        /// The variables
        variables: Vec<String>,
    },
    /// The run has ended
    #[error("run `{run}` is {status} and cannot go on")]
    Ended {
        /// The run
        run: RunId,
        /// How it ended
        status: RunStatus,
    },
    /// Only a run that failed can be retried
    #[error("run `{run}` is {status} and cannot be retried; only failed runs can")]
    NotFailed {
        /// The run
        run: RunId,
        /// How it stands
        status: RunStatus,
    },
    /// The journal does not fit the graph
    #[error("run `{run}` does not fit the graph: {cause}")]
    Mismatch {
        /// The run
        run: RunId,
        /// What does not fit
        cause: String,
    },
    /// The journal failed
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// How a run stands when it gives control back.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It has a result
    Completed {
        /// The result
        output: String,
    },
    /// It stopped with an error
    Failed {
        /// The node that failed
        node: Option<String>,
        /// The error; names the node
        error: String,
    },
    /// It waits for a person
    Waiting {
        /// The questions without answer
        questions: Vec<Question>,
    },
    /// Work was stopped; it can be resumed
    Interrupted,
}

/// A run that gave control back.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The run
    pub run: RunId,
    /// How it stands
    pub outcome: Outcome,
    /// The state at that point
    pub state: State,
    /// Who used what for it, in all processes
    pub account: Account,
    /// How long its nodes took
    pub timings: Timings,
}

impl Engine {
    /// An engine that uses these ports and this journal.
    pub fn new(ports: Ports, journal: Arc<dyn Journal>) -> Self {
        Engine { ports, journal }
    }

    /// The journal.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Starts a run and drives it as far as it goes.
    pub async fn start(&self, request: RunRequest, cancel: CancellationToken) -> Result<RunReport, RunError> {
        let graph = request.graph;
        let variables = check_variables(&graph, &request.given)?;
        check_state(&graph, &request.given)?;
        check_input(&graph, &request.given).map_err(RunError::Input)?;
        initial_state(&graph, &request.given)?;
        check_agents(&graph, &*self.ports.agents, &variables)?;
        let header = RunHeader {
            graph: graph.name.clone(),
            source: request.source,
            digest: request.digest,
            given: request.given.to_object(),
        };
        let (run, _lock) = self.journal.create(&header)?;
        self.drive(run, graph, &request.given, variables, Vec::new(), cancel).await
    }

    /// Goes on with a run that is waiting or whose process is gone. `graph` has to be the graph it was started with.
    pub async fn resume(
        &self,
        run: &RunId,
        graph: Arc<Graph>,
        cancel: CancellationToken,
    ) -> Result<RunReport, RunError> {
        let _lock = self.journal.lock(run)?;
        let record = self.journal.find(run.as_str())?;
        if record.status.is_final() {
            return Err(RunError::Ended { run: run.clone(), status: record.status });
        }
        self.go_on(record, graph, cancel).await
    }

    /// Goes on with a run that failed: what was committed stays, the nodes that failed are run again, and models that
    /// refused are asked again.
    pub async fn retry(
        &self,
        run: &RunId,
        graph: Arc<Graph>,
        cancel: CancellationToken,
    ) -> Result<RunReport, RunError> {
        let _lock = self.journal.lock(run)?;
        let record = self.journal.find(run.as_str())?;
        if record.status != RunStatus::Failed {
            return Err(RunError::NotFailed { run: run.clone(), status: record.status });
        }
        self.journal.append(run, &Entry { place: Place::of_run(), fact: Fact::Retried })?;
        self.go_on(record, graph, cancel).await
    }

    async fn go_on(
        &self,
        record: RunRecord,
        graph: Arc<Graph>,
        cancel: CancellationToken,
    ) -> Result<RunReport, RunError> {
        let run = &record.id;
        let given = self.given_of(&record, &graph)?;
        let variables = check_variables(&graph, &given)?;
        let entries = self.journal.entries(run)?;
        self.journal.set_status(run, RunStatus::Running, None)?;
        self.drive(run.clone(), graph, &given, variables, entries, cancel).await
    }

    /// The state that the journal of a run leads to. `graph` should be the graph it was started with; of another one, the
    /// writes of the run count in the order in which they were committed.
    pub fn state_of(&self, run: &RunId, graph: Arc<Graph>) -> Result<State, RunError> {
        let given = self.given_of(&self.journal.find(run.as_str())?, &graph)?;
        let state = initial_state(&graph, &given)?;
        let (remembered, completed, spent) = Remembered::of(self.journal.entries(run)?);
        let variables = check_variables(&graph, &given)?;
        let context = self.context(run, &graph, variables, remembered, spent);
        match state_of(context, state.clone(), completed.clone()) {
            Err(RunError::Mismatch { .. }) => Ok(fold(&graph, state, completed)?),
            other => other,
        }
    }

    /// What a run was given, with the state of the run before it where it only refers to that.
    fn given_of(&self, record: &RunRecord, graph: &Arc<Graph>) -> Result<Given, RunError> {
        let mut given = Given::from_object(&record.header.given);
        if let (Some(before), None) = (&given.after, &given.earlier) {
            given.earlier = Some(self.state_of(&RunId::from(before.clone()), graph.clone())?.to_object());
        }
        Ok(given)
    }

    fn context(
        &self,
        run: &RunId,
        graph: &Arc<Graph>,
        variables: Variables,
        remembered: Remembered,
        spent: Usage,
    ) -> RunContext {
        RunContext {
            graph: graph.clone(),
            run: run.clone(),
            ports: self.ports.clone(),
            journal: self.journal.clone(),
            variables,
            purse: Arc::new(Purse::new(graph.limits.budget.clone(), spent)),
            remembered: Arc::new(Mutex::new(remembered)),
            base: None,
            depth: 0,
            asks_as: None,
        }
    }

    async fn drive(
        &self,
        run: RunId,
        graph: Arc<Graph>,
        given: &Given,
        variables: Variables,
        entries: Vec<Entry>,
        cancel: CancellationToken,
    ) -> Result<RunReport, RunError> {
        let state = initial_state(&graph, given)?;
        let resumed = !entries.is_empty();
        let (remembered, completed, spent) = Remembered::of(entries);
        let context = Arc::new(self.context(&run, &graph, variables, remembered, spent));
        let mut drive = Drive::new(context, state);
        drive.emit(&Event::RunStarted { run: &run, graph: &graph.name, start: &graph.node(graph.start).id, resumed });
        tracing::info!(target: "hotcell::graph", run = %run, "[graph:{}] started at `{}`", graph.name, graph.node(graph.start).id);
        let (outcome, state) = match drive.replay(completed)? {
            Some(outcome) => outcome,
            None => match drive.before_run(given, resumed).await {
                Ok(()) => match drive.go(cancel).await {
                    Err(RunError::Journal(JournalError::Cancelled(_))) => (Outcome::Interrupted, drive.state()),
                    other => other?,
                },
                Err(error) => (Outcome::Failed { node: None, error }, drive.state()),
            },
        };
        let outcome = drive.settle(outcome)?;
        drive.after_run(&outcome).await;
        drive.tell(&outcome);
        Ok(RunReport { run, outcome, state, account: drive.account, timings: drive.timings })
    }
}

/// The state that the journal of a run leads to, whatever became of the run. Nothing of it is run.
fn state_of(context: RunContext, state: State, completed: Vec<(Place, Completed)>) -> Result<State, RunError> {
    let mut drive = Drive::new(Arc::new(context), state);
    Ok(match drive.replay(completed)? {
        Some((_, state)) => state,
        None => drive.state(),
    })
}

/// What the writes of a run come to without its graph.
fn fold(graph: &Graph, mut state: State, completed: Vec<(Place, Completed)>) -> Result<State, WriteError> {
    for write in completed.iter().flat_map(|(_, completed)| &completed.writes) {
        apply(graph, &mut state, write)?;
    }
    Ok(state)
}

/// Looks before a run starts whether every agent that it may call, at any depth, has the variables it needs: those that
/// its caller has too, and those with a default.
fn check_agents(graph: &Graph, agents: &dyn Agents, variables: &Variables) -> Result<(), RunError> {
    let mut seen: HashSet<(Key, Variables)> = HashSet::new();
    let mut open: Vec<_> = called(graph).into_iter().map(|agent| (agent, variables.clone())).collect();
    while let Some((agent, of_caller)) = open.pop() {
        if !seen.insert((agent.clone(), of_caller.clone())) {
            continue;
        }
        // An agent that is not there is an error of the node that calls it.
        let Ok(callee) = agents.find(&agent) else { continue };
        let given = Given::of_variables(&of_caller).for_agent(&callee.graph, String::new());
        let own = check_variables(&callee.graph, &given).map_err(|error| match error {
            RunError::MissingVariables(variables) => RunError::AgentVariables { agent: agent.to_string(), variables },
            other => other,
        })?;
        open.extend(called(&callee.graph).into_iter().map(|agent| (agent, own.clone())));
    }
    Ok(())
}

/// The agents that the nodes of a graph call.
fn called(graph: &Graph) -> Vec<Key> {
    let offered = |tools: &[Offered]| -> Vec<Key> {
        let agent = |offered: &Offered| match offered {
            Offered::Agent { agent, .. } => Some(agent.clone()),
            _ => None,
        };
        tools.iter().filter_map(agent).collect()
    };
    let agents = |action: &Action| match action {
        Action::Agent(action) => vec![action.agent.clone()],
        Action::AnswerCalls(action) => offered(&action.tools),
        _ => Vec::new(),
    };
    graph.nodes().flat_map(|(_, node)| agents(&node.action)).collect()
}
