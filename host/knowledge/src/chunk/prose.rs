//! Plain text, Markdown and source code.

use text_splitter::{ChunkConfig, ChunkSizer, CodeSplitter, MarkdownSplitter, TextSplitter};

use super::{Cutter, segments};
use crate::source::{Kind, Language};

/// Cuts a text where its structure allows: at paragraphs and sentences, headings, or the items of a language.
pub(super) fn cut(cutter: &Cutter<'_>, kind: Kind, text: &str) -> Vec<String> {
    let mut chunks = Vec::new();
    for part in segments::parts(kind, text) {
        let ruler = cutter.ruler(part);
        if ruler.total() <= cutter.size {
            let whole = part.trim_end().trim_start_matches(['\n', '\r']);
            if !whole.trim().is_empty() {
                chunks.push(whole.to_owned());
            }
            continue;
        }
        let config = ChunkConfig::new(cutter.size).with_sizer(&ruler);
        // The overlap was checked when the cutter was made.
        let Ok(config) = config.with_overlap(cutter.overlap) else { continue };
        split(kind, config, part, &mut chunks);
    }
    chunks
}

fn split<S: ChunkSizer>(kind: Kind, config: ChunkConfig<S>, text: &str, chunks: &mut Vec<String>) {
    match kind {
        Kind::Markdown => chunks.extend(MarkdownSplitter::new(config).chunks(text).map(str::to_owned)),
        Kind::Code(language) => {
            let grammar = match language {
                Language::Rust => tree_sitter_rust::LANGUAGE,
                Language::Python => tree_sitter_python::LANGUAGE,
                Language::JavaScript => tree_sitter_javascript::LANGUAGE,
                Language::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
                Language::Tsx => tree_sitter_typescript::LANGUAGE_TSX,
                Language::Go => tree_sitter_go::LANGUAGE,
                Language::Java => tree_sitter_java::LANGUAGE,
                Language::C => tree_sitter_c::LANGUAGE,
            };
            // Fails only for a grammar of another generation, which the tests would have found.
            match CodeSplitter::new(grammar, config) {
                Ok(splitter) => chunks.extend(splitter.chunks(text).map(str::to_owned)),
                Err(error) => tracing::error!(?language, %error, "no grammar; its documents are not cut"),
            }
        }
        _ => chunks.extend(TextSplitter::new(config).chunks(text).map(str::to_owned)),
    }
}
