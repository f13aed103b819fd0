//! Whether a plugin may be used in an agent's folder: what it asks for, against what the operator said there.

use std::path::Path;

use hotcell_cells::digest;

use crate::agent_folder::AgentFolder;
use crate::asked::Asked;
use crate::catalogue::Catalogue;
use crate::plugin::Plugin;
use crate::settings::SETTINGS_FILE;
use crate::signature::{SignaturePolicy, UnsignedError, signer_of};

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
    /// Whether a plugin may be used here.
    pub fn standing(&self, file: &Path, plugin: &Plugin, signatures: &SignaturePolicy) -> Standing {
        let signed = match signatures.required {
            true => check_signature(file, &plugin.survey.digest, signatures).and_then(|()| {
                let (name, version) = (&plugin.description.name, plugin.description.version.as_deref());
                Ok(signatures.versions.check(name, version)?)
            }),
            false => Ok(()),
        };
        self.standing_signed(file, plugin, signed)
    }

    /// Whether a plugin may be used here; `signed` is why its signature does not count, where it needs one.
    pub fn standing_signed(&self, file: &Path, plugin: &Plugin, signed: Result<(), UnsignedError>) -> Standing {
        if let Err(error) = signed {
            return Standing::Refused { reason: error.to_string() };
        }
        let name = &plugin.description.name;
        let grants = self.settings().grants(name);
        let beyond = plugin.description.capabilities.exceeded_by(&grants);
        if !beyond.is_empty() {
            let reason = format!(
                "`{SETTINGS_FILE}` grants it {} that it does not ask for; take that out of `[grants.\"{name}\"]`",
                beyond.join(", ")
            );
            return Standing::Refused { reason };
        }
        let asked = Asked::of(plugin, file, self.path());
        match self.lock.plugin.get(name) {
            Some(locked) if locked.digest == plugin.survey.digest => Standing::Ready,
            Some(locked) => {
                let before = Asked::before(locked);
                Standing::Changed { more: asked.beyond(&before), less: before.beyond(&asked) }
            }
            None if asked.is_empty() => Standing::Ready,
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
fn check_signature(file: &Path, looked_at: &str, signatures: &SignaturePolicy) -> Result<(), UnsignedError> {
    let bytes = hotcell_files::read(file, hotcell_files::MAX_COMPONENT)?;
    if digest(&bytes) != looked_at {
        return Err(UnsignedError::ChangedMeanwhile);
    }
    signer_of(file, &bytes, &signatures.keys)?;
    Ok(())
}
