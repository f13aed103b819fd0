//! Runs that go with whoever began them.

use hotcell_runtime::RunId;

use crate::state::Server;

/// Cancels a run when it is dropped, unless it is done.
pub(crate) struct Leash(Option<(Server, RunId)>);

impl Leash {
    pub(crate) fn new(server: &Server, run: &RunId, cancels: bool) -> Self {
        Leash(cancels.then(|| (server.clone(), run.clone())))
    }

    pub(crate) fn let_go(&mut self) {
        self.0 = None;
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        let Some((server, run)) = self.0.take() else { return };
        // The server shuts down: the run goes on at its next start.
        if server.closing().is_cancelled() {
            return;
        }
        tokio::spawn(async move {
            if let Err(problem) = server.runs().cancel(&run).await {
                tracing::debug!(target: "hotcell::serve", %run, reason = problem.detail, "it is not cancelled");
            }
        });
    }
}
