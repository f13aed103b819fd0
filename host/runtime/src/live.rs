//! An offering that follows its folders: what is added, replaced or removed counts from the next call on, and calls that
//! are under way finish with what they began with.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::UNIX_EPOCH;

use futures::future::BoxFuture;
use hotcell_mcp::{CallContext, Calling, Catalog, Client, OfferedTool};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::file_watch::{Noticed, Outcome, UNTOLD, UNTOLD_NOTICE, Watcher, settle};
use crate::serve::ToolCatalog;

/// How deep below a folder files are looked at: agents lie in it, with their scripts and plugins in folders of their own.
const DEPTH: usize = 3;
/// Files and folders that are looked at; further ones do not count.
const MOST_LOOKED: usize = 20_000;
/// Folders that are watched; what changes in further ones is found by looking once a second.
const MOST_FOLDERS: usize = 8192;

/// Makes an offering from the folders as they are now; the error is why that cannot be.
pub type Make = Arc<dyn Fn() -> BoxFuture<'static, Result<ToolCatalog, Box<dyn Error + Send + Sync>>> + Send + Sync>;

/// An offering that is made anew when its folders change.
pub struct LiveCatalog {
    current: Arc<RwLock<Arc<ToolCatalog>>>,
    changes: watch::Receiver<u64>,
    _watch: AbortOnDropHandle<()>,
}

impl LiveCatalog {
    /// Follows these folders. What cannot be made, for example because a file is half written, changes nothing and is
    /// tried again with the next change. Has to be called within a tokio runtime.
    pub fn new(first: ToolCatalog, folders: Vec<PathBuf>, make: Make) -> Self {
        let current = Arc::new(RwLock::new(Arc::new(first)));
        let (sender, changes) = watch::channel(0);
        // Now, and not when the task gets its first turn: what changes until then counts, too.
        let seen = Looked::at(&folders).files;
        let offer = Offer { make, current: current.clone(), changes: sender };
        let watching = tokio::spawn(follow(folders, seen, offer));
        LiveCatalog { current, changes, _watch: AbortOnDropHandle::new(watching) }
    }

    fn now(&self) -> Arc<ToolCatalog> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Catalog for LiveCatalog {
    fn tools(&self, client: &Client) -> Vec<OfferedTool> {
        self.now().tools(client)
    }

    fn call<'a>(&'a self, name: &'a str, arguments: Map<String, Value>, call: CallContext) -> Calling<'a> {
        Box::pin(async move { self.now().call(name, arguments, call).await })
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.clone())
    }
}

/// Makes offerings.
struct Offer {
    make: Make,
    current: Arc<RwLock<Arc<ToolCatalog>>>,
    changes: watch::Sender<u64>,
}

impl Offer {
    async fn anew(&self) {
        match (self.make)().await {
            Ok(offering) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(offering);
                self.changes.send_modify(|version| *version += 1);
            }
            Err(error) => tracing::warn!(target: "hotcell::mcp", "what changed is not offered: {error}"),
        }
    }
}

/// Makes an offering whenever files below these paths are not what was `seen` of them.
async fn follow(paths: Vec<PathBuf>, mut seen: Vec<Stamp>, offer: Offer) {
    let paths = Arc::new(paths);
    let watcher = match Watcher::new(Arc::default()) {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::warn!(target: "hotcell::mcp", %error, "{UNTOLD_NOTICE}");
            None
        }
    };
    loop {
        let looking = paths.clone();
        let looked = tokio::task::spawn_blocking(move || Looked::at(&looking)).await;
        let Ok(Looked { files, folders, is_cut, .. }) = looked else { return };
        let Outcome { is_told, is_more, refused } = match &watcher {
            Some(watcher) => {
                watcher.watch(folders.into_iter().map(|folder| (folder, Noticed::Writing)).collect()).await
            }
            None => Outcome::default(),
        };
        if let Some((folder, error)) = refused {
            let folder = folder.display();
            tracing::warn!(target: "hotcell::mcp", %folder, %error, "{UNTOLD_NOTICE}");
        }
        if files != seen {
            seen = files;
            offer.anew().await;
        }
        match &watcher {
            // What changed in a folder before it was watched was told to nobody.
            _ if is_more => {}
            Some(watcher) if is_told && !is_cut => watcher.changed().await,
            Some(watcher) => tokio::select! {
                () = watcher.changed() => {}
                () = sleep(UNTOLD) => {}
            },
            None => sleep(UNTOLD).await,
        }
        if let Some(watcher) = &watcher {
            settle(watcher).await;
        }
    }
}

