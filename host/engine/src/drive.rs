//! Driving a graph: start what is ready, commit what completes, stop where it has to stop.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use hotcell_budget::{Account, Cost, CostExceeded};
use hotcell_graph::ir::{CapOrigin, Ends, FailedNodes, Graph, NodeIndex, OnFailure, VisitCap};
use hotcell_graph::{State, Value};
use hotcell_journal::{Completed, Entry, Fact, JournalError, NodeFailure, RunStore, Write, open_questions};
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::action::{Done, miss_node, run_node};
use crate::branch::apply;
use crate::clock::{Clock, Counted};
use crate::context::{Interruption, RunContext};
use crate::event::Event;
use crate::hook::{self, HookPoint};
use crate::memory::Moved;
use crate::outcome::{Outcome, Part, RunError, list};
use crate::run_input::RunInput;
use crate::schedule::{Route, Schedule, ScheduleError, Start};
use crate::telling;
use crate::timing::Timings;
use crate::token::Turn;
use crate::turn::NodeTurn;

/// The longest that a join waits: more than anybody means, and less than clocks can say.
const LONGEST_WAIT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

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

    /// Tells hooks that a run begins, which they may refuse.
    pub(crate) async fn before_run(&mut self, given: &RunInput, resumed: bool) -> Result<(), RunRefused> {
        if resumed {
            return Ok(());
        }
        let context = self.context.clone();
        let event = || {
            let mut event = given.to_object();
            event.insert("graph", self.graph.name.as_str().into());
            event
        };
        match telling::tell(&context, &mut self.account, HookPoint::BeforeRun, event).await {
            Err(Interruption::Failed(reason) | Interruption::Refused(reason)) => Err(RunRefused(reason)),
            _ => Ok(()),
        }
    }

    /// Tells hooks how a run ended.
    pub(crate) async fn after_run(&mut self, outcome: &Outcome) {
        let (status, key, text) = match outcome {
            Outcome::Completed { output } => ("completed", "output", output),
            Outcome::Failed { error, .. } => ("failed", "error", error),
            Outcome::Stopped { reason } => ("stopped", "error", reason),
            Outcome::Waiting { .. } | Outcome::Interrupted | Outcome::Paused | Outcome::Cancelled => return,
        };
        let context = self.context.clone();
        let event = || {
            let graph = self.graph.name.as_str().into();
            hook::event([("graph", graph), ("status", status.into()), (key, text.as_str().into())])
        };
        // The run has ended already: nothing that a hook says of it makes a difference.
        let _ = telling::tell(&context, &mut self.account, HookPoint::AfterRun, event).await;
    }

    /// Brings the schedule to where its completed turns left it. `Some` if the run had ended without saying so.
    pub(crate) fn replay(&mut self, moves: Vec<Moved>) -> Result<Option<(Outcome, State)>, RunError> {
        let run = self.context.run.clone();
        let mismatch = |cause: String| RunError::Mismatch { run: run.clone(), cause };
        let mut started: HashMap<Turn, Start> = HashMap::new();
        for moved in moves {
            self.schedule_into(&mut started).map_err(&mismatch)?;
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
        self.schedule_into(&mut started).map_err(&mismatch)?;
        let mut open: Vec<Start> = started.into_values().collect();
        open.sort_by_key(|start| start.turn);
        self.queue = open.into();
        Ok(None)
    }

    /// The node of a turn that is to be begun.
    pub(crate) fn begins(&self, turn: Turn) -> Option<&str> {
        let start = self.queue.iter().find(|start| start.turn == turn)?;
        Some(&self.graph.node(start.node).id)
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
            if self.in_flight == 0 && self.timers.is_empty() {
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

    /// Sees to it that no join waits longer than it may. How long is decided once, and kept.
    async fn set_timers(&mut self) -> Result<(), RunError> {
        let place = self.context.base.clone().unwrap_or_default();
        let clock = self.context.ports.clock.clone();
        let deadlines = self.schedule.deadlines(&self.graph);
        self.timers.retain(|node, _| deadlines.iter().any(|(waiting, _)| waiting == node));
        for (node, deadline) in deadlines {
            let deadline = deadline.min(LONGEST_WAIT);
            if self.timers.contains_key(&node) {
                continue;
            }
            let id = self.graph.node(node).id.to_string();
            let known = self.context.remembered().timer(&place, &id);
            let left = match known {
                // A clock that was set back makes nobody wait longer than was said.
                Some(at) => at.duration_since(clock.now()).unwrap_or_default().min(deadline),
                None => {
                    let fact = Fact::TimerSet { node: id, at: clock.now() + deadline };
                    self.context.writer.append(vec![Entry { place: place.clone(), fact }]).await?;
                    deadline
                }
            };
            self.timers.insert(node, clock.elapsed() + left);
        }
        Ok(())
    }

    /// Goes on without what a join has waited for.
    async fn expire(&mut self, node: NodeIndex) -> Result<(), RunError> {
        self.timers.remove(&node);
        let fact = Fact::TimerFired { node: self.graph.node(node).id.to_string() };
        let place = self.context.base.clone().unwrap_or_default();
        self.context.writer.append(vec![Entry { place, fact }]).await?;
        self.schedule.expire(node);
        Ok(())
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

    /// The end of what can be done now.
    async fn rest(&mut self) -> Result<Halt, RunError> {
        if self.waiting.is_empty() {
            let error = "no node is left to run and none has ended the run".to_owned();
            return Ok(Halt::At(Outcome::Failed { node: None, error }, self.schedule.state()));
        }
        let mut state = self.schedule.state();
        let mut turns: Vec<&Turn> = self.waiting.keys().collect();
        turns.sort_unstable();
        for turn in turns {
            show(&self.graph, &mut state, &self.waiting[turn].shown);
        }
        // An agent leaves the questions to the run that it works for.
        let questions = match &self.inbox {
            Some(inbox) => {
                let entries = inbox.store.history(&self.context.run).await?.whole()?;
                open_questions(&entries).into_iter().map(|open| open.question).collect()
            }
            None => Vec::new(),
        };
        Ok(Halt::At(Outcome::Waiting { questions }, state))
    }

    /// Takes what was sent to the run; `true` if it was cancelled. Turns that waited for an answer are begun again, with
    /// everything that they have done.
    pub(crate) async fn take(&mut self, news: Vec<Entry>) -> Result<bool, RunError> {
        let mut again: Vec<Turn> = Vec::new();
        for Entry { place, fact } in news {
            match fact {
                Fact::Cancelled => {
                    self.context.remembered().is_cancelled = true;
                    return Ok(true);
                }
                Fact::PauseAsked => self.is_pausing = true,
                Fact::Answered { number, text } => {
                    let turn = place.turn();
                    self.context.remembered().answer(place, number, text);
                    match turn.filter(|turn| self.waiting.contains_key(turn)) {
                        Some(turn) => again.push(turn),
                        None => self.answered.extend(turn),
                    }
                }
                _ => {}
            }
        }
        self.context.answered.notify_waiters();
        for turn in again {
            self.again(turn).await?;
        }
        Ok(false)
    }

    /// The first question of turns that wait whose time is over next. A graph within a run leaves that to the run.
    fn next_question(&self) -> Option<(Turn, SystemTime)> {
        self.inbox.as_ref()?;
        self.context.remembered().next_due(|turn| self.waiting.contains_key(&turn))
    }

    /// Begins a turn again that waited.
    async fn again(&mut self, turn: Turn) -> Result<(), RunError> {
        let (Some(inbox), Some(waiting)) = (&self.inbox, self.waiting.remove(&turn)) else { return Ok(()) };
        let entries = inbox.store.history(&self.context.run).await?.whole()?;
        self.context.remembered().refresh(entries, turn);
        let Waiting { node, visit, .. } = waiting;
        let state = self.schedule.state_of(turn).unwrap_or_default();
        self.queue.push_back(Start { turn, node, visit, state, missed: Vec::new() });
        Ok(())
    }

    fn begin(&mut self, start: Start) {
        let graph = self.graph.clone();
        let node = graph.node(start.node);
        let acting = self.context.acting.clone();
        if acting.is_none() {
            self.emit(&Event::NodeStarted { node: &node.id, kind: node.kind, turn: start.turn, visit: start.visit });
        }
        if graph.log_state && tracing::enabled!(target: "hotcell::graph", tracing::Level::DEBUG) {
            log_state(&graph.name, &node.id, &start.state);
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
                let entry = Entry { place: self.context.place_of(turn), fact };
                self.context.writer.append(vec![entry]).await?;
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

    fn tell_completed(&self, turn: Turn, completed: &Completed) {
        let (graph, id) = (&self.graph, &completed.node);
        self.emit(&Event::NodeCompleted {
            node: id,
            turn,
            next: completed.next.as_deref().unwrap_or_default(),
            failure: completed.failure.as_deref(),
            elapsed: completed.elapsed,
            usage: &completed.account.total(),
        });
        tracing::debug!(target: "hotcell::graph", "[graph:{}] `{id}` -> {:?}", graph.name, completed.next);
        if let Some(failure) = &completed.failure {
            tracing::warn!(target: "hotcell::graph", "[graph:{}] `{id}` failed: {failure}", graph.name);
        }
    }

    /// Takes note of a node that failed and after which the graph goes on.
    fn note_failure(&mut self, node: NodeIndex, failure: Option<&str>) {
        if let Some(failure) = failure {
            self.failed.push((self.graph.node(node).speaks_as().to_string(), failure.to_owned()));
        }
    }

    /// The end of a run: at a node, with its output, or because nothing is left to run.
    fn end(&self, output: Option<String>, state: &State) -> Outcome {
        if let (Some(_), Err(exceeded)) =
            (&self.graph.limits.budget.cost, self.context.budget_scope.within_cost(Cost::default()))
        {
            return self.out_of_money(&exceeded);
        }
        if self.graph.scheduling.failed_nodes == FailedNodes::FailTheRun
            && let Some((node, _)) = self.failed.first()
        {
            let errors: Vec<String> =
                self.failed.iter().map(|(node, failure)| format!("node `{node}` failed: {failure}")).collect();
            return Outcome::Failed { node: Some(node.clone()), error: errors.join("; ") };
        }
        let output = match (&self.graph.scheduling.ends, output) {
            (_, Some(output)) => Ok(output),
            (Ends::WhenQuiet { output }, None) => output.evaluate_text(state).map_err(|missing| missing.to_string()),
            (Ends::AtNode, None) => Ok(String::new()),
        };
        match output {
            Ok(output) => Outcome::Completed { output },
            Err(missing) => Outcome::Failed { node: None, error: format!("the result of the run: {missing}") },
        }
    }

    /// The end of a run that has used up its time. It is noticed between two nodes.
    fn out_of_time(&self, limit: Duration) -> Outcome {
        let mut coming = self.schedule.coming();
        coming.extend(self.queue.iter().map(|start| start.node));
        coming.sort_unstable();
        coming.dedup();
        let coming: Vec<String> =
            coming.into_iter().map(|node| self.graph.node(node).speaks_as().to_string()).collect();
        let before = if coming.is_empty() { String::new() } else { format!(" before {}", list(&coming)) };
        let error = format!("the run timed out{before}: it is limited to {} s", limit.as_secs_f64());
        Outcome::Failed { node: None, error }
    }

    /// The end of a run that has spent more than it may. What was under way has come to its end.
    fn out_of_money(&self, exceeded: &CostExceeded) -> Outcome {
        let names = self.queue.iter().map(|start| self.graph.node(start.node).speaks_as().to_string());
        let names: Vec<String> = names.collect();
        let before = if names.is_empty() { String::new() } else { format!(" before {}", list(&names)) };
        Outcome::Failed { node: None, error: format!("run-budget: the run stopped{before}: {exceeded}") }
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
            ScheduleError::Turns { node } => Outcome::Stopped {
                reason: reached(self.graph.limits.turns.as_ref(), |setting, cap| {
                    let node = self.graph.node(node).speaks_as();
                    format!("the run has had {cap} turns ({setting}={cap}) and would go on with node `{node}`")
                }),
            },
            ScheduleError::Hops { node } => Outcome::Stopped {
                reason: reached(self.graph.limits.hops.as_ref(), |setting, cap| {
                    let node = self.graph.node(node).speaks_as();
                    format!("nodes led to others {cap} times ({setting}={cap}), and the run would go on with `{node}`")
                }),
            },
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

    /// Waits for what was sent to the run.
    pub(crate) async fn receive(&mut self) -> Result<Vec<Entry>, RunError> {
        Ok(receive(&mut self.inbox, &self.context).await?)
    }

    /// Tells whoever watches how the run stands.
    pub(crate) fn tell(&self, outcome: &Outcome) {
        let run = &self.context.run;
        let graph = &self.graph.name;
        match outcome {
            Outcome::Completed { output } => {
                tracing::info!(target: "hotcell::graph", run = %run, "[graph:{graph}] completed");
                let (elapsed, usage) = (self.elapsed(), self.account.total());
                let failures = self.failures();
                self.emit(&Event::RunCompleted { run, output, failures: &failures, elapsed, usage: &usage });
            }
            Outcome::Failed { node, error } => {
                tracing::error!(target: "hotcell::graph", run = %run, "[graph:{graph}] failed: {error}");
                self.emit(&Event::RunFailed { run, node: node.as_deref(), error });
            }
            Outcome::Stopped { reason } => {
                tracing::warn!(target: "hotcell::graph", run = %run, "[graph:{graph}] stopped: {reason}");
                self.emit(&Event::RunStopped { run, reason });
            }
            Outcome::Waiting { questions } => {
                tracing::info!(target: "hotcell::graph", run = %run, "[graph:{graph}] waits for a person");
                self.emit(&Event::RunWaiting { run, questions });
            }
            Outcome::Interrupted => self.emit(&Event::RunInterrupted { run }),
            Outcome::Paused => {
                tracing::info!(target: "hotcell::graph", run = %run, "[graph:{graph}] paused");
                self.emit(&Event::RunPaused { run });
            }
            Outcome::Cancelled => {
                tracing::info!(target: "hotcell::graph", run = %run, "[graph:{graph}] cancelled");
                self.emit(&Event::RunCancelled { run });
            }
        }
        self.timings.log(graph);
    }
}

/// Waits until that time of the clock, or for ever.
async fn until_time(clock: &dyn Clock, at: Option<SystemTime>) {
    match at {
        Some(at) => clock.sleep(at.duration_since(clock.now()).unwrap_or_default().min(LONGEST_WAIT)).await,
        None => std::future::pending().await,
    }
}

/// Waits until the clock has come there, or for ever.
async fn until(clock: &dyn Clock, at: Option<Duration>) {
    match at {
        Some(at) => clock.sleep(at.saturating_sub(clock.elapsed())).await,
        None => std::future::pending().await,
    }
}

/// What is sent to a run.
struct Inbox {
    store: Arc<dyn RunStore>,
    /// How long the run was worked on in earlier processes
    worked: Duration,
    /// What is waited for
    news: Option<BoxFuture<'static, Result<Vec<Entry>, JournalError>>>,
}

/// Waits for what is sent to a run. What has begun to be received is not lost when this is dropped.
async fn receive(inbox: &mut Option<Inbox>, context: &Arc<RunContext>) -> Result<Vec<Entry>, JournalError> {
    let Some(inbox) = inbox else { return std::future::pending().await };
    let news = inbox.news.get_or_insert_with(|| {
        let writer = context.writer.clone();
        Box::pin(async move { writer.receive().await })
    });
    let received = news.await;
    inbox.news = None;
    received
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
