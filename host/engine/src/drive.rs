//! Driving a graph: start what is ready, commit what completes, stop where it has to stop.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use hotcell_budget::Account;
use hotcell_graph::ir::{CapOrigin, Graph, NodeIndex, VisitCap};
use hotcell_graph::{State, Value};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::action::{Done, run_node};
use crate::branch::{Write, apply};
use crate::event::Event;
use crate::given::{Given, list};
use crate::hook::{self, HookPoint};
use crate::journal::{Completed, Entry, Fact, JournalError, Place, Question, RunStatus, open_questions};
use crate::run::{Outcome, RunError};
use crate::schedule::{Route, Schedule, ScheduleError, Start, Turn};
use crate::timing::Timings;
use crate::turn::{NodeTurn, RunContext, Stop};

/// How often a run looks whether it was cancelled by another process.
const WATCH: Duration = Duration::from_millis(50);

type Finished = (Turn, NodeIndex, Instant, Spent, Result<Done, Stop>);

/// What a turn leaves whatever came of it.
#[derive(Default)]
struct Spent {
    /// Who used what, apart from what entries of their own say
    account: Account,
    /// Who used what according to entries of their own
    recorded: Account,
    /// What is to be seen in the state while it waits, or after it failed
    shown: Vec<Write>,
}

/// A graph that is being run: a whole run, or an agent that a node of another graph called.
pub(crate) struct Drive {
    context: Arc<RunContext>,
    graph: Arc<Graph>,
    schedule: Schedule,
    begun: Instant,
    running: FuturesUnordered<BoxFuture<'static, Finished>>,
    in_flight: usize,
    /// Turns that wait for a person, with what they show of their work
    waiting: Vec<(Turn, Vec<Write>)>,
    /// Turns that were started but not completed when the journal ended
    pending: Vec<Start>,
    pub(crate) account: Account,
    pub(crate) timings: Timings,
}

impl Drive {
    /// A graph at its beginning, with this state.
    pub(crate) fn new(context: Arc<RunContext>, state: State) -> Self {
        let graph = context.graph.clone();
        Drive {
            schedule: Schedule::new(&graph, state),
            begun: Instant::now(),
            running: FuturesUnordered::new(),
            in_flight: 0,
            waiting: Vec::new(),
            pending: Vec::new(),
            account: Account::default(),
            timings: Timings::new(&graph),
            context,
            graph,
        }
    }

    /// The state to show for a run that stops here.
    pub(crate) fn state(&self) -> State {
        self.schedule.state()
    }

    pub(crate) fn emit(&self, event: &Event<'_>) {
        self.context.ports.observer.event(event);
    }

