//! How calls are recorded.

use hotcell_budget::Bytes;

/// Bytes of one recording, if nothing else is said.
pub const RECORDING_BYTES: Bytes = Bytes(1 << 20);

/// How calls are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordTerms {
    /// Bytes that one recording may have
    pub max_bytes: Bytes,
    /// Only digests are kept of what went in and came out
    pub is_private: bool,
}

impl Default for RecordTerms {
    fn default() -> Self {
        RecordTerms { max_bytes: RECORDING_BYTES, is_private: false }
    }
}
