//! What hooks, observers and the log are told of a graph.

use std::time::Duration;

use hotcell_budget::Usage;
use hotcell_graph::{Key, State, Value};
use hotcell_journal::{Completed, EntryPath};

use super::{Drive, RunRefused};
use crate::context::{Interruption, RunContext};
use crate::event::Event;
use crate::hook::{self, HookPoint};
use crate::outcome::Outcome;
use crate::run_input::RunInput;
use crate::telling;
use crate::token::Turn;

/// What is told of a turn that is over, once the entry has the rest.
pub(super) struct Told {
    next: Option<Vec<String>>,
    failure: Option<String>,
    elapsed: Duration,
    usage: Usage,
}

impl Told {
    pub(super) fn of(completed: &Completed) -> Self {
        let Completed { next, failure, elapsed, account, .. } = completed;
        Told { next: next.clone(), failure: failure.clone(), elapsed: *elapsed, usage: account.total() }
    }
}

impl Drive {
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

    pub(super) fn tell_completed(&self, id: &Key, turn: Turn, place: &EntryPath, told: &Told) {
        let graph = &self.graph;
        let Told { next, failure, elapsed, usage } = told;
        self.emit(&Event::NodeCompleted {
            node: id,
            turn,
            next: next.as_deref().unwrap_or_default(),
            failure: failure.as_deref(),
            elapsed: *elapsed,
            usage,
            place: place.as_str(),
        });
        tracing::debug!(target: "hotcell::graph", "[graph:{}] `{id}` -> {next:?}", graph.name);
        if let Some(failure) = failure {
            let failure = self.context.shown(failure);
            tracing::warn!(target: "hotcell::graph", "[graph:{}] `{id}` failed: {failure}", graph.name);
        }
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
                let shown = self.context.shown(error);
                tracing::error!(target: "hotcell::graph", run = %run, "[graph:{graph}] failed: {shown}");
                self.emit(&Event::RunFailed { run, node: node.as_deref(), error });
            }
            Outcome::Stopped { reason } => {
                let shown = self.context.shown(reason);
                tracing::warn!(target: "hotcell::graph", run = %run, "[graph:{graph}] stopped: {shown}");
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

pub(super) fn log_state(context: &RunContext, graph: &str, node: &str, state: &State) {
    let object = match &context.redaction {
        Some(redaction) => redaction.object(&state.to_object()),
        None => state.to_object(),
    };
    let keys: Vec<&str> = object.iter().map(|(key, _)| &**key).collect();
    let text = Value::Object(object.clone()).to_json();
    tracing::debug!(target: "hotcell::graph", "[graph:{graph}] before `{node}`: state of {} bytes, keys {keys:?}", text.len());
    tracing::trace!(target: "hotcell::graph", "[graph:{graph}] before `{node}`: state {text}");
}
