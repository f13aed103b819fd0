//! Why a file cannot be loaded as a cell.

use crate::description::DescriptionError;
use crate::inspect::InspectError;

/// Why a file cannot be loaded as a cell.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It is not a plugin, too large, or imports what does not exist.
    #[error("cannot load `{name}`: {error}")]
    Inspect {
        /// The cell's name.
        name: String,
        /// What is wrong.
        error: InspectError,
    },
    /// Its description is missing or wrong.
    #[error("cannot load `{name}`: {error}")]
    Description {
        /// The cell's name.
        name: String,
        /// What is wrong.
        error: DescriptionError,
    },
    /// It is not valid, uses WebAssembly that is switched off, or disagrees with the contract.
    #[error("cannot load `{name}`: {detail}")]
    Compile {
        /// The cell's name.
        name: String,
        /// What is wrong.
        detail: String,
    },
}
