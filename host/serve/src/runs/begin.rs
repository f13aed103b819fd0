//! Beginning runs.

use std::sync::Arc;

use hotcell_runtime::{
    Agent, Host, HostError, JournalError, Outcome, RunError, RunId, RunInput, RunReport, RunStatus, Session,
};
use hotcell_telemetry::About;
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument as _;

use super::{IfBusy, Runs, about};
use crate::input::{is_ours, metadata_given, webhook_of};
use crate::live::{Begun, BegunWith, Told};
use crate::log;
use crate::once;
use crate::problem::Problem;

/// A run that is to begin.
pub(super) struct Beginning {
    /// Its place among those that are worked on
    pub(super) place: OwnedSemaphorePermit,
    /// What metrics and traces say about it
    pub(super) about: About,
    /// The name that it will have, if something is told of it to others, and where besides
    pub(super) told: Option<(RunId, Option<String>)>,
    /// Whether whoever begins it is told everything that happens in it
    pub(super) listens: bool,
}

impl Runs {
    /// Begins a run. It is in the journal when this returns, and goes on whatever becomes of whoever asked for it. Whoever
    /// `listens` is told everything that happens in it.
    ///
    /// # Errors
    /// When there is no place for it, its thread is not free, or it cannot be given what it was given.
    pub(crate) async fn start(
        &self,
        agent: &Arc<Agent>,
        mut given: RunInput,
        if_busy: IfBusy,
        listens: bool,
    ) -> Result<Begun, Problem> {
        let name = once::take_name();
        if let Some(begun) = self.begun_before(name.as_ref()).await? {
            return Ok(begun);
        }
        if let Some(name) = name {
            given.id = Some(name.to_string());
        }
        if if_busy == IfBusy::Reject {
            return self.try_start(agent, given, None, listens).await;
        }
        // Those that wait for a thread begin in the order in which they came.
        let _turn = match &given.thread {
            Some(thread) => Some(self.queues.lock(thread).await),
            None => None,
        };
        let mut last = None;
        loop {
            let problem = match self.try_start(agent, given.clone(), None, listens).await {
                Err(problem) => problem,
                begun => return begun,
            };
            let Some(way) = problem.run_in_the_way() else { return Err(problem) };
            // Somebody else may have begun one meanwhile; nobody may have two tries at the same one.
            if last.as_ref() == Some(&way) {
                return Err(problem);
            }
            if matches!(if_busy, IfBusy::Interrupt | IfBusy::Rollback) {
                // Nothing is ended for a run that cannot begin.
                given.check(&agent.graph).map_err(HostError::from)?;
                self.quotas.has_room(self.clock().now())?;
            }
            self.make_way(&way, if_busy, problem).await?;
            last = Some(way);
        }
    }

    /// Begins a run as [`Runs::start`] does, in its thread right after a certain run.
    ///
    /// # Errors
    /// As there, and when that is not the last run of the thread.
    pub(crate) async fn start_after(
        &self,
        agent: &Arc<Agent>,
        mut given: RunInput,
        last: &RunId,
        listens: bool,
    ) -> Result<Begun, Problem> {
        let name = once::take_name();
        if let Some(begun) = self.begun_before(name.as_ref()).await? {
            return Ok(begun);
        }
        given.id = name.as_ref().map(ToString::to_string);
        let begun = self.try_start(agent, given, Some(last), listens).await;
        if begun.is_err() {
            // Whoever cannot begin it here may begin it elsewhere.
            once::give_back(name);
        }
        begun
    }

    /// The run of that name, if a request that is made again has begun it.
    pub(super) async fn begun_before(&self, name: Option<&RunId>) -> Result<Option<Begun>, Problem> {
        let Some(name) = name.filter(|_| once::is_repeat()) else { return Ok(None) };
        if !self.is_there(name).await? {
            return Ok(None);
        }
        let hold = self.in_hand.take(name);
        Ok(Some(Begun { run: name.clone(), live: hold.live.clone(), events: None }))
    }

