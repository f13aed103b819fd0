//! Running agents: beginning, going on, ending; and the threads that runs belong to.

use std::sync::Arc;

use hotcell_budget::Usage;
use hotcell_engine::{
    Engine, Nobody, Observer, People, Ports, RunError, RunInput, RunReport, RunRequest, StateFold, Tally, copied_in,
    used,
};
use hotcell_graph::{Object, Value};
use hotcell_journal::{Entry, Fact, JournalError, RunId, RunRecord, RunStatus};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::revisions::GoingOn;
use super::{Host, HostError, RevisionChoice};
use crate::agent::Agent;
use crate::agent_registry::GuardedAgents;
use crate::web::AgentModel;

/// How many runs of a thread only refer to the state of the one before them.
const LONGEST_CHAIN: u32 = 32;

/// Connects a run to this process while the process works on it.
#[derive(Clone)]
pub struct Session {
    /// Answers questions
    pub people: Arc<dyn People>,
    /// Receives the events
    pub observer: Arc<dyn Observer>,
    /// Stops the work; the run can be resumed
    pub cancel: CancellationToken,
}

impl Session {
    /// A session without a person and without an observer. To stop the run, keep a clone of `cancel`.
    pub fn unattended() -> Self {
        Session { people: Arc::new(Nobody), observer: Arc::new(Nobody), cancel: CancellationToken::new() }
    }
}

impl Host {
    /// Starts a run and drives it as far as it goes. In a thread, it starts with the state of the previous run of that
    /// thread; if that one waits for a person, the text is the answer, and that run continues instead.
    pub async fn run(&self, agent: &Agent, given: RunInput, session: Session) -> Result<RunReport, HostError> {
        self.prepare(agent, &session).await?;
        let mut is_kept = false;
        loop {
            match self.try_run(agent, given.clone(), &session).await {
                // The first run of a revision, or the first one since nobody needed it any more.
                Err(HostError::Run(RunError::Journal(JournalError::NotKept(_)))) if !is_kept => {
                    self.keep(agent).await?;
                    is_kept = true;
                }
                Err(error) => match busy_in_thread(&error, given.thread.as_deref()) {
                    Some(run) => self.wait_for(run.as_ref(), &session).await?,
                    None => return Err(error),
                },
                report => return report,
            }
        }
    }

    async fn try_run(&self, agent: &Agent, mut given: RunInput, session: &Session) -> Result<RunReport, HostError> {
        let before = match given.thread.as_deref() {
            Some(thread) => self.0.journal.last_of_thread(&agent.source, thread).await?,
            None => None,
        };
        let follows = before.as_ref().map(|before| before.id.clone());
        if let Some(before) = before {
            match (before.status, &given.input) {
                (RunStatus::Running, _) => return Err(JournalError::ThreadBusy(before.id).into()),
                (RunStatus::Waiting, Some(text)) => {
                    self.answer(before.id.as_str(), None, text).await?;
                    if before.revision.as_deref() == Some(agent.digest()) {
                        return self.go_on(&before, agent, None, session).await;
                    }
                    // What it asked it asked as it was then.
                    let own = self.going_on(&before, &RevisionChoice::Own, session).await?.agent;
                    self.prepare(&own, session).await?;
                    return self.go_on(&before, &own, None, session).await;
                }
                _ => {}
            }
            let state = self.engine(agent, session).whole_state_of(&before.id, agent.graph.clone()).await?;
            given.earlier = Some(state.to_object());
            // What a changed graph makes of an old run is kept, because it may be changed once more. So is every so
            // manyth state, because a run that only refers to the one before it is read together with it.
            let depth = RunInput::depth_of(&before.header.given);
            if before.revision.as_deref() == Some(agent.digest()) && depth + 1 < LONGEST_CHAIN {
                given.after = Some(before.id.to_string());
                given.depth = depth + 1;
            }
        }
        if let Some(name) = &agent.graph.start_time {
            // Kept with what the run was given, so that a run that goes on is told the same time.
            let now = || Timestamp::try_from(self.clock().now()).unwrap_or_default();
            let now = || Timestamp::from_second(now().as_second()).unwrap_or_default().to_string();
            given.variables.entry(name.clone()).or_insert_with(|| Value::text(now()));
        }
        let request = RunRequest {
            graph: agent.graph.clone(),
            source: agent.source.clone(),
            digest: agent.digest().to_owned(),
            kept: agent.revision.is_some(),
            given,
            follows,
        };
        Ok(self.engine(agent, session).start(request, session.cancel.clone()).await?)
    }

