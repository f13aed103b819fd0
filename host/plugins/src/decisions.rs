//! What the operator's decisions about a folder are at this moment, for work that began under earlier ones.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_cells::{Capability, Grants, digest};

use crate::agent_folder::FolderError;
use crate::footprint::Footprint;
use crate::lock::Lock;
use crate::settings::Settings;
use crate::trust::{Pinned, Trust};
use crate::writers;

/// What is granted in a folder at this moment, as a limit for what was granted before. It does not say that the files are
/// those that were trusted: whoever began with trusted ones goes on with them.
#[derive(Clone, Debug)]
pub struct Decisions {
    /// What is written; nothing where nobody trusts the folder any more
    settings: Settings,
    lock: Lock,
    /// What is pinned now, where what counts is pinned
    footprint: Option<Box<Footprint>>,
}

impl Decisions {
    /// Reads what is decided about a folder.
    ///
    /// # Errors
    /// When a file is there and cannot be used, or what is granted would let somebody write what decides.
    pub fn read(folder: &Path, trust: &Trust) -> Result<Self, FolderError> {
        let (trusted, footprint, as_it_is) = match trust.pinned(folder) {
            Pinned::All => (true, None, true),
            Pinned::Before => (true, None, false),
            Pinned::To(footprint) => (true, Some(footprint), false),
            Pinned::Nothing => (false, None, false),
        };
        if !trusted {
            return Ok(Decisions { settings: Settings::default(), lock: Lock::default(), footprint: None });
        }
        let settings = Settings::text(folder)?;
        let settings = settings.map_or_else(|| Ok(Settings::default()), |text| Settings::of_folder(folder, &text))?;
        // A run that goes on has the grants of its revision.
        if as_it_is {
            writers::check(folder, &settings)?;
        }
        if let Some(list) = trust.list() {
            writers::check_list(list, &settings)?;
        }
        Ok(Decisions { settings, lock: Lock::of_folder(folder)?, footprint })
    }

    /// What is granted to a script or plugin.
    pub fn grants(&self, name: &str) -> Arc<Grants> {
        self.settings.grants(name)
    }

    /// Whether whoever runs this is asked for what calls are denied.
    pub fn asks_denials(&self) -> bool {
        self.settings.asks_denials()
    }

    /// Whether this is granted to a script or plugin.
    pub fn has(&self, name: &str, capability: &Capability) -> bool {
        capability.is_in(&self.settings.grants(name))
    }

    /// Whether the operator decided what the plugin of that name may do.
    pub fn pins_plugin(&self, name: &str) -> bool {
        self.lock.plugin.contains_key(name)
    }

    /// Whether a file of the folder is the one that is trusted now.
    pub fn pins_file(&self, name: &str, bytes: &[u8]) -> bool {
        self.footprint.as_ref().is_none_or(|footprint| footprint.digests().get(name) == Some(&digest(bytes)))
    }

    /// The folders with Python packages that the settings name.
    pub fn python_path(&self) -> &[PathBuf] {
        self.settings.python_path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AgentFolder;

    #[test]
    fn what_was_trusted_counts_as_far_as_it_is_granted_still() {
        let place = tempfile::tempdir().unwrap();
        let trust = Trust::Listed(place.path().join("trust.toml"));
        let folder = place.path().join("agent");
        std::fs::create_dir(&folder).unwrap();
        let write = |text: &str| std::fs::write(folder.join("hotcell.toml"), text).unwrap();
        let now = || Decisions::read(&folder, &trust).unwrap();
        write("[grants.\"a.py\"]\nkv = true\nask = true\n");
        assert!(!now().grants("a.py").kv, "nobody trusts it");
        AgentFolder::open(&folder, &trust).unwrap().trust(&trust).unwrap();
        assert!(now().grants("a.py").kv);
        // What is written is no more than a limit, so that less of it counts at once.
        write("[grants.\"a.py\"]\nask = true\n");
        assert!(!now().grants("a.py").kv && now().grants("a.py").ask);
        trust.forget(&folder).unwrap();
        assert!(!now().grants("a.py").ask);
    }
}
