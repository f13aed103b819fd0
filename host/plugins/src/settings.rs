//! `hotcell.toml`: what the operator grants, allows and sets. It lies beside the graph.
//!
//! ```toml
//! [grants."scripts/fetch.py"]        # capabilities of a script or plugin; without an entry it has none
//! http = ["https://api.example.org"]
//!
//! [budget."scripts/crunch.js"]       # limits of one script or plugin, over the defaults
//! wall_clock_ms = 60000
//!
//! [ceiling]                          # what no call may exceed
//! memory = 134217728
//!
//! [plugins.weather.config]           # settings a plugin can read
//! unit = "celsius"
//!
//! [hooks]
//! order = ["guard", "audit"]         # these hook plugins, in this order; otherwise all, by name
//! optional = ["audit"]               # a run goes on when one of these fails; otherwise what it guards is refused
//!
//! [imports]                          # what import paths of a sherma file mean here: a tool, a hook plugin, a file
//! "my_package.tools.get_weather" = "weather/forecast"
//!
//! [python]                           # folders or virtual environments with packages that Python tools may import
//! path = [".venv"]
//!
//! [callers]                          # agents that may call this one with what is granted here, as folders
//! allow = ["../front-desk"]
//!
//! [record]                           # what calls take from the host is recorded, so that they can be executed again
//! on = true
//! private = ["scripts/salary.py"]    # of these only digests are kept; "*" stands for all
//! max_bytes = 1048576                # of the recording of one call
//!
//! [[schedule]]                       # a server begins runs by itself
//! name = "morning"
//! cron = "0 9 * * 1-5"
//! zone = "Europe/Berlin"
//!
//! [run]
//! strict = true                      # a run fails for whoever started it if a node failed and nothing handles that
//! journal_bytes = 67108864           # what a run may write to its journal
//!
//! [secrets]                          # where values come from; otherwise HOTCELL_SECRET_NAME in the environment
//! API_KEY = { env = "ACME_KEY" }     # or { file = "/run/secrets/acme" }
//! ```

mod error;
mod secrets;
mod wishes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_budget::{Budget, Bytes, JOURNAL_BYTES};
use hotcell_cells::{Grants, RecordTerms, digest};
use hotcell_files::{FileError, Folder};
use serde::Deserialize;

pub use self::error::{GrantsForm, LimitError, NotPinned, SettingsError};
use self::secrets::SecretSource;
use crate::record::RecordSettings;
use crate::schedule::ScheduleSettings;

/// The name of the file.
pub const SETTINGS_FILE: &str = "hotcell.toml";
/// What is granted to the file of an agent itself is granted under this name.
pub const AGENT_GRANTS: &str = "agent";
/// What names of grants to MCP servers begin with.
pub const SERVER_GRANTS: &str = "mcp:";
/// What names of grants to nodes that look things up begin with.
pub const KNOWLEDGE_GRANTS: &str = "rag:";
/// Bytes that the file may have.
const MAX_TEXT: u64 = 1 << 20;

/// What `hotcell.toml` says: grants, limits, settings of plugins.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    grants: BTreeMap<String, Grants>,
    budget: BTreeMap<String, toml::Table>,
    ceiling: toml::Table,
    plugins: BTreeMap<String, PluginSettings>,
    secrets: BTreeMap<String, SecretSource>,
    hooks: HookSettings,
    imports: BTreeMap<String, String>,
    python: PythonSettings,
    callers: CallerSettings,
    run: RunSettings,
    record: RecordSettings,
    schedule: Vec<ScheduleSettings>,
    denials: DenialSettings,
    compat: Compatibility,
    /// The agent's folder, without links
    #[serde(skip)]
    folder: PathBuf,
    #[serde(skip)]
    distrusted: bool,
    /// What would be granted if the operator trusted it
    #[serde(skip)]
    held_back: BTreeMap<String, Grants>,
    /// Whether the agent's own file is not the one that was trusted
    #[serde(skip)]
    file_changed: bool,
    /// Digests of what was trusted, by the names of files; none where nothing is pinned
    #[serde(skip)]
    pinned: Option<Arc<BTreeMap<String, String>>>,
    /// Granted directories as they are written, and from which path they count
    #[serde(skip)]
    directories: Vec<(String, PathBuf)>,
}

