//! What a graph waits for: joins with a deadline, answers and cancellations that are sent to its run, questions whose time ends.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use hotcell_graph::State;
use hotcell_graph::ir::{Graph, NodeIndex};
use hotcell_journal::{Entry, Fact, JournalError, Question, RunStore, Write, open_questions};

use super::{Drive, Halt, Waiting};
use crate::branch::apply;
use crate::clock::Clock;
use crate::context::RunContext;
use crate::outcome::{Outcome, RunError};
use crate::schedule::Start;
use crate::token::Turn;

/// The longest that a join waits: more than anybody means, and less than clocks can say.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

impl Drive {
    /// Sees to it that no join waits longer than it may. How long is decided once, and kept.
    pub(super) async fn set_timers(&mut self) -> Result<(), RunError> {
        let place = self.context.base.clone().unwrap_or_default();
        let clock = self.context.ports.clock.clone();
        let deadlines = self.schedule.deadlines(&self.graph);
        self.timers.retain(|node, _| deadlines.iter().any(|(waiting, _)| waiting == node));
        let waits = |id: &str| deadlines.iter().any(|(waiting, _)| *self.graph.node(*waiting).id == *id);
        self.context.remembered().forget_timers(&place, waits);
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
    pub(super) async fn expire(&mut self, node: NodeIndex) -> Result<(), RunError> {
        self.timers.remove(&node);
        let fact = Fact::TimerFired { node: self.graph.node(node).id.to_string() };
        let place = self.context.base.clone().unwrap_or_default();
        self.context.writer.append(vec![Entry { place, fact }]).await?;
        self.schedule.expire(node);
        Ok(())
    }

    /// The end of what can be done now.
    pub(super) async fn rest(&mut self) -> Result<Halt, RunError> {
        if self.waiting.is_empty() && !self.has_withheld() {
            let error = "no node is left to run and none has ended the run".to_owned();
            return Ok(Halt::At(Outcome::Failed { node: None, error }, self.schedule.state()));
        }
        self.all_committed().await?;
        let mut state = self.schedule.state();
        let mut turns: Vec<&Turn> = self.waiting.keys().collect();
        turns.sort_unstable();
        for turn in turns {
            show(&self.graph, &mut state, &self.waiting[turn].shown);
        }
        // An agent leaves the questions to the run that it works for.
        let questions = match &self.inbox {
            Some(inbox) => {
                let entries = self.context.opened(inbox.store.history(&self.context.run).await?).whole()?;
                open_questions(&entries).into_iter().map(|open| open.question).collect()
            }
            None => Vec::<Question>::new(),
        };
        let stopped = self.context.what_if.as_ref().filter(|_| self.inbox.is_some() && questions.is_empty());
        if let Some(reason) = stopped.and_then(|what_if| what_if.reason()) {
            return Ok(Halt::At(Outcome::Stopped { reason }, state));
        }
        Ok(Halt::At(Outcome::Waiting { questions }, state))
    }

    /// Whether something was withheld from the run, which therefore goes only as far as it can without that.
    pub(super) fn has_withheld(&self) -> bool {
        self.context.what_if.as_ref().is_some_and(|what_if| what_if.has_withheld())
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
    pub(super) fn next_question(&self) -> Option<(Turn, SystemTime)> {
        self.inbox.as_ref()?;
        self.context.remembered().next_due(|turn| self.waiting.contains_key(&turn))
    }

    /// Begins a turn again that waited.
    pub(super) async fn again(&mut self, turn: Turn) -> Result<(), RunError> {
        self.all_committed().await?;
        let (Some(inbox), Some(waiting)) = (&self.inbox, self.waiting.remove(&turn)) else { return Ok(()) };
        let entries = self.context.opened(inbox.store.history(&self.context.run).await?).whole()?;
        self.context.remembered().refresh(entries, turn);
        let Waiting { node, visit, .. } = waiting;
        let state = self.schedule.state_of(turn).unwrap_or_default();
        self.queue.push_back(Start { turn, node, visit, state, missed: Vec::new() });
        Ok(())
    }

    /// Waits until the entries of the run can be read, where it reads them itself.
    async fn all_committed(&mut self) -> Result<(), JournalError> {
        match self.inbox {
            Some(_) => self.context.writer.settled().await,
            None => Ok(()),
        }
    }

    /// Waits for what was sent to the run.
    pub(crate) async fn receive(&mut self) -> Result<Vec<Entry>, RunError> {
        Ok(receive(&mut self.inbox, &self.context).await?)
    }
}

/// Waits until that time of the clock, or for ever.
pub(super) async fn until_time(clock: &dyn Clock, at: Option<SystemTime>) {
    match at {
        Some(at) => clock.sleep(at.duration_since(clock.now()).unwrap_or_default().min(LONGEST_WAIT)).await,
        None => std::future::pending().await,
    }
}

/// Waits until the clock has come there, or for ever.
pub(super) async fn until(clock: &dyn Clock, at: Option<Duration>) {
    match at {
        Some(at) => clock.sleep(at.saturating_sub(clock.elapsed())).await,
        None => std::future::pending().await,
    }
}

/// Has what was put off committed whenever nothing else can be done, as the last branch of what is waited for. It is done only when that
/// fails: a branch that is done is not looked at again, and more is put off while the others wait.
pub(super) async fn cannot_catch_up(context: &RunContext) -> JournalError {
    poll_fn(|_| match context.writer.catch_up() {
        Ok(()) => Poll::Pending,
        Err(error) => Poll::Ready(error),
    })
    .await
}

/// What is sent to a run.
pub(super) struct Inbox {
    pub(super) store: Arc<dyn RunStore>,
    /// How long the run was worked on in earlier processes
    pub(super) worked: Duration,
    /// What is waited for
    pub(super) news: Option<BoxFuture<'static, Result<Vec<Entry>, JournalError>>>,
}

/// Waits for what is sent to a run. What has begun to be received is not lost when this is dropped.
pub(super) async fn receive(inbox: &mut Option<Inbox>, context: &Arc<RunContext>) -> Result<Vec<Entry>, JournalError> {
    let Some(inbox) = inbox else { return std::future::pending().await };
    let news = inbox.news.get_or_insert_with(|| {
        let writer = context.writer.clone();
        Box::pin(async move { writer.receive().await })
    });
    let received = news.await;
    inbox.news = None;
    received
}

/// Adds what a turn shows of its work to a state that nothing goes on with.
pub(super) fn show(graph: &Graph, state: &mut State, shown: &[Write]) {
    for write in shown {
        // A write that cannot be combined is not shown; the turn will say so when it gets there.
        let _ = apply(graph, state, write);
    }
}
