//! Large texts in parts.
//!
//! The cutter looks at all that is left of a text for each chunk, and a tokeniser keeps all tokens of a text. Both are fine
//! for a part of limited length, which makes their cost linear. A part ends where a chunk would end anyway if there is
//! such a place; overlap does not reach across.

use super::code;
use crate::source::Kind;

/// The most bytes of a part.
const PART: usize = 64 << 10;

/// `text` in parts that joined are the text.
pub(super) fn parts(kind: Kind, text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while rest.len() > PART {
        let window = &rest[..rest.floor_char_boundary(PART)];
        let (part, after) = rest.split_at(end_of_part(kind, window));
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

/// Where to end a part that may be all of `window`, in its second half if possible.
fn end_of_part(kind: Kind, window: &str) -> usize {
    let half = window.len() / 2;
    let structure = match kind {
        Kind::Markdown => last_heading(window),
        Kind::Code => code::last_item(window),
        _ => None,
    };
    let after = |separator: &str| window.rfind(separator).map(|at| at + separator.len());
    [structure, after("\n\n"), after("\n"), after(" ")]
        .into_iter()
        .flatten()
        .find(|&at| at > half && at < window.len())
        .unwrap_or(window.len())
}

/// Where the last heading begins that is not within a fenced block.
fn last_heading(window: &str) -> Option<usize> {
    let (mut fenced, mut last, mut at) = (false, None, 0);
    for line in window.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            fenced = !fenced;
        } else if !fenced && line.starts_with('#') {
            last = Some(at);
        }
        at += line.len();
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_joined_are_the_text_and_end_at_good_places() {
        let section = format!("# Heading\n\n{}\n```sh\n# no heading\n```\n", "Some words. ".repeat(900));
        let markdown = section.repeat(20);
        let code = format!("fn f() {{\n{}}}\n\n", "    let a = 1;\n\n".repeat(300)).repeat(40);
        for (kind, text, begin) in [
            (Kind::Markdown, markdown.as_str(), "# Heading"),
            (Kind::Code, code.as_str(), "fn f()"),
            (Kind::Text, &"ß".repeat(100_000), "ß"),
            (Kind::Text, &"word ".repeat(50_000), "word"),
        ] {
            let parts = parts(kind, text);
            assert_eq!(parts.concat(), text);
            assert!(parts.len() > 2 && parts.iter().all(|part| part.len() <= PART && part.starts_with(begin)));
        }
        assert_eq!(parts(Kind::Text, ""), [""]);
    }
}
