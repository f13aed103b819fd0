//! Runs: what they have in common, and going on with them.

mod begin;
mod due;
mod ending;
mod fork;
mod people;

use std::sync::Arc;
use std::time::Duration;

use hotcell_runtime::{
    Agent, CancellationToken, Clock, ForkOrigin, Host, HostError, JournalError, RunError, RunId, RunQuery, RunRecord,
    RunStatus, RunStore, Session, StateFold,
};
use hotcell_telemetry::{About, Telemetry};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, Semaphore};
use tokio_util::task::TaskTracker;
use utoipa::ToSchema;

use crate::agents::Agents;
use crate::attachments::Attachments;
use crate::follow::Follower;
use crate::groups::Groups;
use crate::input::{is_ours, webhook_of_run};
use crate::live::{Expected, Hold, InHand, Live, Told};
use crate::locks::Locks;
use crate::log;
use crate::news::News;
use crate::problem::Problem;
use crate::quota::Quotas;
use crate::store::Store;
use crate::webhooks::Webhooks;

/// Runs that are looked at together when the server starts.
const PAGE: usize = 500;
/// How long whoever goes on with a run that rests waits for those who worked on it to let it go.
const LET_GO_WITHIN: Duration = Duration::from_secs(5);

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
    /// Cancel the run that is in the way and remove it; the new one goes on with the state before it. It needs the role `operate`
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
    /// Where it is told what becomes of runs
    webhooks: Arc<Webhooks>,
    /// Runs that rested and go on
    gone_on: News,
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
    /// Where it is noted who answered what
    decisions: Store,
    /// Documents to which questions and answers refer
    attachments: Attachments,
    /// The groups that questions may be for
    groups: Groups,
    /// Held while a question of a run is answered
    answers: Locks<RunId>,
    /// Held while a run of a thread is begun
    threads: Locks<String>,
    /// Held while a run waits until it can be begun in a thread
    queues: Locks<String>,
}

impl Runs {
    pub(crate) fn new(
        host: Host,
        agents: Arc<Agents>,
        places: usize,
        quotas: Quotas,
        telemetry: Telemetry,
        webhooks: Webhooks,
        decisions: Store,
    ) -> Self {
        let in_hand = Arc::<InHand>::default();
        if webhooks.is_used() {
            in_hand.news.want();
        }
        let gone_on = News::default();
        gone_on.want();
        Runs {
            host,
            agents,
            gone_on,
            quotas: Arc::new(quotas),
            telemetry,
            in_hand,
            webhooks: Arc::new(webhooks),
            room: Arc::new(Semaphore::new(places)),
            places,
            tasks: TaskTracker::new(),
            draining: CancellationToken::new(),
            stop: CancellationToken::new(),
            rested: Arc::default(),
            attachments: Attachments::new(decisions.clone()),
            decisions,
            groups: Groups::default(),
            answers: Locks::default(),
            threads: Locks::default(),
            queues: Locks::default(),
        }
    }

    /// The same, where questions may be for these groups.
    pub(crate) fn with_groups(self, groups: Groups) -> Self {
        Runs { groups, ..self }
    }

    /// The groups that questions may be for.
    pub(crate) fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Documents to which questions and answers refer.
    pub(crate) fn attachments(&self) -> &Attachments {
        &self.attachments
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

    /// Where it is told what becomes of runs.
    pub(crate) fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }

    /// Runs of which there is something to tell.
    pub(crate) fn news(&self) -> &News {
        &self.in_hand.news
    }

