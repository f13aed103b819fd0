//! What a file is, found out without an engine: nothing of it is compiled or run.

use serde::{Deserialize, Serialize};

use crate::cache;
use crate::description::{self, Description, DescriptionError};
use crate::inspect::{InspectError, Shape, inspect};

/// What a WebAssembly file is and says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// The SHA-256 digest of the file, in hexadecimal.
    pub digest: String,
    /// Bytes of the file.
    pub size: u64,
    /// What it says about itself; scripts and WASI commands say nothing.
    pub description: Option<Description>,
    /// The interfaces it imports, by their full names.
    pub imports: Vec<String>,
    /// The interfaces and functions it exports, by their full names.
    pub exports: Vec<String>,
}

/// Why a file is no plugin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SurveyError {
    /// It is something else, too large, or imports what does not exist.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// Its description is missing or wrong.
    #[error(transparent)]
    Description(#[from] DescriptionError),
}

/// Reads what `bytes` are and say about themselves. The texts in it are the plugin's own: escape them before they are
/// shown, and never act on them.
///
/// # Errors
/// When they are no component of the contract, no WASI command, or describe themselves wrongly.
pub fn survey(bytes: &[u8]) -> Result<Survey, SurveyError> {
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    let (description, imports, exports) = match inspect(bytes)? {
        Shape::Preview1Command => (None, Vec::new(), vec!["_start".to_owned()]),
        Shape::Component { exports, imports, descriptions } => {
            (description::read_for(&descriptions, &exports)?, owned(imports), owned(exports))
        }
    };
    Ok(Survey { digest: cache::digest(bytes), size: bytes.len() as u64, description, imports, exports })
}
