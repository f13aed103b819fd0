//! What all turns of a run share, and why a turn has no result.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotcell_budget::BudgetScope;
use hotcell_graph::ir::{Allowance, Graph, ModelSettings};
use hotcell_graph::{Key, State};
use hotcell_journal::{Entry, EntryPath, Fact, History, JournalError, RunId, RunWriter};
use hotcell_models::{Message, Role};
use tokio::sync::Notify;

use crate::call_site::CallSite;
use crate::event::Event;
use crate::gates::Gates;
use crate::memory::Remembered;
use crate::outcome::{Part, RunError};
use crate::ports::{Notice, Ports, SharedState};
use crate::redaction::Redaction;
use crate::route::RouteError;
use crate::token::Turn;
use crate::what_if::{Notes, WhatIf, locked};

/// Drives a graph within a run to its end, or to where it waits.
pub(crate) type DrivePart = fn(Arc<RunContext>, State) -> futures::future::BoxFuture<'static, Part>;

/// Why a turn has no result.
#[derive(Debug)]
pub(crate) enum Interruption {
    /// The node failed
    Failed(String),
    /// A hook refuses what it does: the run ends, unless the graph names the node where it goes on
    Refused(String),
    /// It waits for a person, or may not do what comes next
    Waiting,
    /// The journal has something else than what would be done now; nothing may go on
    Diverged(String),
    /// The journal failed: nothing may go on
    Journal(JournalError),
}

impl Interruption {
    /// Why a node has no result that failed, or was refused what it does.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            Interruption::Failed(reason) | Interruption::Refused(reason) => Some(reason),
            Interruption::Waiting | Interruption::Diverged(_) | Interruption::Journal(_) => None,
        }
    }

    /// The same with another reason, made of the one that it has, if it has one.
    pub(crate) fn with_reason(self, reason: impl FnOnce(&str) -> String) -> Self {
        match self {
            Interruption::Failed(before) => Interruption::Failed(reason(&before)),
            Interruption::Refused(before) => Interruption::Refused(reason(&before)),
            other => other,
        }
    }
}

impl From<JournalError> for Interruption {
    fn from(error: JournalError) -> Self {
        Interruption::Journal(error)
    }
}

impl From<RouteError> for Interruption {
    fn from(error: RouteError) -> Self {
        Interruption::Failed(error.to_string())
    }
}

impl From<RunError> for Interruption {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Journal(error) => Interruption::Journal(error),
            RunError::Mismatch { cause, .. } => Interruption::Diverged(cause),
            other => Interruption::Failed(other.to_string()),
        }
    }
}

/// What all turns of a run share.
pub(crate) struct RunContext {
    pub(crate) graph: Arc<Graph>,
    pub(crate) run: RunId,
    pub(crate) ports: Ports,
    pub(crate) writer: Arc<dyn RunWriter>,
    /// What nobody is shown of it
    pub(crate) redaction: Option<Arc<Redaction>>,
    pub(crate) variables: Arc<[(Key, String)]>,
    /// What a run may do that was forked; none for every other one
    pub(crate) what_if: Option<Arc<WhatIf>>,
    pub(crate) budget_scope: Arc<BudgetScope>,
    pub(crate) remembered: Arc<Mutex<Remembered>>,
    /// Where calls of graphs wait that only so many runs may be in
    pub(crate) gates: Gates,
    /// Told when answers arrive that were sent to the run
    pub(crate) answered: Arc<Notify>,
    /// Turns of this graph whose people think
    pub(crate) idle: Arc<Idle>,
    /// Drives the graphs that nodes call
    pub(crate) drive_part: DrivePart,
    /// Where in a run this is, for an agent that a node of the run called
    pub(crate) base: Option<EntryPath>,
    /// How many agents and graphs deep
    pub(crate) depth: u32,
    /// The node in whose name questions are asked; none means the node that asks
    pub(crate) asks_as: Option<Key>,
    /// What stands before the node in whose name questions are asked: the nodes that called the graphs around it
    pub(crate) asks_within: Option<Key>,
    /// The node whose work the graph is; none for a graph that somebody wrote
    pub(crate) acting: Option<Arc<Acting>>,
    /// What its requests to models are counted on, beside the budget
    pub(crate) allowance: Option<Arc<Allowance>>,
}

/// A node whose work is done by a graph. Its steps act in its name, and are told to nobody as nodes.
pub(crate) struct Acting {
    pub(crate) node: Key,
    /// The graph of the node
    pub(crate) graph: Arc<Graph>,
    /// What tools see
    pub(crate) state: SharedState,
    /// Whether its steps came to something after which no other attempt at the node helps
    pub(crate) gave_up: AtomicBool,
    /// Whether a model refused for good what one of its steps asked
    pub(crate) final_refusal: AtomicBool,
}

impl RunContext {
    /// Where entries about a turn belong.
    pub(crate) fn place_of(&self, turn: Turn) -> EntryPath {
        self.base.as_ref().map_or_else(|| EntryPath::of_turn(turn), |base| base.within(turn))
    }

    /// Where something of this run is called. What is withheld from the call is noted.
    pub(crate) fn site_at(&self, place: &EntryPath, notes: &Notes) -> CallSite {
        let (writer, observer) = (self.writer.clone(), self.ports.observer.clone());
        CallSite::new(writer, place.clone(), observer, self.what_if.clone(), notes.clone())
    }

