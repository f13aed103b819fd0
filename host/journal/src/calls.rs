//! Recordings of calls: what a sealed call took from the host, kept beside the entries of its run.
//!
//! They follow from nothing and nothing follows from them: a run goes on without its recordings. What a recording says is known
//! to whoever makes the calls; here it is bytes.

use crate::ids::EntryPath;

/// The recording of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCall {
    /// Where in the run the call was made
    pub place: EntryPath,
    /// Whose call it was: a script or plugin
    pub name: String,
    /// The recording
    pub body: Vec<u8>,
}

/// A recording as it is read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCall {
    /// How many calls of the run were recorded before it, and one
    pub number: u64,
    /// Where in the run the call was made
    pub place: EntryPath,
    /// Whose call it was
    pub name: String,
    /// The recording, or what is wrong with it
    pub body: Result<Vec<u8>, String>,
}