    /// Whether there is a run of exactly this name.
    pub(crate) async fn is_there(&self, name: &RunId) -> Result<bool, Problem> {
        match self.store().find(name.as_str()).await {
            Ok(record) => Ok(record.id == *name),
            Err(JournalError::NoSuchRun(_) | JournalError::Ambiguous(..)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for a run that is in the way of another one, or ends it.
    async fn make_way(&self, run: &str, if_busy: IfBusy, problem: Problem) -> Result<(), Problem> {
        let record = self.find(run).await?;
        let run = &record.id;
        match if_busy {
            IfBusy::Reject => return Err(problem),
            IfBusy::Enqueue if record.status == RunStatus::Waiting => return Err(problem),
            IfBusy::Enqueue => {
                let draining = self.draining.clone();
                return match draining.run_until_cancelled(self.let_go(run)).await {
                    Some(rested) => rested,
                    None => Err(Problem::from(HostError::Stopped)),
                };
            }
            IfBusy::Interrupt | IfBusy::Rollback => match self.cancel(run).await {
                Err(problem) if problem.is_ended() => {}
                other => drop(other?),
            },
        }
        self.let_go(run).await?;
        match if_busy {
            IfBusy::Rollback => self.delete(&self.find(run.as_str()).await?).await,
            _ => Ok(()),
        }
    }

    /// Waits until a run rests and nobody here has it in hand.
    async fn let_go(&self, run: &RunId) -> Result<(), Problem> {
        if let Some(live) = self.live(run) {
            live.done.cancelled().await;
        }
        self.rest(run).await
    }

    async fn try_start(
        &self,
        agent: &Arc<Agent>,
        mut given: RunInput,
        after: Option<&RunId>,
        listens: bool,
    ) -> Result<Begun, Problem> {
        let place = self.place()?;
        let attached = self.attachments.of_input(&given)?;
        let _thread = match &given.thread {
            Some(thread) => {
                let begins = self.threads.lock(thread).await;
                self.check_thread(agent, thread, after).await?;
                Some(begins)
            }
            None => None,
        };
        let about = about(&self.agents, agent.source(), given.thread.as_deref());
        let webhook = webhook_of(&given);
        let told = self.webhooks.watches(webhook.as_deref()).then(|| {
            let name = given.id.get_or_insert_with(|| RunId::random().to_string());
            (RunId::from(name.clone()), webhook)
        });
        if !attached.is_empty() {
            let name = given.id.get_or_insert_with(|| RunId::random().to_string());
            self.attachments.give(&attached, (name.as_str(), given.thread.as_deref()), self.clock().now())?;
        }
        let (source, thread, metadata) = (agent.source().to_owned(), given.thread.clone(), metadata_given(&given));
        let (agent, beginning) = (agent.clone(), Beginning { place, about, told, listens });
        let begun =
            self.begin(beginning, |host, session| async move { host.run(&agent, given, session).await }).await?;
        begun.live.was_begun_with(BegunWith { source, thread, metadata });
        Ok(begun)
    }

    /// A place for a run that is to begin.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        if self.is_draining() {
            return Err(Problem::unavailable("the server is shutting down; nothing was begun"));
        }
        self.quotas.may_begin(self.clock().now())?;
        self.room.clone().try_acquire_owned().map_err(|_| {
            let detail = format!("the server works on {} runs, which is its limit; nothing was begun", self.places);
            Problem::unavailable(detail).kind("too-many-runs", "The server is busy")
        })
    }

    /// Begins a run by this work, which goes on in the background.
    pub(super) async fn begin<W>(
        &self,
        Beginning { place, about, told: watched, listens }: Beginning,
        work: impl FnOnce(Host, Session) -> W,
    ) -> Result<Begun, Problem>
    where
        W: Future<Output = Result<RunReport, HostError>> + Send + 'static,
    {
        self.quotas.begin(self.clock().now())?;
        if let Some((name, webhook)) = &watched {
            // Before it begins, so that nothing of it is missed.
            self.webhooks.watch(name, webhook.as_deref(), 0)?;
        }
        let (told, begun) = Told::beginning(self.in_hand.clone(), listens);
        let agent_id = about.agent.clone();
        let observer = self.telemetry.watch(about, told.clone());
        let session = Session { people: told.clone(), observer, cancel: self.stop.clone() };
        let (host, rested, quotas, webhooks) =
            (self.host.clone(), self.rested.clone(), self.quotas.clone(), self.webhooks.clone());
        let work = work(self.host.clone(), session);
        let work = self.tasks.spawn(
            async move {
                let report = work.await;
                match (told.run(), watched) {
                    (Some(run), _) => quotas.count(&host, run).await,
                    // Another run that has the name was begun before, and is told of.
                    (None, Some(_)) if report.as_ref().is_err_and(is_taken) => {}
                    (None, Some((name, _))) => webhooks.forget(&name),
                    (None, None) => {}
                }
                drop(place);
                // One that is over waits for no time.
                let is_over = report.as_ref().is_ok_and(|report| is_over(&report.outcome));
                let reported = report.map(|report| told.reported(report));
                // Nobody has it in hand any more when it is looked what is due.
                drop(told);
                if !is_over {
                    rested.notify_one();
                }
                reported
            }
            .in_current_span(),
        );
        if let Ok(begun) = begun.await {
            log::about_run(begun.run.as_str(), Some(&*agent_id).filter(|id| !id.is_empty()));
            return Ok(begun);
        }
        // It did not begin.
        match work.await {
            Ok(Ok(())) => Err(Problem::internal(&"a run ended before it began")),
            Ok(Err(error)) => Err(error.into()),
            Err(error) => Err(Problem::internal(&error)),
        }
    }

    /// Whether a run of this agent can be begun in a thread now.
    async fn check_thread(&self, agent: &Agent, thread: &str, after: Option<&RunId>) -> Result<(), Problem> {
        let last = self.store().last_of_thread(agent.source(), thread).await?;
        if let Some(after) = after
            && last.as_ref().map(|last| &last.id) != Some(after)
        {
            return Err(Problem::thread_moved(thread, after));
        }
        let Some(last) = last else { return Ok(()) };
        match last.status {
            RunStatus::Running => Err(Problem::thread_busy(thread, &last.id)),
            RunStatus::Waiting => {
                let questions = self.questions(&last.id).await?.into_iter().map(|open| open.question);
                Err(Problem::thread_waits(thread, &last.id, &questions.collect::<Vec<_>>()))
            }
            // It is about to go on.
            RunStatus::Interrupted if is_ours(&last) || self.live(&last.id).is_some() => {
                Err(Problem::thread_busy(thread, &last.id))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a run could not begin because another one has its name.
fn is_taken(error: &HostError) -> bool {
    matches!(
        error,
        HostError::Journal(JournalError::Exists(_)) | HostError::Run(RunError::Journal(JournalError::Exists(_)))
    )
}

/// Whether nothing more happens to a run that gave control back like this.
fn is_over(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Completed { .. } | Outcome::Failed { .. } | Outcome::Stopped { .. } | Outcome::Cancelled)
}
