//! Noticing that files of agents change. The system tells of it where it can; what it told is only a reason to look, and looking
//! decides. Where the system cannot tell, it is looked from time to time.

#[cfg(target_os = "linux")]
mod files;
#[cfg(not(target_os = "linux"))]
#[path = "watch/untold.rs"]
mod files;
mod folders;
mod outcome;

use std::time::{Duration, Instant};

use tokio::time::sleep;

use self::files::Files;
pub(super) use self::folders::below;
use super::refresh::Loaded;
use super::watching::Watching;
use crate::state::Server;

/// How long nothing may have happened before it is looked.
const QUIET: Duration = Duration::from_millis(100);
/// How long is waited for that at most.
const IMPATIENT: Duration = Duration::from_millis(500);
/// How often it is looked where the system does not tell of changes.
const UNTOLD: Duration = Duration::from_secs(1);
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
        Watching::Events => Files::new(server.agents().written.clone()),
    };
    let mut is_told = match &files {
        Some(files) => files.watch(server.agents().folders().await).await.is_told,
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
            let watched = files.watch(server.agents().folders().await).await;
            is_told = watched.is_told;
            // What came into a new folder before it was watched was told to nobody.
            is_due |= watched.is_more;
        }
        rest = begun.elapsed() * SHARE;
        sleep(if is_due { QUIET } else { rest.min(UNTOLD) }).await;
    }
}

/// Waits until nobody changes anything, but not for ever.
async fn settle(files: &Files) {
    let begun = Instant::now();
    loop {
        let before = files.seen();
        sleep(QUIET).await;
        if files.seen() == before || begun.elapsed() > IMPATIENT {
            return;
        }
    }
}
