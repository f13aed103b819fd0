//! Runs that rest and wait no longer than until some time: somebody was asked, or a join waits for others. They go on when it comes.

use std::time::Duration;

use hotcell_runtime::{Counted, JournalError};

use crate::mesh;
use crate::state::Server;

/// How long to wait before it is looked again, when it could not be read.
const AGAIN: Duration = Duration::from_secs(10);

/// Goes on with runs when their time has come, until the server closes. It counts as work from `begun` on until it first waits, and
/// whenever it does not wait after that.
pub(crate) async fn watch(server: Server, begun: Counted) {
    let closing = server.closing().clone();
    let watching = async {
        let mut working = begun;
        loop {
            let wait = match next(&server).await {
                Ok(wait) => wait,
                Err(error) => {
                    tracing::error!(target: "hotcell::serve", %error, "what is due cannot be read");
                    Some(AGAIN)
                }
            };
            let rested = server.runs().rested();
            let due = wait.map(|wait| server.clock().sleep(wait));
            drop(working);
            match due {
                None => rested.await,
                Some(due) => tokio::select! {
                    () = rested => {}
                    () = due => {}
                },
            }
            working = server.clock().working();
        }
    };
    closing.run_until_cancelled(watching).await;
}

/// Goes on with what is due, and says how long it is until more is. What is due and stays so is seen to by whoever works on it, or
/// belongs to nobody here.
async fn next(server: &Server) -> Result<Option<Duration>, JournalError> {
    let (runs, now) = (server.runs(), server.clock().now());
    for run in runs.store().due(now).await? {
        match runs.wake(&run).await {
            Ok(true) => mesh::goes_on(server, &run),
            Ok(false) => {}
            // One that cannot be read keeps no other one waiting.
            Err(error) => {
                tracing::error!(target: "hotcell::serve", %run, %error, "a run whose time has come cannot be read")
            }
        }
    }
    let next = runs.store().next_due(now).await?;
    Ok(next.map(|next| next.duration_since(server.clock().now()).unwrap_or_default()))
}
