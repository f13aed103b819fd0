//! Driving a graph: start what is ready, commit what completes, stop where it has to stop.

mod ending;
mod told;
mod waiting;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use hotcell_budget::{Account, Cost};
use hotcell_graph::State;
use hotcell_graph::ir::{Graph, NodeIndex, OnFailure};
use hotcell_journal::{Completed, Entry, Fact, JournalError, NodeFailure, RunStore, Write};
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::action::{Done, miss_node, run_node};
use crate::branch::apply;
use crate::clock::Counted;
use crate::context::{Interruption, RunContext};
use crate::drive::told::log_state;
use crate::drive::waiting::{Inbox, LONGEST_WAIT, receive, show, until, until_time};
use crate::event::Event;
use crate::memory::Moved;
use crate::outcome::{Outcome, Part, RunError};
use crate::schedule::{Route, Schedule, Start};
use crate::timing::Timings;
use crate::token::Turn;
use crate::turn::NodeTurn;

/// A hook refuses the run; the text says why.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct RunRefused(String);

/// What came of a turn.
struct Finished {
    turn: Turn,
    node: NodeIndex,
    visit: u32,
    /// When it began, on the clock of the run
    begun: Duration,
    spent: Spent,
    result: Result<Done, Interruption>,
    /// It is worked on until it is completed
    _working: Counted,
}

/// A turn that waits for an answer from elsewhere.
struct Waiting {
    node: NodeIndex,
    visit: u32,
    /// Who used what for it according to entries of their own
    recorded: Account,
    /// What is to be seen in the state while it waits
    shown: Vec<Write>,
}

/// Why a graph stopped.
pub(crate) enum Halt {
    /// It came to this, with this state
    At(Outcome, State),
    /// Somebody cancelled the run
    Cancelled(State),
}

/// What a turn leaves whatever came of it.
#[derive(Default)]
struct Spent {
    /// Who used what for attempts that failed, which have entries of their own
    before: Account,
    /// Who used what, apart from what entries of their own say
    account: Account,
    /// Who used what according to entries of their own
    recorded: Account,
    /// What is to be seen in the state while it waits, or after it failed
    shown: Vec<Write>,
    /// What kind of failure it failed with
    failure_kind: Option<String>,
}

impl Halt {
    fn into_parts(self) -> (Outcome, State) {
        match self {
            Halt::At(outcome, state) => (outcome, state),
            Halt::Cancelled(state) => (Outcome::Cancelled, state),
        }
    }
}

/// Drives a graph within a run, where the run's entries left it, to its end, or to where it waits. Whoever calls it stops it by
/// dropping it.
///
/// Boxed, because the nodes of the graph are run by the same function as the node that calls it.
pub(crate) fn drive_part(context: Arc<RunContext>, state: State) -> BoxFuture<'static, Part> {
    Box::pin(async move {
        let moves = context.base.as_ref().map(|base| context.remembered().take_agent(base)).unwrap_or_default();
        let mut drive = Drive::new(context, state);
        let result = match drive.replay(moves) {
            Ok(Some(ended)) => Ok(ended),
            Ok(None) => drive.go(CancellationToken::new()).await.map(Halt::into_parts),
            Err(error) => Err(error),
        };
        let (is_refused, failure_kind) = (drive.is_refused, drive.failure_kind.take());
        Part { result, is_refused, failure_kind, used: drive.used() }
    })
}

/// A graph that is being run: a whole run, or an agent that a node of another graph called.
pub(crate) struct Drive {
    context: Arc<RunContext>,
    graph: Arc<Graph>,
    schedule: Schedule,
    /// When it began, on the clock of the run
    begun: Duration,
    running: FuturesUnordered<BoxFuture<'static, Finished>>,
    in_flight: usize,
    /// Turns that are to be begun, in their order, as soon as there is a place among those that are worked on
    queue: VecDeque<Start>,
    /// Turns that wait for an answer from elsewhere. They have no place among those that are worked on
    waiting: HashMap<Turn, Waiting>,
    /// Turns that are worked on and for which answers came meanwhile
    answered: HashSet<Turn>,
    /// Joins that wait, and until when on the clock of the run
    timers: HashMap<NodeIndex, Duration>,
    /// Where answers and cancellations arrive; none for a graph within a run, whose run receives them
    inbox: Option<Inbox>,
    account: Account,
    /// Whether it failed because a hook refused something
    is_refused: bool,
    /// What kind of failure it failed with
    failure_kind: Option<String>,
    /// Nodes of this graph that failed and after which it went on, with what they said
    failed: Vec<(String, String)>,
    /// Whether somebody wants it to rest when the nodes that run are done
    is_pausing: bool,
    /// How long its turns took in earlier processes, where that is not known of the run
    worked: Duration,
    pub(crate) timings: Timings,
}

