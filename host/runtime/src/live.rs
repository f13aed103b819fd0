//! An offering that follows its folders: what is added, replaced or removed counts from the next call on, and calls that
//! are under way finish with what they began with.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, UNIX_EPOCH};

use futures::future::BoxFuture;
use hotcell_mcp::{CallContext, Calling, Catalog, Client, OfferedTool};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::serve::ToolCatalog;

/// How often folders are looked at.
const EVERY: Duration = Duration::from_millis(500);
/// How deep below a folder files are looked at: agents lie in it, with their scripts and plugins in folders of their own.
const DEPTH: usize = 3;
/// Files that are looked at; further ones do not count.
const MOST_FILES: usize = 10_000;

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
        let shared = current.clone();
        // Now, and not when the task gets its first turn: what changes until then counts, too.
        let mut seen = stamp(&folders);
        let watching = tokio::spawn(async move {
            loop {
                tokio::time::sleep(EVERY).await;
                let now = stamp(&folders);
                if now == seen {
                    continue;
                }
                seen = now;
                match make().await {
                    Ok(offering) => {
                        *shared.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(offering);
                        sender.send_modify(|version| *version += 1);
                    }
                    Err(error) => tracing::warn!(target: "hotcell::mcp", "what changed is not offered: {error}"),
                }
            }
        });
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

/// What changes when a file below the folders changes.
fn stamp(folders: &[PathBuf]) -> Vec<(PathBuf, u64, u128)> {
    let mut files = Vec::new();
    for folder in folders {
        add(folder, DEPTH, &mut files);
    }
    files.sort();
    files
}

fn add(path: &Path, depth: usize, files: &mut Vec<(PathBuf, u64, u128)>) {
    let Ok(metadata) = std::fs::metadata(path) else { return };
    if metadata.is_file() {
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        files.push((path.to_owned(), metadata.len(), modified.map_or(0, |time| time.as_nanos())));
        return;
    }
    if depth == 0 {
        return;
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        if files.len() >= MOST_FILES {
            return;
        }
        add(&entry.path(), depth - 1, files);
    }
}