    /// Resumes a run, given by its id or a unique prefix of it: one that waits for a person, or whose process has ended. It
    /// continues with the files that it started with, even if they have changed since.
    pub async fn resume(&self, run: &str, session: Session) -> Result<RunReport, HostError> {
        self.resume_with(run, &RevisionChoice::Own, session).await
    }

    /// Resumes a run for which something arrived, like [`Host::resume`]; does nothing if it is paused. A run that was to be paused
    /// when its process ended is paused.
    pub async fn wake(&self, run: &str, session: Session) -> Result<Option<RunReport>, HostError> {
        let record = self.0.journal.find(run).await?;
        match record.status {
            RunStatus::Paused => return Ok(None),
            RunStatus::Interrupted if is_to_pause(&self.0.journal.history(&record.id).await?.entries) => {
                // Nobody works on it: that pauses it at once.
                self.0.journal.send(&record.id, Entry::of_run(Fact::PauseAsked)).await?;
                return Ok(None);
            }
            _ => {}
        }
        self.resume(run, session).await.map(Some)
    }

    /// Resumes a run like [`Host::resume`], with this choice of a revision.
    pub async fn resume_with(
        &self,
        run: &str,
        revision: &RevisionChoice,
        session: Session,
    ) -> Result<RunReport, HostError> {
        let record = self.0.journal.find(run).await?;
        if record.status.is_final() {
            return Err(RunError::Ended { run: record.id, status: record.status }.into());
        }
        let GoingOn { agent, moved } = self.going_on(&record, revision, &session).await?;
        self.prepare(&agent, &session).await?;
        loop {
            match self.go_on(&record, &agent, moved.clone(), &session).await {
                Err(HostError::Run(RunError::Journal(JournalError::ThreadBusy(other)))) => {
                    self.wait_for(Some(&other), &session).await?;
                }
                report => return report,
            }
        }
    }

    /// Retries a failed run from the node that failed, with the files that it started with.
    pub async fn retry(&self, run: &str, session: Session) -> Result<RunReport, HostError> {
        self.retry_with(run, &RevisionChoice::Own, session).await
    }

    /// Retries a run like [`Host::retry`], with this choice of a revision.
    pub async fn retry_with(
        &self,
        run: &str,
        revision: &RevisionChoice,
        session: Session,
    ) -> Result<RunReport, HostError> {
        let record = self.0.journal.find(run).await?;
        if record.status != RunStatus::Failed {
            return Err(RunError::NotFailed { run: record.id, status: record.status }.into());
        }
        let GoingOn { agent, moved } = self.going_on(&record, revision, &session).await?;
        self.prepare(&agent, &session).await?;
        let engine = self.engine_moving(&agent, moved, &session);
        loop {
            match engine.retry(&record.id, agent.graph.clone(), session.cancel.clone()).await {
                Err(RunError::Journal(JournalError::ThreadBusy(other))) => {
                    self.wait_for(Some(&other), &session).await?;
                }
                report => return Ok(report?),
            }
        }
    }

    /// The present state of a run, with the files that it started with. Nothing of it is run.
    ///
    /// # Errors
    /// When it can no longer be loaded, or its entries are damaged.
    pub async fn state_of(&self, record: &RunRecord) -> Result<Object, HostError> {
        let session = Session::unattended();
        let agent = self.going_on(record, &RevisionChoice::Own, &session).await?.agent;
        Ok(self.engine(&agent, &session).state_of(&record.id, agent.graph.clone()).await?.to_object())
    }

    /// The present state of a run, for a run of this agent that starts with it. Redacted values are in it if that run redacts
    /// them, too.
    ///
    /// # Errors
    /// When it can no longer be loaded, or its entries are damaged.
    pub async fn earlier_state(&self, record: &RunRecord, next: &Agent) -> Result<Object, HostError> {
        let session = Session::unattended();
        let agent = self.going_on(record, &RevisionChoice::Own, &session).await?.agent;
        let (engine, graph) = (self.engine(&agent, &session), agent.graph.clone());
        let state = match next.graph.redacted.covers(&agent.graph.redacted) {
            true => engine.whole_state_of(&record.id, graph).await?,
            false => engine.state_of(&record.id, graph).await?,
        };
        Ok(state.to_object())
    }

    /// The initial state of a run, to which its entries can be applied; with the files that it started with.
    ///
    /// # Errors
    /// When it can no longer be loaded.
    pub async fn fold_of(&self, record: &RunRecord) -> Result<StateFold, HostError> {
        let session = Session::unattended();
        let agent = self.going_on(record, &RevisionChoice::Own, &session).await?.agent;
        Ok(self.engine(&agent, &session).fold_of(&record.id, agent.graph.clone()).await?)
    }

