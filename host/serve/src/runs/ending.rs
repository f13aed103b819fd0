//! Ending runs, and removing them.

use hotcell_runtime::{HostError, RunError, RunId, RunQuery, RunRecord, RunStatus};
use tokio::sync::OwnedMutexGuard;

use super::Runs;
use crate::once;
use crate::problem::Problem;

impl Runs {
    /// Keeps runs from being begun in a thread until what is given back is dropped.
    pub(crate) async fn hold_thread(&self, thread: &str) -> OwnedMutexGuard<()> {
        self.threads.lock(&thread.to_owned()).await
    }

    /// Ends a run for good.
    pub(crate) async fn cancel(&self, run: &RunId) -> Result<RunRecord, Problem> {
        let cancelled = self.host.cancel(run.as_str()).await;
        self.in_hand.news.add(run);
        match cancelled {
            Err(HostError::Run(RunError::Ended { status: RunStatus::Cancelled, .. })) if once::is_repeat() => {
                self.find(run.as_str()).await
            }
            cancelled => Ok(cancelled?),
        }
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
            _ => Ok(self.decisions.forget_decisions_of(run.id.as_str())?),
        }
    }
}
