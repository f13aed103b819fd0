//! Where in a run a call is made, for whoever makes it and records what it took from outside.

use std::fmt;
use std::sync::Arc;

use hotcell_journal::{EntryPath, RecordedCall, RunId, RunWriter};

/// Where in a run a call is made.
#[derive(Clone, Default)]
pub struct CallSite(Option<(Arc<dyn RunWriter>, EntryPath)>);

impl CallSite {
    /// A call that no run makes. Nothing of it is kept.
    pub fn outside() -> Self {
        CallSite(None)
    }

    pub(crate) fn new(writer: Arc<dyn RunWriter>, place: EntryPath) -> Self {
        CallSite(Some((writer, place)))
    }

    /// The run that makes it.
    pub fn run(&self) -> Option<&RunId> {
        self.0.as_ref().map(|(writer, _)| writer.run())
    }

    /// Whether a recording of the call is kept.
    pub fn keeps_recordings(&self) -> bool {
        self.0.is_some()
    }

    /// Keeps the recording of the call, whose `name` is that of a script or plugin. It is committed with the next entries of
    /// the run.
    pub fn record(&self, name: &str, body: Vec<u8>) {
        if let Some((writer, place)) = &self.0 {
            writer.record(RecordedCall { place: place.clone(), name: name.to_owned(), body });
        }
    }
}

impl fmt::Debug for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallSite").field(&self.0.as_ref().map(|(_, place)| place)).finish()
    }
}
