//! Following files: it is looked when the system tells that something changed, and from time to time where it does not tell.

use std::io::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::folders::Folders;
use super::outcome::Outcome;
use super::watcher::Watcher;
use super::written::Written;

/// How long nothing may have happened before it is looked.
const QUIET: Duration = Duration::from_millis(100);
/// How long is waited for that at most.
const IMPATIENT: Duration = Duration::from_millis(500);
/// How often it is looked where the system does not tell of changes.
const UNTOLD: Duration = Duration::from_secs(1);
/// What looking may cost: one part in so many.
const SHARE: u32 = 20;

/// What whoever runs hotcell is told where the system does not tell of changes.
pub const UNTOLD_NOTICE: &str =
    "the system does not report changes to files; they are looked for once a second instead";

/// When it is looked.
pub enum When {
    /// When the system tells of a change, and once a second where it does not tell. Who writes files is noted here
    Told(Arc<Written>),
    /// So often, and less often where looking takes long
    Every(Duration),
}

/// Files that are followed.
pub trait Look: Send {
    /// Looks what changed, and does what follows from it. None if it is not to be looked any more.
    fn look(&mut self) -> impl Future<Output = Option<Looked>> + Send;
    /// The folders in which a change is a reason to look. It is asked for only where the system may tell.
    fn folders(&mut self) -> impl Future<Output = Folders> + Send;
    /// Learns why the system does not tell of changes: in this folder, or in none.
    fn untold(&self, folder: Option<&Path>, error: &Error);
}

/// What came of looking.
#[derive(Debug, Default)]
pub struct Looked {
    /// Whether something is being changed at this moment, so that it has to be looked again
    pub is_due: bool,
    /// Whether there are more folders than are watched
    pub is_cut: bool,
    /// After what time it has to be looked again, whatever is told
    pub within: Option<Duration>,
    /// How long looking took: where the system does not tell of changes, it takes a twentieth of the time at most
    pub took: Duration,
}

/// Follows files until it is not to be looked any more. Has to be called within a tokio runtime.
pub async fn follow(mut files: impl Look, when: When) {
    let (watcher, every) = match when {
        When::Every(every) => (None, every),
        When::Told(written) => match Watcher::new(written) {
            Ok(watcher) => (Some(watcher), UNTOLD),
            Err(error) => {
                files.untold(None, &error);
                (None, UNTOLD)
            }
        },
    };
    watch(watcher.as_ref(), &mut files).await;
    // What was changed before it was watched was told to nobody, so it is looked first.
    loop {
        if let Some(watcher) = &watcher {
            settle(watcher).await;
        }
        let Some(looked) = files.look().await else { return };
        let begun = Instant::now();
        let watched = watch(watcher.as_ref(), &mut files).await;
        let rest = (looked.took + begun.elapsed()) * SHARE;
        // What came into a new folder before it was watched was told to nobody, either.
        let is_due = looked.is_due || watched.is_more;
        sleep(if is_due { QUIET } else { rest.min(UNTOLD) }).await;
        if is_due {
            continue;
        }
        let is_told = watched.is_told && !looked.is_cut;
        let pause = if is_told { looked.within } else { Some(every.max(rest)) };
        match (&watcher, pause) {
            (Some(watcher), None) => watcher.changed().await,
            (Some(watcher), Some(pause)) => tokio::select! {
                () = watcher.changed() => {}
                () = sleep(pause) => {}
            },
            (None, pause) => sleep(pause.unwrap_or(every)).await,
        }
    }
}

/// Watches the folders as they are now.
async fn watch(watcher: Option<&Watcher>, files: &mut impl Look) -> Outcome {
    let Some(watcher) = watcher else { return Outcome::default() };
    let outcome = watcher.watch(files.folders().await).await;
    if let Some((folder, error)) = &outcome.refused {
        files.untold(Some(folder), error);
    }
    outcome
}

/// Waits until nobody changes anything that is watched, but not for ever.
async fn settle(watcher: &Watcher) {
    let begun = Instant::now();
    loop {
        let before = watcher.seen();
        sleep(QUIET).await;
        if watcher.seen() == before || begun.elapsed() > IMPATIENT {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::folders::Noticed;
    use super::*;

    /// A file that is made when it is looked for the first time.
    struct Made {
        folder: PathBuf,
        looks: Arc<AtomicUsize>,
    }

    impl Look for Made {
        async fn look(&mut self) -> Option<Looked> {
            self.looks.fetch_add(1, Ordering::SeqCst);
            let file = self.folder.join("made");
            if file.exists() {
                return None;
            }
            std::fs::write(file, "").expect("written");
            Some(Looked::default())
        }

        async fn folders(&mut self) -> Folders {
            [(self.folder.clone(), Noticed::Writing)].into()
        }

        fn untold(&self, _folder: Option<&Path>, _error: &Error) {}
    }

    #[tokio::test]
    async fn it_is_looked_again_when_something_changed() {
        let place = tempfile::tempdir().expect("a folder");
        let looks = Arc::<AtomicUsize>::default();
        let made = Made { folder: place.path().to_owned(), looks: looks.clone() };
        follow(made, When::Told(Arc::default())).await;
        assert_eq!(looks.load(Ordering::SeqCst), 2);
    }

    /// Files that are being changed when it is looked for the first time.
    struct Changing {
        is_due: bool,
    }

    impl Look for Changing {
        async fn look(&mut self) -> Option<Looked> {
            let is_due = std::mem::replace(&mut self.is_due, false);
            is_due.then(|| Looked { is_due, ..Looked::default() })
        }

        async fn folders(&mut self) -> Folders {
            panic!("the system is not to be asked")
        }

        fn untold(&self, _folder: Option<&Path>, error: &Error) {
            panic!("the system was asked: {error}")
        }
    }

    #[tokio::test]
    async fn what_is_being_changed_is_looked_at_again_at_once_and_without_the_system_where_that_is_wanted() {
        const LONG: Duration = Duration::from_secs(86_400);
        follow(Changing { is_due: true }, When::Every(LONG)).await;
    }
}