/// Who may call the agent with what is granted to it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CallerSettings {
    allow: Vec<PathBuf>,
}

/// What counts for runs of the agent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RunSettings {
    strict: bool,
    journal_bytes: Option<u64>,
}

impl RunSettings {
    fn journal_bytes(&self) -> Bytes {
        self.journal_bytes.map_or(JOURNAL_BYTES, Bytes)
    }
}

/// What becomes of a call that is denied a capability.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DenialSettings {
    /// Whether whoever runs this is asked for it
    ask: bool,
}

/// Where Python tools find packages.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PythonSettings {
    path: Vec<PathBuf>,
}

/// What is done as another runtime does it, where a language says otherwise or nothing.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Compatibility {
    jinja: bool,
    agent_fallback: bool,
}

/// Which hooks there are, and what their failure means.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct HookSettings {
    order: Option<Vec<String>>,
    optional: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PluginSettings {
    config: BTreeMap<String, String>,
}

impl Settings {
    /// The text of a folder's settings, if it has any.
    pub(crate) fn text(folder: &Path) -> Result<Option<String>, SettingsError> {
        match Folder::new(folder).read_text(Path::new(SETTINGS_FILE), MAX_TEXT) {
            Ok(text) => Ok(Some(text)),
            Err(FileError::Missing) => Ok(None),
            Err(cause) => Err(SettingsError::Read { path: folder.join(SETTINGS_FILE), cause }),
        }
    }

