//! Noticing that files of agents change. What the system tells of it is only a reason to look, and looking decides. Where the system
//! cannot tell, it is looked from time to time.

mod folders;

use std::time::{Duration, Instant};

use hotcell_runtime::file_watch::{Outcome, QUIET, UNTOLD, UNTOLD_NOTICE, Watcher, settle};
use tokio::time::sleep;

pub(super) use self::folders::below;
use super::refresh::Loaded;
use super::watching::Watching;
use crate::state::Server;

/// What looking may cost: one part in so many.
const SHARE: u32 = 20;

/// Serves what files say as they change, until the server closes.
pub(crate) async fn watch(server: Server) {
    let closing = server.closing().clone();
    closing.run_until_cancelled(look_on(&server)).await;
}

async fn look_on(server: &Server) {
    let files = match server.settings().watching {
        Watching::Never => return,
        Watching::Every(_) => None,
        Watching::Events => match Watcher::new(server.agents().written.clone()) {
            Ok(files) => Some(files),
            Err(error) => {
                tracing::warn!(target: "hotcell::serve", %error, "{UNTOLD_NOTICE}");
                None
            }
        },
    };
    let mut is_told = match &files {
        Some(files) => follow(server, files).await.is_told,
        None => false,
    };
    // What was changed between loading and watching was told to nobody.
    let mut is_due = true;
    let mut rest = Duration::ZERO;
    // Somebody writes a file; when they are done the system tells.
    let mut held = None;
    loop {
        if !is_due {
            let every = match server.settings().watching {
                Watching::Every(every) => every,
                _ => UNTOLD,
            };
            let pause = (!is_told).then(|| every.max(rest)).or(held);
            match (&files, pause) {
                (Some(files), None) => files.changed().await,
                (Some(files), Some(pause)) => tokio::select! {
                    () = files.changed() => {}
                    () = sleep(pause) => {}
                },
                (None, _) => sleep(every.max(rest)).await,
            }
        }
        if let Some(files) = &files {
            settle(files).await;
        }
        let begun = Instant::now();
        let Loaded { is_unsettled, is_held, .. } = server.refresh().await;
        (is_due, held) = (is_unsettled, is_held);
        if let Some(files) = &files {
            let watched = follow(server, files).await;
            is_told = watched.is_told;
            // What came into a new folder before it was watched was told to nobody.
            is_due |= watched.is_more;
        }
        rest = begun.elapsed() * SHARE;
        sleep(if is_due { QUIET } else { rest.min(UNTOLD) }).await;
    }
}

/// Watches the folders of what is served now. That one cannot be watched is told whoever runs the server.
async fn follow(server: &Server, files: &Watcher) -> Outcome {
    let outcome = files.watch(server.agents().folders().await).await;
    if let Some((folder, error)) = &outcome.refused {
        let folder = folder.display();
        tracing::warn!(target: "hotcell::serve", %folder, %error, "{UNTOLD_NOTICE}");
    }
    outcome
}