impl Drive {
    /// A graph at its beginning, with this state.
    pub(crate) fn new(context: Arc<RunContext>, state: State) -> Self {
        let graph = context.graph.clone();
        Drive {
            schedule: Schedule::new(&graph, state),
            begun: context.ports.clock.elapsed(),
            running: FuturesUnordered::new(),
            in_flight: 0,
            queue: VecDeque::new(),
            waiting: HashMap::new(),
            answered: HashSet::new(),
            timers: HashMap::new(),
            inbox: None,
            account: Account::default(),
            is_refused: false,
            failure_kind: None,
            failed: Vec::new(),
            is_pausing: false,
            worked: Duration::ZERO,
            timings: Timings::new(&graph),
            context,
            graph,
        }
    }

    /// A whole run, which receives what is sent to it. It was worked on for so long before.
    pub(crate) fn of_run(context: Arc<RunContext>, state: State, store: Arc<dyn RunStore>, worked: Duration) -> Self {
        let inbox = Inbox { store, worked, news: None };
        Drive { inbox: Some(inbox), ..Drive::new(context, state) }
    }

    /// Who used what for it. A turn that waits counts with what it has done so far.
    pub(crate) fn used(&self) -> Account {
        self.waiting.values().fold(self.account.clone(), |mut used, waiting| {
            used += waiting.recorded.clone();
            used
        })
    }

    /// The nodes that failed and after which the run went on, in all processes.
    pub(crate) fn failures(&self) -> Vec<NodeFailure> {
        self.context.remembered().failures.clone()
    }

    /// The state to show for a run that stops here.
    pub(crate) fn state(&self) -> State {
        self.schedule.state()
    }

    pub(crate) fn emit(&self, event: &Event<'_>) {
        self.context.ports.observer.event(event);
    }

    /// Brings the schedule to where its completed turns left it. `Some` if the run had ended without saying so.
    pub(crate) fn replay(&mut self, moves: Vec<Moved>) -> Result<Option<(Outcome, State)>, RunError> {
        let run = self.context.run.clone();
        let mismatch = |cause: String| RunError::Mismatch { run: run.clone(), cause };
        let mut started: HashMap<Turn, Start> = HashMap::new();
        for moved in moves {
            self.schedule_into(&mut started);
            let (place, completed) = match moved {
                Moved::Completed(place, completed) => (place, completed),
                Moved::Expired(node) => {
                    let node = self.graph.find(&node).ok_or_else(|| mismatch(format!("there is no node `{node}`")))?;
                    self.schedule.expire(node);
                    continue;
                }
            };
            let turn = self.context.turn_at(&place).ok_or_else(|| mismatch(format!("`{place}` is no turn")))?;
            let start = started.remove(&turn).ok_or_else(|| {
                mismatch(format!("turn {turn} was `{}`, and the graph does not come there", completed.node))
            })?;
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
            self.worked += completed.elapsed;
            self.account += completed.account;
            self.note_failure(start.node, completed.failure.as_deref());
            let (writes, has_failed) = (completed.writes, completed.failure.is_some());
            let ended = self.schedule.complete(&self.graph, turn, writes, state, &route, has_failed);
            match ended {
                Ok(Some(state)) => return Ok(Some((self.end(completed.output, &state), state))),
                Ok(None) => {}
                // The live run met the same error after this entry, and died before it could say so.
                Err(error) => return Ok(Some((self.explain(error), self.schedule.state()))),
            }
        }
        self.schedule_into(&mut started);
        let mut open: Vec<Start> = started.into_values().collect();
        open.sort_by_key(|start| start.turn);
        self.queue = open.into();
        Ok(None)
    }

