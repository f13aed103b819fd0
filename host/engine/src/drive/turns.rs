//! Turns: how they begin, and what is committed of them.

use std::time::Duration;

use hotcell_budget::Account;
use hotcell_graph::State;
use hotcell_graph::ir::{Action, NodeIndex, OnFailure};
use hotcell_journal::{Completed, Entry, EntryPath, Fact, NodeFailure, Write};
use tokio_util::task::AbortOnDropHandle;

use super::told::{Told, log_state};
use super::waiting::show;
use super::{Drive, Waiting};
use crate::action::{Done, miss_node, run_node, unfit_node};
use crate::clock::Counted;
use crate::context::Interruption;
use crate::event::Event;
use crate::hook::HookPoint;
use crate::outcome::{Outcome, RunError};
use crate::schedule::{After, Route, Start};
use crate::token::Turn;
use crate::turn::NodeTurn;

/// What came of a turn.
pub(super) struct Finished {
    turn: Turn,
    place: EntryPath,
    node: NodeIndex,
    visit: u32,
    /// When it began, on the clock of the run
    begun: Duration,
    spent: Spent,
    result: Result<Done, Interruption>,
    /// It is worked on until it is completed
    _working: Counted,
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
    /// Whether a model refused it for good
    final_refusal: bool,
}

/// Whether a turn of a node that does this can be begun again unnoticed after it was done: what it asks of the outside, or of
/// agents and graphs within the run, has entries of its own.
pub(super) fn can_be_repeated(action: &Action) -> bool {
    let has_entries = matches!(action, Action::Tool(_) | Action::PluginNode(_) | Action::Call(_));
    has_entries
        || matches!(action, Action::Pass | Action::Compute(_) | Action::Spread(_) | Action::ReadValue(_))
        || matches!(action, Action::Fail(_) | Action::Absent | Action::End { .. })
}

impl Drive {
    pub(super) fn begin(&mut self, start: Start) {
        let graph = self.graph.clone();
        let node = graph.node(start.node);
        let acting = self.context.acting.clone();
        let at = self.context.place_of(start.turn);
        if acting.is_none() {
            let (turn, visit, place, agent) = (start.turn, start.visit, at.as_str(), node.agent().map(|name| &**name));
            self.emit(&Event::NodeStarted { node: &node.id, kind: node.kind, turn, visit, place, agent });
        }
        if graph.log_state && tracing::enabled!(target: "hotcell::graph", tracing::Level::DEBUG) {
            log_state(&self.context, &graph.name, &node.id, &start.state);
        }
        let name = acting.as_ref().map_or(node.speaks_as(), |acting| &acting.node).clone();
        let mut turn = NodeTurn::new(self.context.clone(), at.clone(), name);
        turn.idle = Some(self.context.idle.clone());
        // The only node that runs needs no task of its own; several share the cores. Those that may ask somebody begin one after
        // the other, so that they ask in their order.
        let runs_here = self.in_flight == 0 || node.may_ask();
        let Start { turn: number, node, visit, state, missed } = start;
        let working = self.context.ports.clock.working();
        let place = at.clone();
        let work = async move {
            let begun = turn.context.ports.clock.elapsed();
            let result = match missed.is_empty() {
                true => run_node(&mut turn, &graph, node, state).await,
                false => miss_node(&mut turn, &graph, node, state, &missed).await,
            };
            let NodeTurn { before, account, recorded, shown, failure_kind, final_refusal, .. } = turn;
            let spent = Spent { before, account, recorded, shown, failure_kind, final_refusal };
            Finished { turn: number, place: at, node, visit, begun, spent, result, _working: working }
        };
        if runs_here {
            self.running.push(Box::pin(work));
        } else {
            let clock = self.context.ports.clock.clone();
            let task = AbortOnDropHandle::new(tokio::spawn(work));
            self.running.push(Box::pin(async move {
                task.await.unwrap_or_else(|error| {
                    let result = Err(Interruption::Failed(format!("the node's task was lost: {error}")));
                    let (begun, spent, working) = (clock.elapsed(), Spent::default(), clock.working());
                    Finished { turn: number, place, node, visit, begun, spent, result, _working: working }
                })
            }));
        }
        self.in_flight += 1;
    }

