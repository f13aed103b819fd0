//! Counting what runs use while they are worked on, and what was not counted because a process ended.

use std::time::{Duration, SystemTime};

use hotcell_runtime::{JournalError, RunQuery};

use crate::quota::Month;
use crate::state::Server;

/// How often runs that are worked on are counted.
const EVERY: Duration = Duration::from_secs(10);
/// Runs that are counted together when a server starts.
const PAGE: usize = 200;

/// Counts, until the server closes, if anything is limited.
pub(crate) async fn watch(server: Server) {
    if !server.quotas().counts() {
        return;
    }
    let counting = async {
        // A server before this one may have ended between what a run committed and counting it.
        if let Err(error) = count_since(&server, Month::of(server.clock().now()).begin()).await {
            tracing::error!(target: "hotcell::serve", %error, "what runs of this month have used cannot be read");
        }
        loop {
            server.clock().sleep(EVERY).await;
            for run in server.runs().in_hand() {
                server.quotas().count(server.runs().host(), &run).await;
            }
        }
    };
    server.closing().clone().run_until_cancelled(counting).await;
}

/// Counts all runs that began since then.
async fn count_since(server: &Server, since: SystemTime) -> Result<(), JournalError> {
    let mut query = RunQuery { since: Some(since), limit: PAGE, ..RunQuery::default() };
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
