//! Running agents: beginning, going on, answering, ending; and the threads that runs belong to.

use std::sync::Arc;
use std::time::Duration;

use hotcell_engine::{
    Engine, Entry, Fact, Given, JournalError, Observer, OpenQuestion, People, Ports, RunError, RunLock, RunRecord,
    RunReport, RunRequest, RunStatus, open_questions,
};
use tokio_util::sync::CancellationToken;

use super::{Host, HostError};
use crate::agent::Agent;
use crate::family::Guarded;
use crate::web::AgentModel;

/// How many runs of a thread only refer to the state of the one before them.
const LONGEST_CHAIN: u32 = 32;
/// How often a run looks whether its thread is free.
const THREAD_POLL: Duration = Duration::from_millis(25);

/// What a run is connected to while this process runs it.
#[derive(Clone)]
pub struct Session {
    /// Answers questions
    pub people: Arc<dyn People>,
    /// Is told what happens
    pub observer: Arc<dyn Observer>,
    /// Stops the work; the run can be resumed
    pub cancel: CancellationToken,
}

impl Host {
    /// Starts a run and drives it as far as it goes. One that belongs to a thread goes on with the state of the run
    /// before it in that thread; where that one waits for a person, the text is the answer and it goes on instead.
    pub async fn run(&self, agent: &Agent, mut given: Given, session: Session) -> Result<RunReport, HostError> {
        let _thread = self.lock_thread(&agent.source, given.thread.as_deref(), &session).await?;
        let before = match given.thread.as_deref() {
            Some(thread) => self.0.journal.last_of_thread(&agent.source, thread)?,
            None => None,
        };
        if let Some(before) = before {
            if let (RunStatus::Waiting, Some(text)) = (before.status, &given.input) {
                self.answer(before.id.as_str(), None, text)?;
                return self.go_on(&before, agent, session).await;
            }
            let state = self.engine(agent, &session).state_of(&before.id, agent.graph.clone())?;
            given.earlier = Some(state.to_object());
            // What a changed graph makes of an old run is kept, because it may be changed once more. So is every so
            // manyth state, because a run that only refers to the one before it is read together with it.
            if before.header.digest == agent.digest && before.depth() + 1 < LONGEST_CHAIN {
                given.after = Some(before.id.to_string());
                given.depth = before.depth() + 1;
            }
        }
        let request = RunRequest {
            graph: agent.graph.clone(),
            source: agent.source.clone(),
            digest: agent.digest.clone(),
            given,
        };
        self.prepare(agent, &session).await?;
        let engine = self.engine(agent, &session);
        Ok(engine.start(request, session.cancel).await?)
    }

    /// Goes on with a run, named by its name or an unambiguous beginning of it: one that waits for a person, or whose
    /// process is gone.
    pub async fn resume(&self, run: &str, session: Session) -> Result<RunReport, HostError> {
        let record = self.0.journal.find(run)?;
        let run = record.id.to_string();
        if record.status.is_final() {
            return Err(RunError::Ended { run: record.id, status: record.status }.into());
        }
        let agent = self.load_of(&record).map_err(|failure| HostError::Load { run: run.clone(), failure })?;
        let _thread = self.lock_thread(&record.header.source, record.thread(), &session).await?;
        self.go_on(&record, &agent, session).await
    }

    /// Goes on with a run that failed, from where it failed. Its graph may be another one than before: what was committed
    /// has to fit it.
    pub async fn retry(&self, run: &str, session: Session) -> Result<RunReport, HostError> {
        let record = self.0.journal.find(run)?;
        let run = record.id.to_string();
        if record.status != RunStatus::Failed {
            return Err(RunError::NotFailed { run: record.id, status: record.status }.into());
        }
        let agent = self.load_of(&record).map_err(|failure| HostError::Load { run, failure })?;
        let _thread = self.lock_thread(&record.header.source, record.thread(), &session).await?;
        self.prepare(&agent, &session).await?;
        let engine = self.engine(&agent, &session);
        Ok(engine.retry(&record.id, agent.graph.clone(), session.cancel).await?)
    }

    async fn go_on(&self, record: &RunRecord, agent: &Agent, session: Session) -> Result<RunReport, HostError> {
        if agent.digest != record.header.digest {
            return Err(HostError::Changed { run: record.id.to_string(), file: agent.file.clone() });
        }
        self.prepare(agent, &session).await?;
        let engine = self.engine(agent, &session);
        Ok(engine.resume(&record.id, agent.graph.clone(), session.cancel).await?)
    }