    async fn go_on(
        &self,
        record: &RunRecord,
        agent: &Agent,
        moved: Option<String>,
        session: &Session,
    ) -> Result<RunReport, HostError> {
        // Of a run whose revision was not kept, only the texts can be compared.
        let is_older = record.revision.is_none() && moved.is_none();
        if is_older && ![&agent.texts, agent.digest()].contains(&record.header.digest.as_str()) {
            return Err(HostError::Changed { run: record.id.to_string(), file: agent.file.clone() });
        }
        let engine = self.engine_moving(agent, moved, session);
        Ok(engine.resume(&record.id, agent.graph.clone(), session.cancel.clone()).await?)
    }

    /// The engine for an agent, by which runs are moved to a revision.
    fn engine_moving(&self, agent: &Agent, moved: Option<String>, session: &Session) -> Engine {
        let engine = self.engine(agent, session);
        match moved {
            Some(revision) => engine.moving_to(revision),
            None => engine,
        }
    }

    /// Waits until nobody works on another run of the thread; there is nothing to wait for where a run was merely begun in it.
    async fn wait_for(&self, run: Option<&RunId>, session: &Session) -> Result<(), HostError> {
        let Some(run) = run else { return Ok(()) };
        tracing::info!(target: "hotcell::graph", %run, "waits: another run of this thread is not done");
        tokio::select! {
            biased;
            () = session.cancel.cancelled() => Err(HostError::ThreadBusy(run.to_string())),
            released = self.0.journal.released(run) => Ok(released?),
        }
    }

    /// Builds and opens what the nodes of an agent, and of those that it may call, look things up in.
    pub(super) async fn prepare(&self, agent: &Agent, session: &Session) -> Result<(), HostError> {
        for knowledge in agent.family.knowledge() {
            tokio::select! {
                biased;
                () = session.cancel.cancelled() => return Err(HostError::Stopped),
                ready = knowledge.prepare(self.context(), &*session.people) => ready?,
            }
        }
        Ok(())
    }

    pub(super) fn engine(&self, agent: &Agent, session: &Session) -> Engine {
        let meter = self.0.meter.get_or_init(|| Arc::new(Tally::default())).clone();
        let ports = Ports {
            scripts: agent.own.scripts.clone(),
            tools: agent.own.tools.clone(),
            model: Arc::new(AgentModel {
                model: self.context().model(),
                providers: self.context().providers().clone(),
                grants: agent.grants.clone(),
                permissions: agent.permissions.clone(),
            }),
            default_model: self.context().default_model(),
            prices: self.context().prices().clone(),
            people: session.people.clone(),
            observer: session.observer.clone(),
            hooks: agent.own.hooks.clone(),
            plugin_nodes: agent.own.plugin_nodes.clone(),
            knowledge: agent.own.knowledge.clone(),
            agents: Arc::new(GuardedAgents {
                family: agent.family.clone(),
                guards: agent.own.hooks.clone(),
                operators_guards: agent.operators_hooks.clone(),
            }),
            web: agent.own.web.clone(),
            clock: self.clock().clone(),
            meter: meter.of(agent.source()).unwrap_or(meter),
        };
        let engine = Engine::new(ports, self.0.journal.clone()).behind(self.0.gates.of(agent.source()));
        engine.writing_at_most(agent.journal_bytes).sealing_with(self.0.redaction_key.clone())
    }

    /// Pauses a run until it is resumed: at once if it is not in progress, otherwise when the nodes in progress are done. Answers that
    /// arrive meanwhile are kept. Returns its present status.
    pub async fn pause(&self, run: &str) -> Result<RunRecord, HostError> {
        let record = self.0.journal.find(run).await?;
        // It may have ended since it was read.
        match self.0.journal.send(&record.id, Entry::of_run(Fact::PauseAsked)).await {
            Err(JournalError::Ended { run, status }) => return Err(RunError::Ended { run, status }.into()),
            Err(JournalError::Cancelled(run)) => {
                return Err(RunError::Ended { run, status: RunStatus::Cancelled }.into());
            }
            other => other?,
        }
        Ok(self.0.journal.find(record.id.as_str()).await?)
    }

    /// The usage of a run so far, in all processes, from its entries. Takes the complete id of the run.
    ///
    /// # Errors
    /// When there is no such run, or its entries are damaged.
    pub async fn used(&self, run: &RunId) -> Result<Usage, HostError> {
        Ok(used(&self.0.journal.history(run).await?.whole()?))
    }

