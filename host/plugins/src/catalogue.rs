//! Finding plugins: every component of some folders.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use hotcell_cells::Survey;
use hotcell_files::MAX_COMPONENT;
use serde::{Deserialize, Serialize};

use crate::plugin::{Plugin, PluginError, as_plugin, look_at};

/// Bytes that the index of what was found may have.
const MAX_INDEX: u64 = 256 << 20;
/// Files that are looked at in one folder.
const MAX_FILES: usize = 10_000;
/// The form of the index file; one of another form is made anew.
const INDEX_FORM: u32 = 1;

/// All plugins of some folders.
#[derive(Debug, Default)]
pub struct Catalogue {
    found: Vec<Found>,
}

/// A file that was found in a folder of plugins.
#[derive(Clone, Debug)]
pub struct Found {
    /// The file
    pub file: PathBuf,
    /// The plugin, or why it is none
    pub plugin: Result<Plugin, PluginError>,
    /// Whether it says of itself that it has hooks: a run without it would not be guarded
    pub guards: bool,
}

/// What is remembered of a file between two looks at it.
#[derive(Clone, Serialize, Deserialize)]
struct Remembered {
    stamp: Stamp,
    survey: Result<Survey, String>,
}

/// What changes when a file changes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    modified: u128,
    inode: u64,
}

#[derive(Serialize, Deserialize)]
struct Index {
    form: u32,
    version: String,
    files: HashMap<PathBuf, Remembered>,
}

impl Catalogue {
    /// Looks through folders, in this order. A folder that is not there has no plugins. `index` is a file that makes
    /// the next look faster; it may be deleted at any time.
    pub fn of_folders(folders: &[PathBuf], index: Option<&Path>) -> Self {
        let known = index.map(read_index).unwrap_or_default();
        let mut jobs = Vec::new();
        let mut refused = Vec::new();
        for folder in folders {
            list(folder, &mut jobs, &mut refused);
        }
        let fresh: Mutex<Vec<(usize, Remembered)>> = Mutex::default();
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some((file, stamp)) = jobs.get(number) else { return };
                if known.get(file).is_none_or(|remembered| remembered.stamp != *stamp) {
                    let remembered = Remembered { stamp: stamp.clone(), survey: look_at(file) };
                    fresh.lock().unwrap_or_else(PoisonError::into_inner).push((number, remembered));
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        let fresh: HashMap<usize, Remembered> =
            fresh.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect();
        let changed = !fresh.is_empty();
        let mut files = HashMap::new();
        let mut found = refused;
        for (number, (file, _)) in jobs.iter().enumerate() {
            let Some(remembered) = fresh.get(&number).or_else(|| known.get(file)) else { continue };
            let plugin = as_plugin(remembered.survey.clone());
            let guards = plugin.as_ref().is_ok_and(|plugin| !plugin.description.hooks.is_empty());
            found.push(Found { file: file.clone(), plugin, guards });
            files.insert(file.clone(), remembered.clone());
        }
        if let (true, Some(index)) = (changed, index) {
            write_index(index, known, files);
        }
        refuse_twins(&mut found);
        Catalogue { found }
    }

    /// One plugin alone, in its file.
    pub fn of_file(file: &Path, plugin: &Plugin) -> Self {
        let guards = !plugin.description.hooks.is_empty();
        Catalogue { found: vec![Found { file: file.to_owned(), plugin: Ok(plugin.clone()), guards }] }
    }

    /// Everything that was found, broken or not, in the order of folders and names.
    pub fn found(&self) -> &[Found] {
        &self.found
    }

    /// The plugins, without what is broken.
    pub fn plugins(&self) -> impl Iterator<Item = (&Path, &Plugin)> {
        self.found.iter().filter_map(|found| Some((found.file.as_path(), found.plugin.as_ref().ok()?)))
    }

    /// The plugin of that name.
    pub fn find(&self, name: &str) -> Option<(&Path, &Plugin)> {
        self.plugins().find(|(_, plugin)| plugin.description.name == name)
    }
}

/// The components of one folder, in the order of their names.
fn list(folder: &Path, jobs: &mut Vec<(PathBuf, Stamp)>, refused: &mut Vec<Found>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut files: Vec<PathBuf> = entries
        .take(MAX_FILES)
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .collect();
    files.sort();
    let inside = folder.canonicalize().ok();
    for file in files {
        let mut refuse =
            |error: PluginError| refused.push(Found { file: file.clone(), plugin: Err(error), guards: false });
        let unreachable = |error: io::Error| PluginError::Unreachable(Arc::new(error));
        // A link that leads elsewhere would make a file of somebody else's look like one of this folder.
        match (file.canonicalize(), &inside) {
            (Ok(real), Some(inside)) if real.starts_with(inside) => {}
            (Err(error), _) => {
                refuse(unreachable(error));
                continue;
            }
            _ => {
                refuse(PluginError::LeadsOut);
                continue;
            }
        }
        match std::fs::metadata(&file) {
            Ok(metadata) if !metadata.is_file() => refuse(PluginError::NoFile),
            Ok(metadata) if metadata.len() > MAX_COMPONENT => {
                refuse(PluginError::TooLarge { size: metadata.len() });
            }
            Ok(metadata) => jobs.push((file, stamp(&metadata))),
            Err(error) => refuse(unreachable(error)),
        }
    }
}

fn stamp(metadata: &std::fs::Metadata) -> Stamp {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    let inode = 0;
    Stamp { size: metadata.len(), modified: modified.map_or(0, |time| time.as_nanos()), inode }
}

/// Two files that claim one name are both refused: which of them is meant cannot be known.
fn refuse_twins(found: &mut [Found]) {
    let mut claims: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (number, found) in found.iter().enumerate() {
        if let Ok(plugin) = &found.plugin {
            claims.entry(plugin.description.name.to_ascii_lowercase()).or_default().push(number);
        }
    }
    for claimants in claims.into_values().filter(|claimants| claimants.len() > 1) {
        let files: Vec<String> = claimants.iter().map(|number| found[*number].file.display().to_string()).collect();
        // Whoever takes a guard's name takes the guard away.
        let guards = claimants.iter().any(|number| found[*number].guards);
        for number in claimants {
            found[number].guards = guards;
            let own = found[number].file.display().to_string();
            let others = files.iter().filter(|file| **file != own).cloned().collect();
            if let Ok(plugin) = &found[number].plugin {
                found[number].plugin = Err(PluginError::Twin { name: plugin.description.name.clone(), others });
            }
        }
    }
}

fn read_index(file: &Path) -> HashMap<PathBuf, Remembered> {
    let index =
        hotcell_files::read(file, MAX_INDEX).ok().and_then(|bytes| serde_json::from_slice::<Index>(&bytes).ok());
    match index {
        Some(index) if index.form == INDEX_FORM && index.version == env!("CARGO_PKG_VERSION") => index.files,
        _ => HashMap::new(),
    }
}

/// Keeps what was found, with what other folders left there as long as their files exist.
fn write_index(file: &Path, known: HashMap<PathBuf, Remembered>, mut files: HashMap<PathBuf, Remembered>) {
    for (path, remembered) in known {
        if !files.contains_key(&path) && path.exists() {
            files.insert(path, remembered);
        }
    }
    let index = Index { form: INDEX_FORM, version: env!("CARGO_PKG_VERSION").to_owned(), files };
    let written = serde_json::to_vec(&index)
        .map_err(io::Error::from)
        .and_then(|bytes| hotcell_files::replace_private(file, &bytes));
    if let Err(error) = written {
        tracing::debug!(target: "hotcell::plugin", "cannot keep the index of plugins: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{describe, tool_plugin};

    fn reasons(catalogue: &Catalogue) -> Vec<String> {
        catalogue.found().iter().filter_map(|found| Some(found.plugin.as_ref().err()?.to_string())).collect()
    }

    #[test]
    fn a_broken_file_is_listed_and_stops_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.wasm"), "text").unwrap();
        std::fs::write(folder.path().join("b.wasm"), tool_plugin(&describe("b", "forecast", ""))).unwrap();
        std::fs::write(folder.path().join("c.txt"), "nothing").unwrap();
        std::fs::create_dir(folder.path().join("d.wasm")).unwrap();
        let catalogue = Catalogue::of_folders(&[folder.path().to_owned(), folder.path().join("none")], None);
        assert_eq!(catalogue.found().len(), 3);
        assert_eq!(catalogue.plugins().count(), 1);
        assert!(catalogue.find("b").is_some() && catalogue.find("a").is_none());
        assert!(
            reasons(&catalogue).iter().any(|reason| reason.contains("it is a text file")),
            "{:?}",
            reasons(&catalogue)
        );
    }

    #[test]
    fn attack_69_two_claims_to_one_name_are_both_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (file, name) in [("a", "same"), ("b", "Same"), ("c", "other")] {
            let bytes = tool_plugin(&describe(name, "forecast", ""));
            std::fs::write(folder.path().join(format!("{file}.wasm")), bytes).unwrap();
        }
        let catalogue = Catalogue::of_folders(&[folder.path().to_owned()], None);
        assert_eq!(catalogue.plugins().count(), 1);
        let reasons = reasons(&catalogue);
        assert!(reasons.len() == 2 && reasons[0].contains("claims the name `same`, and so does"), "{reasons:?}");
    }

    #[test]
    fn whoever_takes_the_name_of_a_guard_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.wasm"), crate::testing::hook_plugin("guard")).unwrap();
        std::fs::write(folder.path().join("b.wasm"), tool_plugin(&describe("guard", "forecast", ""))).unwrap();
        let catalogue = Catalogue::of_folders(&[folder.path().to_owned()], None);
        assert!(catalogue.found().iter().all(|found| found.plugin.is_err() && found.guards), "{catalogue:?}");
    }

