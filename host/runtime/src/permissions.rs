//! What is granted in a folder at this moment. It is looked at when a call is made, because what was granted when an agent was
//! loaded may be revoked since: nothing counts that is not granted then and now.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use hotcell_cells::{Capability, Grants, Terms};
use hotcell_plugins::{Decisions, FolderError, LOCK_FILE, SETTINGS_FILE, Trust};
use thiserror::Error;

/// What is granted to the file of an agent itself: variables of the environment that it may name, servers that it may ask.
pub(crate) const FILE_GRANTS: &str = "agent";

/// What is granted in the folder whose settings count for an agent.
pub(crate) struct Permissions {
    folder: PathBuf,
    /// None where what was given counts, whatever is said about the folder
    trust: Option<Trust>,
    /// Where trust in the folder is written down if whoever runs this is asked for what calls are denied
    asks_denials: Option<Trust>,
    looked: Mutex<Option<(Stamps, Now)>>,
}

/// Why a call may not be made any more.
#[derive(Clone, Debug, Error)]
pub enum Revoked {
    /// What was granted to a plugin was taken back
    #[error(
        "what was granted to `{name}` in `{folder}` was revoked after this began; grant it again, or go on with what the \
         files say now (`--revision current`)",
        folder = folder.display()
    )]
    Plugin {
        /// The plugin
        name: String,
        /// Where
        folder: PathBuf,
    },
    /// What is said about the folder cannot be used
    #[error("what is granted in `{folder}` cannot be read any more: {cause}", folder = folder.display())]
    Unreadable {
        /// Where
        folder: PathBuf,
        /// Why not
        #[source]
        cause: Arc<FolderError>,
    },
}

type Now = Result<Arc<Decisions>, Revoked>;

/// What changes when a file is changed.
type Stamps = [Option<(u64, SystemTime, u64)>; 3];

impl Permissions {
    /// Those of a folder, on this trust.
    pub(crate) fn new(folder: &Path, trust: Trust) -> Arc<Self> {
        Permissions::asking(folder, trust, None)
    }

    /// The same for an agent of whose calls whoever runs this is asked for what they are denied, if it is said where they write down that
    /// they trust the folder.
    pub(crate) fn asking(folder: &Path, trust: Trust, asks_denials: Option<Trust>) -> Arc<Self> {
        let (folder, looked) = (folder.to_owned(), Mutex::default());
        Arc::new(Permissions { folder, trust: Some(trust), asks_denials, looked })
    }

    /// Those of a call that gets what its caller gives, whatever is said about the folder.
    pub(crate) fn as_given(folder: &Path) -> Arc<Self> {
        let (folder, looked) = (folder.to_owned(), Mutex::default());
        Arc::new(Permissions { folder, trust: None, asks_denials: None, looked })
    }

    /// The folder whose settings count.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where trust in the folder is written down; none where nobody is asked for what calls are denied.
    pub(crate) fn asks_denials(&self) -> Option<&Trust> {
        self.asks_denials.as_ref()
    }

    /// Whether whoever runs this is asked for what calls are denied still, so that what they granted in between counts.
    pub(crate) fn asks_denials_now(&self) -> bool {
        self.asks_denials.is_some() && self.now().is_some_and(|now| now.is_ok_and(|now| now.asks_denials()))
    }

    /// Whether a capability is granted to a script or plugin now.
    pub(crate) fn has(&self, name: &str, capability: &Capability) -> bool {
        self.now().is_some_and(|now| now.is_ok_and(|now| now.has(name, capability)))
    }

    /// What is decided about the folder now; nothing where that does not count. It is read again only if a file was changed.
    fn now(&self) -> Option<Now> {
        let trust = self.trust.as_ref()?;
        let list = match trust {
            Trust::Listed(file) | Trust::Named(file) => Some(file.as_path()),
            Trust::Everything => None,
        };
        let stamps =
            [stamp(&self.folder.join(SETTINGS_FILE)), stamp(&self.folder.join(LOCK_FILE)), list.and_then(stamp)];
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, now)) = &*looked
            && *known == stamps
        {
            return Some(now.clone());
        }
        let now = Decisions::read(&self.folder, trust)
            .map(Arc::new)
            .map_err(|error| Revoked::Unreadable { folder: self.folder.clone(), cause: Arc::new(error) });
        *looked = Some((stamps, now.clone()));
        Some(now)
    }

    /// What of `granted` to `name` is granted now, too.
    pub(crate) fn grants(&self, name: &str, granted: &Arc<Grants>) -> Result<Arc<Grants>, Revoked> {
        let Some(now) = (**granted != Grants::default()).then(|| self.now()).flatten() else {
            return Ok(granted.clone());
        };
        let now = now?.grants(name);
        Ok(if now == *granted { now } else { Arc::new(granted.meet(&now)) })
    }

    /// Whether the settings name a folder with Python packages, of which this is one or a part.
    pub(crate) fn names_packages(&self, folder: &Path) -> Result<bool, Revoked> {
        let Some(now) = self.now() else { return Ok(true) };
        Ok(now?.python_path().iter().any(|named| folder.starts_with(named)))
    }

    /// Whether a file of the folder is the one that is trusted now.
    pub(crate) fn pins_file(&self, name: &str, bytes: &[u8]) -> bool {
        self.now().is_none_or(|now| now.is_ok_and(|now| now.pins_file(name, bytes)))
    }

    /// Takes from the terms of a call what is not granted any more. `pinned` says that the operator decided on the plugin when the
    /// agent was loaded: then they have to have decided on it still.
    pub(crate) fn narrow(&self, terms: &mut Terms, pinned: bool) -> Result<(), Revoked> {
        if *terms.grants == Grants::default() && !pinned {
            return Ok(());
        }
        let Some(now) = self.now() else { return Ok(()) };
        let now = now?;
        if pinned && !now.pins_plugin(&terms.plugin) {
            return Err(Revoked::Plugin { name: terms.plugin.clone(), folder: self.folder.clone() });
        }
        let granted = now.grants(&terms.plugin);
        if granted != terms.grants {
            let met = terms.grants.meet(&granted);
            let gone: Vec<String> = terms.grants.env.iter().filter(|name| !met.env.contains(name)).cloned().collect();
            terms.env.retain(|(name, _)| !gone.contains(name));
            if !met.kv {
                terms.kv = None;
            }
            terms.grants = Arc::new(met);
        }
        Ok(())
    }
}

fn stamp(file: &Path) -> Option<(u64, SystemTime, u64)> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.len(), metadata.modified().ok()?, number(&metadata)))
}

/// The number of a file in its file system, which is another one after it was replaced.
#[cfg(unix)]
fn number(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn number(_: &std::fs::Metadata) -> u64 {
    0
}
