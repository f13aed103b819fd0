//! Runs that rest and wait no longer than until some time: somebody was asked, or a join waits for others. They go on when it comes.

use std::time::Duration;

use hotcell_runtime::JournalError;

use crate::mesh;
use crate::state::Server;

/// How long to wait before it is looked again, when what is due is seen to by whoever works on it.
const AGAIN: Duration = Duration::from_secs(1);

/// Goes on with runs when their time has come, until the server closes.
pub(crate) async fn watch(server: Server) {
    let closing = server.closing().clone();
    closing
        .run_until_cancelled(async {
            loop {
                let wait = match next(&server).await {
                    Ok(wait) => wait,
                    Err(error) => {
                        tracing::error!(target: "hotcell::serve", %error, "what is due cannot be read");
                        Some(AGAIN)
                    }
                };
                let rested = server.runs().rested();
                match wait {
                    None => rested.await,
                    Some(Duration::ZERO) => tokio::time::sleep(AGAIN).await,
                    Some(wait) => tokio::select! {
                        () = rested => {}
                        () = server.clock().sleep(wait) => {}
                    },
                }
            }
        })
        .await;
}

/// Goes on with what is due, and says how long it is until more is.
async fn next(server: &Server) -> Result<Option<Duration>, JournalError> {
    let _working = server.clock().working();
    let runs = server.runs();
    for run in runs.store().due(server.clock().now()).await? {
        if runs.wake(&run).await? {
            mesh::goes_on(server, &run);
        }
    }
    let next = runs.store().next_due().await?;
    Ok(next.map(|next| next.duration_since(server.clock().now()).unwrap_or_default()))
}
