//! What runs were loaded from, by digest.

use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

/// Bytes that are known by their digest.
#[derive(Clone, PartialEq, Eq)]
pub struct Artefact {
    digest: String,
    bytes: Arc<[u8]>,
}

/// Everything that an agent was loaded from. It never changes: what is loaded from changed files is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The digest of the artefact that lists all the others
    pub digest: String,
    /// What it consists of, that list included
    pub artefacts: Vec<Artefact>,
}

impl Artefact {
    /// These bytes.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        Artefact { digest: digest(&bytes), bytes }
    }

    /// The SHA-256 digest of the bytes, in hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The bytes.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }
}

impl std::fmt::Debug for Artefact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.digest, self.bytes.len())
    }
}

/// The SHA-256 digest of bytes, as components are known by, too.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
