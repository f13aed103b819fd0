//! The entries of a run, a few at a time: each may have megabytes, and a run has any number of them.

use hotcell_runtime::{Asking, EntryPage, JournalError, NumberedEntry, OpenQuestion, RunId};

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
        let EntryPage { entries, is_last, .. } = server.runs().store().entries(run, after, AT_ONCE).await?;
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

/// The questions of a run that wait for an answer; of one that is damaged, those that can be read.
pub(super) async fn open_questions(server: &Server, run: &RunId) -> Result<Vec<OpenQuestion>, Problem> {
    let store = server.runs().store();
    // First of all: what is received while entries are read is among those as well, and an answer counts once.
    let unread = store.unread(run).await?;
    let (mut asking, mut after) = (Asking::default(), 0);
    loop {
        let EntryPage { entries, is_last, .. } = match store.entries(run, after, AT_ONCE).await {
            Ok(page) => page,
            Err(JournalError::Damaged { .. }) => {
                return Ok(hotcell_runtime::open_questions(&store.history(run).await?.entries));
            }
            Err(error) => return Err(error.into()),
        };
        for numbered in entries {
            after = numbered.number;
            asking.add(&numbered.entry);
        }
        if is_last {
            unread.iter().for_each(|entry| asking.add(entry));
            return Ok(asking.open());
        }
        // Others want to be served, too.
        tokio::task::yield_now().await;
    }
}
