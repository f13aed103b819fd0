//! From a text to chunks of a number of tokens.
//!
//! Why this exists: what is found is a chunk, so a chunk should be something that can be understood by itself: paragraphs
//! under their heading, whole functions, rows with the names of their columns, JSON values with their path.
//!
//! What it must not do: lose text, or cost more than linear time in the length of a document.

mod code;
mod json;
mod pack;
mod prose;
mod rows;
mod segments;

use thiserror::Error;

use crate::{
    embed::Embedder,
    source::Kind,
    tokens::{Ruler, length},
};

/// Why documents cannot be cut in the way that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChunkError {
    /// A chunk of no tokens.
    #[error("the chunk size is 0 tokens; a few hundred are usual")]
    Size,
    /// An overlap that leaves nothing new.
    #[error("the chunk overlap of {overlap} tokens is not smaller than the chunk size of {size}; a tenth is usual")]
    Overlap {
        /// The overlap in tokens.
        overlap: usize,
        /// The chunk size in tokens.
        size: usize,
    },
}

/// Cuts texts into chunks.
#[derive(Clone, Copy)]
pub(crate) struct Cutter<'a> {
    size: usize,
    overlap: usize,
    embedder: &'a dyn Embedder,
}

impl<'a> Cutter<'a> {
    /// Chunks of at most `size` tokens of `embedder`, of which `overlap` may be those at the end of the chunk before.
    pub(crate) fn new(size: usize, overlap: usize, embedder: &'a dyn Embedder) -> Result<Self, ChunkError> {
        if size == 0 {
            return Err(ChunkError::Size);
        }
        if overlap >= size {
            return Err(ChunkError::Overlap { overlap, size });
        }
        Ok(Self { size, overlap, embedder })
    }

    /// The chunks of `text`, in order. Rows and JSON values stand for themselves and do not overlap; what is not in the
    /// format that its name says is cut as plain text.
    pub(crate) fn cut(&self, kind: Kind, text: &str) -> Vec<String> {
        let cut = match kind {
            Kind::Rows(delimiter) => rows::cut(self, delimiter, text),
            Kind::Json => json::cut(self, text),
            Kind::JsonLines => json::cut_lines(self, text),
            _ => None,
        };
        cut.unwrap_or_else(|| prose::cut(self, kind, text))
    }

    /// The length of `text` in tokens.
    fn length(&self, text: &str) -> usize {
        length(text.len(), self.embedder.token_starts(text).len())
    }

    fn ruler<'t>(&self, text: &'t str) -> Ruler<'t> {
        Ruler::new(text, |text| self.embedder.token_starts(text))
    }

    /// The same with other sizes and no overlap.
    fn with_size(&self, size: usize) -> Self {
        Self { size: size.max(1), overlap: 0, ..*self }
    }
}

#[cfg(test)]
mod tests;