    /// The usage of the entries that a run has taken over from another one, if any.
    ///
    /// # Errors
    /// As [`Host::used`].
    pub async fn used_for_copied(&self, run: &RunId) -> Result<Usage, HostError> {
        let header = self.0.journal.find(run.as_str()).await?.header;
        let Some(copied) = copied_in(&header.given) else { return Ok(Usage::default()) };
        let entries = self.0.journal.history(run).await?.whole()?;
        Ok(used(&entries[..copied.min(entries.len())]))
    }

    /// Ends a run for good. Whoever works on it stops.
    pub async fn cancel(&self, run: &str) -> Result<RunRecord, HostError> {
        let record = self.0.journal.find(run).await?;
        if record.status.is_final() {
            return Err(RunError::Ended { run: record.id, status: record.status }.into());
        }
        // It may have ended since it was read.
        match self.0.journal.send(&record.id, Entry::of_run(Fact::Cancelled)).await {
            Err(JournalError::Ended { run, status }) => return Err(RunError::Ended { run, status }.into()),
            other => other?,
        }
        let nobody_worked = match self.0.journal.history(&record.id).await {
            Ok(history) => nobody_worked(&history.entries, record.status),
            Err(_) => record.status != RunStatus::Running,
        };
        if nobody_worked {
            self.call_off(&record).await;
        }
        Ok(RunRecord { status: RunStatus::Cancelled, ..record })
    }

    /// Has what a cancelled run began outside called off: nobody who works on it does.
    async fn call_off(&self, record: &RunRecord) {
        let session = Session::unattended();
        let called = async {
            let agent = self.going_on(record, &RevisionChoice::Own, &session).await?.agent;
            Ok::<(), HostError>(self.engine(&agent, &session).call_off(&record.id, agent.graph.clone()).await?)
        };
        if let Err(error) = called.await {
            tracing::warn!(target: "hotcell::graph", run = %record.id, %error, "what the run began elsewhere is not called off");
        }
    }
}

/// The run that keeps the thread busy, or none where it is worth another try at once; nothing for other errors.
fn busy_in_thread(error: &HostError, thread: Option<&str>) -> Option<Option<RunId>> {
    thread?;
    match error {
        HostError::Journal(error) | HostError::Run(RunError::Journal(error)) => match error {
            JournalError::ThreadBusy(run) | JournalError::Busy(run) => Some(Some(run.clone())),
            JournalError::ThreadMoved => Some(None),
            _ => None,
        },
        _ => None,
    }
}

/// Whether somebody wanted a run with these entries to pause, and neither did it pause since, nor has anybody gone on with it.
fn is_to_pause(entries: &[Entry]) -> bool {
    let last = entries.iter().rev().find(|entry| entry.fact == Fact::PauseAsked || entry.fact.status().is_some());
    last.is_some_and(|last| last.fact == Fact::PauseAsked)
}

/// Whether nobody worked on a run with these entries when it was cancelled, as it was found before. In between, it may have come to rest,
/// or somebody may have taken it: whoever works on it then calls off what it began outside.
fn nobody_worked(entries: &[Entry], found: RunStatus) -> bool {
    let end = entries.iter().rposition(|entry| entry.fact == Fact::Cancelled).unwrap_or(entries.len());
    match entries[..end].iter().rev().find_map(|entry| entry.fact.status()) {
        // Whether they are gone is not in the entries.
        Some(RunStatus::Running) | None => found == RunStatus::Interrupted,
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use hotcell_journal::{Entry, Fact, RunStatus};

    use super::nobody_worked;

    #[test]
    fn what_a_run_began_is_called_off_by_whoever_cancels_it_if_nobody_works_on_it() {
        let after = |facts: &[Fact]| -> Vec<Entry> { facts.iter().cloned().map(Entry::of_run).collect() };
        let worked_on = after(&[Fact::Resumed, Fact::Cancelled]);
        let rested = after(&[Fact::Resumed, Fact::Waiting, Fact::Cancelled]);
        let taken = after(&[Fact::Waiting, Fact::Resumed, Fact::Cancelled]);
        for (entries, found, expected) in [
            (&worked_on, RunStatus::Running, false),
            (&worked_on, RunStatus::Interrupted, true),
            (&rested, RunStatus::Waiting, true),
            // It came to rest, or was taken, after it was found so.
            (&rested, RunStatus::Running, true),
            (&taken, RunStatus::Waiting, false),
        ] {
            assert_eq!(nobody_worked(entries, found), expected, "{entries:?}, found {found}");
        }
    }
}
