//! Counting what runs use while they are worked on, and what was not counted because a process ended.

use std::time::Duration;

use hotcell_runtime::{JournalError, RunQuery};

use crate::quota::Month;
use crate::state::Server;

/// How often runs that are worked on are counted.
const EVERY: Duration = Duration::from_secs(10);
/// In how many rounds of counting, once a day and when the server starts, it is forgotten what was counted of runs that are gone.
const FORGETS: u64 = 24 * 60 * 60 / EVERY.as_secs();
/// Runs that are looked at together.
const PAGE: usize = 200;

/// Counts, until the server closes, if anything is limited.
pub(crate) async fn watch(server: Server) {
    if !server.quotas().counts() {
        return;
    }
    let counting = async {
        // A server before this one may have ended between what a run committed and counting it.
        let since = Some(Month::of(server.clock().now()).begin());
        if let Err(error) = count_all(&server, RunQuery { since, ..RunQuery::default() }).await {
            tracing::error!(target: "hotcell::serve", %error, "what runs of this month have used cannot be read");
        }
        for round in 0_u64.. {
            if round.is_multiple_of(FORGETS)
                && let Err(problem) = server.quotas().forget_gone(&**server.runs().store()).await
            {
                let reason = problem.detail;
                tracing::error!(target: "hotcell::serve", reason, "what was counted of runs that are gone is not forgotten");
            }
            server.clock().sleep(EVERY).await;
            for run in server.runs().in_hand() {
                server.quotas().count(server.runs().host(), &run).await;
            }
        }
    };
    server.closing().clone().run_until_cancelled(counting).await;
}

/// Counts what all runs have used that a query finds, if anything is limited.
pub(crate) async fn count_all(server: &Server, query: RunQuery) -> Result<(), JournalError> {
    if !server.quotas().counts() {
        return Ok(());
    }
    let mut query = RunQuery { limit: PAGE, ..query };
    loop {
        let page = server.runs().store().list(&query).await?;
        for run in &page.runs {
            server.quotas().count(server.runs().host(), &run.id).await;
        }
        query.after = page.next;
        if query.after.is_none() {
            return Ok(());
        }
    }
}