    /// What the text of a folder's settings says, where granted directories lead to as they are now.
    pub(crate) fn of_folder(folder: &Path, text: &str) -> Result<Self, SettingsError> {
        Self::parse(folder, text, &|path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf()))
    }

    /// What the text of a folder's settings says. `real` tells where a granted directory leads, links followed.
    pub(crate) fn parse(folder: &Path, text: &str, real: &dyn Fn(&Path) -> PathBuf) -> Result<Self, SettingsError> {
        let path = folder.join(SETTINGS_FILE);
        let form = |cause: String| SettingsError::Form { path: path.clone(), cause };
        let mut settings: Settings =
            toml::from_str(text).map_err(|error| form(error.to_string().trim_end().to_owned()))?;
        // From wherever one looks at a folder: what is not there is called the same.
        let folder = &folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        settings.folder.clone_from(folder);
        for grant in settings.grants.values_mut().flat_map(|grants| &mut grants.fs) {
            let named = folder.join(&grant.host);
            settings.directories.push((grant.host.display().to_string(), named.clone()));
            // Links are followed once, here: what is shown, pinned and opened is the directory itself.
            grant.host = real(&named);
        }
        for caller in &mut settings.callers.allow {
            *caller = folder.join(&*caller);
        }
        for path in &mut settings.python.path {
            *path = folder.join(&*path);
        }
        settings.ceiling().map_err(|error| form(format!("`[ceiling]`: {error}")))?;
        for name in settings.budget.keys() {
            settings
                .budget(name, Budget::default())
                .map_err(|error| form(format!("`[budget.\"{name}\"]`: {error}")))?;
        }
        Ok(settings)
    }

    /// The same settings as they count in a folder that nobody trusts: nothing is granted, no limit is above the
    /// default, and nothing is said about hooks and settings of plugins, because those may be the user's own guards, nor
    /// about what import paths mean, because they may mean such a guard, nor about recordings, which show what was done.
    #[must_use]
    pub(crate) fn distrusted(mut self) -> Self {
        self.held_back.append(&mut self.grants);
        self.secrets.clear();
        self.plugins.clear();
        self.hooks = HookSettings::default();
        self.imports.clear();
        self.python = PythonSettings::default();
        self.callers = CallerSettings::default();
        self.directories.clear();
        self.record = RecordSettings::default();
        self.schedule.clear();
        self.denials = DenialSettings::default();
        self.distrusted = true;
        self
    }

    /// The same settings, in which a plugin is granted this.
    #[must_use]
    pub(crate) fn granting(mut self, name: &str, grants: Grants) -> Self {
        self.grants.insert(name.to_owned(), grants);
        self
    }

    /// The same settings for an agent whose file is not the one that was trusted: nothing is granted to the file itself.
    #[must_use]
    pub(crate) fn of_changed_file(mut self) -> Self {
        self.file_changed = true;
        self
    }

    /// The same settings, which count for files with these digests.
    #[must_use]
    pub(crate) fn pinned_to(mut self, digests: BTreeMap<String, String>) -> Self {
        self.pinned = Some(Arc::new(digests));
        self
    }

    /// What is granted to a script or file of servers counts for the bytes that were looked at. Between the look and the reading
    /// somebody may have exchanged them.
    ///
    /// # Errors
    /// When these are other bytes.
    pub fn check_pinned(&self, name: &str, bytes: &[u8]) -> Result<(), NotPinned> {
        match self.pinned.as_ref().and_then(|pinned| pinned.get(name)) {
            Some(pinned) if *pinned != digest(bytes) => Err(NotPinned { file: name.to_owned() }),
            _ => Ok(()),
        }
    }

    /// Whether anything is granted to what an agent's file itself names: requests, variables, servers, addresses of documents.
    pub(crate) fn grants_to_agent_files(&self) -> bool {
        self.grants.iter().any(|(name, grants)| is_for_agent_files(name) && *grants != Grants::default())
    }

    /// Granted directories: as they are written, and from which path they count.
    pub fn directories(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.directories.iter().map(|(written, host)| (written.as_str(), host.as_path()))
    }

    /// What import paths mean.
    pub(crate) fn import_meanings(&self) -> impl Iterator<Item = &str> {
        self.imports.values().map(String::as_str)
    }

    /// Whether the agent in the folder `caller` may call this one with what is granted here.
    pub(crate) fn admits(&self, caller: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        let Some(caller) = real(caller) else { return false };
        self.callers.allow.iter().any(|allowed| real(allowed).is_some_and(|allowed| allowed == caller))
    }

    /// Whether whoever runs this is asked for what calls are denied.
    pub fn asks_denials(&self) -> bool {
        self.denials.ask
    }

    /// When a server begins runs by itself.
    pub fn schedules(&self) -> &[ScheduleSettings] {
        &self.schedule
    }

    /// All grants, by the names of scripts and plugins.
    pub(crate) fn all_grants(&self) -> &BTreeMap<String, Grants> {
        &self.grants
    }

    /// The hook plugins to use, in their order; none means all of them, by name.
    pub fn hook_order(&self) -> Option<&[String]> {
        self.hooks.order.as_deref()
    }

    /// Whether what a hook plugin guards goes on when the hook fails.
    pub fn is_optional_hook(&self, plugin: &str) -> bool {
        self.hooks.optional.iter().any(|name| name == plugin)
    }

    /// Whether a run fails for whoever started it if a node failed and nothing handles that. It counts without trust, too: it
    /// grants nothing.
    pub fn is_strict(&self) -> bool {
        self.run.strict
    }

    /// What a run may write to its journal. Without trust it is never more than by default.
    pub fn journal_bytes(&self) -> Bytes {
        let bytes = self.run.journal_bytes();
        if self.distrusted { bytes.min(JOURNAL_BYTES) } else { bytes }
    }

    /// What an import path means, if the operator says so.
    pub fn import(&self, path: &str) -> Option<&str> {
        self.imports.get(path).map(String::as_str)
    }

    /// Whether texts with placeholders are templates of the Jinja language.
    pub fn renders_jinja(&self) -> bool {
        self.compat.jinja
    }

    /// Whether `agent` nodes of Loki graphs may have a fallback, as in later releases of the language.
    pub fn agents_fall_back(&self) -> bool {
        self.compat.agent_fallback
    }

    /// The import paths of which the operator says what they mean.
    pub fn imports(&self) -> impl Iterator<Item = &str> {
        self.imports.keys().map(String::as_str)
    }

    /// Folders and virtual environments with packages that Python tools may import.
    pub fn python_path(&self) -> &[PathBuf] {
        &self.python.path
    }

    /// The names of scripts, plugins and the like that have an entry, and what kind of entry.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let grants = self.grants.keys().map(|name| ("grants", name.as_str()));
        let budget = self.budget.keys().map(|name| ("budget", name.as_str()));
        grants.chain(budget).chain(self.plugins.keys().map(|name| ("plugins", name.as_str())))
    }

    /// The hook plugins whose failure stops nothing.
    pub fn optional_hooks(&self) -> impl Iterator<Item = &str> {
        self.hooks.optional.iter().map(String::as_str)
    }

    /// The secrets of which is said where they come from, and the names of all secrets that are granted to anybody.
    pub fn secret_names(&self) -> (impl Iterator<Item = &str>, impl Iterator<Item = &str>) {
        let granted = self.grants.values().flat_map(|grants| &grants.secret).map(|grant| grant.name.as_str());
        (self.secrets.keys().map(String::as_str), granted)
    }

    /// What is granted to something that an agent's own file describes: its requests and variables ([`AGENT_GRANTS`]), its MCP
    /// servers, its documents. Nothing, where the file is not the one that was trusted.
    pub fn grants_of_file(&self, name: &str) -> Arc<Grants> {
        if self.file_changed { Arc::default() } else { self.grants(name) }
    }

    /// What is granted to a script or plugin.
    pub fn grants(&self, name: &str) -> Arc<Grants> {
        self.grants.get(name).cloned().map(Arc::new).unwrap_or_default()
    }

    /// What would be granted to a script or plugin if the operator trusted it, for messages.
    pub fn held_back(&self, name: &str) -> Arc<Grants> {
        self.held_back.get(name).cloned().map(Arc::new).unwrap_or_default()
    }

    /// The settings that a plugin can read.
    pub fn config(&self, plugin: &str) -> Arc<BTreeMap<String, String>> {
        self.plugins.get(plugin).map(|settings| Arc::new(settings.config.clone())).unwrap_or_default()
    }

    /// How calls of a script or plugin are recorded; none if they are not.
    pub fn record(&self, name: &str) -> Option<RecordTerms> {
        self.record.terms(name)
    }

    /// The same where the user has decided about recordings for all folders.
    #[must_use]
    pub(crate) fn recorded_as(mut self, user: &RecordSettings) -> Self {
        self.record = user.with(&self.record);
        self
    }

    /// The limits of a script or plugin whose kind has the limits `base`, cut to the ceiling.
    ///
    /// # Errors
    /// When a limit is not of its form.
    pub fn budget(&self, name: &str, base: Budget) -> Result<Budget, LimitError> {
        let budget = match self.budget.get(name) {
            Some(table) if self.distrusted => overlay(base.clone(), table)?.clamp(&base),
            Some(table) => overlay(base, table)?,
            None => base,
        };
        Ok(budget.clamp(&self.ceiling()?))
    }

    fn ceiling(&self) -> Result<Budget, LimitError> {
        overlay(Budget::unlimited(), &self.ceiling)
    }
}

/// Whether grants of that name go to what an agent's own file describes.
pub(crate) fn is_for_agent_files(name: &str) -> bool {
    name == AGENT_GRANTS || name.starts_with(SERVER_GRANTS) || name.starts_with(KNOWLEDGE_GRANTS)
}

/// Grants in the form they have under `[grants.NAME]`.
///
/// # Errors
/// When the text is not of the form.
pub fn parse_grants(text: &str) -> Result<Grants, GrantsForm> {
    Ok(toml::from_str(text)?)
}

/// A budget with some of its limits replaced.
fn overlay(base: Budget, table: &toml::Table) -> Result<Budget, LimitError> {
    let mut limits = serde_json::to_value(base)?;
    for (name, value) in table {
        limits[name] = serde_json::to_value(value)?;
    }
    Ok(serde_json::from_value(limits)?)
}

#[cfg(test)]
mod tests;
