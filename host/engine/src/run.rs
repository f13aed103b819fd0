//! Runs: starting one, going on with one, and how it stands afterwards.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotcell_budget::{Account, BudgetScope, Bytes, JOURNAL_BYTES, Usage};
use hotcell_graph::ir::{Action, CallTarget, Callable, Graph, MapBody};
use hotcell_graph::{Key, State};
use hotcell_journal::{
    Entry, EntryPath, Fact, History, JournalError, NodeFailure, RunHeader, RunId, RunStatus, RunStore, RunWriter, Taken,
};
use tokio_util::sync::CancellationToken;

use crate::action::job::BEGUN;
use crate::context::RunContext;
use crate::drive::{Drive, Halt, drive_part};
use crate::event::{Event, Observer};
use crate::gates::Gates;
use crate::lease::Lease;
use crate::memory::{Moved, Remembered};
use crate::no_writer::NoWriter;
use crate::outcome::{Outcome, RunError};
use crate::ports::{Agents, Ports};
use crate::redaction::{Redaction, RedactionKeys};
use crate::run_input::{RunInput, check_variables, initial_state};
use crate::state_fold::StateFold;
use crate::timing::Timings;
use crate::token::Turn;
use crate::veiled::Veiled;
use crate::what_if::WhatIf;

/// How long is waited for turns that were stopped. One that does not let go in time keeps the run a little longer.
const LETTING_GO: Duration = Duration::from_millis(50);

/// The values of a graph's variables.
pub(crate) type Variables = Arc<[(Key, String)]>;

/// Runs graphs. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    pub(crate) ports: Ports,
    store: Arc<dyn RunStore>,
    revision: Option<String>,
    most_written: Bytes,
    gates: Gates,
    pub(crate) redaction_keys: Option<Arc<dyn RedactionKeys>>,
}

/// What to run.
pub struct RunRequest {
    /// The graph
    pub graph: Arc<Graph>,
    /// Where it comes from, for whoever resumes the run
    pub source: String,
    /// Identifies what the graph was loaded from
    pub digest: String,
    /// Whether the store keeps all of that under the digest
    pub kept: bool,
    /// What the run is given
    pub given: RunInput,
    /// The run that is the last one of its thread, if it belongs to one
    pub follows: Option<RunId>,
}

/// What a run begins with.
pub(crate) struct Beginning<'g> {
    pub(crate) given: &'g RunInput,
    pub(crate) variables: Variables,
    pub(crate) redaction: Option<Arc<Redaction>>,
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
    /// The nodes that failed and after which it went on, in all processes, in their order
    pub failures: Vec<NodeFailure>,
    /// How long its nodes took
    pub timings: Timings,
}

impl Engine {
    /// An engine that uses these ports and this store of runs.
    pub fn new(ports: Ports, store: Arc<dyn RunStore>) -> Self {
        Engine {
            ports,
            store,
            revision: None,
            most_written: JOURNAL_BYTES,
            gates: Gates::default(),
            redaction_keys: None,
        }
    }

    /// The same engine, by which runs that go on are moved to this revision, which the store has to keep. [`Engine::fits`] says
    /// whether what was committed of them allows it.
    #[must_use]
    pub fn moving_to(mut self, revision: String) -> Self {
        self.revision = Some(revision);
        self
    }

    /// The same engine, with which a run may write so many bytes to its journal; otherwise they are [`JOURNAL_BYTES`].
    #[must_use]
    pub fn writing_at_most(mut self, bytes: Bytes) -> Self {
        self.most_written = bytes;
        self
    }

    /// The same engine, whose runs count with those of other engines that have these gates, where a graph limits how many are in
    /// it at a time.
    #[must_use]
    pub fn behind(mut self, gates: Gates) -> Self {
        self.gates = gates;
        self
    }

    /// The same engine, which seals redacted values in the journal with a key from there. Without one, no graph that redacts values
    /// can be run.
    #[must_use]
    pub fn sealing_with(mut self, keys: Arc<dyn RedactionKeys>) -> Self {
        self.redaction_keys = Some(keys);
        self
    }

    /// The store of runs.
    pub fn store(&self) -> &Arc<dyn RunStore> {
        &self.store
    }

