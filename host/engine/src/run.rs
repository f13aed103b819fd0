//! Driving a run: start what is ready, commit what completes, stop where it has to stop.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use hotcell_budget::{Account, Purse, Usage};
use hotcell_graph::ir::{Graph, NodeIndex};
use hotcell_graph::{Key, Reachability, State, Value};
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::action::{Done, run_node};
use crate::branch::apply;
use crate::event::Event;
use crate::hook::{self, HookPoint};
use crate::journal::{
    Completed, Entry, Fact, Journal, JournalError, Place, Question, RunHeader, RunId, RunStatus, open_questions,
};
use crate::ports::Ports;
use crate::schedule::{Route, Schedule, ScheduleError, Start, Turn, initial_state};
use crate::timing::Timings;
use crate::turn::{NodeTurn, Remembered, RunContext, Stop};

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

/// What a run is given by whoever starts it.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The caller's text
    pub input: Option<String>,
    /// Values of variables
    pub variables: HashMap<Key, Value>,
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
    /// The run has ended
    #[error("run `{run}` is {status} and cannot go on")]
    Ended {
        /// The run
        run: RunId,
        /// How it ended
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
        let given = Given::from_object(&record.header.given);
        let variables = check_variables(&graph, &given)?;
        let entries = self.journal.entries(run)?;
        self.journal.set_status(run, RunStatus::Running, None)?;
        self.drive(run.clone(), graph, &given, variables, entries, cancel).await
    }

    async fn drive(
        &self,
        run: RunId,
        graph: Arc<Graph>,
        given: &Given,
        variables: Arc<[(Key, String)]>,
        entries: Vec<Entry>,
        cancel: CancellationToken,
    ) -> Result<RunReport, RunError> {
        let state = initial_state(&graph, &given.variables, given.input.as_deref());
        let context = Arc::new(RunContext {
            graph: graph.clone(),
            run: run.clone(),
            ports: self.ports.clone(),
            journal: self.journal.clone(),
            variables,
            purse: Arc::new(Purse::new(graph.limits.budget.clone(), spent_before(&entries))),
            remembered: Mutex::new(Remembered::default()),
        });
        let resumed = !entries.is_empty();
        let mut drive = Drive {
            schedule: Schedule::new(&graph, Reachability::new(&graph), state),
            context,
            graph: graph.clone(),
            begun: Instant::now(),
            running: FuturesUnordered::new(),
            in_flight: 0,
            waiting: Vec::new(),
            pending: Vec::new(),
            account: Account::default(),
            timings: Timings::new(&graph),
        };
        drive.emit(&Event::RunStarted { run: &run, graph: &graph.name, start: &graph.node(graph.start).id, resumed });
        tracing::info!(target: "hotcell::graph", run = %run, "[graph:{}] started at `{}`", graph.name, graph.node(graph.start).id);
        let (outcome, state) = match drive.replay(entries)? {
            Some(outcome) => outcome,
            None => match drive.before_run(given, resumed).await {
                Ok(()) => drive.go(cancel).await?,
                Err(error) => (Outcome::Failed { node: None, error }, drive.schedule.state()),
            },
        };
        drive.after_run(&outcome).await;
        drive.finish(&outcome)?;
        Ok(RunReport { run, outcome, state, account: drive.account, timings: drive.timings })
    }
}

/// How often a run looks whether it was ended from another process, while it waits for a node.
const WATCH: Duration = Duration::from_millis(500);

type Finished = (Turn, NodeIndex, Instant, Account, Result<Done, Stop>);

struct Drive {
    context: Arc<RunContext>,
    graph: Arc<Graph>,
    schedule: Schedule,
    begun: Instant,
    running: FuturesUnordered<BoxFuture<'static, Finished>>,
    in_flight: usize,
    /// Turns that wait for a person
    waiting: Vec<Turn>,
    /// Turns that were started but not completed when the journal ended
    pending: Vec<Start>,
    account: Account,
    timings: Timings,
}

impl Drive {
    fn emit(&self, event: &Event<'_>) {
        self.context.ports.observer.event(event);
    }

    /// Tells hooks that a run begins; the error is why they refuse it.
    async fn before_run(&mut self, given: &Given, resumed: bool) -> Result<(), String> {
        if resumed {
            return Ok(());
        }
        let context = self.context.clone();
        let event = || {
            let mut event = given.to_object();
            event.insert("graph", self.graph.name.as_str().into());
            event
        };
        match hook::tell(&context, &mut self.account, HookPoint::BeforeRun, event).await {
            Err(Stop::Failed(reason)) => Err(reason),
            _ => Ok(()),
        }
    }

