//! Forgetting attachments that no run needs.

use std::time::{Duration, SystemTime};

use hotcell_runtime::{Clock, JournalError, RunId, RunQuery, RunStore};

use super::Attachments;
use super::kept::Given;
use super::reference::Digest;
use crate::problem::Problem;

/// How long an attachment is kept that no run was given, and what is noted of a run that is not there: it may be about to begin.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How often it is looked which of them are needed.
const EVERY: Duration = Duration::from_secs(60 * 60);
/// Attachments, or runs that were given one, that are looked at together.
const PAGE: usize = 100;

impl Attachments {
    /// Forgets attachments that no run needs, again and again. It does not end.
    pub(crate) async fn tend(&self, journal: &dyn RunStore, clock: &dyn Clock) {
        loop {
            let looked = async {
                self.forget_unneeded(journal, clock.now()).await?;
                Ok::<_, Problem>(self.store.has_attachments()?)
            };
            match looked.await {
                Ok(true) => clock.sleep(EVERY).await,
                Ok(false) => self.added.notified().await,
                Err(problem) => {
                    let reason = problem.detail;
                    tracing::error!(target: "hotcell::serve", reason, "attachments that no run needs are not forgotten");
                    clock.sleep(EVERY).await;
                }
            }
        }
    }

    async fn forget_unneeded(&self, journal: &dyn RunStore, now: SystemTime) -> Result<(), Problem> {
        let since = now.checked_sub(KEPT_FOR).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut after = 0;
        loop {
            let page = self.store.old_attachments(after, since, PAGE)?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = *last;
            for (number, digest) in &page {
                if !self.is_needed(journal, digest, since).await? {
                    self.store.forget_attachment(*number, since)?;
                }
                // Others want to be served, too.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Whether a run that is there was given an attachment. On the way, runs that are gone are forgotten.
    async fn is_needed(&self, journal: &dyn RunStore, digest: &Digest, since: SystemTime) -> Result<bool, Problem> {
        let mut after = String::new();
        loop {
            let page = self.store.runs_given(digest, &after, PAGE)?;
            let Some(last) = page.last() else { return Ok(false) };
            after.clone_from(&last.run);
            for given in &page {
                if given.at >= since || has_it(journal, given).await? {
                    return Ok(true);
                }
                self.store.forget_given(digest, &given.run, since)?;
            }
        }
    }
}

/// Whether the run that was given something is there, or another one of its thread: it goes on with the state of those before it.
async fn has_it(journal: &dyn RunStore, given: &Given) -> Result<bool, JournalError> {
    match journal.entries(&RunId::from(given.run.clone()), u64::MAX, 1).await {
        Err(JournalError::NoSuchRun(_)) => {}
        other => return other.map(|_| true),
    }
    match &given.thread {
        Some(thread) => {
            let of_thread = RunQuery { thread: Some(thread.clone()), limit: 1, ..RunQuery::default() };
            Ok(!journal.list(&of_thread).await?.runs.is_empty())
        }
        None => Ok(false),
    }
}
