//! Runs: starting one, going on with one, and how it stands afterwards.

mod agents;
mod read;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use hotcell_budget::{Account, BudgetScope, Bytes, JOURNAL_BYTES, Usage};
use hotcell_graph::ir::Graph;
use hotcell_graph::{Key, State};
use hotcell_journal::{
    Entry, Fact, History, JournalError, NodeFailure, RunHeader, RunId, RunStatus, RunStore, RunWriter, Taken,
};
use tokio_util::sync::CancellationToken;

use self::agents::check_agents;
pub(crate) use self::agents::{CalledAgent, called};
use crate::action::job::BEGUN;
use crate::context::RunContext;
use crate::drive::{Drive, Halt, drive_part};
use crate::event::{Event, Observer};
use crate::gates::Gates;
use crate::lease::Lease;
use crate::memory::Remembered;
use crate::no_writer::NoWriter;
use crate::outcome::{Outcome, RunError};
use crate::ports::{Nobody, Ports};
use crate::redaction::{Redaction, RedactionKeys};
use crate::run_input::{RunInput, check_variables, initial_state};
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
    /// What its state is at its beginning
    pub(crate) state: State,
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
    /// When it was begun and when it came to rest, as the journal has it. None if the journal has to be asked: for a run that was not
    /// begun by whoever reports it, that does not rest, or that redacts values
    pub times: Option<(SystemTime, SystemTime)>,
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
        let state = initial_state(&graph, &request.given)?;
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
        let from = Beginning { given: &request.given, state, variables, redaction };
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
        self.call_off_turns(run, graph, |_| true).await
    }

    /// The same of what these turns of a run began.
    async fn call_off_turns(
        &self,
        run: &RunId,
        graph: Arc<Graph>,
        is_wanted: impl Fn(&Turn) -> bool + Send,
    ) -> Result<(), RunError> {
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
        let open: HashSet<Turn> = begun.filter(|turn| is_wanted(turn) && !is_done(turn)).collect();
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
        let state = initial_state(&graph, &given)?;
        let Taken { writer, history } = self.store.take(run, fact).await.map_err(|error| match error {
            JournalError::Ended { run, status } => RunError::Ended { run, status },
            JournalError::Cancelled(run) => RunError::Ended { run, status: RunStatus::Cancelled },
            other => other.into(),
        })?;
        if let Some(digest) = &self.revision {
            writer.append(vec![Entry::of_run(Fact::Revised { digest: digest.clone() })]).await?;
        }
        let history = opened(redaction.as_deref(), history);
        let from = Beginning { given: &given, state, variables, redaction };
        self.drive(writer, graph, from, history, cancel).await
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
        let Beginning { given, state, variables, redaction } = from;
        let _working = self.ports.clock.working();
        let resumed = !history.entries.is_empty();
        let worked = history.worked;
        let (lease, gone) = Lease::new(writer, &history.entries, self.most_written.0, redaction.clone());
        let what_if = given.fork.clone().map(|origin| WhatIf::new(origin, &history.entries));
        let (remembered, completed, spent) = Remembered::of(history.entries);
        let context = self.context(Arc::new(lease), &graph, variables, redaction.clone(), remembered, spent);
        let context = Arc::new(RunContext { what_if, ..context });
        let (run, writer) = (context.run.clone(), context.writer.clone());
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
        if outcome == Outcome::Cancelled {
            // What turns began that run is called off where they are stopped. Those that wait are not there any more.
            let waiting: HashSet<Turn> = drive.waiting_turns().collect();
            if !waiting.is_empty() {
                let ports = Ports { people: Arc::new(Nobody), observer: Arc::new(Nobody), ..self.ports.clone() };
                let unattended = Engine { ports, ..self.clone() };
                let called_off = unattended.call_off_turns(&run, graph.clone(), |turn| waiting.contains(turn));
                if let Err(error) = Box::pin(called_off).await {
                    tracing::warn!(target: "hotcell::graph", run = %run, %error, "what the run began elsewhere is not called off");
                }
            }
        }
        drive.after_run(&outcome).await;
        drive.tell(&outcome);
        let (account, failures) = (drive.used(), drive.failures());
        let timings = drive.timings.clone();
        let times = writer.times().filter(|_| redaction.is_none());
        // Whoever has it keeps the run.
        drop(writer);
        if outcome == Outcome::Interrupted {
            // Whoever is told that a run was interrupted can go on with it at once.
            drop(drive);
            let _ = tokio::time::timeout(LETTING_GO, gone).await;
        }
        let (outcome, state, failures) = match &redaction {
            Some(redaction) => (redaction.outcome(outcome), redaction.state(&state), redaction.failures(&failures)),
            None => (outcome, state, failures),
        };
        Ok(RunReport { run, outcome, state, account, failures, timings, times })
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