    /// Starts a run and drives it as far as it goes.
    pub async fn start(&self, request: RunRequest, cancel: CancellationToken) -> Result<RunReport, RunError> {
        let graph = request.graph;
        request.given.check(&graph)?;
        let variables = check_variables(&graph, &request.given)?;
        initial_state(&graph, &request.given)?;
        check_agents(&graph, &*self.ports.agents, &variables)?;
        let mut header = RunHeader {
            graph: graph.name.clone(),
            source: request.source,
            digest: request.digest,
            kept: request.kept,
            given: request.given.to_object(),
        };
        let redaction = Redaction::begin(&graph, self.redaction_keys.as_deref(), &mut header.given)?.map(Arc::new);
        if let Some(redaction) = &redaction {
            header = redaction.seal_header(&header);
        }
        let writer = self.store.create(&header, request.follows.as_ref()).await?;
        let from = Beginning { given: &request.given, variables, redaction };
        self.drive(writer, graph, from, History::default(), cancel).await
    }

    /// Goes on with a run that is waiting or whose process is gone. `graph` has to be the graph it was started with.
    pub async fn resume(
        &self,
        run: &RunId,
        graph: Arc<Graph>,
        cancel: CancellationToken,
    ) -> Result<RunReport, RunError> {
        self.go_on(run, graph, Fact::Resumed, cancel).await
    }

    /// Goes on with a run that failed: what was committed stays, the nodes that failed are run again, and models that
    /// refused are asked again.
    pub async fn retry(
        &self,
        run: &RunId,
        graph: Arc<Graph>,
        cancel: CancellationToken,
    ) -> Result<RunReport, RunError> {
        let record = self.store.find(run.as_str()).await?;
        if record.status != RunStatus::Failed {
            return Err(RunError::NotFailed { run: run.clone(), status: record.status });
        }
        self.go_on(run, graph, Fact::Retried, cancel).await
    }

    /// Has what a run began outside called off, when somebody cancelled it while nobody worked on it. Nothing else of it is done, and
    /// nothing is written.
    ///
    /// # Errors
    /// When the run cannot be read, or does not fit the graph.
    pub async fn call_off(&self, run: &RunId, graph: Arc<Graph>) -> Result<(), RunError> {
        let (header, redaction) = self.header_of(run, &graph).await?;
        let given = self.given_of(&header, &graph).await?;
        let state = initial_state(&graph, &given)?;
        let entries = opened(redaction.as_deref(), self.store.history(run).await?).whole()?;
        let is_done = |turn: &Turn| {
            entries.iter().any(|entry| {
                matches!(entry.fact, Fact::Completed(_))
                    && entry.place.around().is_none()
                    && entry.place.turn() == Some(*turn)
            })
        };
        let begun = entries.iter().filter_map(|entry| match &entry.fact {
            Fact::Effect { kind, .. } if kind == BEGUN => entry.place.turn(),
            _ => None,
        });
        let open: HashSet<Turn> = begun.filter(|turn| !is_done(turn)).collect();
        if open.is_empty() {
            return Ok(());
        }
        let variables = check_variables(&graph, &given)?;
        let what_if = given.fork.map(|origin| WhatIf::new(origin, &entries));
        let (mut remembered, completed, spent) = Remembered::of(entries);
        remembered.is_cancelled = true;
        let writer = Arc::new(NoWriter::over(run.clone()));
        let context = self.context(writer, &graph, variables, redaction, remembered, spent);
        let context = Arc::new(RunContext { what_if, ..context });
        let mut drive = Drive::new(context, state);
        if drive.replay(completed)?.is_none() {
            drive.begin_only(&open);
            // It comes as far as what was committed: there its jobs are called off.
            drop(drive.go(CancellationToken::new()).await);
        }
        Ok(())
    }

    async fn go_on(
        &self,
        run: &RunId,
        graph: Arc<Graph>,
        fact: Fact,
        cancel: CancellationToken,
    ) -> Result<RunReport, RunError> {
        // What does not fit is found before anything is changed.
        let (header, redaction) = self.header_of(run, &graph).await?;
        let given = self.given_of(&header, &graph).await?;
        let variables = check_variables(&graph, &given)?;
        let Taken { writer, history } = self.store.take(run, fact).await.map_err(|error| match error {
            JournalError::Ended { run, status } => RunError::Ended { run, status },
            JournalError::Cancelled(run) => RunError::Ended { run, status: RunStatus::Cancelled },
            other => other.into(),
        })?;
        if let Some(digest) = &self.revision {
            writer.append(vec![Entry::of_run(Fact::Revised { digest: digest.clone() })]).await?;
        }
        let history = opened(redaction.as_deref(), history);
        let from = Beginning { given: &given, variables, redaction };
        self.drive(writer, graph, from, history, cancel).await
    }

