//! Noticing that files change. The system tells of it where it can; what it told is only a reason to look, and looking decides. Where
//! the system cannot tell, whoever watches looks from time to time.

mod folders;
mod outcome;
#[cfg(not(target_os = "linux"))]
#[path = "untold.rs"]
mod watcher;
#[cfg(target_os = "linux")]
mod watcher;
mod written;

use std::time::{Duration, Instant};

use tokio::time::sleep;

pub use folders::{Folders, Noticed};
pub use outcome::Outcome;
pub use watcher::Watcher;
pub use written::Written;

/// How long nothing may have happened before it is looked.
pub const QUIET: Duration = Duration::from_millis(100);
/// How long is waited for that at most.
const IMPATIENT: Duration = Duration::from_millis(500);
/// How often it is looked where the system does not tell of changes.
pub const UNTOLD: Duration = Duration::from_secs(1);

/// What whoever runs hotcell is told where the system does not tell of changes.
pub const UNTOLD_NOTICE: &str =
    "the system does not report changes to files; they are looked for once a second instead";

/// Waits until nobody changes anything that is watched, but not for ever.
pub async fn settle(watcher: &Watcher) {
    let begun = Instant::now();
    loop {
        let before = watcher.seen();
        sleep(QUIET).await;
        if watcher.seen() == before || begun.elapsed() > IMPATIENT {
            return;
        }
    }
}
