//! The journal: what a run must never lose.
//!
//! A run is the sequence of its [entries](Entry) and nothing else. How it stands, its open questions and what it used are read
//! from them. An entry is committed before anything that follows from it happens, so a process may die at any moment: what
//! was committed is read back and not done again, what was not is.
//!
//! [`RunStore`] is the port, [`SqliteStore`] its embedded implementation, [`MemoryStore`] the one for tests and for runs that
//! nobody wants to keep.

mod artefact;
mod calls;
mod encode;
mod entry;
mod ids;
mod mail;
mod memory;
mod projection;
mod rules;
mod sqlite;
mod store;
mod timers;

pub use artefact::{Artefact, Revision};
pub use calls::{RecordedCall, StoredCall};
pub use entry::{ClientCall, Completed, Entry, Fact, Question, RunHeader, Write};
pub use ids::{EntryPath, RunId};
pub use memory::MemoryStore;
pub use projection::{
    Asking, CALLBACK, CallbackState, NodeFailure, OpenQuestion, RunStatus, callback_arrived, callback_of,
    callback_state, failures, open_questions,
};

pub use sqlite::SqliteStore;
pub use store::{
    Census, EntryPage, History, JournalError, NumberedEntry, PruneReport, RunPage, RunQuery, RunRecord, RunStore,
    RunSummary, RunWriter, Taken,
};
