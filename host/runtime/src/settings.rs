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
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_budget::Budget;
use hotcell_cells::Grants;
use serde::Deserialize;
use thiserror::Error;

/// The name of the file.
pub const SETTINGS_FILE: &str = "hotcell.toml";

/// What the operator wrote.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    grants: BTreeMap<String, Grants>,
    budget: BTreeMap<String, toml::Table>,
    ceiling: toml::Table,
    plugins: BTreeMap<String, PluginSettings>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PluginSettings {
    config: BTreeMap<String, String>,
}

/// What is wrong with the file.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// It cannot be read
    #[error("cannot read `{path}`: {cause}", path = path.display())]
    Read {
        /// The file
        path: PathBuf,
        /// Why not
        cause: std::io::Error,
    },
    /// It says something that has no meaning
    #[error("`{path}` is not understood: {cause}", path = path.display())]
    Form {
        /// The file
        path: PathBuf,
        /// What and where
        cause: String,
    },
}

impl Settings {
    /// The settings of a folder; nothing is granted where there is no file.
    pub(crate) fn of_folder(folder: &Path) -> Result<Self, SettingsError> {
        let path = folder.join(SETTINGS_FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Settings::default()),
            Err(cause) => return Err(SettingsError::Read { path, cause }),
        };
        let form = |cause: String| SettingsError::Form { path: path.clone(), cause };
        let mut settings: Settings = toml::from_str(&text).map_err(|error| form(error.to_string()))?;
        for grants in settings.grants.values_mut() {
            *grants = std::mem::take(grants).relative_to(folder);
        }
        settings.ceiling().map_err(|error| form(format!("`[ceiling]`: {error}")))?;
        for name in settings.budget.keys() {
            settings
                .budget(name, Budget::default())
                .map_err(|error| form(format!("`[budget.\"{name}\"]`: {error}")))?;
        }
        Ok(settings)
    }

    /// The names that have an entry of any kind.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.grants.keys().chain(self.budget.keys()).chain(self.plugins.keys()).map(String::as_str)
    }

    pub(crate) fn grants(&self, name: &str) -> Arc<Grants> {
        self.grants.get(name).cloned().map(Arc::new).unwrap_or_default()
    }

    pub(crate) fn config(&self, plugin: &str) -> Arc<BTreeMap<String, String>> {
        self.plugins.get(plugin).map(|settings| Arc::new(settings.config.clone())).unwrap_or_default()
    }

    /// The limits of a script or plugin whose kind has the limits `base`, cut to the ceiling.
    pub(crate) fn budget(&self, name: &str, base: Budget) -> Result<Budget, String> {
        let budget = match self.budget.get(name) {
            Some(table) => overlay(base, table)?,
            None => base,
        };
        Ok(budget.clamp(&self.ceiling()?))
    }

    fn ceiling(&self) -> Result<Budget, String> {
        overlay(Budget::unlimited(), &self.ceiling)
    }
}

/// A budget with some of its limits replaced.
fn overlay(base: Budget, table: &toml::Table) -> Result<Budget, String> {
    let mut limits = serde_json::to_value(base).map_err(|error| error.to_string())?;
    for (name, value) in table {
        let value = serde_json::to_value(value).map_err(|error| error.to_string())?;
        limits[name] = value;
    }
    serde_json::from_value(limits).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<Settings, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(SETTINGS_FILE), text).unwrap();
        Settings::of_folder(folder.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn limits_are_laid_over_the_defaults_and_cut_to_the_ceiling() {
        let settings = settings("[budget.\"a.js\"]\nfuel = 7\n[ceiling]\nmemory = 1000\n").unwrap();
        let budget = settings.budget("a.js", Budget::interpreter()).unwrap();
        assert_eq!((budget.fuel.0, budget.memory.0, budget.output), (7, 1000, Budget::interpreter().output));
        assert_eq!(settings.budget("b.js", Budget::default()).unwrap().fuel, Budget::default().fuel);
    }

    #[test]
    fn what_has_no_meaning_is_refused_with_its_name() {
        for (text, fragment) in [
            ("[grant.x]\n", "unknown field `grant`"),
            ("[grants.x]\nhtpt = []\n", "unknown field `htpt`"),
            ("[ceiling]\nfule = 1\n", "`[ceiling]`: unknown field `fule`"),
            ("[budget.\"a.js\"]\nfuel = \"much\"\n", "`[budget.\"a.js\"]`"),
            ("[grants\n", "line 1"),
        ] {
            let error = settings(text).unwrap_err();
            assert!(error.contains(fragment), "{error}");
        }
    }
}
