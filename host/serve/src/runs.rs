//! Beginning runs, going on with them, and ending them.

use std::sync::Arc;
use std::time::Duration;

use hotcell_runtime::{
    Agent, CallbackError, CancellationToken, Clock, Host, HostError, JournalError, OpenQuestion, Outcome, RunError,
    RunId, RunInput, RunQuery, RunRecord, RunStatus, RunStore, Session, StateFold, open_questions,
};
use hotcell_telemetry::{About, Telemetry};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, Semaphore};
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;
use utoipa::ToSchema;

use crate::agents::Agents;
use crate::follow::Follower;
use crate::input::is_ours;
use crate::live::{Begun, Hold, InHand, Live, Told};
use crate::locks::Locks;
use crate::log;
use crate::problem::Problem;
use crate::quota::Quotas;

/// Runs that are looked at together when the server starts.
const PAGE: usize = 500;

/// What to do about a run of a thread that is busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IfBusy {
    /// Refuse the new run
    #[default]
    Reject,
    /// Begin the new run when the thread is free, and answer then. A thread that waits for a person is not free by itself: the
    /// new run is refused
    Enqueue,
    /// Cancel the run that is in the way; the new one goes on with the state that it came to
    Interrupt,
    /// Cancel the run that is in the way and remove it; the new one goes on with the state before it
    Rollback,
}

/// How a run goes on that rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// With what was sent to it; not where somebody paused it
    Wake,
    /// Whatever it rests for
    Resume,
    /// From the node that failed
    Retry,
}

/// The runs of a server.
pub(crate) struct Runs {
    host: Host,
    /// Of runs of other agents in the journal nothing is shown, and nothing is done to them
    agents: Arc<Agents>,
    telemetry: Telemetry,
    in_hand: Arc<InHand>,
    quotas: Arc<Quotas>,
    /// Places for runs that are worked on
    room: Arc<Semaphore>,
    places: usize,
    tasks: TaskTracker,
    /// Cancelled when no more runs are begun
    draining: CancellationToken,
    /// Cancelled when those that are worked on have to stop
    stop: CancellationToken,
    /// Told when a run has given control back
    rested: Arc<Notify>,
    /// Held while a run of a thread is begun
    threads: Locks<String>,
    /// Held while a run waits until it can be begun in a thread
    queues: Locks<String>,
}

impl Runs {
    pub(crate) fn new(host: Host, agents: Arc<Agents>, places: usize, quotas: Quotas, telemetry: Telemetry) -> Self {
        Runs {
            host,
            agents,
            quotas: Arc::new(quotas),
            telemetry,
            in_hand: Arc::default(),
            room: Arc::new(Semaphore::new(places)),
            places,
            tasks: TaskTracker::new(),
            draining: CancellationToken::new(),
            stop: CancellationToken::new(),
            rested: Arc::default(),
            threads: Locks::default(),
            queues: Locks::default(),
        }
    }

    pub(crate) fn store(&self) -> &Arc<dyn RunStore> {
        self.host.journal()
    }

    /// How many this process has in hand.
    pub(crate) fn working(&self) -> usize {
        self.in_hand.len()
    }

    /// Keeps what is used within what may be used.
    pub(crate) fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// How many may be worked on at a time.
    pub(crate) fn places(&self) -> usize {
        self.places
    }

