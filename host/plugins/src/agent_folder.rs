//! What the operator said about the plugins and scripts of one folder, and whether that counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hotcell_budget::Budget;
use hotcell_cells::{Grants, digest};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::asked::Asked;
use crate::footprint::Footprint;
use crate::lock::{LOCK_FILE, Lock, LockError, Locked};
use crate::plugin::Plugin;
use crate::record::RecordSettings;
use crate::settings::{LimitError, SETTINGS_FILE, Settings, SettingsError};
use crate::trust::{Pinned, Trust, TrustError};
use crate::versions::is_older;
use crate::writers::{self, WritesWhatDecides};

/// What the operator said about the plugins and scripts of one folder.
#[derive(Clone, Debug)]
pub struct AgentFolder {
    path: PathBuf,
    settings: Settings,
    /// The settings as they are written, whether they are trusted or not.
    written: Settings,
    text: Option<String>,
    trusted: bool,
    decision: Decision,
    /// What counts of `hotcell.lock`.
    pub(crate) lock: Lock,
    /// What is written in it, whether it is trusted or not.
    written_lock: Lock,
    /// What decided in the folder when the operator looked at it; trust in it is trust in this.
    looked_at: OnceLock<Box<Footprint>>,
}

/// What the operator decided about a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Decision {
    /// Whether the operator trusts the folder, and not only that there is nothing to trust
    by_operator: bool,
    /// What was pinned, where what counts is pinned
    footprint: Option<Box<Footprint>>,
    /// What is different from what was trusted
    changes: Vec<String>,
}

/// What was read about a folder and decided about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderRecord {
    /// The text of `hotcell.toml`
    settings: Option<String>,
    lock: Lock,
    /// Where granted directories led, by how they are written
    directories: BTreeMap<String, PathBuf>,
    decision: Decision,
    /// What only the user makes who trusted the folder then
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

impl FolderRecord {
    /// What a code is made for, where the operator trusts the folder: all that was read and decided about it.
    pub fn trusted_text(&self, folder: &Path) -> Option<String> {
        let text = serde_json::to_string(&FolderRecord { code: None, ..self.clone() }).ok()?;
        self.decision.by_operator.then(|| format!("trusted: {text} {}", folder.display()))
    }

    /// The same record with a code.
    #[must_use]
    pub fn with_code(self, code: Option<String>) -> Self {
        FolderRecord { code, ..self }
    }

    /// What only the user makes who trusted the folder then.
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// Whether the operator trusts the folder at this moment as it was then.
    pub fn is_trusted_now(&self, folder: &Path, trust: &Trust) -> bool {
        match trust.pinned(folder) {
            Pinned::All => true,
            Pinned::To(now) => self.decision.footprint.as_ref() == Some(&now) && self.says_what_is_in(&now, folder),
            Pinned::Before | Pinned::Nothing => false,
        }
    }

    /// Whether the settings and the lock of this record are those that a footprint has digests of.
    fn says_what_is_in(&self, footprint: &Footprint, folder: &Path) -> bool {
        let settings = self.settings.as_ref().is_none_or(|text| footprint.has(SETTINGS_FILE, text.as_bytes()));
        settings
            && match Lock::text(folder) {
                Ok(Some(text)) => {
                    footprint.has(LOCK_FILE, text.as_bytes())
                        && Lock::parse(folder, &text).is_ok_and(|lock| lock == self.lock)
                }
                Ok(None) => self.lock == Lock::default(),
                Err(_) => false,
            }
    }

    /// The same folder as it counts where nobody trusts it.
    #[must_use]
    pub fn of_nobody(self) -> Self {
        FolderRecord { decision: Decision::default(), ..self }
    }

    /// What is different in `now`: names of files, or words for what was decided.
    pub fn changes(&self, now: &FolderRecord) -> Vec<&'static str> {
        let mut changes = Vec::new();
        if self.settings != now.settings {
            changes.push(SETTINGS_FILE);
        }
        if self.lock != now.lock {
            changes.push(LOCK_FILE);
        }
        if self.directories != now.directories && changes.is_empty() {
            changes.push("where a granted directory leads");
        }
        if self.decision.by_operator != now.decision.by_operator {
            changes.push("whether the folder is trusted");
        }
        changes
    }
}

