//! Where loading reads. It takes note of everything that it reads, and what is loaded from a revision reads the same again:
//! whatever decides what an agent is has to be read here.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotcell_files::{Entry, FileError, Folder};
use hotcell_journal::Artefact;
use hotcell_plugins::{AgentFolder, FolderError, FolderRecord, Plugin, Trust};

use crate::revision::manifest::{Decided, FORM, KeptPlugin, LISTED, Manifest, ReadBelow};
use crate::user_key::UserKey;

/// Entries of a folder that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// Where loading reads.
pub(crate) enum Sources {
    /// The world as it is
    Plain,
    /// The world as it is, of which note is taken
    Noted(Mutex<Notes>),
    /// What a revision kept of the world
    Kept(Kept),
}

/// What was read.
#[derive(Default)]
pub(crate) struct Notes {
    manifest: Manifest,
    texts: BTreeMap<String, Artefact>,
    /// A file, and the text that is read in its place
    instead: Option<(PathBuf, String)>,
    /// The folders, without links, outside which nothing is there; none for anywhere
    within: Option<Arc<[PathBuf]>>,
}

/// What a revision kept.
pub(crate) struct Kept {
    pub(crate) manifest: Manifest,
    /// Everything but components, by digest
    pub(crate) texts: BTreeMap<String, Artefact>,
    /// The components that are not where they lay any more, by digest
    pub(crate) components: BTreeMap<String, Artefact>,
}

/// A plugin of a revision.
pub(crate) struct PluginOfRevision {
    pub(crate) file: PathBuf,
    pub(crate) plugin: Plugin,
    /// The component, unless it is still where it lay
    pub(crate) component: Option<Arc<[u8]>>,
    /// The text of its signature
    pub(crate) signature: Option<String>,
}

/// Who asks what is said about a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FolderFor {
    /// The person, who named it
    Person,
    /// An agent that calls one in it
    Agent,
}

impl Notes {
    fn keep(&mut self, bytes: &[u8]) -> String {
        let artefact = Artefact::new(bytes);
        let digest = artefact.digest().to_owned();
        self.texts.entry(digest.clone()).or_insert(artefact);
        digest
    }
}

impl Kept {
    fn bytes(&self, digest: &str) -> Option<Arc<[u8]>> {
        self.texts.get(digest).map(|artefact| artefact.bytes().clone())
    }

    fn text(&self, digest: &str) -> Option<String> {
        String::from_utf8(self.bytes(digest)?.to_vec()).ok()
    }

    fn below(&self, root: &Path) -> Option<&ReadBelow> {
        self.manifest.read.get(root)
    }
}

impl Decided {
    fn by(&mut self, who: FolderFor) -> &mut Option<String> {
        match who {
            FolderFor::Person => &mut self.for_person,
            FolderFor::Agent => &mut self.for_agent,
        }
    }
}

/// A folder that no path leaves, or the whole world, as loading reads it.
pub(crate) struct SourceFolder<'s> {
    sources: &'s Sources,
    /// None for the whole world
    folder: Option<Folder>,
}

impl SourceFolder<'_> {
    fn root(&self) -> &Path {
        self.folder.as_ref().map_or(Path::new(""), Folder::path)
    }

    /// Does `look`, and notes what came of it as `note` says.
    fn looking<T>(&self, look: T, note: impl FnOnce(&T, &mut Notes, &Path)) -> T {
        if let Some(mut notes) = self.sources.note() {
            note(&look, &mut notes, self.root());
        }
        look
    }

    /// The bytes of a file.
    pub(crate) fn read(&self, name: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
        if let Some(kept) = self.sources.kept() {
            let digest = kept.below(self.root()).and_then(|below| below.files.get(name)).and_then(Option::as_deref);
            let bytes = digest.and_then(|digest| kept.bytes(digest)).ok_or(FileError::Missing)?;
            return Ok(bytes.to_vec());
        }
        let path = self.root().join(name);
        let read = match (self.sources.instead(&path), &self.folder) {
            _ if !self.sources.reaches(&path) => Err(FileError::Missing),
            (Some(text), _) => Ok(text),
            (None, Some(folder)) => folder.read(name, limit),
            (None, None) => hotcell_files::read(name, limit).map_err(FileError::from),
        };
        self.looking(read, |read, notes, root| {
            let digest = read.as_ref().ok().map(|bytes| notes.keep(bytes));
            notes.below(root).files.insert(name.to_owned(), digest);
        })
    }

    /// The text of a file.
    pub(crate) fn read_text(&self, name: &Path, limit: u64) -> Result<String, FileError> {
        Ok(hotcell_files::text_of(self.read(name, limit)?)?)
    }

    /// What a path leads to.
    pub(crate) fn entry(&self, name: &Path) -> Entry {
        if let Some(kept) = self.sources.kept() {
            let known = kept.below(self.root()).and_then(|below| below.entries.get(name));
            return known.copied().unwrap_or(Entry::Missing);
        }
        let entry = match &self.folder {
            _ if !self.sources.reaches(&self.root().join(name)) => Entry::Missing,
            Some(folder) => folder.entry(name),
            None => entry(name),
        };
        self.looking(entry, |entry, notes, root| {
            notes.below(root).entries.insert(name.to_owned(), *entry);
        })
    }

    /// Whether a path leads to a file.
    pub(crate) fn is_file(&self, name: &Path) -> bool {
        self.entry(name) == Entry::File
    }

    /// Whether a path leads to a folder.
    pub(crate) fn is_folder(&self, name: &Path) -> bool {
        self.entry(name) == Entry::Folder
    }

    /// Where a path leads when links are followed.
    pub(crate) fn real_path(&self, name: &Path) -> Result<PathBuf, FileError> {
        if let Some(kept) = self.sources.kept() {
            let known = kept.below(self.root()).and_then(|below| below.links.get(name));
            return known.cloned().flatten().ok_or(FileError::Missing);
        }
        let real = match &self.folder {
            _ if !self.sources.reaches(&self.root().join(name)) => Err(FileError::Missing),
            Some(folder) => folder.real_path(name),
            None => name.canonicalize().map_err(FileError::from),
        };
        self.looking(real, |real, notes, root| {
            notes.below(root).links.insert(name.to_owned(), real.as_ref().ok().cloned());
        })
    }
}

