//! Whether a plugin may be used in an agent's folder: what it asks for, against what the operator said there.

use std::path::{Path, PathBuf};

use hotcell_cells::{Requests, digest};
use thiserror::Error;

use crate::catalogue::{Catalogue, Plugin};
use crate::lock::{Lock, LockError};
use crate::settings::{SETTINGS_FILE, Settings, SettingsError};
use crate::signature::{SignaturePolicy, signer_of};
use crate::trust::{Trust, TrustError};

/// What the operator said about the plugins and scripts of one folder.
#[derive(Clone, Debug)]
pub struct AgentFolder {
    path: PathBuf,
    settings: Settings,
    /// The settings as they are written, whether they are trusted or not.
    written: Settings,
    text: Option<String>,
    trusted: bool,
    /// What counts of `hotcell.lock`.
    pub(crate) lock: Lock,
    /// What is written in it, whether it is trusted or not.
    written_lock: Lock,
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
}

/// Whether a plugin may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may, with what is granted to it; it asks for nothing, or the operator has decided
    Ready,
    /// It asks for this, and the operator has not decided; in plain words, one line each
    Waiting {
        /// All that it asks for
        asks: Vec<String>,
    },
    /// It is not the component that the operator decided on
    Changed {
        /// What it asks for beyond what the old one asked for; may be empty
        more: Vec<String>,
        /// What it no longer asks for
        less: Vec<String>,
    },
    /// It may not be used
    Refused {
        /// Why not
        reason: String,
    },
}

impl AgentFolder {
    /// Reads what is said about a folder. Nothing is granted where nothing is said, or where nobody trusts it.
    ///
    /// # Errors
    /// When a file is there and cannot be used.
    pub fn open(path: &Path, trust: &Trust) -> Result<Self, FolderError> {
        let text = Settings::text(path)?;
        let written = match &text {
            Some(text) => Settings::parse(path, text)?,
            None => Settings::default(),
        };
        // A lock that came with the folder pins what the folder likes: it counts only together with the settings.
        let lock = Lock::of_folder(path)?;
        let says_nothing = !written.wish_for_something() && lock == Lock::default();
        let trusted = says_nothing || trust.covers(path, &pin(text.as_deref(), &lock));
        let written_lock = lock.clone();
        let (settings, lock) =
            if trusted { (written.clone(), lock) } else { (written.clone().distrusted(), Lock::default()) };
        Ok(Self { path: path.to_owned(), settings, written, text, trusted, lock, written_lock })
    }

    /// A folder about which nothing is said.
    pub fn unspoken(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            settings: Settings::default(),
            written: Settings::default(),
            text: None,
            trusted: true,
            lock: Lock::default(),
            written_lock: Lock::default(),
        }
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

    /// Whether all that `hotcell.toml` says counts.
    pub fn is_trusted(&self) -> bool {
        self.trusted
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

    /// Whether anything was granted to, or pinned for, the plugin of that name.
    pub fn knows(&self, name: &str) -> bool {
        self.lock.plugin.contains_key(name) || self.written.all_grants().contains_key(name)
    }

    /// Trusts `hotcell.toml` as it is now.
    ///
    /// # Errors
    /// When there is no such file, or the list of trusted folders cannot be written.
    pub fn trust(&mut self, trust: &Trust) -> Result<(), FolderError> {
        let lock = Lock::of_folder(&self.path)?;
        if self.text.is_none() && lock == Lock::default() {
            return Err(TrustError::Nothing { folder: self.path.clone() }.into());
        }
        trust.set(&self.path, Some(&pin(self.text.as_deref(), &lock)))?;
        self.written_lock = lock.clone();
        self.lock = lock;
        self.trusted = true;
        self.settings = self.written.clone();
        Ok(())
    }

    /// Whether a plugin may be used here.
    pub fn standing(&self, file: &Path, plugin: &Plugin, signatures: &SignaturePolicy) -> Standing {
        if signatures.required
            && let Err(error) = check_signature(file, &plugin.survey.digest, signatures)
        {
            return Standing::Refused { reason: error };
        }
        let name = &plugin.description.name;
        let asked = &plugin.description.capabilities;
        let grants = self.settings.grants(name);
        let beyond = asked.exceeded_by(&grants);
        if !beyond.is_empty() {
            let reason = format!(
                "`{SETTINGS_FILE}` grants it {} that it does not ask for; take that out of `[grants.\"{name}\"]`",
                beyond.join(", ")
            );
            return Standing::Refused { reason };
        }
        match self.lock.plugin.get(name) {
            Some(locked) if locked.digest == plugin.survey.digest => Standing::Ready,
            Some(locked) => {
                let (before, now) = (locked.requested.in_words(), asked.in_words());
                let beyond = |a: &[String], b: &[String]| a.iter().filter(|line| !b.contains(line)).cloned().collect();
                Standing::Changed { more: beyond(&now, &before), less: beyond(&before, &now) }
            }
            None if *asked == Requests::default() => Standing::Ready,
            None => Standing::Waiting { asks: asked.in_words() },
        }
    }

    /// The standing of every plugin of a catalogue.
    pub fn standings<'c>(
        &'c self,
        catalogue: &'c Catalogue,
        signatures: &'c SignaturePolicy,
    ) -> impl Iterator<Item = (&'c Path, &'c Plugin, Standing)> {
        catalogue.plugins().map(|(file, plugin)| (file, plugin, self.standing(file, plugin, signatures)))
    }
}

/// The signature has to be one of the very bytes that were looked at.
fn check_signature(file: &Path, looked_at: &str, signatures: &SignaturePolicy) -> Result<(), String> {
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    if digest(&bytes) != looked_at {
        return Err("it was changed a moment ago; try again".to_owned());
    }
    signer_of(file, &bytes, &signatures.keys).map(drop).map_err(|error| error.to_string())
}

/// What pins the text of `hotcell.toml` and what `hotcell.lock` says.
fn pin(text: Option<&str>, lock: &Lock) -> String {
    let locked = serde_json::to_string(lock).unwrap_or_default();
    digest(format!("{}\0{locked}", text.unwrap_or_default()).as_bytes())
}
