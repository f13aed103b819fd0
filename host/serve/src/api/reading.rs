//! The entries of a run, a few at a time: each may have megabytes, and a run has any number of them.

use hotcell_runtime::{NumberedEntry, RunId};

use crate::problem::Problem;
use crate::state::Server;

/// Entries that are read at once.
pub(super) const AT_ONCE: usize = 20;

/// Looks at the entries of a run in their order, the one with the number `until` included, until something is wrong with one.
pub(super) async fn each(
    server: &Server,
    run: &RunId,
    until: u64,
    mut look: impl FnMut(NumberedEntry) -> Result<(), Problem> + Send,
) -> Result<(), Problem> {
    let mut after = 0;
    loop {
        let entries = server.runs().store().entries(run, after, AT_ONCE).await?.entries;
        let is_last = entries.len() < AT_ONCE;
        for numbered in entries {
            after = numbered.number;
            if after > until {
                return Ok(());
            }
            look(numbered)?;
        }
        if is_last {
            return Ok(());
        }
        // Others want to be served, too.
        tokio::task::yield_now().await;
    }
}
