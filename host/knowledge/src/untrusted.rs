//! Text that a stranger wrote, made fit to be shown: capped, on one line, without control characters.

use hotcell_visible::is_hidden;

/// The most characters that are kept.
const LIMIT: usize = 500;

/// `text` on one line, with everything that cannot be seen escaped, cut after [`LIMIT`] characters.
pub(crate) fn shown(text: &str) -> String {
    let text = text.trim();
    let mut shown = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == LIMIT {
            shown.push('…');
            break;
        }
        match character {
            '\n' | '\r' | '\t' => shown.push(' '),
            hidden if is_hidden(hidden) => shown.extend(hidden.escape_unicode()),
            plain => shown.push(plain),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hidden_survives_and_long_texts_are_cut() {
        assert_eq!(shown(" a\nb\u{1b}[31m\u{202e} "), "a b\\u{1b}[31m\\u{202e}");
        assert_eq!(shown(&"ß".repeat(LIMIT + 1)).chars().count(), LIMIT + 1);
    }
}
