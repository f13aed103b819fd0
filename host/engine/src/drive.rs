//! Driving a graph: start what is ready, commit what completes, stop where it has to stop.

mod ending;
mod replay;
mod told;
mod turns;
mod waiting;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use hotcell_budget::{Account, Cost};
use hotcell_graph::State;
use hotcell_graph::ir::{Graph, NodeIndex};
use hotcell_journal::{Entry, Fact, JournalError, NodeFailure, RunStore, Write};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use self::turns::{Finished, can_be_repeated};
use self::waiting::{Inbox, LONGEST_WAIT, cannot_catch_up, receive, until, until_time};
use crate::context::RunContext;
use crate::event::Event;
use crate::outcome::{Outcome, Part, RunError};
use crate::schedule::{Schedule, Start};
use crate::timing::Timings;
use crate::token::Turn;

/// A hook refuses the run; the text says why.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct RunRefused(String);

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
        Part { result, is_refused, failure_kind, final_refusal: drive.final_refusal, used: drive.used() }
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
    /// Whether a model refused for good what one of its nodes asked, and nothing was made of that
    final_refusal: bool,
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
            final_refusal: false,
            failed: Vec::new(),
            is_pausing: false,
            worked: Duration::ZERO,
            timings: Timings::none(),
            context,
            graph,
        }
    }

    /// A whole run, which receives what is sent to it. It was worked on for so long before.
    pub(crate) fn of_run(context: Arc<RunContext>, state: State, store: Arc<dyn RunStore>, worked: Duration) -> Self {
        let inbox = Inbox { store, worked, news: None };
        let timings = Timings::new(&context.graph);
        Drive { inbox: Some(inbox), timings, ..Drive::new(context, state) }
    }

    /// Who used what for it. A turn that waits counts with what it has done so far.
    pub(crate) fn used(&self) -> Account {
        self.waiting.values().fold(self.account.clone(), |mut used, waiting| {
            used += waiting.recorded.clone();
            used
        })
    }

    /// The turns that wait for an answer from elsewhere.
    pub(crate) fn waiting_turns(&self) -> impl Iterator<Item = Turn> {
        self.waiting.keys().copied()
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
                if !can_be_repeated(&self.graph.node(start.node).action) {
                    self.context.writer.catch_up()?;
                }
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
                    drop(waits);
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
                    // What is committed now is work: the clock may not be moved before it is there.
                    drop(waits);
                    if let Some((node, _)) = expires {
                        self.expire(node).await?;
                    }
                    continue;
                }
                () = until_time(&*clock, question.map(|(_, at)| at)) => continue,
                finished = self.running.next(), if self.in_flight > 0 => finished,
                () = idle.changed.notified() => continue,
                // Last: nothing can be done now, and whoever looks at the run sees all that was done.
                error = cannot_catch_up(&self.context) => return Err(error.into()),
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