impl Notes {
    fn below(&mut self, root: &Path) -> &mut ReadBelow {
        if !self.manifest.read.contains_key(root) {
            self.manifest.read.insert(root.to_owned(), ReadBelow::default());
        }
        self.manifest.read.entry(root.to_owned()).or_default()
    }
}

impl Sources {
    /// The world as it is, of which note is taken. Outside of these folders nothing is there, if there are any.
    pub(crate) fn noted(within: Option<Arc<[PathBuf]>>) -> Self {
        Sources::Noted(Mutex::new(Notes { within, ..Notes::default() }))
    }

    /// The world as it is but for the text of one file, of which note is taken.
    pub(crate) fn noted_with(file: PathBuf, text: String, within: Option<Arc<[PathBuf]>>) -> Self {
        Sources::Noted(Mutex::new(Notes { instead: Some((file, text)), within, ..Notes::default() }))
    }

    /// Whether a path leads to where loading may read, links followed. Of a path that leads nowhere, the part that is there counts.
    fn reaches(&self, path: &Path) -> bool {
        let Some(within) = self.note().and_then(|notes| notes.within.clone()) else { return true };
        let there =
            path.ancestors().find_map(|above| Some((above.canonicalize().ok()?, path.strip_prefix(above).ok()?)));
        let Some((real, rest)) = there else { return false };
        let is_plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
        is_plain && within.iter().any(|root| real.join(rest).starts_with(root))
    }

    /// The text that is read in place of a file.
    fn instead(&self, file: &Path) -> Option<Vec<u8>> {
        let notes = self.note()?;
        let (of, text) = notes.instead.as_ref()?;
        (of == file).then(|| text.clone().into_bytes())
    }