    /// What loads and runs agents.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// The clock by which runs wait.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        self.host.clock()
    }

    /// A variable of the environment.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        self.host.variable(name)
    }

    /// The runs that this process has in hand.
    pub(crate) fn in_hand(&self) -> Vec<RunId> {
        self.in_hand.all()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// A run that this process has in hand.
    pub(crate) fn live(&self, run: &RunId) -> Option<Arc<Live>> {
        self.in_hand.get(run)
    }

    /// Somebody who follows a run from an entry on.
    pub(crate) fn follow(&self, run: RunId, after: u64) -> Follower {
        Follower::new(self.store().clone(), self.in_hand.clone(), run, after)
    }

    /// Waits until a run rests.
    pub(crate) async fn rest(&self, run: &RunId) -> Result<(), Problem> {
        // What its entries say is of no interest.
        let mut follower = self.follow(run.clone(), u64::MAX);
        while follower.next().await?.is_some() {}
        Ok(())
    }

    /// The run of exactly this name: beginnings of names are for people who type. It has to be one of an agent that is served.
    pub(crate) async fn find(&self, run: &str) -> Result<RunRecord, Problem> {
        let none = || Problem::from(JournalError::NoSuchRun(run.to_owned()));
        match self.store().find(run).await {
            Ok(record) if record.id.as_str() == run => match self.agents.id_of(&record.header.source) {
                Some(agent) => {
                    log::about_run(run, Some(&agent));
                    Ok(record)
                }
                None => Err(none()),
            },
            Ok(_) | Err(JournalError::NoSuchRun(_) | JournalError::Ambiguous(..)) => Err(none()),
            Err(error) => Err(error.into()),
        }
    }

    /// Begins a run. It is in the journal when this returns, and goes on whatever becomes of whoever asked for it. Whoever
    /// `listens` is told everything that happens in it.
    ///
    /// # Errors
    /// When there is no place for it, its thread is not free, or it cannot be given what it was given.
    pub(crate) async fn start(
        &self,
        agent: &Arc<Agent>,
        given: RunInput,
        if_busy: IfBusy,
        listens: bool,
    ) -> Result<Begun, Problem> {
        // Those that wait for a thread begin in the order in which they came.
        let _turn = match &given.thread {
            Some(thread) if if_busy != IfBusy::Reject => Some(self.queues.lock(thread).await),
            _ => None,
        };
        let mut last = None;
        loop {
            let problem = match self.try_start(agent, given.clone(), None, listens).await {
                Err(problem) if if_busy != IfBusy::Reject => problem,
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
        given: RunInput,
        last: &RunId,
        listens: bool,
    ) -> Result<Begun, Problem> {
        self.try_start(agent, given, Some(last), listens).await
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
        given: RunInput,
        after: Option<&RunId>,
        listens: bool,
    ) -> Result<Begun, Problem> {
        if self.is_draining() {
            return Err(Problem::unavailable("the server is shutting down; nothing was begun"));
        }
        self.quotas.may_begin(self.clock().now())?;
        let Ok(place) = self.room.clone().try_acquire_owned() else {
            let detail = format!("the server works on {} runs, which is its limit; nothing was begun", self.places);
            return Err(Problem::unavailable(detail).kind("too-many-runs", "The server is busy"));
        };
        let _thread = match &given.thread {
            Some(thread) => {
                let begins = self.threads.lock(thread).await;
                self.check_thread(agent, thread, after).await?;
                Some(begins)
            }
            None => None,
        };
        self.quotas.begin(self.clock().now())?;
        let (told, begun) = Told::beginning(self.in_hand.clone(), listens);
        let agent_id = self.agents.id_of(agent.source());
        let about = about(&self.agents, agent.source(), given.thread.as_deref());
        let observer = self.telemetry.watch(about, told.clone());
        let session = Session { people: told.clone(), observer, cancel: self.stop.clone() };
        let (host, agent, rested, quotas) =
            (self.host.clone(), agent.clone(), self.rested.clone(), self.quotas.clone());
        let work = self.tasks.spawn(
            async move {
                let report = host.run(&agent, given, session).await;
                if let Some(run) = told.run() {
                    quotas.count(&host, run).await;
                }
                drop(place);
                // One that is over waits for no time.
                if !report.as_ref().is_ok_and(|report| is_over(&report.outcome)) {
                    rested.notify_one();
                }
                report.map(|report| told.reported(report))
            }
            .in_current_span(),
        );
        if let Ok(begun) = begun.await {
            log::about_run(begun.run.as_str(), agent_id.as_deref());
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

    /// Goes on with a run that rests, in the background.
    ///
    /// # Errors
    /// When it has ended, did not fail, or is worked on.
    pub(crate) fn go_on(&self, run: &RunRecord, again: Again) -> Result<(), Problem> {
        if self.is_draining() {
            return Err(Problem::unavailable("the server is shutting down; nothing goes on"));
        }
        let fits = match again {
            Again::Retry => run.status == RunStatus::Failed,
            Again::Resume | Again::Wake => !run.status.is_final(),
        };
        if !fits {
            return Err(Problem::ended(&run.id, run.status));
        }
        if run.status == RunStatus::Running || self.is_live(&run.id) {
            return Err(Problem::conflict(format!("run `{}` is being worked on", run.id))
                .kind("run-busy", "The run is worked on")
                .with("run_id", run.id.as_str()));
        }
        self.again(self.in_hand.take(&run.id), again);
        Ok(())
    }

    /// Goes on with a run in the background, as soon as there is a place.
    fn resume(&self, hold: Hold) {
        self.again(hold, Again::Wake);
    }

    fn again(&self, hold: Hold, again: Again) {
        let (host, room, draining) = (self.host.clone(), self.room.clone(), self.draining.clone());
        let (cancel, rested, quotas) = (self.stop.clone(), self.rested.clone(), self.quotas.clone());
        let (working, agents, telemetry) = (self.clock().working(), self.agents.clone(), self.telemetry.clone());
        self.tasks.spawn(async move {
            // What is not begun before the server ends is begun at its next start.
            let Some(Ok(_place)) = draining.run_until_cancelled(room.acquire_owned()).await else { return };
            let run = hold.run.clone();
            let told = Told::going_on(hold, working);
            // What cannot be read is said by whoever goes on with it.
            let record = host.journal().find(run.as_str()).await.ok();
            let about = record.map(|record| about(&agents, &record.header.source, record.thread())).unwrap_or_default();
            let observer = telemetry.watch(about, told.clone());
            let session = Session { people: told.clone(), observer, cancel };
            let resumed = match again {
                Again::Wake => host.wake(run.as_str(), session).await,
                Again::Resume => host.resume(run.as_str(), session).await.map(Some),
                Again::Retry => host.retry(run.as_str(), session).await.map(Some),
            };
            quotas.count(&host, &run).await;
            rested.notify_one();
            match resumed {
                Ok(Some(report)) => told.reported(report),
                // What came for a run that is paused is kept until somebody resumes it.
                Ok(None) => {}
                // Whoever works on it has what was sent to it; one that has ended needs nothing.
                Err(HostError::Run(RunError::Journal(JournalError::Busy(_)) | RunError::Ended { .. })) => {}
                Err(error) => tracing::error!(target: "hotcell::serve", %run, %error, "a run cannot go on"),
            }
        });
    }

    /// The questions of a run that wait for answers.
    pub(crate) async fn questions(&self, run: &RunId) -> Result<Vec<OpenQuestion>, Problem> {
        Ok(open_questions(&self.store().history(run).await?.whole()?))
    }

    /// Has a run in hand, so that whoever follows it does not take it for one that rests.
    pub(crate) fn hold(&self, run: &RunId) -> Hold {
        self.in_hand.take(run)
    }

    /// Sends an answer to a run, which goes on if nobody works on it.
    ///
    /// # Errors
    /// When nobody asked that, or it has an answer.
    pub(crate) async fn answer(
        &self,
        run: &RunId,
        question: Option<&str>,
        text: &str,
    ) -> Result<OpenQuestion, Problem> {
        // Whoever follows the run does not take it for one that rests any more.
        let hold = self.in_hand.take(run);
        let answered = self.host.answer(run.as_str(), question, text).await?;
        self.resume(hold);
        Ok(answered)
    }

    /// Sends what came by a callback to a run that waits for it, which goes on.
    pub(crate) async fn answer_callback(&self, run: &RunId, session: &str, body: &str) -> Result<(), CallbackError> {
        let hold = self.in_hand.take(run);
        self.host.answer_callback(session, body).await?;
        self.resume(hold);
        Ok(())
    }

    /// Whether somebody works on a run here.
    pub(crate) fn is_live(&self, run: &RunId) -> bool {
        self.live(run).is_some()
    }

    /// Ends when a run has given control back since this was called last.
    pub(crate) async fn rested(&self) {
        self.rested.notified().await;
    }

    /// Goes on with a run that rests and something of which is due. False if it is not for this server.
    pub(crate) async fn wake(&self, run: &RunId) -> Result<bool, JournalError> {
        let record = self.store().find(run.as_str()).await?;
        let is_own = is_ours(&record) && self.agents.id_of(&record.header.source).is_some();
        if is_own && self.live(run).is_none() {
            self.resume(self.in_hand.take(run));
        }
        Ok(is_own)
    }

    /// Ends a run for good.
    pub(crate) async fn cancel(&self, run: &RunId) -> Result<RunRecord, Problem> {
        Ok(self.host.cancel(run.as_str()).await?)
    }

    /// Removes a run that has ended.
    pub(crate) async fn delete(&self, run: &RunRecord) -> Result<(), Problem> {
        if !run.status.is_final() {
            let detail = format!("run `{}` has not ended; cancel it first", run.id);
            return Err(Problem::conflict(detail).kind("run-not-ended", "The run has not ended"));
        }
        // What it has used is used.
        self.quotas.count(&self.host, &run.id).await;
        let query = RunQuery { run: Some(run.id.clone()), ..RunQuery::default() };
        match self.store().prune(&query).await?.runs {
            0 => {
                let detail = format!("a later run of its thread goes on from run `{}`; delete the thread", run.id);
                Err(Problem::conflict(detail).kind("run-needed", "Another run needs it"))
            }
            _ => Ok(()),
        }
    }

    /// The state that a run has come to.
    pub(crate) async fn state_of(&self, run: &RunRecord) -> Result<hotcell_graph::Object, Problem> {
        Ok(self.host.state_of(run).await?)
    }

    /// The state that a run has come to, for a run of this agent that goes on with it.
    pub(crate) async fn earlier_state(&self, run: &RunRecord, next: &Agent) -> Result<hotcell_graph::Object, Problem> {
        Ok(self.host.earlier_state(run, next).await?)
    }

    /// The state that a run began with, which follows its entries.
    pub(crate) async fn fold_of(&self, run: &RunRecord) -> Result<StateFold, Problem> {
        Ok(self.host.fold_of(run).await?)
    }

    /// Goes on with what a server that ended left: runs that it worked on, and those that were sent something since. Only what a
    /// server began of agents that are served is taken up: what a person interrupted at a terminal waits for that person.
    pub(crate) async fn take_up(&self) -> Result<usize, JournalError> {
        let mut found = self.store().with_messages().await?;
        let mut query = RunQuery { statuses: vec![RunStatus::Interrupted], limit: PAGE, ..RunQuery::default() };
        loop {
            let page = self.store().list(&query).await?;
            found.extend(page.runs.into_iter().map(|run| run.id));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        let mut taken = 0;
        found.sort();
        found.dedup();
        for run in found {
            match self.store().find(run.as_str()).await {
                Ok(record) if is_ours(&record) && self.agents.id_of(&record.header.source).is_some() => {
                    taken += 1;
                    self.resume(self.in_hand.take(&run));
                }
                Ok(_) => {}
                Err(error) => tracing::error!(target: "hotcell::serve", %run, %error, "a run cannot be read"),
            }
        }
        Ok(taken)
    }

    /// Begins no more runs, and gives those that are worked on so long. What is not done then is interrupted, and goes on at the
    /// next start. Gives how many that were.
    pub(crate) async fn drain(&self, within: Duration) -> usize {
        self.draining.cancel();
        self.tasks.close();
        if tokio::time::timeout(within, self.tasks.wait()).await.is_ok() {
            return 0;
        }
        let left = self.working();
        self.stop.cancel();
        self.tasks.wait().await;
        left
    }
}

/// What metrics and traces say about a run of an agent that was loaded from there.
fn about(agents: &Agents, source: &str, thread: Option<&str>) -> About {
    About { agent: agents.id_of(source).unwrap_or_default(), thread: thread.map(str::to_owned), tenant: None }
}

/// Whether nothing more happens to a run that gave control back like this.
fn is_over(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Completed { .. } | Outcome::Failed { .. } | Outcome::Stopped { .. } | Outcome::Cancelled)
}