    pub(super) async fn complete(&mut self, finished: Finished) -> Result<Option<(Outcome, State)>, RunError> {
        let Finished { turn, place, node, visit, begun, spent, result, _working } = finished;
        let elapsed = self.context.ports.clock.elapsed().saturating_sub(begun);
        let Spent { before, account: own, recorded, shown, failure_kind, final_refusal } = spent;
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
        let (done, shared) = match result.and_then(|done| self.fitting(turn, node, done)) {
            Ok(fitting) => fitting,
            Err(Interruption::Waiting) => return Ok(None),
            Err(Interruption::Failed(reason) | Interruption::Refused(reason)) => {
                self.timings.add(node, elapsed);
                self.failure_kind = failure_kind;
                self.final_refusal |= final_refusal;
                let mut state = self.schedule.state_of(turn).unwrap_or_default();
                show(&graph, &mut state, &shown);
                let fact = Fact::Failed { number: None, error: reason.clone(), account: own };
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
        self.final_refusal |= final_refusal && completed.failure.is_some() && !completed.handled;
        self.note_failure(node, completed.failure.as_deref());
        if let Some(failure) = NodeFailure::of(&place, &completed) {
            self.context.remembered().failures.push(failure);
        }
        let has_failed = completed.failure.is_some();
        let after = shared.map_or(After::Own(done.state), After::Shared);
        let needs_writes = self.schedule.needs_writes(&graph, turn, &after);
        let writes = if needs_writes { completed.writes.clone() } else { Vec::new() };
        let output = completed.output.clone();
        let told = self.context.acting.is_none().then(|| Told::of(&completed));
        let entry = Entry { place: place.clone(), fact: Fact::Completed(completed) };
        // Hooks would be told of a turn again that is begun again.
        let hooks = &self.context.ports.hooks;
        let is_told = hooks.listens(HookPoint::BeforeNode)
            || hooks.listens(HookPoint::AfterNode)
            || (has_failed && hooks.listens(HookPoint::NodeFailed));
        match can_be_repeated(&graph.node(node).action) && !is_told {
            true => self.context.writer.append_later(vec![entry]).await?,
            false => self.context.writer.append(vec![entry]).await?,
        }
        if let Some(told) = told {
            self.tell_completed(id, turn, &place, &told);
        }
        match self.schedule.complete(&graph, turn, writes, after, &done.route, has_failed) {
            Ok(Some(state)) => Ok(Some((self.end(output, &state), state))),
            Ok(None) => Ok(None),
            Err(error) => Ok(Some((self.explain(error), self.schedule.state()))),
        }
    }

    /// What a turn gives, with the state that branches share after it, if they do. If its writes do not go with what other branches
    /// wrote meanwhile, it has failed, and its node says what follows: nothing of it is committed before.
    fn fitting(&self, turn: Turn, node: NodeIndex, done: Done) -> Result<(Done, Option<State>), Interruption> {
        if let Some(shared) = self.schedule.led_to(&self.graph, turn, &done.state, &done.writes) {
            return Ok((done, Some(shared)));
        }
        let error = match self.schedule.fits(&self.graph, &done.writes) {
            Ok(shared) => return Ok((done, shared)),
            Err(error) => error,
        };
        let name = self.graph.node(node).speaks_as().clone();
        let mut failed = NodeTurn::new(self.context.clone(), self.context.place_of(turn), name);
        Ok((unfit_node(&mut failed, &self.graph, node, self.schedule.state(), &error)?, None))
    }

    /// Takes note of a node that failed and after which the graph goes on.
    pub(super) fn note_failure(&mut self, node: NodeIndex, failure: Option<&str>) {
        if let Some(failure) = failure {
            self.failed.push((self.graph.node(node).speaks_as().to_string(), failure.to_owned()));
        }
    }
}
