//! Text that guests, models and people wrote, made fit for a terminal: no control characters, nothing that hides or
//! reorders text, not more than fits. It must not be used on text that is data for another program.

/// The text on one line, at most `limit` characters; what is cut off is counted.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let mut shown = String::new();
    for (number, character) in text.chars().enumerate() {
        if number == limit {
            let rest = text.chars().count() - limit;
            return format!("{shown}… ({rest} more characters)");
        }
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            hidden if is_deceptive(hidden) => shown.extend(hidden.escape_unicode()),
            plain => shown.push(plain),
        }
    }
    shown
}

/// The text with its line ends and tabs, all of it.
pub(crate) fn lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' | '\t' => shown.push(character),
            hidden if is_deceptive(hidden) => shown.extend(hidden.escape_unicode()),
            plain => shown.push(plain),
        }
    }
    shown
}

/// The text with its line ends and tabs, at most `limit` characters of it; what is cut off is counted.
pub(crate) fn capped(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => lines(text),
        Some((end, _)) => format!("{}… ({} more characters)", lines(&text[..end]), text[end..].chars().count()),
    }
}

/// Controls, direction overrides, and characters that cannot be seen. Joiners are left alone: many scripts and emoji
/// need them.
fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_deceives_is_written_out() {
        let cases = [
            ("plain äöü 漢字 🙂", "plain äöü 漢字 🙂"),
            ("a\nb\r\n\tc", "a\\nb\\r\\n\\tc"),
            ("\u{1b}]52;c;aGk=\u{7}", "\\u{1b}]52;c;aGk=\\u{7}"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("invoice\u{202e}fdp.exe", "invoice\\u{202e}fdp.exe"),
            ("a\u{2028}b\u{200b}", "a\\u{2028}b\\u{200b}"),
            ("family 👨\u{200d}👩\u{200d}👧", "family 👨\u{200d}👩\u{200d}👧"),
        ];
        for (given, expected) in cases {
            assert_eq!(one_line(given, 100), expected);
        }
        assert_eq!(lines("a\r\n\tb\rc\u{1b}[0m"), "a\n\tb\\u{d}c\\u{1b}[0m");
    }

    #[test]
    fn long_text_is_cut_and_counted() {
        assert_eq!(one_line("äöü", 3), "äöü");
        assert_eq!(one_line("äöü!", 3), "äöü… (1 more characters)");
        assert_eq!(capped("ä\nü!", 3), "ä\nü… (1 more characters)");
        assert_eq!(capped("ä\nü", 3), "ä\nü");
    }
}
