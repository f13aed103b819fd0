//! Plain text, Markdown and source code.

use text_splitter::{ChunkConfig, MarkdownSplitter, TextSplitter};

use super::{Cutter, code, segments};
use crate::source::Kind;

/// Cuts a text where its structure allows: at paragraphs and sentences, headings, or items of source code.
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
        if kind == Kind::Code {
            chunks.extend(code::cut(&ruler, cutter.size, cutter.overlap, part).into_iter().map(str::to_owned));
            continue;
        }
        let config = ChunkConfig::new(cutter.size).with_sizer(&ruler);
        // The overlap was checked when the cutter was made.
        let Ok(config) = config.with_overlap(cutter.overlap) else { continue };
        match kind {
            Kind::Markdown => chunks.extend(MarkdownSplitter::new(config).chunks(part).map(str::to_owned)),
            _ => chunks.extend(TextSplitter::new(config).chunks(part).map(str::to_owned)),
        }
    }
    chunks
}
