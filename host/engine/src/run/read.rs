//! What the entries of a run say: whether they fit a graph, and the state that they lead to. Nothing is run.

use std::sync::Arc;

use hotcell_graph::State;
use hotcell_graph::ir::Graph;
use hotcell_journal::{Entry, EntryPath, Fact, RunHeader, RunId};

use super::{Engine, opened};
use crate::context::RunContext;
use crate::drive::Drive;
use crate::memory::{Moved, Remembered};
use crate::no_writer::NoWriter;
use crate::outcome::RunError;
use crate::redaction::Redaction;
use crate::run_input::{RunInput, check_variables, initial_state};
use crate::state_fold::StateFold;
use crate::token::Turn;

/// How many runs may only refer to the one before them, one after the other: each is read within the one after it.
const MOST_BEFORE: u32 = 64;

impl Engine {
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
            // A journal that somebody made may lead in a circle, or from run to run for as long as there is memory.
            let depth = RunInput::depth_of(&self.store.find(before.as_str()).await?.header.given);
            if depth >= given.depth || given.depth > MOST_BEFORE {
                let cause = "a run goes on with its state that does not come after it".to_owned();
                return Err(RunError::Mismatch { run: before, cause });
            }
            given.earlier = Some(Box::pin(self.whole_state_of(&before, graph.clone())).await?.to_object());
        }
        Ok(given)
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