    /// Leaves out all turns that are to be begun but these.
    pub(crate) fn begin_only(&mut self, turns: &HashSet<Turn>) {
        self.queue.retain(|start| turns.contains(&start.turn));
    }

    /// A turn that is to be begun.
    pub(crate) fn start_of(&self, turn: Turn) -> Option<&Start> {
        self.queue.iter().find(|start| start.turn == turn)
    }

    /// The node of a turn that is to be begun.
    pub(crate) fn begins(&self, turn: Turn) -> Option<&str> {
        Some(&self.graph.node(self.start_of(turn)?.node).id)
    }

    fn schedule_into(&mut self, started: &mut HashMap<Turn, Start>) {
        // The live run met the same error after its last entry and will meet it again.
        let starts = self.schedule.start_ready(&self.graph).unwrap_or_default();
        started.extend(starts.into_iter().map(|start| (start.turn, start)));
    }

    /// Works until nothing more can be done.
    pub(crate) async fn go(&mut self, cancel: CancellationToken) -> Result<Halt, RunError> {
        loop {
            if cancel.is_cancelled() {
                return Ok(Halt::At(Outcome::Interrupted, self.schedule.state()));
            }
            if let Some(limit) = self.graph.limits.wall_clock
                && self.worked() >= limit
            {
                return Ok(Halt::At(self.out_of_time(limit), self.schedule.state()));
            }
            match self.schedule.start_ready(&self.graph) {
                Ok(ready) => self.queue.extend(ready),
                Err(error) => return Ok(Halt::At(self.explain(error), self.schedule.state())),
            }
            let exceeded = self.context.budget_scope.within_cost(Cost::default()).err();
            // Nodes that only wait for somebody begin again when the run is resumed, as after an interruption.
            if self.is_pausing && self.in_flight <= self.context.idle.turns() {
                self.running.clear();
                return Ok(Halt::At(Outcome::Paused, self.schedule.state()));
            }
            while exceeded.is_none()
                && !self.is_pausing
                && self.has_place()
                && let Some(start) = self.queue.pop_front()
            {
                self.begin(start);
            }
            if let Some(exceeded) = exceeded
                && self.in_flight == 0
                && !self.queue.is_empty()
            {
                return Ok(Halt::At(self.out_of_money(&exceeded), self.schedule.state()));
            }
            self.set_timers().await?;
            let clock = self.context.ports.clock.clone();
            let question = self.next_question();
            if let Some((turn, at)) = question
                && at <= clock.now()
            {
                self.again(turn).await?;
                continue;
            }
            // Without what was withheld, a join would come to something that never was.
            if self.in_flight == 0 && (self.timers.is_empty() || self.has_withheld()) {
                return self.rest().await;
            }
            let deadline = self.graph.limits.deadline.map(|limit| {
                let left = limit.saturating_sub(self.worked());
                (clock.elapsed() + left.min(LONGEST_WAIT), limit)
            });
            let expires = self.timers.iter().min_by_key(|(_, at)| **at).map(|(node, at)| (*node, *at));
            let idle = self.context.idle.clone();
            let waits = clock.idle();
            let finished = tokio::select! {
                biased;
                // Dropping what runs stops cells and requests in flight.
                () = cancel.cancelled() => {
                    self.running.clear();
                    return Ok(Halt::At(Outcome::Interrupted, self.schedule.state()));
                }
                // Before what is done, so that nodes that are quick do not keep it from being seen.
                news = receive(&mut self.inbox, &self.context) => {
                    if self.take(news?).await? {
                        self.running.clear();
                        return Ok(Halt::Cancelled(self.schedule.state()));
                    }
                    continue;
                }
                () = until(&*clock, deadline.map(|(at, _)| at)) => {
                    let limit = deadline.map(|(_, limit)| limit).unwrap_or_default();
                    let outcome = self.out_of_time(limit);
                    self.running.clear();
                    return Ok(Halt::At(outcome, self.schedule.state()));
                }
                () = until(&*clock, expires.map(|(_, at)| at)) => {
                    if let Some((node, _)) = expires {
                        self.expire(node).await?;
                    }
                    continue;
                }
                () = until_time(&*clock, question.map(|(_, at)| at)) => continue,
                finished = self.running.next(), if self.in_flight > 0 => finished,
                () = idle.changed.notified() => continue,
            };
            drop(waits);
            let Some(finished) = finished else { continue };
            self.in_flight -= 1;
            if let Some((outcome, state)) = self.complete(finished).await? {
                self.running.clear();
                return Ok(Halt::At(outcome, state));
            }
        }
    }