    /// Stops whoever called something from which an effect was withheld. It is committed, so that it can be listed.
    pub(crate) async fn stop_if_withheld(&self, place: &EntryPath, notes: &Notes) -> Result<(), Interruption> {
        let Some(what_if) = &self.what_if else { return Ok(()) };
        let noted = std::mem::take(&mut *locked(notes));
        if noted.is_empty() {
            return Ok(());
        }
        let new = noted.into_iter().filter(|effect| what_if.note(place, effect));
        let entries: Vec<Entry> =
            new.map(|effect| Entry { place: place.clone(), fact: Fact::Withheld { effect } }).collect();
        if !entries.is_empty() {
            self.writer.append(entries).await?;
        }
        Err(Interruption::Waiting)
    }

    /// A text as everybody may see it.
    pub(crate) fn shown<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redaction.as_ref().map_or(Cow::Borrowed(text), |redaction| redaction.text(text))
    }

    /// What the run wrote, in the place of what the journal kept of it.
    pub(crate) fn opened(&self, history: History) -> History {
        match &self.redaction {
            Some(redaction) => redaction.open(history),
            None => history,
        }
    }

    /// The turn that a place means.
    pub(crate) fn turn_at(&self, place: &EntryPath) -> Option<Turn> {
        match &self.base {
            None => place.as_str().parse().ok(),
            Some(base) => place.strip(base)?.parse().ok(),
        }
    }

    /// What a graph that a node calls there shares with this one; whoever calls it says what it has of its own.
    pub(crate) fn part(&self, base: EntryPath) -> RunContext {
        RunContext {
            graph: self.graph.clone(),
            run: self.run.clone(),
            ports: self.ports.clone(),
            writer: self.writer.clone(),
            redaction: self.redaction.clone(),
            variables: self.variables.clone(),
            what_if: self.what_if.clone(),
            budget_scope: self.budget_scope.clone(),
            remembered: self.remembered.clone(),
            gates: self.gates.clone(),
            answered: self.answered.clone(),
            idle: Arc::default(),
            drive_part: self.drive_part,
            base: Some(base),
            depth: self.depth + 1,
            asks_as: self.asks_as.clone(),
            asks_within: self.asks_within.clone(),
            acting: None,
            allowance: self.allowance.clone(),
        }
    }

    /// The graph that somebody wrote: this one, or that of the node whose work it is.
    pub(crate) fn written(&self) -> &Graph {
        self.acting.as_ref().map_or(&self.graph, |acting| &acting.graph)
    }

    /// Settings of model calls that a node of this graph does not set itself.
    pub(crate) fn defaults<'a>(&'a self, graph: &'a Graph) -> &'a ModelSettings {
        self.acting.as_ref().map_or(&graph.model, |acting| &acting.graph.model)
    }

    /// What the tools see that are called with this state of the graph.
    pub(crate) fn seen_by_tools(&self, state: &State) -> SharedState {
        self.acting.as_ref().map_or_else(|| SharedState::new(state.clone()), |acting| acting.state.clone())
    }

    /// Tells what is to be seen of a call that came to its end.
    pub(crate) fn notice(&self, node: &str, notices: &[Notice]) {
        for Notice { text, help } in notices {
            self.ports.observer.event(&Event::Noticed { node, text, help: help.as_deref() });
        }
    }

    /// The messages to a model with the system prompt that a fork gave to the node, if it gave one.
    pub(crate) fn prompted(&self, node: &Key, mut messages: Vec<Message>) -> Vec<Message> {
        let prompts = self.what_if.iter().flat_map(|what_if| &what_if.origin.prompts);
        let Some((_, prompt)) = prompts.into_iter().find(|(named, _)| named == node) else { return messages };
        match messages.iter_mut().find(|message| message.role == Role::System) {
            Some(system) => system.content.clone_from(prompt),
            None => messages.insert(0, Message::system(prompt.as_str())),
        }
        messages
    }

    /// Waits until everything that the run did is safe, for whoever lets something out of the process that may follow from it. A run
    /// that was cancelled adds nothing any more, and is only called off.
    pub(crate) async fn settled(&self) -> Result<(), JournalError> {
        if self.remembered().is_cancelled {
            return Ok(());
        }
        self.writer.settled().await
    }

    /// The memory of the run, shared with the agents it calls.
    pub(crate) fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Turns that wait for somebody who is here. They need no place among those that are worked on.
#[derive(Default)]
pub(crate) struct Idle {
    turns: AtomicUsize,
    pub(crate) changed: Notify,
    /// The turns of the graph with the node whose work this graph is
    around: Option<Arc<Idle>>,
}

impl Idle {
    /// Of a graph that is the work of a node: while its only turn waits, that of the node does.
    pub(crate) fn within(around: Option<Arc<Idle>>) -> Arc<Self> {
        Arc::new(Idle { around, ..Idle::default() })
    }

    pub(crate) fn turns(&self) -> usize {
        self.turns.load(Ordering::Relaxed)
    }

    pub(crate) fn enter(self: Arc<Self>) -> Thinking {
        self.turns.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
        let around = self.around.clone().map(|around| Box::new(around.enter()));
        Thinking { here: self, _around: around }
    }
}

/// Somebody thinks as long as this is there.
pub(crate) struct Thinking {
    here: Arc<Idle>,
    _around: Option<Box<Thinking>>,
}

impl Drop for Thinking {
    fn drop(&mut self) {
        self.here.turns.fetch_sub(1, Ordering::Relaxed);
    }
}