    /// Whether what was committed of a run fits a graph: the same nodes took the same turns, and those that wait are there.
    /// Nothing is changed.
    ///
    /// # Errors
    /// [`RunError::Mismatch`] with what does not fit.
    pub async fn fits(&self, run: &RunId, graph: &Arc<Graph>) -> Result<(), RunError> {
        let (header, redaction) = self.header_of(run, graph).await?;
        let given = &self.given_of(&header, graph).await?;
        let entries = opened(redaction.as_deref(), self.store.history(run).await?).whole()?;
        self.entries_fit(run, graph, given, entries)
    }

    /// Whether these entries, with what is redacted in them, fit a graph that was given this.
    pub(crate) fn entries_fit(
        &self,
        run: &RunId,
        graph: &Arc<Graph>,
        given: &RunInput,
        entries: Vec<Entry>,
    ) -> Result<(), RunError> {
        // What was asked in turns that are not done, answered or not.
        let of_run = |place: &EntryPath| place.turn().filter(|_| place.around().is_none());
        let mut asked: Vec<(Turn, String)> = Vec::new();
        for Entry { place, fact } in &entries {
            match (of_run(place), fact) {
                (Some(turn), Fact::Asked { question, .. }) => asked.push((turn, question.node.clone())),
                (Some(done), Fact::Completed(_)) => asked.retain(|(turn, _)| *turn != done),
                _ => {}
            }
        }
        let Some(drive) = self.replayed(run, graph, given, entries)? else { return Ok(()) };
        for (turn, asking) in asked {
            let cause = match drive.begins(turn) {
                Some(node) if node == asking => continue,
                Some(node) => format!("turn {turn} waits at `{asking}`, the graph says `{node}`"),
                None => format!("turn {turn} waits at `{asking}`, and the graph does not come there"),
            };
            return Err(RunError::Mismatch { run: run.clone(), cause });
        }
        Ok(())
    }

    /// A graph where these entries leave it; none if they end the run. Nothing is run.
    pub(crate) fn replayed(
        &self,
        run: &RunId,
        graph: &Arc<Graph>,
        given: &RunInput,
        entries: Vec<Entry>,
    ) -> Result<Option<Drive>, RunError> {
        let state = initial_state(graph, given)?;
        let (remembered, completed, spent) = Remembered::of(entries);
        let variables = check_variables(graph, given)?;
        let writer = Arc::new(NoWriter::looking_at(run.clone()));
        let context = self.context(writer, graph, variables, None, remembered, spent);
        let mut drive = Drive::new(Arc::new(context), state);
        Ok(drive.replay(completed)?.is_none().then_some(drive))
    }

    /// The state that the entries of a run lead to, without what is redacted. `graph` should be the graph it was started with; of
    /// another one, the writes of the run count in the order in which they were committed.
    pub async fn state_of(&self, run: &RunId, graph: Arc<Graph>) -> Result<State, RunError> {
        let (state, redaction) = self.read_state(run, graph).await?;
        Ok(match redaction {
            Some(redaction) => redaction.state(&state),
            None => state,
        })
    }

    /// The same with what is redacted, for a run that goes on with it.
    pub async fn whole_state_of(&self, run: &RunId, graph: Arc<Graph>) -> Result<State, RunError> {
        Ok(self.read_state(run, graph).await?.0)
    }

    /// The state that the entries of a run lead to, and what is redacted in it.
    async fn read_state(&self, run: &RunId, graph: Arc<Graph>) -> Result<(State, Option<Arc<Redaction>>), RunError> {
        let (header, redaction) = self.header_of(run, &graph).await?;
        let given = self.given_of(&header, &graph).await?;
        let state = initial_state(&graph, &given)?;
        let history = opened(redaction.as_deref(), self.store.history(run).await?);
        let (remembered, completed, spent) = Remembered::of(history.whole()?);
        let variables = check_variables(&graph, &given)?;
        let context =
            self.context(Arc::new(NoWriter::looking_at(run.clone())), &graph, variables, None, remembered, spent);
        let state = match state_of(context, state.clone(), completed.clone()) {
            Err(RunError::Mismatch { .. }) => {
                // What the writes come to without the graph.
                let mut fold = StateFold::new(graph, state);
                for moved in &completed {
                    let Moved::Completed(_, completed) = moved else { continue };
                    fold.complete(completed)?;
                }
                fold.into_state()
            }
            other => other?,
        };
        Ok((state, redaction))
    }

