//! Guest text made safe to show. Everything a guest writes is untrusted: it may carry terminal escapes, faked host
//! lines or megabytes. Nothing here decides what is shown where.

use hotcell_visible::is_hidden;

/// Mark at the place where a text was cut.
const CUT: &str = "…";

/// `text` as one line: control characters, line ends and characters that reorder or hide text are written as
/// escapes, and what exceeds `limit` bytes is cut off with a mark.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    escaped(text, limit, false)
}

/// Like [`one_line`], but line ends and tabs stay.
pub(crate) fn lines(text: &str, limit: usize) -> String {
    escaped(text, limit, true)
}

fn escaped(text: &str, limit: usize, keep_lines: bool) -> String {
    let mut out = String::with_capacity(text.len().min(limit));
    for (at, character) in text.char_indices() {
        let plain = match character {
            '\n' | '\t' => keep_lines,
            _ => !is_hidden(character),
        };
        let length = if plain { character.len_utf8() } else { character.escape_unicode().len() };
        if out.len() + length > limit {
            out.push_str(CUT);
            out.push_str(&format!(" ({} more bytes)", text.len() - at));
            return out;
        }
        match (plain, character) {
            (true, _) => out.push(character),
            (false, '\n') => out.push_str("\\n"),
            (false, '\r') => out.push_str("\\r"),
            (false, '\t') => out.push_str("\\t"),
            (false, _) => out.extend(character.escape_unicode()),
        }
    }
    out
}

/// The end of `bytes` as text: invalid UTF-8 is replaced, the beginning of a split character dropped, and what came
/// before is counted. `written` is how many bytes there were in all.
pub(crate) fn tail(bytes: &[u8], written: u64, limit: usize) -> String {
    let kept = &bytes[bytes.len().saturating_sub(limit)..];
    let split = kept.iter().take(3).take_while(|byte| (**byte & 0xC0) == 0x80).count();
    let dropped = written.saturating_sub((kept.len() - if written > kept.len() as u64 { split } else { 0 }) as u64);
    let kept = if dropped > 0 { &kept[split..] } else { kept };
    let text = lines(&String::from_utf8_lossy(kept), usize::MAX);
    if dropped == 0 {
        return text;
    }
    format!("({dropped} bytes before) {CUT}{text}")
}

#[cfg(test)]
mod tests {
    use super::{lines, one_line, tail};

    #[test]
    fn deceptive_characters_are_written_as_escapes() {
        let cases = [
            ("plain äöü 漢字 🙂", "plain äöü 漢字 🙂"),
            ("a\nb\r\tc", "a\\nb\\r\\tc"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("abc\u{202e}txt", "abc\\u{202e}txt"),
            ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
            ("nul\0 del\u{7f} c1\u{9b}", "nul\\u{0} del\\u{7f} c1\\u{9b}"),
            ("line\u{2028}sep", "line\\u{2028}sep"),
        ];
        for (given, expected) in cases {
            assert_eq!(one_line(given, 1000), expected);
        }
        assert_eq!(lines("a\n\tb\r", 1000), "a\n\tb\\r");
    }

    #[test]
    fn long_texts_are_cut_between_characters_and_say_so() {
        assert_eq!(one_line("äää", 4), "ää… (2 more bytes)");
        assert_eq!(one_line("äää", 5), "ää… (2 more bytes)");
        assert_eq!(one_line("äää", 6), "äää");
        assert_eq!(one_line("\n\n", 3), "… (2 more bytes)");
    }

    #[test]
    fn a_tail_counts_what_came_before() {
        assert_eq!(tail(b"abc", 3, 10), "abc");
        assert_eq!(tail(b"abcdef", 6, 2), "(4 bytes before) …ef");
        assert_eq!(tail("xäy".as_bytes(), 100, 2), "(99 bytes before) …y");
        assert_eq!(tail(b"\xff\x1b", 2, 10), "\u{fffd}\\u{1b}");
    }
}
