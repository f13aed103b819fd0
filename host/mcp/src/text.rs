//! What a stranger wrote, made fit to be shown: cut to a length and without characters that nobody sees.
//!
//! This is for names, descriptions, questions, log lines and errors. What a tool answers is data and is not touched.

/// Whether a name may not have a character: nobody sees it.
pub(crate) fn is_hidden(character: char) -> bool {
    hotcell_visible::is_hidden(character) || hotcell_visible::is_joiner(character)
}

/// The text with at most `limit` bytes and no hidden characters. Line breaks and tabs stay, and so do the joiners
/// without which some scripts cannot be written.
pub(crate) fn clean(text: &str, limit: usize) -> String {
    let keeps = |character: &char| matches!(character, '\n' | '\t') || !hotcell_visible::is_hidden(*character);
    let mut cleaned = String::with_capacity(text.len().min(limit));
    for character in text.chars().filter(keeps) {
        if cleaned.len() + character.len_utf8() > limit {
            cleaned.push('…');
            break;
        }
        cleaned.push(character);
    }
    cleaned
}

/// The most bytes of a stranger's words inside an error.
const SHOWN: usize = 500;

/// The text on one line and short, for errors.
pub(crate) fn shown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    clean(&line, SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_taken_out() {
        for (text, expected) in [
            ("plain\n\ttext", "plain\n\ttext"),
            ("a\u{1b}[31mred", "a[31mred"),
            ("ab\u{202e}cd\u{2066}", "abcd"),
            ("hid\u{e0041}\u{e0042}den", "hidden"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("\u{feff}mark", "mark"),
        ] {
            assert_eq!(clean(text, 100), expected);
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(clean("äöü", 4), "äö…");
        assert_eq!(clean("äöü", 6), "äöü");
        assert!(shown(&"x ".repeat(10_000)).len() < 510);
        assert_eq!(shown("two\n  lines\u{7}"), "two lines");
    }
}