    /// Waits until nobody else works on a thread.
    async fn lock_thread(
        &self,
        source: &str,
        thread: Option<&str>,
        session: &Session,
    ) -> Result<Option<Box<dyn RunLock>>, HostError> {
        let Some(thread) = thread else { return Ok(None) };
        let mut told = false;
        loop {
            match self.0.journal.lock_thread(source, thread) {
                Ok(lock) => return Ok(Some(lock)),
                Err(JournalError::Busy(_)) => {}
                Err(error) => return Err(error.into()),
            }
            if !told {
                tracing::info!(target: "hotcell::graph", thread, "waits: another run of this thread is not done");
                told = true;
            }
            tokio::select! {
                biased;
                () = session.cancel.cancelled() => return Err(HostError::ThreadBusy(thread.to_owned())),
                () = tokio::time::sleep(THREAD_POLL) => {}
            }
        }
    }

    /// Builds and opens what the nodes of an agent, and of those that it may call, look things up in.
    async fn prepare(&self, agent: &Agent, session: &Session) -> Result<(), HostError> {
        for knowledge in agent.family.knowledge() {
            tokio::select! {
                biased;
                () = session.cancel.cancelled() => return Err(HostError::Stopped),
                ready = knowledge.prepare(self, &*session.people) => ready.map_err(HostError::Knowledge)?,
            }
        }
        Ok(())
    }

    fn engine(&self, agent: &Agent, session: &Session) -> Engine {
        let ports = Ports {
            scripts: agent.own.scripts.clone(),
            tools: agent.own.tools.clone(),
            model: Arc::new(AgentModel {
                model: self.0.model.clone(),
                providers: self.0.providers.clone(),
                grants: agent.grants.clone(),
            }),
            default_model: self.0.providers.default_model().cloned(),
            people: session.people.clone(),
            observer: session.observer.clone(),
            hooks: agent.own.hooks.clone(),
            offers: agent.own.offers.clone(),
            knowledge: agent.own.knowledge.clone(),
            agents: Arc::new(Guarded { family: agent.family.clone(), guards: agent.own.hooks.clone() }),
            web: agent.own.web.clone(),
        };
        Engine::new(ports, self.0.journal.clone())
    }

    /// Commits the answer to an open question of a run: the one of this id, or the only one there is. The run goes on when
    /// somebody resumes it.
    pub fn answer(&self, run: &str, question: Option<&str>, text: &str) -> Result<OpenQuestion, HostError> {
        let record = self.0.journal.find(run)?;
        let _lock = self.0.journal.lock(&record.id)?;
        let entries = self.0.journal.entries(&record.id)?;
        let nothing = || HostError::NothingAsked { run: record.id.to_string(), status: record.status };
        if record.status.is_final() {
            return Err(nothing());
        }
        let mut questions = open_questions(&entries);
        if questions.is_empty() {
            return Err(nothing());
        }
        let found = match question {
            Some(id) => questions.iter().position(|open| open.question.id == id),
            None if questions.len() == 1 => Some(0),
            None => None,
        };
        let Some(place) = found else {
            return Err(HostError::WhichQuestion {
                run: record.id.to_string(),
                named: question.map(str::to_owned),
                open: questions.into_iter().map(|open| open.question).collect(),
            });
        };
        let open = questions.swap_remove(place);
        let answer = Fact::Answered { number: open.number, text: text.to_owned() };
        self.0.journal.append(&record.id, &Entry { place: open.place.clone(), fact: answer })?;
        Ok(open)
    }

    /// Ends a run for good. A process that is running it notices and stops.
    pub fn cancel(&self, run: &str) -> Result<RunRecord, HostError> {
        let record = self.0.journal.find(run)?;
        if record.status.is_final() {
            return Err(RunError::Ended { run: record.id, status: record.status }.into());
        }
        // It may have ended since it was read.
        match self.0.journal.set_status(&record.id, RunStatus::Cancelled, None) {
            Err(JournalError::Ended { run, status }) => return Err(RunError::Ended { run, status }.into()),
            other => other?,
        }
        Ok(RunRecord { status: RunStatus::Cancelled, ..record })
    }
}
