//! Looking what was changed of the agents that are served, and serving that.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use hotcell_graph::diagnostic::{Diagnostic, render};
use hotcell_runtime::{Agent, Discovered, Freshness, LoadFailure, Unsettled, discover};

use super::trouble::Trouble;
use super::unit::{self, Tried, Unit};
use super::{Agents, Root, Served, real};
use crate::store::StoreError;

/// Files that are loaded side by side.
const SIDE_BY_SIDE: usize = 8;

/// What came of looking.
#[derive(Default)]
pub(crate) struct Loaded {
    /// Agents that would be called like others
    pub(crate) clashes: Vec<(PathBuf, String)>,
    /// Whether something is being changed at this moment, so that it has to be looked again
    pub(crate) is_unsettled: bool,
    /// How long an agent is not loaded at most of which somebody writes a file
    pub(crate) is_held: Option<Duration>,
    /// Whether anything is served otherwise than before
    pub(crate) is_changed: bool,
}

/// Whether the file of an agent is there.
enum There {
    Yes,
    No,
    /// It cannot be said; the text is why
    Unknown(String),
}

/// Whether the file of an agent is there, below its root and no link.
fn there(file: &Path, root: &Path) -> There {
    let real = || file.canonicalize().ok()?.starts_with(root.canonicalize().ok()?).then_some(());
    match std::fs::symlink_metadata(file) {
        Ok(metadata) if metadata.is_file() && real().is_some() => There::Yes,
        Ok(_) => There::No,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => There::No,
        Err(error) => There::Unknown(format!("its file cannot be read, and it is served as it was: {error}")),
    }
}

/// What is found below one root.
struct Found {
    root: usize,
    agents: Vec<Discovered>,
    /// Why it cannot be looked there
    lost: Option<String>,
}

/// A file after it was loaded again: what cannot be loaded leaves what was served before.
fn exchanged(
    known: Option<&Arc<Unit>>,
    root: usize,
    found: &Discovered,
    Settled { tried, trouble, is_held }: Settled,
    loaded: &mut Loaded,
) -> Unit {
    loaded.is_held = loaded.is_held.max(is_held);
    let agents = known.map(|known| known.agents.clone()).unwrap_or_default();
    let mut unit = Unit { id: found.id.clone(), root, agents, fresh: tried.fresh, is_due: false, trouble: None };
    match tried.result {
        Ok(agents) => {
            let before: HashMap<&str, &Arc<Agent>> = unit.agents.iter().map(|(id, agent)| (&**id, agent)).collect();
            let agent = |(id, agent): (String, Agent)| {
                // What it has compiled and opened serves on, unless that hangs on more than the revision.
                let same = before.get(&*id).filter(|before| {
                    before.digest() == agent.digest()
                        && known.is_some_and(|known| known.fresh.has_same_servers(&unit.fresh))
                });
                let agent = same.map_or_else(|| Arc::new(agent), |same| (*same).clone());
                (id, agent)
            };
            let agents = agents.into_iter().map(agent).collect();
            unit.agents = agents;
        }
        Err(changing @ Unsettled::Changing(_)) => {
            loaded.is_unsettled |= unit.fresh.is_empty();
            unit.trouble = known.and_then(|known| known.trouble.clone());
            unit.is_due = true;
            if unit.agents.is_empty() && unit.trouble.is_none() {
                let failure = Some(Diagnostic::error(changing.to_string()).into());
                let trouble = Trouble { failure, ..Trouble::new("its files are being changed") };
                unit.trouble = Some(Arc::new(trouble));
            }
        }
        Err(Unsettled::Failed(_)) => unit.trouble = trouble,
    }
    unit
}

/// What below the roots is as it was, and what has to be loaded again.
struct Sorted {
    units: BTreeMap<PathBuf, Arc<Unit>>,
    again: Vec<(usize, Discovered)>,
    /// Where the roots are, links followed
    places: Vec<PathBuf>,
}

/// Looks which files are as they were. It waits for the file system.
fn sort(before: &Served, roots: &[Root]) -> Sorted {
    let mut units: BTreeMap<PathBuf, Arc<Unit>> = BTreeMap::new();
    let mut again: Vec<(usize, Discovered)> = Vec::new();
    for found in look(roots) {
        // The same file may be reached by way of two roots.
        let new = found.agents.into_iter().filter(|one| !units.contains_key(&one.path));
        let new: Vec<Discovered> = new.filter(|one| again.iter().all(|(_, other)| other.path != one.path)).collect();
        for one in new {
            match before.units.get(&one.path) {
                Some(unit) if unit.id == one.id && unit.fresh.is_current() && !unit.must_be_tried() => {
                    units.insert(one.path, unit.clone());
                }
                _ => again.push((found.root, one)),
            }
        }
        let own = before.units.iter().filter(|(_, unit)| unit.root == found.root);
        for (path, unit) in own {
            if units.contains_key(path) || again.iter().any(|(_, one)| one.path == *path) {
                continue;
            }
            let there = match (&found.lost, unit.agents.first()) {
                (Some(reason), _) => There::Unknown(reason.clone()),
                (None, Some((_, agent))) => there(&agent.file, &roots[found.root].path),
                // It never was one that can be served.
                (None, None) => There::No,
            };
            match there {
                There::Unknown(reason) => drop(units.insert(path.clone(), Arc::new(unit.lost(&reason)))),
                // It looks like no agent any more, for instance because half of it is missing.
                There::Yes => match unit.fresh.is_current() && !unit.must_be_tried() {
                    true => drop(units.insert(path.clone(), unit.clone())),
                    false => again.push((found.root, Discovered { id: unit.id.clone(), path: path.clone() })),
                },
                There::No => {}
            }
        }
    }
    let places = roots.iter().filter_map(|root| real(&root.path)).collect();
    Sorted { units, again, places }
}