    /// How long the graph was worked on, in all processes.
    fn worked(&self) -> Duration {
        self.inbox.as_ref().map_or(self.worked, |inbox| inbox.worked) + self.elapsed()
    }

    /// How long this process has worked on the graph.
    fn elapsed(&self) -> Duration {
        self.context.ports.clock.elapsed().saturating_sub(self.begun)
    }

    /// Whether one more turn may be worked on. Turns whose people think need no place.
    fn has_place(&self) -> bool {
        let idle = self.context.idle.turns();
        self.in_flight.saturating_sub(idle) < self.graph.limits.concurrency.max(1)
    }

    fn begin(&mut self, start: Start) {
        let graph = self.graph.clone();
        let node = graph.node(start.node);
        let acting = self.context.acting.clone();
        if acting.is_none() {
            let place = self.context.place_of(start.turn);
            let (turn, visit, place) = (start.turn, start.visit, place.as_str());
            self.emit(&Event::NodeStarted { node: &node.id, kind: node.kind, turn, visit, place });
        }
        if graph.log_state && tracing::enabled!(target: "hotcell::graph", tracing::Level::DEBUG) {
            log_state(&self.context, &graph.name, &node.id, &start.state);
        }
        let name = acting.as_ref().map_or(node.speaks_as(), |acting| &acting.node).clone();
        let mut turn = NodeTurn::new(self.context.clone(), self.context.place_of(start.turn), name);
        turn.idle = Some(self.context.idle.clone());
        let asks = node.may_ask();
        let Start { turn: number, node, visit, state, missed } = start;
        let working = self.context.ports.clock.working();
        let work = async move {
            let begun = turn.context.ports.clock.elapsed();
            let result = match missed.is_empty() {
                true => run_node(&mut turn, &graph, node, state).await,
                false => miss_node(&mut turn, &graph, node, state, &missed).await,
            };
            let NodeTurn { before, account, recorded, shown, failure_kind, .. } = turn;
            let spent = Spent { before, account, recorded, shown, failure_kind };
            Finished { turn: number, node, visit, begun, spent, result, _working: working }
        };
        // The only node that runs needs no task of its own; several share the cores. Those that may ask somebody begin one after
        // the other, so that they ask in their order.
        if self.in_flight == 0 || asks {
            self.running.push(Box::pin(work));
        } else {
            let clock = self.context.ports.clock.clone();
            let task = AbortOnDropHandle::new(tokio::spawn(work));
            self.running.push(Box::pin(async move {
                task.await.unwrap_or_else(|error| {
                    let result = Err(Interruption::Failed(format!("the node's task was lost: {error}")));
                    let (begun, spent, working) = (clock.elapsed(), Spent::default(), clock.working());
                    Finished { turn: number, node, visit, begun, spent, result, _working: working }
                })
            }));
        }
        self.in_flight += 1;
    }

