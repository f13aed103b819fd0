//! Whether an agent is still what its files say, for whoever serves it while they change. Nothing is read for that: what is looked at
//! of a file is what changes when it is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hotcell_graph::diagnostic::Diagnostic;
use hotcell_plugins::{LOCK_FILE, SERVERS_FILE, SETTINGS_FILE, Trust};
use thiserror::Error;

use crate::agent::{Agent, LoadFailure, Loading, Which};
use crate::context::LoadContext;
use crate::host::{Host, HostError};
use crate::load;
use crate::revision::RevisionError;
use crate::revision::changes::changes;
use crate::stamp::FileStamp;

/// Files that are looked at in a folder whose agent cannot be loaded, or in a folder of plugins.
const MOST: usize = 10_000;
/// How deep a folder is looked at whose agent cannot be loaded.
const DEPTH: usize = 4;

/// What an agent was loaded from, as it was then.
#[derive(Clone, Debug, Default)]
pub struct Freshness(BTreeMap<PathBuf, Stamp>);

/// What changes when a path is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamp {
    Missing,
    /// A folder, of which only counts that it is there
    Folder,
    /// A folder, of which counts what lies in it
    Listed(Option<SystemTime>),
    File(FileStamp),
}

/// Why an agent cannot be loaded now.
#[derive(Debug, Error)]
pub enum Unsettled {
    /// Its files were changed while they were read: they are to be read again when that is over
    #[error("its files are being changed: {}", .0.join(", "))]
    Changing(Vec<String>),
    /// It cannot be loaded
    #[error(transparent)]
    Failed(#[from] LoadFailure),
}

impl Freshness {
    /// Whether all of it is as it was.
    pub fn is_current(&self) -> bool {
        self.0.iter().all(|(path, stamp)| stamp.again(path) == *stamp)
    }

    /// Whether nothing is known: then everything may have changed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What both were loaded from.
    #[must_use]
    pub fn and(mut self, other: Freshness) -> Self {
        // What changed in between is not as it was for the first one.
        for (path, stamp) in other.0 {
            self.0.entry(path).or_insert(stamp);
        }
        self
    }

    /// Those of some files, links followed, that it was loaded from.
    pub fn those_of<'f>(&self, files: &'f BTreeSet<PathBuf>) -> impl Iterator<Item = &'f Path> {
        let own: BTreeSet<PathBuf> = match files.is_empty() {
            true => BTreeSet::new(),
            false => self.0.keys().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())).collect(),
        };
        files.iter().filter(move |file| own.contains(*file)).map(PathBuf::as_path)
    }

    /// Whether the files that name MCP servers were the same. They are no part of a revision, and are read when an agent is loaded.
    pub fn has_same_servers(&self, other: &Freshness) -> bool {
        let servers = |fresh: &Freshness| -> Vec<(PathBuf, Stamp)> {
            let files = fresh.0.iter().filter(|(path, _)| path.ends_with(SERVERS_FILE));
            files.map(|(path, stamp)| (path.clone(), *stamp)).collect()
        };
        servers(self) == servers(other)
    }

    /// The folders in which something would have to change.
    pub fn folders(&self) -> BTreeSet<PathBuf> {
        let folder = |(path, stamp): (&PathBuf, &Stamp)| match stamp {
            Stamp::Listed(_) => Some(path.clone()),
            _ => path.parent().map(Path::to_path_buf),
        };
        self.0.iter().filter_map(folder).filter_map(|folder| std::path::absolute(folder).ok()).collect()
    }

    fn file(&mut self, path: PathBuf) {
        let stamp = Stamp::of(&path, false);
        self.0.insert(path, stamp);
    }

    fn listed(&mut self, path: PathBuf) {
        let stamp = Stamp::of(&path, true);
        self.0.insert(path, stamp);
    }

    /// What counts in a folder beside the files that a revision keeps: plugins, settings, servers, and whether it is trusted.
    fn around(&mut self, context: &LoadContext, folder: &Path) {
        for name in [SETTINGS_FILE, LOCK_FILE, SERVERS_FILE] {
            self.file(folder.join(name));
        }
        for plugins in context.plugin_folders(folder) {
            let entries = std::fs::read_dir(&plugins).into_iter().flatten().flatten().take(MOST);
            entries.for_each(|entry| self.file(entry.path()));
            self.listed(plugins);
        }
        if let Some(servers) = context.users_servers() {
            self.file(servers.to_owned());
        }
        if let Trust::Listed(list) | Trust::Named(list) = context.trust() {
            self.file(list.clone());
        }
    }

    /// Of an agent that cannot be loaded: everything near it, because nobody knows what is missing.
    fn near(context: &LoadContext, path: &Path) -> Self {
        let mut near = Freshness::default();
        let folder = folder_of(path);
        near.around(context, &folder);
        near.file(path.to_owned());
        let mut left = MOST;
        near.below(&folder, DEPTH, &mut left);
        near
    }

    fn below(&mut self, folder: &Path, depth: usize, left: &mut usize) {
        self.listed(folder.to_owned());
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if *left == 0 {
                return;
            }
            *left -= 1;
            match entry.file_type() {
                Ok(kind) if kind.is_file() => self.file(entry.path()),
                Ok(kind) if kind.is_dir() && depth > 0 => self.below(&entry.path(), depth - 1, left),
                _ => {}
            }
        }
    }

    fn of(context: &LoadContext, agent: &Agent, before: Freshness) -> Self {
        let mut all = Freshness::default();
        let Some(revision) = &agent.revision else { return Freshness::near(context, &agent.file) };
        let manifest = &revision.manifest;
        for (root, read) in &manifest.read {
            let paths = read.files.keys().chain(read.entries.keys()).chain(read.links.keys());
            paths.for_each(|path| all.file(root.join(path)));
        }
        for plugin in manifest.plugins.values().flat_map(BTreeMap::values) {
            all.file(plugin.file.clone());
        }
        manifest.listed_folders().for_each(|folder| all.listed(folder));
        manifest.decided.keys().for_each(|folder| all.around(context, folder));
        all.file(agent.file.clone());
        // What was there before loading began counts: what came meanwhile may not have been seen.
        all.0.extend(before.0);
        all
    }
}

