//! Reading a revision back.

use std::collections::BTreeMap;

use hotcell_journal::{Artefact, JournalError, RunStore};
use thiserror::Error;

use crate::revision::manifest::{FORM, Manifest};
use crate::revision::sources::Kept;
use hotcell_files::MAX_COMPONENT;

/// Why a revision cannot be gone on with.
#[derive(Debug, Error)]
pub enum KeptError {
    /// A part of it is not there, or not what was kept
    #[error(transparent)]
    Part(#[from] JournalError),
    /// Its list is not of the form that this version reads
    #[error("its list is not understood: {0}")]
    List(String),
}

/// Everything that a revision kept. Components are only read if they are not where they lay any more.
///
/// # Errors
/// When a part is not kept, or damaged.
pub(crate) async fn kept(store: &dyn RunStore, digest: &str) -> Result<Kept, KeptError> {
    let list = store.artefact(digest).await?;
    let manifest: Manifest = serde_json::from_slice(&list).map_err(|error| KeptError::List(error.to_string()))?;
    if manifest.form != FORM {
        return Err(KeptError::List(format!("it is of form {}, and this version reads {FORM}", manifest.form)));
    }
    let (mut texts, mut components) = (BTreeMap::new(), BTreeMap::new());
    for digest in manifest.texts() {
        texts.insert(digest.to_owned(), Artefact::new(store.artefact(digest).await?));
    }
    for (digest, file) in manifest.components() {
        let same = hotcell_files::read(file, MAX_COMPONENT).is_ok_and(|bytes| Artefact::new(bytes).digest() == digest);
        if !same {
            components.insert(digest.to_owned(), Artefact::new(store.artefact(digest).await?));
        }
    }
    Ok(Kept { manifest, texts, components })
}