    /// Tells hooks how a run ended.
    async fn after_run(&mut self, outcome: &Outcome) {
        let (status, key, text) = match outcome {
            Outcome::Completed { output } => ("completed", "output", output),
            Outcome::Failed { error, .. } => ("failed", "error", error),
            Outcome::Waiting { .. } | Outcome::Interrupted => return,
        };
        let context = self.context.clone();
        let event = || {
            let graph = self.graph.name.as_str().into();
            hook::event([("graph", graph), ("status", status.into()), (key, text.as_str().into())])
        };
        // The run has ended already: nothing that a hook says of it makes a difference.
        let _ = hook::tell(&context, &mut self.account, HookPoint::AfterRun, event).await;
    }

    /// Brings the schedule to where the journal left it. `Some` if the run had ended without saying so.
    fn replay(&mut self, entries: Vec<Entry>) -> Result<Option<(Outcome, State)>, RunError> {
        if entries.is_empty() {
            return Ok(None);
        }
        let run = self.context.run.clone();
        let mismatch = |cause: String| RunError::Mismatch { run: run.clone(), cause };
        let mut remembered = Remembered::default();
        let mut started: HashMap<Turn, Start> = HashMap::new();
        for entry in entries {
            let Fact::Completed(completed) = entry.fact else {
                remembered.add(entry);
                continue;
            };
            self.schedule_into(&mut started).map_err(&mismatch)?;
            let turn: Turn = entry.place.0.parse().map_err(|_| mismatch(format!("`{}` is no turn", entry.place)))?;
            let start = started.remove(&turn).ok_or_else(|| mismatch(format!("turn {turn} cannot have begun")))?;
            let id = &self.graph.node(start.node).id;
            if **id != *completed.node {
                return Err(mismatch(format!("turn {turn} was `{}`, the graph says `{id}`", completed.node)));
            }
            let mut state = start.state;
            for write in &completed.writes {
                apply(&self.graph, &mut state, write).map_err(|error| mismatch(error.to_string()))?;
            }
            let route = match &completed.next {
                None => Route::End,
                Some(ids) => Route::To(
                    ids.iter()
                        .map(|id| self.graph.find(id).ok_or_else(|| mismatch(format!("there is no node `{id}`"))))
                        .collect::<Result<_, _>>()?,
                ),
            };
            self.timings.add(start.node, completed.elapsed);
            self.account += completed.account;
            if let Some(state) = self.schedule.complete(turn, completed.writes, state, &route) {
                return Ok(Some((Outcome::Completed { output: completed.output.unwrap_or_default() }, state)));
            }
        }
        self.schedule_into(&mut started).map_err(&mismatch)?;
        self.pending = started.into_values().collect();
        self.pending.sort_by_key(|start| start.turn);
        *self.context.remembered.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = remembered;
        Ok(None)
    }

    fn schedule_into(&mut self, started: &mut HashMap<Turn, Start>) -> Result<(), String> {
        match self.schedule.start_ready(&self.graph) {
            Ok(starts) => {
                started.extend(starts.into_iter().map(|start| (start.turn, start)));
                Ok(())
            }
            // The live run met the same error after its last entry and will meet it again.
            Err(_) => Ok(()),
        }
    }