impl Stamp {
    fn of(path: &Path, is_listed: bool) -> Self {
        match std::fs::metadata(path) {
            Err(_) => Stamp::Missing,
            Ok(metadata) if metadata.is_dir() && is_listed => Stamp::Listed(metadata.modified().ok()),
            Ok(metadata) if metadata.is_dir() => Stamp::Folder,
            Ok(metadata) => Stamp::File(FileStamp::of(&metadata)),
        }
    }

    /// What the same path is now.
    fn again(self, path: &Path) -> Self {
        Stamp::of(path, matches!(self, Stamp::Listed(_)))
    }
}

fn folder_of(path: &Path) -> PathBuf {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if path.is_dir() { path } else { path.parent().map_or_else(|| path.clone(), Path::to_path_buf) }
}

impl Host {
    /// Loads one of several agents of a file, or the first of them, as [`Host::load_any_async`] does, and says what it was loaded from.
    /// What was changed while it was read is not loaded: it would be half of the old and half of the new. Of an agent that is not
    /// `is_named` by whoever runs this, nothing counts that its folder grants unless somebody trusts the folder.
    ///
    /// # Errors
    /// When it cannot be loaded, or is being changed, and what would have to change so that it is worth another try.
    pub async fn load_settled(
        &self,
        path: &Path,
        name: Option<&str>,
        is_named: bool,
    ) -> Result<(Agent, Freshness), (Unsettled, Freshness)> {
        let context = self.context().lasting().unnamed(!is_named);
        let (path, name) = (path.to_owned(), name.map(str::to_owned));
        let near = path.clone();
        let load = move || -> Result<(Agent, Freshness), (Unsettled, Freshness)> {
            let mut before = Freshness::default();
            before.around(&context, &folder_of(&path));
            let agent = name.as_deref().map_or(Which::Any, Which::Named);
            let agent = load::load(&context, &path, &Loading { agent, ..Loading::default() })
                .map_err(|failure| (Unsettled::from(failure), Freshness::near(&context, &path)))?;
            let fresh = Freshness::of(&context, &agent, before);
            let changed = match &agent.revision {
                Some(revision) => changes(&context, revision, &agent.folder),
                None => Vec::new(),
            };
            match changed.is_empty() && fresh.is_current() {
                true => Ok((agent, fresh)),
                // It is worth another try at once.
                false => Err((Unsettled::Changing(changed), Freshness::default())),
            }
        };
        let loaded = self.context().connections().blocking(load).await;
        let (agent, fresh) = match loaded {
            Ok(loaded) => loaded?,
            Err(reason) => return Err(self.not_loaded(near, reason.to_string()).await),
        };
        // Runs that go on later need the components as they were, and somebody may replace them before the first one begins.
        let has_components = agent.revision.as_ref().is_some_and(|revision| !revision.manifest.components().is_empty());
        if has_components && let Err(error) = self.keep(&agent).await {
            return Err(match error {
                HostError::Unkept(RevisionError::ComponentChanged(_)) => {
                    (Unsettled::Changing(vec![error.to_string()]), Freshness::default())
                }
                error => self.not_loaded(near, error.to_string()).await,
            });
        }
        Ok((agent, fresh))
    }

    /// What is said where something else than its files keeps an agent from being loaded, with everything near it.
    async fn not_loaded(&self, path: PathBuf, reason: String) -> (Unsettled, Freshness) {
        let failure = LoadFailure::from(Diagnostic::error(format!("loading failed: {reason}")));
        let context = self.context().clone();
        let near = self.context().connections().blocking(move || Freshness::near(&context, &path)).await;
        (Unsettled::from(failure), near.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostOptions;

    const GRAPH: &str = "name: one\nstart: done\nnodes:\n  done: { type: end, output: hello }\n";

    #[tokio::test(flavor = "multi_thread")]
    async fn whatever_an_agent_was_loaded_from_makes_it_stale_and_nothing_else_does() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("one");
        std::fs::create_dir(&folder).expect("made");
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        write("graph.yaml", GRAPH);
        let host = Host::new(HostOptions::isolated()).expect("a host");
        let load = async || host.load_settled(&folder, None, true).await;
        for (name, text) in [
            ("graph.yaml", "name: three\nstart: done\nnodes:\n  done: { type: end, output: hello }\n"),
            ("plugins/new.wasm", "no plugin"),
            ("plugins/new.wasm", "no plugin, and longer"),
            ("hotcell.toml", "[run]\nstrict = true\n"),
            ("mcp.json", "{}"),
        ] {
            let (_, fresh) = load().await.unwrap_or_else(|(error, _)| panic!("{name}: {error}"));
            write("notes.txt", "nobody reads them");
            assert!(fresh.is_current(), "before {name}");
            assert!(fresh.folders().contains(&folder.canonicalize().expect("real")), "{:?}", fresh.folders());
            write(name, text);
            assert!(!fresh.is_current(), "{name}");
        }
        write("graph.yaml", "name: [");
        let Err((Unsettled::Failed(failure), near)) = load().await else { panic!("it is broken") };
        assert!(!failure.diagnostics.is_empty() && near.is_current());
        write("scripts/late.js", "1");
        assert!(!near.is_current(), "what was missing may have come");
    }
}
