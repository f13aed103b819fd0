//! Reading a revision back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hotcell_files::MAX_COMPONENT;
use hotcell_journal::{Artefact, JournalError, RunStore};
use thiserror::Error;

use crate::revision::manifest::{FORM, Manifest};
use crate::revision::sources::Kept;
use crate::servers::Connections;

/// Bytes of all components that a revision kept, and of everything else: a journal may have been sent, and what is packed in it may be anything.
const MOST: usize = 1 << 30;

/// Why a revision cannot be gone on with.
#[derive(Debug, Error)]
pub enum KeptError {
    /// A part of it is not there, or not what was kept
    #[error(transparent)]
    Part(#[from] JournalError),
    /// Its list is not of the form that this version reads
    #[error("its list is not understood: {0}")]
    List(#[source] serde_json::Error),
    /// It is larger than what is read of one
    #[error("it has more than {MOST} bytes")]
    TooLarge,
    /// Its list is of the form of another version
    #[error("its list is not understood: it is of form {0}, and this version reads {FORM}")]
    Form(u32),
}

/// Everything that a revision kept. Components are only read if they are not where they lay any more.
///
/// # Errors
/// When a part is not kept, or damaged.
pub(crate) async fn kept(store: &dyn RunStore, digest: &str, connections: &Connections) -> Result<Kept, KeptError> {
    let list = store.artefact(digest).await?;
    let manifest: Manifest = serde_json::from_slice(&list).map_err(KeptError::List)?;
    if manifest.form != FORM {
        return Err(KeptError::Form(manifest.form));
    }
    let (mut texts, mut components) = (BTreeMap::new(), BTreeMap::new());
    let mut left = MOST;
    for digest in manifest.texts() {
        let text = Artefact::new(store.artefact(digest).await?);
        left = left.checked_sub(text.bytes().len()).ok_or(KeptError::TooLarge)?;
        texts.insert(digest.to_owned(), text);
    }
    let mut left = MOST;
    for digest in replaced(&manifest, connections).await {
        let component = Artefact::new(store.artefact(&digest).await?);
        left = left.checked_sub(component.bytes().len()).ok_or(KeptError::TooLarge)?;
        components.insert(digest, component);
    }
    Ok(Kept { manifest, texts, components })
}

/// The components that are not where they lay any more.
async fn replaced(manifest: &Manifest, connections: &Connections) -> Vec<String> {
    let components: Vec<(String, PathBuf)> =
        manifest.components().into_iter().map(|(digest, file)| (digest.to_owned(), file.clone())).collect();
    let all = components.iter().map(|(digest, _)| digest.clone()).collect();
    let is_there = |digest: &str, file: &Path| {
        hotcell_files::read(file, MAX_COMPONENT).is_ok_and(|bytes| Artefact::new(bytes).digest() == digest)
    };
    let look = move || {
        let replaced = components.into_iter().filter(|(digest, file)| !is_there(digest, file));
        replaced.map(|(digest, _)| digest).collect()
    };
    // Where nobody can look, they are taken from the journal.
    connections.blocking(look).await.unwrap_or(all)
}
