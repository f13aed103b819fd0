//! Revisions: everything that an agent was loaded from, by digest. A run goes on with the one that it began with.

pub(crate) mod changes;
pub(crate) mod kept;
pub(crate) mod manifest;
pub(crate) mod sources;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use hotcell_journal::{Artefact, Revision};
use thiserror::Error;

use crate::revision::manifest::Manifest;
use crate::revision::sources::Sources;

/// What an agent was loaded from. It never changes.
#[derive(Clone)]
pub(crate) struct AgentRevision {
    pub(crate) digest: String,
    pub(crate) manifest: Arc<Manifest>,
    /// The list as it is stored
    list: Artefact,
    /// Everything but components, by digest
    texts: Arc<BTreeMap<String, Artefact>>,
}

/// Why a revision cannot be kept.
#[derive(Debug, Error)]
pub enum RevisionError {
    /// A component is not what it was when the agent was loaded
    #[error("`{file}` was changed after the agent was loaded; load it again", file = .0.display())]
    ComponentChanged(PathBuf),
    /// The work that reads components ended before they were read
    #[error("the components of the agent cannot be read: {0}")]
    Unread(String),
}

impl AgentRevision {
    /// What was read; none if a path of it is no text and cannot be written down.
    pub(crate) fn of(sources: &Sources, source: &str) -> Option<Self> {
        let (manifest, texts) = sources.taken(source);
        let list = Artefact::new(serde_json::to_vec(&manifest).ok()?);
        let digest = list.digest().to_owned();
        Some(AgentRevision { digest, manifest: Arc::new(manifest), list, texts: Arc::new(texts) })
    }

    /// What is kept under a digest that is not one of a component.
    pub(crate) fn text(&self, digest: &str) -> Option<&Artefact> {
        self.texts.get(digest)
    }

    /// All of it, to be kept. Components are read now, where they lay when the agent was loaded.
    ///
    /// # Errors
    /// When one of them is not there any more.
    pub(crate) fn collect(&self) -> Result<Revision, RevisionError> {
        let mut artefacts: Vec<Artefact> = self.texts.values().cloned().collect();
        for (digest, file) in self.manifest.components() {
            let changed = || RevisionError::ComponentChanged(file.clone());
            let bytes = hotcell_files::read(file, hotcell_files::MAX_COMPONENT).map_err(|_| changed())?;
            let component = Artefact::new(bytes);
            if component.digest() != digest {
                return Err(changed());
            }
            artefacts.push(component);
        }
        artefacts.push(self.list.clone());
        Ok(Revision { digest: self.digest.clone(), artefacts })
    }
}