/// What there is below the roots.
fn look(roots: &[Root]) -> Vec<Found> {
    let sent: Vec<PathBuf> =
        roots.iter().filter(|root| root.is_sent).filter_map(|root| root.path.canonicalize().ok()).collect();
    // What was sent is not what somebody named, also if it lies below a folder that somebody named.
    let was_sent = |path: &Path| path.canonicalize().is_ok_and(|path| sent.iter().any(|sent| path.starts_with(sent)));
    let is_sent = |root: &Path| root.canonicalize().is_ok_and(|root| sent.contains(&root));
    let look = |(root, Root { path, .. }): (usize, &Root)| {
        // A folder that cannot be read looks like an empty one.
        let lost = match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => std::fs::read_dir(path).err(),
            Ok(_) => None,
            Err(error) => Some(error),
        };
        let lost = lost.map(|error| match error.kind() {
            ErrorKind::NotFound => "its folder is not there any more, and it is served as it was".to_owned(),
            _ => format!("its folder cannot be read, and it is served as it was: {error}"),
        });
        let mut agents = if lost.is_some() { Vec::new() } else { discover(path) };
        if !is_sent(path) {
            agents.retain(|agent| !was_sent(&agent.path));
        }
        Found { root, agents, lost }
    };
    roots.iter().enumerate().map(look).collect()
}

/// A file that was loaded again, and what is said of it.
struct Settled {
    tried: Tried,
    /// Why it cannot be loaded
    trouble: Option<Arc<Trouble>>,
    /// How long it is not loaded at most, because somebody writes a file of it
    is_held: Option<Duration>,
}

impl Agents {
    /// Looks what was changed, and serves it from now on. What is under way ends with the revision that it began with.
    ///
    /// # Errors
    /// When what was removed cannot be noted. Nothing is changed then.
    pub(crate) async fn refresh(&self) -> Result<Loaded, StoreError> {
        let _refreshing = self.refreshing.lock().await;
        let before = self.now();
        let (known, roots) = (before.clone(), self.roots.clone());
        let Ok(sorted) = tokio::task::spawn_blocking(move || sort(&known, &roots)).await else {
            // The process ends, or looking panicked, which is told elsewhere: what is served stays.
            return Ok(Loaded { is_unsettled: true, ..Loaded::default() });
        };
        let Sorted { mut units, again, places } = sorted;
        let mut loaded = Loaded::default();
        let tried = futures::stream::iter(again.into_iter().map(|(root, one)| async move {
            let tried = unit::load(&self.host, &one, !self.roots[root].is_sent).await;
            let settled = self.settled(&one.path, tried).await;
            (root, one, settled)
        }));
        let mut tried = tried.buffer_unordered(SIDE_BY_SIDE);
        while let Some((root, one, settled)) = tried.next().await {
            let unit = exchanged(before.units.get(&one.path), root, &one, settled, &mut loaded);
            units.insert(one.path, Arc::new(unit));
        }
        let mut served = self.serve(&before, units, &places, &mut loaded)?;
        served.clashes.clone_from(&loaded.clashes);
        loaded.is_changed = !served.is_like(&before);
        tell(&before, &served);
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(served);
        Ok(loaded)
    }

    /// A file that was loaded, if nobody wrote one of its files meanwhile, and what is said of it.
    async fn settled(&self, path: &Path, mut tried: Tried) -> Settled {
        let (host, written, path) = (self.host.clone(), self.written.clone(), path.to_owned());
        let settle = move || {
            let (written, longest) = written.now();
            let half: Vec<String> = tried.fresh.those_of(&written).map(|file| file.display().to_string()).collect();
            let is_held = longest.filter(|_| !half.is_empty());
            if !half.is_empty() {
                tried.result = Err(Unsettled::Changing(half));
            }
            let trouble = match &tried.result {
                Err(Unsettled::Failed(failure)) => Some(Arc::new(Trouble::of(&host, &path, failure.clone()))),
                _ => None,
            };
            Settled { tried, trouble, is_held }
        };
        tokio::task::spawn_blocking(settle).await.unwrap_or_else(|error| {
            let failure = LoadFailure::from(Diagnostic::error(format!("loading failed: {error}")));
            let trouble = Trouble { failure: Some(failure.clone()), ..Trouble::new("loading failed") };
            let tried = Tried { result: Err(failure.into()), fresh: Freshness::default() };
            Settled { tried, trouble: Some(Arc::new(trouble)), is_held: None }
        })
    }