    /// What a run was started with, as it was then, and what is redacted in it.
    pub(crate) async fn header_of(
        &self,
        run: &RunId,
        graph: &Graph,
    ) -> Result<(RunHeader, Option<Arc<Redaction>>), RunError> {
        let header = self.store.find(run.as_str()).await?.header;
        Ok(match Redaction::go_on(graph, self.redaction_keys.as_deref(), &header)? {
            Some(redaction) => (redaction.open_header(header), Some(Arc::new(redaction))),
            None => (header, None),
        })
    }

    /// The state that a run began with, which follows its entries. What is redacted is sealed in it, as it is in them.
    pub async fn fold_of(&self, run: &RunId, graph: Arc<Graph>) -> Result<StateFold, RunError> {
        let (header, redaction) = self.header_of(run, &graph).await?;
        let mut state = initial_state(&graph, &self.given_of(&header, &graph).await?)?;
        if let Some(redaction) = redaction {
            state = redaction.state(&state);
        }
        Ok(StateFold::new(graph, state))
    }

    /// What a run was given, with the state of the run before it where it only refers to that.
    pub(crate) async fn given_of(&self, header: &RunHeader, graph: &Arc<Graph>) -> Result<RunInput, RunError> {
        let mut given = RunInput::from_object(&header.given);
        if let (Some(before), None) = (&given.after, &given.earlier) {
            let before = RunId::from(before.clone());
            given.earlier = Some(Box::pin(self.whole_state_of(&before, graph.clone())).await?.to_object());
        }
        Ok(given)
    }

    fn context(
        &self,
        writer: Arc<dyn RunWriter>,
        graph: &Arc<Graph>,
        variables: Variables,
        redaction: Option<Arc<Redaction>>,
        remembered: Remembered,
        spent: Usage,
    ) -> RunContext {
        let mut ports = self.ports.clone();
        if let Some(redaction) = redaction.clone() {
            ports.observer = Arc::new(Veiled { observer: ports.observer, redaction }) as Arc<dyn Observer>;
        }
        RunContext {
            graph: graph.clone(),
            run: writer.run().clone(),
            ports,
            writer,
            redaction,
            variables,
            what_if: None,
            budget_scope: Arc::new(BudgetScope::new(graph.limits.budget.clone(), spent)),
            remembered: Arc::new(Mutex::new(remembered)),
            gates: self.gates.clone(),
            answered: Arc::default(),
            idle: Arc::default(),
            drive_part,
            base: None,
            depth: 0,
            asks_as: None,
            asks_within: None,
            acting: None,
            allowance: None,
        }
    }

    /// Drives a run as far as it goes; `history` is empty for one that begins.
    pub(crate) async fn drive(
        &self,
        writer: Box<dyn RunWriter>,
        graph: Arc<Graph>,
        from: Beginning<'_>,
        history: History,
        cancel: CancellationToken,
    ) -> Result<RunReport, RunError> {
        let Beginning { given, variables, redaction } = from;
        let _working = self.ports.clock.working();
        let state = initial_state(&graph, given)?;
        let resumed = !history.entries.is_empty();
        let worked = history.worked;
        let (lease, gone) = Lease::new(writer, &history.entries, self.most_written.0, redaction.clone());
        let what_if = given.fork.clone().map(|origin| WhatIf::new(origin, &history.entries));
        let (remembered, completed, spent) = Remembered::of(history.entries);
        let context = self.context(Arc::new(lease), &graph, variables, redaction.clone(), remembered, spent);
        let context = Arc::new(RunContext { what_if, ..context });
        let run = context.run.clone();
        let mut drive = Drive::of_run(context, state, self.store.clone(), worked);
        drive.emit(&Event::RunStarted { run: &run, graph: &graph.name, start: &graph.node(graph.start).id, resumed });
        tracing::info!(target: "hotcell::graph", run = %run, "[graph:{}] started at `{}`", graph.name, graph.node(graph.start).id);
        let begun = match drive.replay(completed)? {
            Some((outcome, state)) => Some(Halt::At(outcome, state)),
            None => match drive.before_run(given, resumed).await {
                Ok(()) => None,
                Err(refused) => {
                    let error = refused.to_string();
                    Some(Halt::At(Outcome::Failed { node: None, error }, drive.state()))
                }
            },
        };
        let (outcome, state) = conclude(&mut drive, begun, cancel).await?;
        drive.after_run(&outcome).await;
        drive.tell(&outcome);
        let (account, failures) = (drive.used(), drive.failures());
        let timings = drive.timings.clone();
        if outcome == Outcome::Interrupted {
            // Whoever is told that a run was interrupted can go on with it at once.
            drop(drive);
            let _ = tokio::time::timeout(LETTING_GO, gone).await;
        }
        let (outcome, state, failures) = match &redaction {
            Some(redaction) => (redaction.outcome(outcome), redaction.state(&state), redaction.failures(&failures)),
            None => (outcome, state, failures),
        };
        Ok(RunReport { run, outcome, state, account, failures, timings })
    }
}