/// Why what is said about a folder cannot be used.
#[derive(Debug, Error)]
pub enum FolderError {
    /// `hotcell.toml` cannot be read or understood
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// `hotcell.lock` cannot be read or understood
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The list of trusted folders cannot be used
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// What is granted in it would let somebody write what decides
    #[error(transparent)]
    Writes(#[from] WritesWhatDecides),
    /// Somebody changed the folder while the operator looked at it
    #[error("the folder was changed a moment ago; look at it again")]
    ChangedMeanwhile,
}

impl AgentFolder {
    /// Reads what is said about a folder. Nothing is granted where nothing is said, or where nobody trusts it.
    ///
    /// # Errors
    /// When a file is there and cannot be used, or what counts of it would let somebody write what decides.
    pub fn open(path: &Path, trust: &Trust) -> Result<Self, FolderError> {
        let opened = Self::look(path, trust)?;
        if opened.counts_as_it_is() {
            writers::check(path, &opened.settings)?;
        }
        opened.check_list(trust)?;
        Ok(opened)
    }

    /// Refuses what is granted here where somebody could write the list of trusted folders.
    ///
    /// # Errors
    /// When somebody could.
    pub fn check_list(&self, trust: &Trust) -> Result<(), FolderError> {
        trust.list().map_or(Ok(()), |list| Ok(writers::check_list(list, &self.settings)?))
    }

    /// Reads what is said about a folder, whatever is granted in it.
    ///
    /// # Errors
    /// When a file is there and cannot be used.
    pub(crate) fn look(path: &Path, trust: &Trust) -> Result<Self, FolderError> {
        let text = Settings::text(path)?;
        let written = match &text {
            Some(text) => Settings::of_folder(path, text)?,
            None => Settings::default(),
        };
        let lock = Lock::of_folder(path)?;
        let says_nothing = says_nothing(&written, &lock);
        let decision = match trust.pinned(path) {
            Pinned::All => Decision { by_operator: true, ..Decision::default() },
            Pinned::To(footprint) => {
                let changes = footprint.changes(path, &written);
                let by_operator = changes.is_empty();
                Decision { by_operator, footprint: by_operator.then_some(footprint), changes }
            }
            Pinned::Before => {
                let before = "it was trusted by a version of hotcell that looked at less of the folder".to_owned();
                Decision { changes: if says_nothing { Vec::new() } else { vec![before] }, ..Decision::default() }
            }
            Pinned::Nothing => Decision::default(),
        };
        Ok(Self::decided(path, text, written, lock, decision))
    }

    /// What was read about a folder and decided about it, so that [`AgentFolder::of_record`] decides the same again.
    pub fn record(&self) -> FolderRecord {
        FolderRecord {
            settings: self.text.clone(),
            lock: self.written_lock.clone(),
            directories: self.written.directories().map(|(written, named)| (written.to_owned(), real(named))).collect(),
            decision: self.decision.clone(),
            code: None,
        }
    }

    /// The folder as it was when this was recorded, whatever is there now.
    ///
    /// # Errors
    /// When this version does not understand what was recorded.
    pub fn of_record(path: &Path, record: FolderRecord) -> Result<Self, FolderError> {
        let FolderRecord { settings: text, lock, directories, decision, code: _ } = record;
        let led_to = |named: &Path| {
            let written = directories.iter().find(|(written, _)| path.join(written.as_str()) == named);
            written.map_or_else(|| named.to_owned(), |(_, real)| real.clone())
        };
        let written = match &text {
            Some(text) => Settings::parse(path, text, &led_to)?,
            None => Settings::default(),
        };
        Ok(Self::decided(path, text, written, lock, decision))
    }

    fn decided(path: &Path, text: Option<String>, written: Settings, lock: Lock, decision: Decision) -> Self {
        // A lock that came with the folder pins what the folder likes: it counts only together with the settings.
        let counts = decision.by_operator || says_nothing(&written, &lock);
        let said = Self {
            path: path.to_owned(),
            settings: match &decision.footprint {
                Some(footprint) => written.clone().pinned_to(footprint.digests()),
                None => written.clone(),
            },
            written,
            text,
            trusted: true,
            decision,
            lock: lock.clone(),
            written_lock: lock,
            looked_at: OnceLock::new(),
        };
        if counts { said } else { said.distrusted() }
    }

    /// The same folder as it counts where nobody trusts it.
    #[must_use]
    fn distrusted(mut self) -> Self {
        self.settings = self.settings.distrusted();
        self.lock = Lock::default();
        self.decision.footprint = None;
        self.decision.by_operator = false;
        self.trusted = false;
        self
    }