    /// Tells hooks that a run begins; the error is why they refuse it.
    pub(crate) async fn before_run(&mut self, given: &Given, resumed: bool) -> Result<(), String> {
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
    pub(crate) async fn after_run(&mut self, outcome: &Outcome) {
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

    /// Brings the schedule to where its completed turns left it. `Some` if the run had ended without saying so.
    pub(crate) fn replay(&mut self, completed: Vec<(Place, Completed)>) -> Result<Option<(Outcome, State)>, RunError> {
        let run = self.context.run.clone();
        let mismatch = |cause: String| RunError::Mismatch { run: run.clone(), cause };
        let mut started: HashMap<Turn, Start> = HashMap::new();
        for (place, completed) in completed {
            self.schedule_into(&mut started).map_err(&mismatch)?;
            let turn = self.context.turn_at(&place).ok_or_else(|| mismatch(format!("`{place}` is no turn")))?;
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

    pub(crate) async fn go(&mut self, cancel: CancellationToken) -> Result<(Outcome, State), RunError> {
        let mut watch = tokio::time::interval(WATCH);
        watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if cancel.is_cancelled() {
                return Ok((Outcome::Interrupted, self.schedule.state()));
            }
            if let Some(limit) = self.graph.limits.wall_clock
                && self.begun.elapsed() >= limit
            {
                return Ok((self.out_of_time(limit), self.schedule.state()));
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
                return Ok((Outcome::Waiting { questions: self.questions()? }, self.state_while_waiting()));
            }
            let finished = loop {
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => break None,
                    // Before what is done, so that nodes that are quick do not keep it from being seen.
                    _ = watch.tick(), if self.context.base.is_none() => {
                        if self.context.journal.status(&self.context.run)? == RunStatus::Cancelled {
                            break None;
                        }
                    }
                    finished = self.running.next() => break finished,
                }
            };
            let Some((turn, node, begun, spent, result)) = finished else {
                // Dropping what runs stops cells and requests in flight.
                self.running.clear();
                return Ok((Outcome::Interrupted, self.schedule.state()));
            };
            self.in_flight -= 1;
            if let Some(end) = self.complete(turn, node, begun.elapsed(), spent, result)? {
                self.running.clear();
                return Ok(end);
            }
        }
    }

    /// The state, with what waiting turns show of their work.
    fn state_while_waiting(&self) -> State {
        let mut state = self.schedule.state();
        self.waiting.iter().for_each(|(_, shown)| show(&self.graph, &mut state, shown));
        state
    }

    /// The questions of the whole run that wait for an answer. An agent leaves them to the run that it works for.
    fn questions(&self) -> Result<Vec<Question>, RunError> {
        if self.context.base.is_some() {
            return Ok(Vec::new());
        }
        let entries = self.context.journal.entries(&self.context.run)?;
        Ok(open_questions(&entries).into_iter().map(|open| open.question).collect())
    }

    fn begin(&mut self, start: Start) {
        let graph = self.graph.clone();
        let node = graph.node(start.node);
        self.emit(&Event::NodeStarted { node: &node.id, kind: node.kind, turn: start.turn, visit: start.visit });
        if graph.log_state && tracing::enabled!(target: "hotcell::graph", tracing::Level::DEBUG) {
            log_state(&graph.name, &node.id, &start.state);
        }
        let mut turn = NodeTurn::new(self.context.clone(), self.context.place_of(start.turn), node.speaks_as().clone());
        let asks = node.may_ask();
        let work = async move {
            let begun = Instant::now();
            let result = run_node(&mut turn, &graph, start.node, start.state).await;
            let NodeTurn { account, recorded, shown, .. } = turn;
            (start.turn, start.node, begun, Spent { account, recorded, shown }, result)
        };
        // The only node that runs needs no task of its own; several share the cores. Those that may ask somebody begin one after
        // the other, so that they ask in their order.
        if self.in_flight == 0 || asks {
            self.running.push(Box::pin(work));
        } else {
            let task = AbortOnDropHandle::new(tokio::spawn(work));
            let (turn, node) = (start.turn, start.node);
            self.running.push(Box::pin(async move {
                task.await.unwrap_or_else(|error| {
                    let lost = Stop::Failed(format!("the node's task was lost: {error}"));
                    (turn, node, Instant::now(), Spent::default(), Err(lost))
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
        spent: Spent,
        result: Result<Done, Stop>,
    ) -> Result<Option<(Outcome, State)>, RunError> {
        let Spent { account: own, recorded, shown } = spent;
        let mut account = own.clone();
        account += recorded;
        self.account += account.clone();
        let graph = self.graph.clone();
        let id = &graph.node(node).id;
        let done = match result {
            Ok(done) => done,
            Err(Stop::Waiting) => {
                self.waiting.push((turn, shown));
                return Ok(None);
            }
            Err(Stop::Failed(reason)) => {
                self.timings.add(node, elapsed);
                let mut state = self.schedule.state_of(turn).unwrap_or_default();
                show(&graph, &mut state, &shown);
                let fact = Fact::Failed { number: None, error: reason.clone(), account: own };
                let entry = Entry { place: self.context.place_of(turn), fact };
                self.context.journal.append(&self.context.run, &entry)?;
                let id = graph.node(node).speaks_as();
                let error = format!("node `{id}` failed: {reason}");
                return Ok(Some((Outcome::Failed { node: Some(id.to_string()), error }, state)));
            }
            Err(Stop::Diverged(cause)) => return Err(RunError::Mismatch { run: self.context.run.clone(), cause }),
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
        let entry = Entry { place: self.context.place_of(turn), fact: Fact::Completed(completed) };
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

    /// The end of a run that has used up its time. It is noticed between two nodes.
    fn out_of_time(&self, limit: Duration) -> Outcome {
        let mut coming = self.schedule.coming();
        coming.extend(self.pending.iter().map(|start| start.node));
        coming.sort_unstable();
        coming.dedup();
        let coming: Vec<String> =
            coming.into_iter().map(|node| self.graph.node(node).speaks_as().to_string()).collect();
        let before = if coming.is_empty() { String::new() } else { format!(" before {}", list(&coming)) };
        let error = format!("the run timed out{before}: it is limited to {} s", limit.as_secs_f64());
        Outcome::Failed { node: None, error }
    }

    fn explain(&self, error: ScheduleError) -> Outcome {
        let id = |node: NodeIndex| self.graph.node(node).id.to_string();
        match error {
            ScheduleError::Visits { node, visits } => {
                let node = id(node);
                let error = reached(self.graph.limits.visits_per_node.as_ref(), |setting, cap| {
                    format!(
                        "node '{node}' visited {visits} times ({setting}={cap}); it may be a loop without end, or the cap is too low"
                    )
                });
                Outcome::Failed { node: Some(node), error }
            }
            ScheduleError::Rounds { node } => {
                let node = id(node);
                let error = reached(self.graph.limits.rounds.as_ref(), |setting, cap| {
                    format!(
                        "the run has had {cap} rounds ({setting}={cap}) and would go on with node `{node}`; it may be a loop without end, or the limit is too low"
                    )
                });
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

    /// Commits how the run stands. Somebody may have cancelled it in the meantime: then it is interrupted, whatever it
    /// came to.
    pub(crate) fn settle(&self, outcome: Outcome) -> Result<Outcome, RunError> {
        let (status, text) = match &outcome {
            Outcome::Completed { output } => (RunStatus::Completed, Some(output.as_str())),
            Outcome::Failed { error, .. } => (RunStatus::Failed, Some(error.as_str())),
            Outcome::Waiting { .. } => (RunStatus::Waiting, None),
            // The journal says `running`; the lock that is given free says that nobody does.
            Outcome::Interrupted => return Ok(outcome),
        };
        match self.context.journal.set_status(&self.context.run, status, text) {
            Err(JournalError::Cancelled(_)) => Ok(Outcome::Interrupted),
            other => Ok(other.map(|()| outcome)?),
        }
    }

    /// Tells whoever watches how the run stands.
    pub(crate) fn tell(&self, outcome: &Outcome) {
        let run = &self.context.run;
        let graph = &self.graph.name;
        match outcome {
            Outcome::Completed { output } => {
                tracing::info!(target: "hotcell::graph", run = %run, "[graph:{graph}] completed");
                let (elapsed, usage) = (self.begun.elapsed(), self.account.total());
                self.emit(&Event::RunCompleted { run, output, elapsed, usage: &usage });
            }
            Outcome::Failed { node, error } => {
                tracing::error!(target: "hotcell::graph", run = %run, "[graph:{graph}] failed: {error}");
                self.emit(&Event::RunFailed { run, node: node.as_deref(), error });
            }
            Outcome::Waiting { questions } => {
                tracing::info!(target: "hotcell::graph", run = %run, "[graph:{graph}] waits for a person");
                self.emit(&Event::RunWaiting { run, questions });
            }
            Outcome::Interrupted => self.emit(&Event::RunInterrupted { run }),
        }
        self.timings.log(graph);
    }
}

/// What it means that a cap is reached: in its own words, or by the name of its setting and how much that allows.
fn reached(cap: Option<&VisitCap>, by_setting: impl FnOnce(&str, u32) -> String) -> String {
    match cap.map(|cap| (&cap.origin, cap.visits)) {
        Some((CapOrigin::Fixed(words), _)) => words.clone(),
        Some((CapOrigin::Setting(setting), visits)) => by_setting(setting, visits),
        None => by_setting("", 0),
    }
}

/// Adds what a turn shows of its work to a state that nothing goes on with.
fn show(graph: &Graph, state: &mut State, shown: &[Write]) {
    for write in shown {
        // A write that cannot be combined is not shown; the turn will say so when it gets there.
        let _ = apply(graph, state, write);
    }
}

fn log_state(graph: &str, node: &str, state: &State) {
    let object = state.to_object();
    let keys: Vec<&str> = object.iter().map(|(key, _)| &**key).collect();
    let text = Value::Object(object.clone()).to_json();
    tracing::debug!(target: "hotcell::graph", "[graph:{graph}] before `{node}`: state of {} bytes, keys {keys:?}", text.len());
    tracing::trace!(target: "hotcell::graph", "[graph:{graph}] before `{node}`: state {text}");
}