/// What a run wrote, in the place of what the journal kept of it.
pub(crate) fn opened(redaction: Option<&Redaction>, history: History) -> History {
    match redaction {
        Some(redaction) => redaction.open(history),
        None => history,
    }
}

/// Drives a run until how it stands is committed.
async fn conclude(
    drive: &mut Drive,
    mut halt: Option<Halt>,
    cancel: CancellationToken,
) -> Result<(Outcome, State), RunError> {
    loop {
        let halted = match halt.take() {
            Some(halt) => halt,
            None => match drive.go(cancel.clone()).await {
                Err(RunError::Journal(JournalError::Cancelled(_))) => Halt::Cancelled(drive.state()),
                Err(RunError::Journal(error @ JournalError::Full { .. })) => {
                    Halt::At(Outcome::Failed { node: None, error: error.to_string() }, drive.state())
                }
                other => other?,
            },
        };
        let (outcome, state) = match halted {
            Halt::Cancelled(state) => return Ok((Outcome::Cancelled, state)),
            Halt::At(outcome, state) => (outcome, state),
        };
        match drive.settle(&outcome).await {
            Ok(()) => {
                drive.settled().await?;
                return Ok((outcome, state));
            }
            Err(JournalError::Cancelled(_)) => return Ok((Outcome::Cancelled, state)),
            Err(JournalError::Unread(_)) => {}
            Err(other) => return Err(other.into()),
        }
        let news = drive.receive().await?;
        if drive.take(news).await? {
            return Ok((Outcome::Cancelled, state));
        }
        // An answer lets a run go on that waits. One that has ended needs none any more.
        if !matches!(outcome, Outcome::Waiting { .. }) {
            halt = Some(Halt::At(outcome, state));
        }
    }
}

/// The state that the journal of a run leads to, whatever became of the run. Nothing of it is run.
fn state_of(context: RunContext, state: State, completed: Vec<Moved>) -> Result<State, RunError> {
    let mut drive = Drive::new(Arc::new(context), state);
    Ok(match drive.replay(completed)? {
        Some((_, state)) => state,
        None => drive.state(),
    })
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
        let given = RunInput::of_variables(&of_caller).for_agent(&callee.graph, String::new());
        let own = check_variables(&callee.graph, &given).map_err(|error| match error {
            RunError::MissingVariables(variables) => RunError::AgentVariables { agent: agent.to_string(), variables },
            other => other,
        })?;
        open.extend(called(&callee.graph).into_iter().map(|agent| (agent, own.clone())));
    }
    Ok(())
}

/// The agents that the nodes of a graph call, and those of graphs that it calls.
pub(crate) fn called(graph: &Graph) -> Vec<Key> {
    let mut agents = Vec::new();
    let mut seen: HashSet<*const Graph> = HashSet::new();
    let mut open = vec![graph];
    while let Some(graph) = open.pop() {
        // One that is called twice is looked at once, and the others after it all the same.
        if !seen.insert(std::ptr::from_ref(graph)) {
            continue;
        }
        for (_, node) in graph.nodes() {
            match &node.action {
                Action::AnswerCalls(action) => {
                    for offered in &action.tools {
                        match offered {
                            Callable::Agent { agent, .. } => agents.push(agent.clone()),
                            Callable::Loop(nested) => open.push(&nested.steps.graph),
                            _ => {}
                        }
                    }
                }
                Action::Call(action) => match &action.target {
                    CallTarget::Agent { agent, .. } => agents.push(agent.clone()),
                    target => open.extend(target.graph().map(|graph| &**graph)),
                },
                Action::Map(action) => match &action.body {
                    MapBody::Graph(items) => open.push(&items.graph),
                    // Its node is one of the graph.
                    MapBody::Node(_) => {}
                },
                _ => {}
            }
        }
    }
    agents
}