    /// A folder that no path leaves.
    pub(crate) fn below(&self, root: &Path) -> SourceFolder<'_> {
        SourceFolder { sources: self, folder: Some(Folder::new(root)) }
    }

    /// Paths of the person, which may lead anywhere.
    pub(crate) fn anywhere(&self) -> SourceFolder<'_> {
        SourceFolder { sources: self, folder: None }
    }

    fn note(&self) -> Option<MutexGuard<'_, Notes>> {
        match self {
            Sources::Noted(notes) => Some(notes.lock().unwrap_or_else(PoisonError::into_inner)),
            Sources::Plain | Sources::Kept(_) => None,
        }
    }

    fn kept(&self) -> Option<&Kept> {
        match self {
            Sources::Kept(kept) => Some(kept),
            Sources::Plain | Sources::Noted(_) => None,
        }
    }

    /// Whether this is a revision, of which nothing is asked outside.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept().is_some()
    }

    /// What somebody else says when asked about `subject`; nobody is asked for a revision.
    pub(crate) fn answer<E>(
        &self,
        subject: &str,
        unknown: impl FnOnce() -> E,
        ask: impl FnOnce() -> Result<String, E>,
    ) -> Result<String, E> {
        if let Some(kept) = self.kept() {
            let digest = kept.manifest.answers.get(subject);
            return digest.and_then(|digest| kept.text(digest)).ok_or_else(unknown);
        }
        let answer = ask()?;
        if let Some(mut notes) = self.note() {
            let digest = notes.keep(answer.as_bytes());
            notes.manifest.answers.insert(subject.to_owned(), digest);
        }
        Ok(answer)
    }

    /// The names of files of a folder that end like this, in order.
    pub(crate) fn files_ending(&self, folder: &Path, ending: &str) -> Vec<String> {
        let list = || {
            if !self.reaches(folder) {
                return Ok("[]".to_owned());
            }
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let names = entries.take(MAX_ENTRIES).filter_map(|entry| entry.file_name().into_string().ok());
            let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
            names.sort();
            serde_json::to_string(&names).map_err(drop)
        };
        let answer = self.answer(&format!("{LISTED}{ending} {}", folder.display()), || (), list).unwrap_or_default();
        serde_json::from_str(&answer).unwrap_or_default()
    }

    /// The names of what lies in a folder, in order.
    pub(crate) fn names(&self, folder: &Path) -> Vec<String> {
        self.files_ending(folder, "")
    }

    /// What the operator said about a folder. What of it counts for a revision is what counted then. A revision comes with its journal, and
    /// a journal may have been sent: that the folder was trusted counts with a code of the user's key, or where they trust the same now.
    pub(crate) fn folder(&self, folder: &Path, who: FolderFor, trust: &Trust) -> Result<AgentFolder, FolderError> {
        if let Some(kept) = self.kept() {
            let decided = kept.manifest.decided.get(folder).cloned().unwrap_or_default().by(who).take();
            let record = decided.and_then(|digest| serde_json::from_slice(&kept.bytes(&digest)?).ok());
            let record: FolderRecord = record.unwrap_or_default();
            let is_ours = |text: String| {
                record.is_trusted_now(folder, trust)
                    || record.code().is_some_and(|code| UserKey::beside_list(trust).has_made(code, &text))
            };
            return match record.trusted_text(folder).is_none_or(is_ours) {
                true => AgentFolder::of_record(folder, record),
                false => AgentFolder::of_record(folder, record.of_nobody()),
            };
        }
        let opened = match self.reaches(folder) {
            true => AgentFolder::open(folder, trust)?,
            false => AgentFolder::of_record(folder, Default::default())?,
        };
        if let Some(mut notes) = self.note()
            && let Ok(record) = serde_json::to_vec(&vouched_for(opened.record(), folder, trust))
        {
            let digest = notes.keep(&record);
            *notes.manifest.decided.entry(folder.to_owned()).or_default().by(who) = Some(digest);
        }
        Ok(opened)
    }

    /// The plugins that an agent of the project used; none if this is not a revision.
    pub(crate) fn plugins(&self, project: &Path) -> Option<Vec<PluginOfRevision>> {
        let kept = self.kept()?;
        let plugins = kept.manifest.plugins.get(project).into_iter().flat_map(BTreeMap::values);
        let plugin = |plugin: &KeptPlugin| {
            Some(PluginOfRevision {
                file: plugin.file.clone(),
                plugin: Plugin::of_survey(serde_json::from_slice(&kept.bytes(&plugin.survey)?).ok()?)?,
                component: kept.components.get(&plugin.component).map(|artefact| artefact.bytes().clone()),
                signature: plugin.signature.as_ref().and_then(|digest| kept.text(digest)),
            })
        };
        Some(plugins.filter_map(plugin).collect())
    }

    /// Takes note of a plugin that is used.
    pub(crate) fn note_plugin(&self, project: &Path, file: &Path, plugin: &Plugin) {
        let Some(mut notes) = self.note() else { return };
        let Ok(survey) = serde_json::to_vec(&plugin.survey) else { return };
        let signature = hotcell_files::read(hotcell_plugins::signature_file(file), hotcell_files::MAX_TEXT).ok();
        let kept = KeptPlugin {
            file: file.to_owned(),
            component: plugin.survey.digest.clone(),
            survey: notes.keep(&survey),
            signature: signature.map(|signature| notes.keep(&signature)),
        };
        let plugins = notes.manifest.plugins.entry(project.to_owned()).or_default();
        plugins.insert(plugin.description.name.clone(), kept);
    }

    /// Everything that was read, for an agent that is loaded again as `source`.
    pub(crate) fn taken(&self, source: &str) -> (Manifest, BTreeMap<String, Artefact>) {
        match self {
            Sources::Kept(kept) => (kept.manifest.clone(), kept.texts.clone()),
            Sources::Noted(notes) => {
                let notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
                let manifest = Manifest { form: FORM, source: source.to_owned(), ..notes.manifest.clone() };
                (manifest, notes.texts.clone())
            }
            Sources::Plain => (Manifest::default(), BTreeMap::new()),
        }
    }
}

/// The record of a folder with the code of the user who trusts it, where there is a list of what they trust.
fn vouched_for(record: FolderRecord, folder: &Path, trust: &Trust) -> FolderRecord {
    let code = record.trusted_text(folder).and_then(|text| UserKey::beside_list(trust).code(&text));
    record.with_code(code)
}

/// What a path leads to, wherever that is.
fn entry(path: &Path) -> Entry {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Entry::Folder,
        Ok(metadata) if metadata.is_file() => Entry::File,
        Ok(_) => Entry::Special,
        Err(_) => Entry::Missing,
    }
}
