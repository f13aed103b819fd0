//! Text that a stranger wrote, made fit to be shown: capped, on one line, without control characters.

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
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => {
                shown.extend(character.escape_unicode());
            }
            hidden if hidden.is_control() => shown.extend(hidden.escape_unicode()),
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