    /// The same folder as it counts for an agent whose caller it does not admit: as if nobody trusted it.
    #[must_use]
    pub fn for_a_stranger(self) -> Self {
        self.distrusted()
    }

    /// The same where the user has decided about recordings for all folders.
    #[must_use]
    pub fn recorded_as(mut self, user: &RecordSettings) -> Self {
        self.settings = self.settings.recorded_as(user);
        self
    }

    /// A folder about which nothing is said.
    pub fn unspoken(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            settings: Settings::default(),
            written: Settings::default(),
            text: None,
            trusted: true,
            decision: Decision::default(),
            lock: Lock::default(),
            written_lock: Lock::default(),
            looked_at: OnceLock::new(),
        }
    }

    /// A folder about which nothing is said but that a plugin is granted this.
    pub fn for_one_call(path: &Path, plugin: &Plugin, grants: Grants) -> Self {
        let mut folder = Self::unspoken(path);
        let name = &plugin.description.name;
        folder.lock.plugin.insert(name.clone(), Locked::of(plugin));
        folder.settings = folder.settings.granting(name, grants);
        folder
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text of `hotcell.toml` as it was read.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The settings that count.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings as they are written, whether they count or not.
    pub fn written(&self) -> &Settings {
        &self.written
    }

    /// Whether all that `hotcell.toml` says counts.
    pub fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// Whether the operator trusts the folder as it is. There may be nothing in it to trust, and they trust it not.
    pub fn is_trusted_by_operator(&self) -> bool {
        self.decision.by_operator
    }

    /// Whether the folder is trusted whatever is in it, and not as it was when the operator looked at it.
    pub fn counts_as_it_is(&self) -> bool {
        self.decision.by_operator && self.decision.footprint.is_none()
    }

    /// What is different from what the operator trusted, in plain words; empty where nobody ever trusted it.
    pub fn changes(&self) -> &[String] {
        &self.decision.changes
    }

    /// What is different by now from what is trusted; nothing where nothing is pinned.
    pub(crate) fn changes_since(&self) -> Vec<String> {
        let footprint = self.decision.footprint.as_ref();
        footprint.map(|footprint| footprint.changes(&self.path, &self.written)).unwrap_or_default()
    }

    /// Whether anything is granted here that an agent of another folder could use by calling this one.
    pub fn grants_something(&self) -> bool {
        self.settings.all_grants().values().any(|grants| *grants != Grants::default())
    }

    /// Whether the agent in the folder `caller` may call this one with what is granted here.
    pub fn admits(&self, caller: &Path) -> bool {
        self.settings.admits(caller)
    }

    /// The settings as they count for the agent's file with these bytes, and whether something that is granted to such a file
    /// is held back because it is not the one that was trusted.
    pub fn settings_for_file(&self, file: &Path, bytes: &[u8]) -> (Settings, bool) {
        let held = self.settings.grants_to_agent_files() && !self.is_pinned(file, bytes);
        (if held { self.settings.clone().of_changed_file() } else { self.settings.clone() }, held)
    }

    /// Whether a file of the folder is the one that was trusted; also where nothing is pinned, because all is trusted but what somebody
    /// is granted to write.
    pub fn is_pinned(&self, file: &Path, bytes: &[u8]) -> bool {
        let Some(footprint) = &self.decision.footprint else {
            return !writers::may_be_written(&self.path.join(file), &self.settings);
        };
        let (folder, file) = (real(&self.path), real(&self.path.join(file)));
        let name = file.strip_prefix(folder).ok().and_then(Path::to_str);
        name.is_some_and(|name| footprint.has(name, bytes))
    }

    /// The limits of a plugin in the file `component`. What a folder that the operator does not trust says of limits counts for
    /// its own plugins, and not for those of others: with no lines to log, a guard of the user's could not say what it saw.
    ///
    /// # Errors
    /// When a limit is not of its form.
    pub fn budget(&self, component: &Path, name: &str, base: Budget) -> Result<Budget, LimitError> {
        let own = real(component).starts_with(real(&self.path));
        if own || self.decision.by_operator { self.settings.budget(name, base) } else { Ok(base) }
    }

    /// Identifies everything that decides in the folder what may happen, as it is now.
    pub fn fingerprint(&self) -> String {
        let footprint = Footprint::of(&self.path, &self.written);
        digest(serde_json::to_string(&footprint).unwrap_or_default().as_bytes())
    }

    /// What trust in the folder is pinned to beside the words of [`AgentFolder::wishes`], in plain words and in full.
    pub fn pinned_in_words(&self) -> Vec<String> {
        let footprint = self.looked_at.get_or_init(|| Box::new(Footprint::of(&self.path, &self.written)));
        let mut words = footprint.servers(&self.path);
        let directory = |(written, real): (&str, Option<&str>)| match real {
            Some(real) => format!("the directory `{written}` is `{real}`"),
            None => format!("the directory `{written}` does not exist"),
        };
        words.extend(footprint.directories().map(directory));
        words.extend(footprint.files().map(|file| format!("`{file}` is pinned to its current content")));
        let importing = footprint.files().filter(|file| self.written.all_grants().contains_key(*file) && imports(file));
        words.extend(importing.map(|file| {
            format!("files that `{file}` imports are not pinned, and have what is granted to it, also when they are changed later")
        }));
        words
    }

    /// What `hotcell.toml` would change if it were trusted, in plain words: the name of a script or plugin (empty for
    /// what concerns the whole folder), and a line for each thing.
    pub fn wishes(&self) -> Vec<(String, Vec<String>)> {
        self.written.wishes()
    }

    /// The components that `hotcell.lock` pins grants to: name and SHA-256 digest.
    pub fn pins(&self) -> impl Iterator<Item = (&str, &str)> {
        self.written_lock.plugin.iter().map(|(name, locked)| (name.as_str(), locked.digest.as_str()))
    }

    /// The version of a plugin that is newer than this one and that something was granted to.
    pub fn pins_newer(&self, plugin: &Plugin) -> Option<&str> {
        let locked = self.lock.plugin.get(&plugin.description.name)?;
        let (granted, found) = (locked.version.as_deref(), plugin.description.version.as_deref());
        granted.filter(|_| is_older(found, granted))
    }

    /// Whether anything was granted to, or pinned for, the plugin of that name.
    pub fn knows(&self, name: &str) -> bool {
        self.lock.plugin.contains_key(name) || self.written.all_grants().contains_key(name)
    }

    /// What was granted to the plugin of that name; nothing where the operator has not decided on it.
    pub fn granted_before(&self, name: &str) -> Option<Arc<Grants>> {
        let grants = self.settings.grants(name);
        (self.lock.plugin.contains_key(name) || *grants != Grants::default()).then_some(grants)
    }

    /// Trusts the folder as it is now.
    ///
    /// # Errors
    /// When a file of it cannot be used, was changed since this was opened, or the list of trusted folders cannot be written.
    pub fn trust(&mut self, trust: &Trust) -> Result<(), FolderError> {
        // What the operator looked at is what is trusted: they may have looked for long, and somebody else changes the folder meanwhile.
        let footprint = Footprint::of(&self.path, &self.written);
        let is_other = self.looked_at.take().is_some_and(|looked_at| *looked_at != footprint);
        if is_other || Settings::text(&self.path)? != self.text || Lock::of_folder(&self.path)? != self.written_lock {
            return Err(FolderError::ChangedMeanwhile);
        }
        trust.set(&self.path, Some(&footprint))?;
        self.lock = self.written_lock.clone();
        self.trusted = true;
        self.settings = self.written.clone().pinned_to(footprint.digests());
        self.decision = Decision { by_operator: true, footprint: Some(Box::new(footprint)), changes: Vec::new() };
        Ok(())
    }

    /// Whether there is something about a plugin in the file `file` that the operator has to decide.
    pub fn asks(&self, file: &Path, plugin: &Plugin) -> bool {
        !Asked::of(plugin, file, &self.path).is_empty()
    }

    /// Whether anything that the plugin of that name may do here was decided by the operator.
    pub fn pins_plugin(&self, name: &str) -> bool {
        self.lock.plugin.contains_key(name)
    }
}

/// Whether a file is in a language whose files may import others of the project.
fn imports(file: &str) -> bool {
    [".py", ".ts"].iter().any(|ending| file.ends_with(ending))
}

/// Whether a folder says nothing that trust would change.
fn says_nothing(written: &Settings, lock: &Lock) -> bool {
    !written.wish_for_something() && *lock == Lock::default()
}

/// Where a path leads, links followed.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