    /// Runs that rested and go on, whatever they go on with.
    pub(crate) fn gone_on(&self) -> &News {
        &self.gone_on
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

    /// Goes on with a run that rests, in the background.
    ///
    /// # Errors
    /// When it has ended, did not fail, or is worked on.
    pub(crate) async fn go_on(&self, run: &str, again: Again) -> Result<(), Problem> {
        let id = RunId::from(run.to_owned());
        match self.in_hand.take_resting(&id, LET_GO_WITHIN, || self.rests(run, again)).await? {
            Some((hold, expected)) => {
                self.again(hold, expected, again);
                Ok(())
            }
            None => Err(busy(&id)),
        }
    }

    /// Whether a run rests so that it can go on like this.
    async fn rests(&self, run: &str, again: Again) -> Result<(), Problem> {
        if self.is_draining() {
            return Err(Problem::unavailable("the server is shutting down; nothing goes on"));
        }
        let run = self.find(run).await?;
        let fits = match again {
            Again::Retry => run.status == RunStatus::Failed,
            Again::Resume | Again::Wake => !run.status.is_final(),
        };
        if !fits {
            return Err(Problem::ended(&run.id, run.status));
        }
        if run.status == RunStatus::Running {
            return Err(busy(&run.id));
        }
        Ok(())
    }

    /// Goes on with a run in the background, as soon as there is a place.
    fn resume(&self, hold: Hold) {
        let expected = hold.live.expect();
        self.again(hold, expected, Again::Wake);
    }

    fn again(&self, hold: Hold, expected: Expected, again: Again) {
        let (host, room, draining) = (self.host.clone(), self.room.clone(), self.draining.clone());
        let (cancel, rested, quotas) = (self.stop.clone(), self.rested.clone(), self.quotas.clone());
        let (working, agents, telemetry) = (self.clock().working(), self.agents.clone(), self.telemetry.clone());
        let (webhooks, clock) = (self.webhooks.clone(), self.clock().clone());
        self.gone_on.add(&hold.run);
        self.tasks.spawn(async move {
            // What is not begun before the server ends is begun at its next start.
            let Some(Ok(place)) = draining.run_until_cancelled(room.acquire_owned()).await else { return };
            let run = hold.run.clone();
            let told = Told::going_on(hold, working, expected);
            // What cannot be read is said by whoever goes on with it.
            let record = host.journal().find(run.as_str()).await.ok();
            if again == Again::Retry
                && let Some(record) = &record
            {
                tell_again(&host, &webhooks, record).await;
            }
            let about = record.map(|record| about(&agents, &record.header.source, record.thread())).unwrap_or_default();
            let observer = telemetry.watch(about, told.clone());
            let session = Session { people: told.clone(), observer, cancel };
            let resumed = match again {
                Again::Wake => host.wake(run.as_str(), session).await,
                Again::Resume => host.resume(run.as_str(), session).await.map(Some),
                Again::Retry => host.retry(run.as_str(), session).await.map(Some),
            };
            quotas.count(&host, &run).await;
            let mut is_stuck = false;
            match resumed {
                Ok(Some(report)) => told.reported(report),
                // What came for a run that is paused is kept until somebody resumes it.
                Ok(None) => {}
                // Whoever works on it has what was sent to it; one that has ended needs nothing.
                Err(HostError::Run(RunError::Journal(JournalError::Busy(_)) | RunError::Ended { .. })) => {}
                Err(error) => {
                    tracing::error!(target: "hotcell::serve", %run, %error, "a run cannot go on");
                    is_stuck = true;
                }
            }
            // Nobody has it in hand any more when it is looked what is due.
            drop((told, place));
            if is_stuck {
                draining.run_until_cancelled(clock.sleep(due::STUCK)).await;
            }
            rested.notify_one();
        });
    }

    /// Has a run in hand, so that whoever follows it does not take it for one that rests.
    pub(crate) fn hold(&self, run: &RunId) -> Hold {
        self.in_hand.take(run)
    }

    /// Whether somebody works on a run here.
    pub(crate) fn is_live(&self, run: &RunId) -> bool {
        self.live(run).is_some()
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

/// Somebody works on a run, or is about to.
fn busy(run: &RunId) -> Problem {
    Problem::conflict(format!("run `{run}` is being worked on"))
        .kind("run-busy", "The run is worked on")
        .with("run_id", run.as_str())
}

/// What metrics and traces say about a run of an agent that was loaded from there.
fn about(agents: &Agents, source: &str, thread: Option<&str>) -> About {
    About { agent: agents.id_of(source).unwrap_or_default(), thread: thread.map(str::to_owned), tenant: None }
}

/// Has it told again what becomes of a run that had ended, and goes on.
async fn tell_again(host: &Host, webhooks: &Webhooks, run: &RunRecord) {
    let webhook = webhook_of_run(run);
    if !webhooks.watches(webhook.as_deref()) || ForkOrigin::of_given(&run.header.given).is_some() {
        return;
    }
    let watched = match host.journal().last_entry(&run.id).await {
        Ok(last) => webhooks.watch(&run.id, webhook.as_deref(), last).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = watched {
        tracing::error!(target: "hotcell::serve", run = %run.id, error, "what becomes of a run is not told");
    }
}