    /// What is served of some files.
    fn serve(
        &self,
        before: &Served,
        units: BTreeMap<PathBuf, Arc<Unit>>,
        places: &[PathBuf],
        loaded: &mut Loaded,
    ) -> Result<Served, StoreError> {
        let mut served = Served::default();
        // Whoever was there first keeps its name.
        let mut order: Vec<(&PathBuf, &Arc<Unit>)> = units.iter().collect();
        order.sort_by_key(|(path, unit)| (!before.units.contains_key(*path), unit.root, *path));
        for (_, unit) in order {
            for (id, agent) in &unit.agents {
                if let Some(trouble) = &unit.trouble {
                    served.troubled.insert(id.clone(), trouble.clone());
                }
                match served.by_id.get(id) {
                    Some(known) if known.source() == agent.source() => {}
                    Some(known) => {
                        let (one, other) = (known.file.display(), agent.file.display());
                        let clash =
                            format!("two agents would be called `{id}`: `{one}` and `{other}`; rename one of them");
                        let detail = format!("another file would be called `{id}`, too, and is not served");
                        let told = before.troubled.get(id).filter(|told| told.detail == detail).cloned();
                        let trouble = told.unwrap_or_else(|| Arc::new(Trouble::new(detail)));
                        served.troubled.insert(id.clone(), trouble);
                        loaded.clashes.push((agent.file.clone(), clash));
                    }
                    // One that is reached by way of two folders keeps its first name.
                    None if served.by_source.contains_key(agent.source()) => {}
                    None => {
                        served.by_source.insert(agent.source().to_owned(), id.clone());
                        served.by_id.insert(id.clone(), agent.clone());
                    }
                }
            }
            if let (true, Some(trouble)) = (unit.agents.is_empty(), &unit.trouble) {
                served.troubled.entry(unit.id.clone()).or_insert_with(|| trouble.clone());
            }
        }
        served.units = units;
        let gone = before.by_source.iter().chain(&before.retired);
        let gone = gone.filter(|(source, _)| !served.by_source.contains_key(*source));
        served.retired = gone.map(|(source, id)| (source.clone(), id.clone())).collect();
        served.retired.retain(|source, _| places.iter().any(|place| Path::new(source).starts_with(place)));
        let new: Vec<(&str, &str)> = served
            .retired
            .iter()
            .filter(|(source, _)| !before.retired.contains_key(*source))
            .map(|(source, id)| (&**source, &**id))
            .collect();
        let back: Vec<&str> =
            before.retired.keys().filter(|source| served.by_source.contains_key(*source)).map(String::as_str).collect();
        self.store.retire_agents(&new, &back)?;
        Ok(served)
    }
}

impl Served {
    /// Whether the same is served.
    fn is_like(&self, other: &Served) -> bool {
        let same =
            |(id, agent): (&String, &Arc<Agent>)| other.by_id.get(id).is_some_and(|known| Arc::ptr_eq(known, agent));
        self.by_id.len() == other.by_id.len() && self.by_id.iter().all(same)
    }
}

impl Unit {
    /// Whether it is to be loaded again although nothing was changed.
    fn must_be_tried(&self) -> bool {
        self.is_due || self.fresh.is_empty()
    }

    /// The same, when its file cannot be reached.
    fn lost(&self, reason: &str) -> Self {
        let known = self.trouble.as_ref().filter(|trouble| trouble.detail == reason).cloned();
        let trouble = known.unwrap_or_else(|| Arc::new(Trouble::new(reason)));
        // It is looked at again when its file is back.
        Unit { trouble: Some(trouble), is_due: true, ..self.clone() }
    }
}

/// Tells whoever runs the server what is served otherwise.
fn tell(before: &Served, after: &Served) {
    // At the start whoever begins it is told otherwise.
    if before.units.is_empty() {
        return;
    }
    for (id, agent) in &after.by_id {
        let digest = agent.digest();
        match before.by_id.get(id) {
            None => tracing::info!(target: "hotcell::serve", agent = id, revision = digest, "an agent was added"),
            Some(known) if !Arc::ptr_eq(known, agent) => {
                tracing::info!(target: "hotcell::serve", agent = id, revision = digest, "an agent has a new revision");
            }
            Some(_) => {}
        }
    }
    for id in before.by_id.keys().filter(|id| !after.by_id.contains_key(*id)) {
        tracing::info!(target: "hotcell::serve", agent = id, "an agent was removed; what is under way of it ends");
    }
    for (id, trouble) in &after.troubled {
        if before.troubled.get(id).is_some_and(|known| Arc::ptr_eq(known, trouble)) {
            continue;
        }
        let reason = match &trouble.failure {
            Some(failure) => render(&failure.diagnostics, false),
            None => trouble.detail.clone(),
        };
        match after.by_id.contains_key(id) {
            true => {
                tracing::warn!(target: "hotcell::serve", agent = id, reason, "the agent is served as it was before")
            }
            false => tracing::warn!(target: "hotcell::serve", agent = id, reason, "the agent cannot be served"),
        }
    }
}
