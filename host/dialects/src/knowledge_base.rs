//! A knowledge base as a source describes it.

use hotcell_graph::diagnostic::Span;

/// A knowledge base as a source describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct KnowledgeBaseSource {
    /// Its name, for a node of a Loki graph that of the node; the base is stored as `<node>.yaml`
    pub node: String,
    /// Files, folders, patterns, addresses and `loader:path`, as they are written
    pub documents: Vec<String>,
    /// The model that makes vectors of texts
    pub embedding_model: Option<String>,
    /// Tokens of a chunk
    pub chunk_size: Option<u32>,
    /// Tokens that a chunk shares with the one before
    pub chunk_overlap: Option<u32>,
    /// The model that ranks what was found once more
    pub reranker_model: Option<String>,
    /// How many texts go into one request for vectors
    pub batch_size: Option<u32>,
    /// Whether a run begins also where it cannot be built or opened: whoever looks something up there is told
    pub is_optional: bool,
    /// Where the node is written
    pub span: Span,
}