    async fn go(&mut self, cancel: CancellationToken) -> Result<(Outcome, State), RunError> {
        loop {
            if cancel.is_cancelled() {
                return Ok((Outcome::Interrupted, self.schedule.state()));
            }
            if let Some(limit) = self.graph.limits.wall_clock
                && self.begun.elapsed() >= limit
            {
                let error = format!("the run timed out: it is limited to {} s", limit.as_secs_f64());
                return Ok((Outcome::Failed { node: None, error }, self.schedule.state()));
            }
            let mut starts = std::mem::take(&mut self.pending);
            match self.schedule.start_ready(&self.graph) {
                Ok(ready) => starts.extend(ready),
                Err(error) => return Ok((self.explain(error), self.schedule.state())),
            }
            for start in starts {
                self.begin(start);
            }
            if self.in_flight == 0 {
                if self.waiting.is_empty() {
                    let error = "no node is left to run and none has ended the run".to_owned();
                    return Ok((Outcome::Failed { node: None, error }, self.schedule.state()));
                }
                let entries = self.context.journal.entries(&self.context.run)?;
                let questions = open_questions(&entries).into_iter().map(|open| open.question).collect();
                return Ok((Outcome::Waiting { questions }, self.schedule.state()));
            }
            let finished = loop {
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => break None,
                    finished = self.running.next() => break finished,
                    // Somebody may have ended the run from another process.
                    () = tokio::time::sleep(WATCH) => {
                        if self.context.journal.find(self.context.run.as_str())?.status == RunStatus::Cancelled {
                            break None;
                        }
                    }
                }
            };
            let Some((turn, node, begun, account, result)) = finished else {
                // Dropping what runs stops cells and requests in flight.
                self.running.clear();
                return Ok((Outcome::Interrupted, self.schedule.state()));
            };
            self.in_flight -= 1;
            if let Some(end) = self.complete(turn, node, begun.elapsed(), account, result)? {
                self.running.clear();
                return Ok(end);
            }
        }
    }

    fn begin(&mut self, start: Start) {
        let graph = self.graph.clone();
        let node = graph.node(start.node);
        self.emit(&Event::NodeStarted { node: &node.id, kind: node.kind, turn: start.turn, visit: start.visit });
        if graph.log_state && tracing::enabled!(target: "hotcell::graph", tracing::Level::DEBUG) {
            log_state(&graph.name, &node.id, &start.state);
        }
        let mut turn = NodeTurn::new(self.context.clone(), Place::of_turn(start.turn), node.id.clone());
        let work = async move {
            let begun = Instant::now();
            let result = run_node(&mut turn, &graph, start.node, start.state).await;
            (start.turn, start.node, begun, turn.account, result)
        };
        // The only node that runs needs no task of its own; several share the cores.
        if self.in_flight == 0 {
            self.running.push(Box::pin(work));
        } else {
            let task = AbortOnDropHandle::new(tokio::spawn(work));
            let (turn, node) = (start.turn, start.node);
            self.running.push(Box::pin(async move {
                task.await.unwrap_or_else(|error| {
                    let lost = Stop::Failed(format!("the node's task was lost: {error}"));
                    (turn, node, Instant::now(), Account::default(), Err(lost))
                })
            }));
        }
        self.in_flight += 1;
    }

    fn complete(
        &mut self,
        turn: Turn,
        node: NodeIndex,
        elapsed: Duration,
        account: Account,
        result: Result<Done, Stop>,
    ) -> Result<Option<(Outcome, State)>, RunError> {
        self.account += account.clone();
        let graph = self.graph.clone();
        let id = &graph.node(node).id;
        let done = match result {
            Ok(done) => done,
            Err(Stop::Waiting) => {
                self.waiting.push(turn);
                return Ok(None);
            }
            Err(Stop::Failed(reason)) => {
                self.timings.add(node, elapsed);
                let state = self.schedule.state_of(turn).unwrap_or_default();
                let error = format!("node `{id}` failed: {reason}");
                return Ok(Some((Outcome::Failed { node: Some(id.to_string()), error }, state)));
            }
            Err(Stop::Journal(error)) => return Err(error.into()),
        };
        self.timings.add(node, elapsed);
        let next: Option<Vec<String>> = match &done.route {
            Route::End => None,
            Route::To(targets) => Some(targets.iter().map(|target| graph.node(*target).id.to_string()).collect()),
        };
        let completed = Completed {
            node: id.to_string(),
            writes: done.writes,
            next,
            output: done.output,
            failure: done.failure,
            elapsed,
            account,
        };
        let entry = Entry { place: Place::of_turn(turn), fact: Fact::Completed(completed) };
        self.context.journal.append(&self.context.run, &entry)?;
        let Fact::Completed(completed) = entry.fact else { return Ok(None) };
        self.emit(&Event::NodeCompleted {
            node: id,
            turn,
            next: completed.next.as_deref().unwrap_or_default(),
            failure: completed.failure.as_deref(),
            elapsed,
            usage: &completed.account.total(),
        });
        tracing::debug!(target: "hotcell::graph", "[graph:{}] `{id}` -> {:?}", graph.name, completed.next);
        if let Some(failure) = &completed.failure {
            tracing::warn!(target: "hotcell::graph", "[graph:{}] `{id}` failed: {failure}", graph.name);
        }
        let ended = self.schedule.complete(turn, completed.writes, done.state, &done.route);
        Ok(ended.map(|state| (Outcome::Completed { output: completed.output.unwrap_or_default() }, state)))
    }

    fn explain(&self, error: ScheduleError) -> Outcome {
        let id = |node: NodeIndex| self.graph.node(node).id.to_string();
        match error {
            ScheduleError::Visits { node, visits } => {
                let (setting, cap) =
                    self.graph.limits.visits_per_node.as_ref().map_or(("", 0), |cap| (cap.setting, cap.visits));
                let node = id(node);
                let error = format!(
                    "node '{node}' visited {visits} times ({setting}={cap}); it may be a loop without end, or the cap is too low"
                );
                Outcome::Failed { node: Some(node), error }
            }
            ScheduleError::Merge { node, error } => {
                let node = id(node);
                let error = format!("node `{node}` cannot start: {error}");
                Outcome::Failed { node: Some(node), error }
            }
            ScheduleError::Ends(ends) => {
                let ends: Vec<String> = ends.into_iter().map(id).collect();
                let error = format!("parallel branches ended in different end nodes: {}", list(&ends));
                Outcome::Failed { node: None, error }
            }
        }
    }

    fn finish(&self, outcome: &Outcome) -> Result<(), RunError> {
        let run = &self.context.run;
        let journal = &self.context.journal;
        let graph = &self.graph.name;
        match outcome {
            Outcome::Completed { output } => {
                journal.set_status(run, RunStatus::Completed, Some(output))?;
                tracing::info!(target: "hotcell::graph", run = %run, "[graph:{graph}] completed");
                self.emit(&Event::RunCompleted {
                    run,
                    output,
                    elapsed: self.begun.elapsed(),
                    usage: &self.account.total(),
                });
            }
            Outcome::Failed { node, error } => {
                journal.set_status(run, RunStatus::Failed, Some(error))?;
                tracing::error!(target: "hotcell::graph", run = %run, "[graph:{graph}] failed: {error}");
                self.emit(&Event::RunFailed { run, node: node.as_deref(), error });
            }
            Outcome::Waiting { questions } => {
                journal.set_status(run, RunStatus::Waiting, None)?;
                tracing::info!(target: "hotcell::graph", run = %run, "[graph:{graph}] waits for a person");
                self.emit(&Event::RunWaiting { run, questions });
            }
            // The journal says `running`; the lock that is given free says that nobody does.
            Outcome::Interrupted => self.emit(&Event::RunInterrupted { run }),
        }
        self.timings.log(graph);
        Ok(())
    }
}

