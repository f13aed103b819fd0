//! Text that a stranger wrote, made fit to be shown: capped, on one line, without control characters.

use hotcell_visible::is_hidden;

/// The most bytes that are kept of a provider's message.
pub(crate) const MESSAGE_LIMIT: usize = 4096;

/// `text` with line breaks and tabs as spaces and every other control or direction-changing character escaped,
/// cut at [`MESSAGE_LIMIT`] bytes.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(MESSAGE_LIMIT));
    for character in text.trim().chars() {
        let start = shown.len();
        match character {
            '\n' | '\r' | '\t' => shown.push(' '),
            hidden if is_hidden(hidden) => shown.extend(hidden.escape_unicode()),
            plain => shown.push(plain),
        }
        if shown.len() > MESSAGE_LIMIT {
            shown.truncate(start);
            shown.push('…');
            break;
        }
    }
    shown
}

/// `text` with every occurrence of `secret` blotted out.
pub(crate) fn without_secret(text: &str, secret: &str) -> String {
    if secret.is_empty() { text.to_owned() } else { text.replace(secret, "[key]") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hidden_survives() {
        assert_eq!(shown(" a\r\nb\u{1b}[31m\u{202e}c\0 "), "a  b\\u{1b}[31m\\u{202e}c\\u{0}");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let cut = shown(&"ß".repeat(MESSAGE_LIMIT));
        assert!(cut.ends_with("ß…") && cut.len() <= MESSAGE_LIMIT + '…'.len_utf8());
        assert_eq!(shown(&"x".repeat(MESSAGE_LIMIT)).len(), MESSAGE_LIMIT);
    }

    #[test]
    fn secrets_are_blotted_out() {
        assert_eq!(without_secret("bad key sk-1, sk-1", "sk-1"), "bad key [key], [key]");
        assert_eq!(without_secret("text", ""), "text");
    }
}