    #[cfg(unix)]
    #[test]
    fn attack_41_a_link_out_of_the_folder_is_no_plugin() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let outside = elsewhere.path().join("x.wasm");
        std::fs::write(&outside, tool_plugin(&describe("x", "t", ""))).unwrap();
        std::os::unix::fs::symlink(&outside, folder.path().join("x.wasm")).unwrap();
        std::os::unix::fs::symlink("missing", folder.path().join("y.wasm")).unwrap();
        let catalogue = Catalogue::of_folders(&[folder.path().to_owned()], None);
        assert_eq!((catalogue.plugins().count(), reasons(&catalogue).len()), (0, 2));
    }

    #[test]
    fn the_index_forgets_what_was_changed() {
        let (folder, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (file, index) = (folder.path().join("a.wasm"), place.path().join("index.json"));
        let folders = [folder.path().to_owned()];
        std::fs::write(&file, tool_plugin(&describe("first", "t", ""))).unwrap();
        assert!(Catalogue::of_folders(&folders, Some(&index)).find("first").is_some());
        assert!(index.is_file());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(&index).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(Catalogue::of_folders(&folders, Some(&index)).find("first").is_some());
        std::fs::write(&file, tool_plugin(&describe("second-name", "t", ""))).unwrap();
        assert!(Catalogue::of_folders(&folders, Some(&index)).find("second-name").is_some());
        std::fs::write(&index, "{").unwrap();
        assert!(Catalogue::of_folders(&folders, Some(&index)).find("second-name").is_some());
    }
}