/// What the run used in earlier processes, as far as it was committed.
fn spent_before(entries: &[Entry]) -> Usage {
    let mut spent = Usage::default();
    for entry in entries {
        if let Fact::Completed(completed) = &entry.fact {
            spent += completed.account.total();
        }
    }
    spent
}

fn log_state(graph: &str, node: &str, state: &State) {
    let object = state.to_object();
    let keys: Vec<&str> = object.iter().map(|(key, _)| &**key).collect();
    let text = Value::Object(object.clone()).to_json();
    tracing::debug!(target: "hotcell::graph", "[graph:{graph}] before `{node}`: state of {} bytes, keys {keys:?}", text.len());
    tracing::trace!(target: "hotcell::graph", "[graph:{graph}] before `{node}`: state {text}");
}

fn check_variables(graph: &Graph, given: &Given) -> Result<Arc<[(Key, String)]>, RunError> {
    let declared = |name: &Key| graph.variables.iter().any(|variable| variable.name == *name);
    let mut unknown: Vec<String> =
        given.variables.keys().filter(|name| !declared(name)).map(|name| name.to_string()).collect();
    if !unknown.is_empty() {
        unknown.sort();
        return Err(RunError::UnknownVariables(unknown));
    }
    let mut values = Vec::with_capacity(graph.variables.len());
    let mut missing = Vec::new();
    for variable in &graph.variables {
        match (given.variables.get(&variable.name), &variable.default) {
            (Some(value), _) => values.push((variable.name.clone(), value.to_display().into_owned())),
            (None, Some(default)) => values.push((variable.name.clone(), default.clone())),
            (None, None) => missing.push(match &*variable.description {
                "" => variable.name.to_string(),
                description => format!("{} ({description})", variable.name),
            }),
        }
    }
    if missing.is_empty() { Ok(values.into()) } else { Err(RunError::MissingVariables(missing)) }
}

fn missing_variables(names: &[String]) -> String {
    let verb = if names.len() == 1 { "variable has" } else { "variables have" };
    format!("the graph's {verb} no value and no default: {}; give it with `--var NAME=VALUE`", list(names))
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl Given {
    fn to_object(&self) -> hotcell_graph::Object {
        let mut object = hotcell_graph::Object::default();
        if let Some(input) = &self.input {
            object.insert("input", input.as_str().into());
        }
        let mut variables: Vec<(Key, Value)> =
            self.variables.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        variables.sort_by(|left, right| left.0.cmp(&right.0));
        object.insert("variables", Value::Object(variables.into_iter().collect()));
        object
    }

    fn from_object(object: &hotcell_graph::Object) -> Self {
        let variables = object.get("variables").and_then(Value::as_object);
        Given {
            input: object.get("input").and_then(Value::as_text).map(str::to_owned),
            variables: variables
                .map(|variables| variables.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
                .unwrap_or_default(),
        }
    }
}
