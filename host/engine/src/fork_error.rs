//! Why a run cannot be forked.

use hotcell_journal::EntryPath;
use thiserror::Error;

/// Why a run cannot be forked so. Nothing was changed.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ForkError {
    /// It has no entry of that number
    #[error("run `{run}` has no entry {at}: its entries are 1 to {last}")]
    NoEntry {
        /// The run
        run: String,
        /// The number
        at: u64,
        /// The number of its last entry
        last: u64,
    },
    /// The run ended with that entry
    #[error("the run ended with entry {0}, and nothing comes after it; fork at an earlier one")]
    Over(u64),
    /// The text that a run is given is part of its first entry
    #[error("another input can be given at entry 1 only, where the run begins; entry {0} comes after that")]
    InputLater(u64),
    /// The state cannot be changed at that entry
    #[error("the state cannot be changed at entry {at}, {why}")]
    NotThere {
        /// The entry
        at: u64,
        /// Why not, and where it can be
        why: String,
    },
    /// There is no such value
    #[error("the state has no value {names} there{help}")]
    NoSuchValue {
        /// The names
        names: String,
        /// Which ones it has
        help: String,
    },
    /// A value cannot be written there
    #[error("{0}")]
    Value(String),
    /// No question that is open there is meant
    #[error("{0}")]
    Answer(String),
    /// Another system answers the run, and not its fork
    #[error(
        "at `{place}` the run waits for another system, which knows that run and not a fork of it; fork at an entry before \
         {before}, or at one after its answer"
    )]
    Elsewhere {
        /// The place
        place: EntryPath,
        /// The entry with which it began
        before: u64,
    },
    /// There is no such node
    #[error("neither the graph nor an agent that it calls has a node `{0}`")]
    NoSuchNode(String),
}