/// What changes when a file changes: where it is, its length, and when it was written last.
type Stamp = (PathBuf, u64, u128);

/// What was found when it was looked.
#[derive(Debug, Default)]
struct Looked {
    files: Vec<Stamp>,
    /// Where it is told when one of the files changes, or further ones come
    folders: BTreeSet<PathBuf>,
    /// Whether there are more folders than are watched
    is_cut: bool,
    /// How many files and folders were looked at
    looked: usize,
}

impl Looked {
    /// The files below these paths.
    fn at(paths: &[PathBuf]) -> Self {
        let mut looked = Looked::default();
        for path in paths {
            // That it is exchanged, or comes back, is told where it is.
            let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            if let Some(around) = absolute.ancestors().skip(1).find(|folder| folder.is_dir()) {
                looked.watch(around);
            }
            looked.add(path, DEPTH, true);
        }
        looked.files.sort();
        looked
    }

    fn add(&mut self, path: &Path, depth: usize, may_be_link: bool) {
        self.looked += 1;
        let Ok(metadata) = std::fs::metadata(path) else { return };
        if metadata.is_file() {
            let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            self.files.push((path.to_owned(), metadata.len(), modified.map_or(0, |time| time.as_nanos())));
            // What a link leads to changes where it is.
            if may_be_link
                && let Ok(real) = path.canonicalize()
                && let Some(folder) = real.parent()
            {
                self.watch(folder);
            }
            return;
        }
        // Agents are not looked for behind links, which may lead anywhere; a path that was named is followed.
        if depth == 0 || (may_be_link && depth < DEPTH) {
            return;
        }
        self.watch(path);
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            if self.looked >= MOST_LOOKED {
                return;
            }
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            self.add(&entry.path(), depth - 1, is_link);
        }
    }

    /// One folder by two ways is watched once.
    fn watch(&mut self, folder: &Path) {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        match self.folders.len() < MOST_FOLDERS {
            true => {
                self.folders.insert(folder);
            }
            false => self.is_cut = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_change_is_watched_where_it_is() {
        let place = tempfile::tempdir().expect("a folder");
        let place = place.path().canonicalize().expect("it is there");
        let root = place.join("agents");
        for folder in ["agents/a/plugins/deep/deeper", "elsewhere"] {
            std::fs::create_dir_all(place.join(folder)).expect("made");
        }
        for file in ["agents/a/graph.yaml", "agents/a/plugins/deep/x", "elsewhere/y", "elsewhere/z"] {
            std::fs::write(place.join(file), file).expect("written");
        }
        std::os::unix::fs::symlink(place.join("elsewhere/y"), root.join("a/y")).expect("linked");
        // Neither is a link to a folder followed, nor a link that leads around in a circle.
        std::fs::create_dir(place.join("beside")).expect("made");
        std::fs::write(place.join("beside/z"), "z").expect("written");
        std::os::unix::fs::symlink(place.join("beside"), root.join("a/beside")).expect("linked");
        std::os::unix::fs::symlink(&place, root.join("around")).expect("linked");
        let names = |looked: &Looked| -> Vec<PathBuf> { looked.files.iter().map(|(file, ..)| file.clone()).collect() };

        let looked = Looked::at(std::slice::from_ref(&root));
        assert_eq!(names(&looked), [root.join("a/graph.yaml"), root.join("a/y")], "what lies deeper does not count");
        let watched = [place.clone(), root.clone(), root.join("a"), root.join("a/plugins"), place.join("elsewhere")];
        assert_eq!(looked.folders, watched.into());
        // What the link leads to is a part of what was seen.
        std::fs::write(place.join("elsewhere/y"), "another length").expect("written");
        assert_ne!(Looked::at(std::slice::from_ref(&root)).files, looked.files);

        // What is named may be a link.
        std::os::unix::fs::symlink(&root, place.join("named")).expect("linked");
        let named = Looked::at(&[place.join("named")]);
        assert_eq!(names(&named), [place.join("named/a/graph.yaml"), place.join("named/a/y")]);
        let one = Looked::at(&[root.join("a/graph.yaml")]);
        assert_eq!((names(&one), one.folders), (vec![root.join("a/graph.yaml")], [root.join("a")].into()));
        // Folders without files cost time, too.
        let mut enough = Looked { looked: MOST_LOOKED - 2, ..Looked::default() };
        enough.add(&root, DEPTH, false);
        assert_eq!((enough.looked, names(&enough)), (MOST_LOOKED, Vec::new()));
        std::fs::remove_dir_all(&root).expect("removed");
        assert_eq!(Looked::at(std::slice::from_ref(&root)).folders, [place].into());
    }
}