    async fn complete(&mut self, finished: Finished) -> Result<Option<(Outcome, State)>, RunError> {
        let Finished { turn, node, visit, begun, spent, result, _working } = finished;
        let elapsed = self.context.ports.clock.elapsed().saturating_sub(begun);
        let Spent { before, account: own, recorded, shown, failure_kind } = spent;
        self.account += before;
        self.account += own.clone();
        if let Err(Interruption::Waiting) = result {
            self.waiting.insert(turn, Waiting { node, visit, recorded, shown });
            if self.answered.remove(&turn) {
                self.again(turn).await?;
            }
            return Ok(None);
        }
        self.answered.remove(&turn);
        self.account += recorded.clone();
        let mut account = own.clone();
        account += recorded;
        let graph = self.graph.clone();
        let id = &graph.node(node).id;
        self.is_refused = matches!(result, Err(Interruption::Refused(_)));
        let done = match result {
            Ok(done) => done,
            Err(Interruption::Waiting) => return Ok(None),
            Err(Interruption::Failed(reason) | Interruption::Refused(reason)) => {
                self.timings.add(node, elapsed);
                self.failure_kind = failure_kind;
                let mut state = self.schedule.state_of(turn).unwrap_or_default();
                show(&graph, &mut state, &shown);
                let fact = Fact::Failed { number: None, error: reason.clone(), account: own };
                let place = self.context.place_of(turn);
                let entry = Entry { place: place.clone(), fact };
                self.context.writer.append(vec![entry]).await?;
                if self.context.acting.is_none() {
                    self.emit(&Event::NodeFailed { node: id, turn, error: &reason, elapsed, place: place.as_str() });
                }
                let id = graph.node(node).speaks_as();
                // A step fails for the node, which says so itself.
                let is_step = self.context.acting.is_some();
                let error = if is_step { reason } else { format!("node `{id}` failed: {reason}") };
                return Ok(Some((Outcome::Failed { node: Some(id.to_string()), error }, state)));
            }
            Err(Interruption::Diverged(cause)) => {
                return Err(RunError::Mismatch { run: self.context.run.clone(), cause });
            }
            Err(Interruption::Journal(error)) => return Err(error.into()),
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
            handled: done.failure.is_some() && matches!(graph.node(node).on_failure, OnFailure::To(_)),
            failure_kind: failure_kind.filter(|_| done.failure.is_some()),
            failure: done.failure,
            elapsed,
            account,
        };
        let place = self.context.place_of(turn);
        self.note_failure(node, completed.failure.as_deref());
        if let Some(failure) = NodeFailure::of(&place, &completed) {
            self.context.remembered().failures.push(failure);
        }
        let entry = Entry { place, fact: Fact::Completed(completed.clone()) };
        self.context.writer.append(vec![entry]).await?;
        if self.context.acting.is_none() {
            self.tell_completed(turn, &completed);
        }
        let (writes, has_failed) = (completed.writes, completed.failure.is_some());
        match self.schedule.complete(&graph, turn, writes, done.state, &done.route, has_failed) {
            Ok(Some(state)) => Ok(Some((self.end(completed.output, &state), state))),
            Ok(None) => Ok(None),
            Err(error) => Ok(Some((self.explain(error), self.schedule.state()))),
        }
    }

    /// Takes note of a node that failed and after which the graph goes on.
    fn note_failure(&mut self, node: NodeIndex, failure: Option<&str>) {
        if let Some(failure) = failure {
            self.failed.push((self.graph.node(node).speaks_as().to_string(), failure.to_owned()));
        }
    }

    /// Commits how the run stands.
    ///
    /// # Errors
    /// [`JournalError::Unread`] when something was sent to the run that has to be looked at first.
    pub(crate) async fn settle(&mut self, outcome: &Outcome) -> Result<(), JournalError> {
        let fact = match outcome {
            Outcome::Completed { output } => Fact::Ended { result: Ok(output.clone()), node: None },
            Outcome::Failed { node, error } => Fact::Ended { result: Err(error.clone()), node: node.clone() },
            Outcome::Stopped { reason } => Fact::Stopped { reason: reason.clone() },
            Outcome::Waiting { .. } => Fact::Waiting,
            Outcome::Paused => Fact::Paused,
            // Nothing ends with it: giving the run free says that nobody works on it.
            Outcome::Interrupted | Outcome::Cancelled => return Ok(()),
        };
        self.context.writer.append(vec![Entry::of_run(fact)]).await
    }

    /// Waits until everything that was committed is safe.
    pub(crate) async fn settled(&mut self) -> Result<(), JournalError> {
        self.context.writer.settled().await
    }
}
