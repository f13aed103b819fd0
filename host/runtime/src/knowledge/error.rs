//! Why something cannot be looked up.

use std::io;
use std::num::ParseIntError;

use hotcell_cells::CellError;
use hotcell_knowledge::{BuildError, EmbedError, LocalModelError, RerankError, SearchError};
use hotcell_models::ModelError;
use thiserror::Error;

use crate::cells::CarriedError;
use crate::permissions::Revoked;

/// Why the knowledge base of a node cannot be used.
#[derive(Debug, Error)]
#[error("the knowledge base of node `{node}`: {cause}")]
pub struct KnowledgeError {
    /// The node
    pub node: String,
    /// Why not
    #[source]
    pub cause: KnowledgeProblem,
}

/// Why a knowledge base cannot be used.
#[derive(Debug, Error)]
pub enum KnowledgeProblem {
    /// The source leaves something open, and nobody can be asked
    #[error(
        "it is not built; set `embedding_model`, `chunk_size` and `chunk_overlap` in the node (the environment variable \
         `HOTCELL_EMBEDDING_MODEL` names the model of nodes that name none), or run the graph once on a terminal"
    )]
    NotBuilt,
    /// The person does not want it built
    #[error("it is not built, and you chose not to build it")]
    Declined,
    /// Nobody answers
    #[error("it is not built, and nobody is there to be asked")]
    Unanswered,
    /// The person answers nothing
    #[error("it is not built, because nobody answered")]
    EmptyAnswer,
    /// The person answers something else than a number
    #[error("`{answer}` is not a number of tokens for the {what}")]
    NoNumber {
        /// The answer
        answer: String,
        /// What was asked for
        what: &'static str,
        /// Why it is none
        #[source]
        cause: ParseIntError,
    },
    /// Its embedding model lies where the node may not read
    #[error("its embedding model lies in a directory that is not granted; {help}")]
    ModelNotGranted {
        /// What would grant it
        help: String,
    },
    /// What was granted to the node is not granted any more
    #[error(transparent)]
    Revoked(#[from] Revoked),
    /// It names a model that cannot be asked
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Its embedding model on this machine cannot be loaded
    #[error(transparent)]
    LocalModel(#[from] LocalModelError),
    /// Its embedding model cannot be used
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// Its reranker cannot be used
    #[error(transparent)]
    Rerank(#[from] RerankError),
    /// It cannot be built
    #[error(transparent)]
    Build(#[from] BuildError),
    /// It is built, and cannot be opened
    #[error(transparent)]
    Open(#[from] SearchError),
}

/// Why a tool of a plugin does not load a document.
#[derive(Debug, Error)]
pub(super) enum LoaderError {
    #[error("there are no tools here")]
    NoTools,
    #[error("there is no tool `{0}` that could load it; put its plugin into the plugins folder")]
    Missing(String),
    /// Its call failed; the text says which limit, trap or error
    #[error("{0}")]
    Failed(String),
    #[error("a loader cannot ask questions, and it asked: {0}")]
    Asks(String),
}

/// Why no text is taken out of a document.
#[derive(Debug, Error)]
pub(super) enum ExtractError {
    #[error(transparent)]
    Carried(#[from] CarriedError),
    #[error("cannot hand it to the cell that reads it: {0}")]
    HandOver(#[from] io::Error),
    #[error(transparent)]
    Cell(#[from] CellError),
}
