//! An offering that follows its folders: what is added, replaced or removed counts from the next call on, and calls that
//! are under way finish with what they began with.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use futures::future::BoxFuture;
use hotcell_mcp::{CallContext, Calling, Catalog, Client, OfferedTool};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::context::PLUGIN_FOLDER;
use crate::file_watch::{Folders, Look, Looked, Noticed, UNTOLD_NOTICE, When, follow};
use crate::serve::{ToolCatalog, holds_agent};
use crate::stamp::FileStamp;

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
        let seen = Seen::at(&folders);
        let offer = Offer { paths: folders.into(), seen, make, current: current.clone(), changes: sender };
        let watching = tokio::spawn(follow(offer, When::Told(Arc::default())));
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

/// Makes offerings of what lies below some paths.
struct Offer {
    paths: Arc<[PathBuf]>,
    seen: Seen,
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

impl Look for Offer {
    /// Makes an offering if files are not what was seen of them. What that takes is not counted: it is not done at every look.
    async fn look(&mut self) -> Option<Looked> {
        let (begun, paths) = (Instant::now(), self.paths.clone());
        // The process ends, or looking panicked, which is told elsewhere: what is offered stays.
        let now = tokio::task::spawn_blocking(move || Seen::at(&paths)).await.ok()?;
        let (took, is_cut, is_changed) = (begun.elapsed(), now.is_cut, now.files != self.seen.files);
        self.seen = now;
        if is_changed {
            self.anew().await;
        }
        Some(Looked { is_cut, took, ..Looked::default() })
    }

    async fn folders(&mut self) -> Folders {
        self.seen.folders.iter().map(|folder| (folder.clone(), Noticed::Writing)).collect()
    }

    fn untold(&self, folder: Option<&Path>, error: &io::Error) {
        let folder = folder.map(|folder| folder.display().to_string());
        tracing::warn!(target: "hotcell::mcp", folder, %error, "{UNTOLD_NOTICE}");
    }
}

/// What was found when it was looked.
#[derive(Debug, Default)]
struct Seen {
    files: BTreeMap<PathBuf, FileStamp>,
    /// Where it is told when one of the files changes, or further ones come
    folders: BTreeSet<PathBuf>,
    /// Whether there are more folders than are watched
    is_cut: bool,
    /// How many files and folders were looked at
    looked: usize,
}

impl Seen {
    /// The files below these paths.
    fn at(paths: &[PathBuf]) -> Self {
        let mut looked = Seen::default();
        for path in paths {
            // That it is exchanged, or comes back, is told where it is.
            let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            if let Some(around) = absolute.ancestors().skip(1).find(|folder| folder.is_dir()) {
                looked.watch(around);
            }
            looked.add(path, DEPTH, true);
        }
        looked
    }

    fn add(&mut self, path: &Path, depth: usize, may_be_link: bool) {
        self.looked += 1;
        let Ok(metadata) = std::fs::metadata(path) else { return };
        if metadata.is_file() {
            self.files.insert(path.to_owned(), FileStamp::of(&metadata));
            // What a link leads to changes where it is.
            if may_be_link
                && let Ok(real) = path.canonicalize()
                && let Some(folder) = real.parent()
            {
                self.watch(folder);
            }
            return;
        }
        // A path that was named is followed. Other links may lead anywhere: only agents and plugins are loaded from behind them.
        let depth = match may_be_link && depth < DEPTH {
            true if holds_agent(path) => depth,
            true if path.file_name().is_some_and(|name| name == PLUGIN_FOLDER) => depth.min(1),
            true => 0,
            false => depth,
        };
        if depth == 0 {
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
        let names = |looked: &Seen| -> Vec<PathBuf> { looked.files.keys().cloned().collect() };

        let looked = Seen::at(std::slice::from_ref(&root));
        assert_eq!(names(&looked), [root.join("a/graph.yaml"), root.join("a/y")], "what lies deeper does not count");
        let watched = [place.clone(), root.clone(), root.join("a"), root.join("a/plugins"), place.join("elsewhere")];
        assert_eq!(looked.folders, watched.into());
        // What the link leads to is a part of what was seen.
        std::fs::write(place.join("elsewhere/y"), "another length").expect("written");
        let changed = Seen::at(std::slice::from_ref(&root)).files;
        assert_ne!(changed, looked.files);
        // And so is that another file takes its place, however alike they are.
        let (file, other) = (place.join("elsewhere/y"), place.join("elsewhere/z"));
        let written = std::fs::metadata(&file).and_then(|metadata| metadata.modified()).expect("a time");
        std::fs::write(&other, "another length").expect("written");
        std::fs::File::options().write(true).open(&other).expect("opened").set_modified(written).expect("set");
        std::fs::rename(&other, &file).expect("moved");
        assert_ne!(Seen::at(std::slice::from_ref(&root)).files, changed);

        // What is named may be a link.
        std::os::unix::fs::symlink(&root, place.join("named")).expect("linked");
        let named = Seen::at(&[place.join("named")]);
        assert_eq!(names(&named), [place.join("named/a/graph.yaml"), place.join("named/a/y")]);
        let one = Seen::at(&[root.join("a/graph.yaml")]);
        assert_eq!((names(&one), one.folders), (vec![root.join("a/graph.yaml")], [root.join("a")].into()));
        // Folders without files cost time, too.
        let mut enough = Seen { looked: MOST_LOOKED - 2, ..Seen::default() };
        enough.add(&root, DEPTH, false);
        assert_eq!((enough.looked, names(&enough)), (MOST_LOOKED, Vec::new()));
        std::fs::remove_dir_all(&root).expect("removed");
        assert_eq!(Seen::at(std::slice::from_ref(&root)).folders, [place].into());
    }

    #[test]
    fn agents_and_plugins_are_followed_where_links_to_them_lead() {
        let place = tempfile::tempdir().expect("a folder");
        let place = place.path().canonicalize().expect("it is there");
        let root = place.join("agents");
        for folder in ["agents", "desk/scripts", "shared/deep"] {
            std::fs::create_dir_all(place.join(folder)).expect("made");
        }
        for file in ["desk/graph.yaml", "desk/scripts/a.py", "shared/x.wasm", "shared/deep/y"] {
            std::fs::write(place.join(file), file).expect("written");
        }
        std::os::unix::fs::symlink(place.join("desk"), root.join("desk")).expect("linked");
        std::os::unix::fs::symlink(place.join("shared"), place.join("desk/plugins")).expect("linked");
        let looked = Seen::at(std::slice::from_ref(&root));
        let files = ["desk/graph.yaml", "desk/plugins/x.wasm", "desk/scripts/a.py"];
        assert!(looked.files.keys().eq(files.map(|file| root.join(file)).iter()), "{looked:?}");
        let folders = ["", "agents", "desk", "desk/scripts", "shared"];
        assert_eq!(looked.folders, folders.map(|folder| place.join(folder)).into());
    }
}
