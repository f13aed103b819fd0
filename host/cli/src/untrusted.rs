//! Text that guests, models and people wrote, made fit for a terminal: no control characters, nothing that hides or
//! reorders text, not more than fits. It must not be used on text that is data for another program.

use hotcell_visible::{MOST_MARKS, is_hidden, is_joiner, is_mark};

/// What terminal commands begin with.
const ESCAPE: char = '\u{1b}';
/// What ends all colours.
const ENDS: [&str; 2] = ["\u{1b}[0m", "\u{1b}[m"];

/// The text on one line, at most `limit` characters; what is cut off is counted.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let mut shown = String::new();
    let mut marks = 0;
    for (number, character) in text.chars().enumerate() {
        marks = marks_with(marks, character);
        if number == limit {
            let rest = text.chars().count() - limit;
            return format!("{shown}… ({rest} more characters)");
        }
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            hidden if is_hidden(hidden) || marks > MOST_MARKS => shown.extend(hidden.escape_unicode()),
            plain => shown.push(plain),
        }
    }
    shown
}

/// How many marks a letter has with this character, where it had so many before it.
fn marks_with(marks: usize, character: char) -> usize {
    match character {
        mark if is_mark(mark) => marks + 1,
        // It is not seen, and the marks behind it are over the same letter.
        joiner if is_joiner(joiner) => marks,
        _ => 0,
    }
}

/// The text with its line ends and tabs, all of it.
pub(crate) fn lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut marks = 0;
    while let Some(character) = characters.next() {
        marks = marks_with(marks, character);
        match character {
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' | '\t' => shown.push(character),
            hidden if is_hidden(hidden) || marks > MOST_MARKS => shown.extend(hidden.escape_unicode()),
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

/// The text as it may reach a terminal: with its line ends and tabs, and with the colours that hotcell itself uses. All that is
/// printed for people goes through this, so that a name nobody thought of can move no cursor and hide no line.
pub(crate) fn printable(text: &str) -> String {
    coloured(text, lines)
}

/// The same on one line: what stands in a row of a table, which may be painted and begins no row of its own.
pub(crate) fn cell(text: &str) -> String {
    coloured(text, |text| one_line(text, usize::MAX))
}

/// The text with the colours that hotcell itself uses, ended where the text does not end them, and everything between them as `plain`
/// shows it.
fn coloured(text: &str, plain: impl Fn(&str) -> String) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_painted = false;
    while let Some(start) = rest.find(ESCAPE) {
        shown.push_str(&plain(&rest[..start]));
        let (sequence, after) = rest[start..].split_at(colour_at(&rest[start..]).unwrap_or(ESCAPE.len_utf8()));
        if sequence.len() > ESCAPE.len_utf8() {
            is_painted = !ENDS.contains(&sequence);
            shown.push_str(sequence);
        } else {
            shown.push_str(&plain(sequence));
        }
        rest = after;
    }
    shown.push_str(&plain(rest));
    if is_painted {
        // A name that begins a colour would go on with it in everything that is printed afterwards.
        shown.push_str(ENDS[0]);
    }
    shown
}

/// The length of a sequence that sets a colour, if the text begins with one. Black, white and grey are not among them: a name that is
/// written in the colour of the background is not seen.
fn colour_at(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\u{1b}[")?;
    let end = rest.find(|character: char| !character.is_ascii_digit() && character != ';')?;
    let known = |number: &str| {
        matches!(number.parse::<u8>(), Ok(0..=4 | 22..=24 | 31..=36 | 39 | 91..=96)) || number.is_empty()
    };
    (rest[end..].starts_with('m') && rest[..end].split(';').all(known)).then_some(end + 3)
}

/// A JSON text in which no character deceives whoever reads it on a terminal: such characters stand in strings only, and are
/// escaped there.
pub(crate) fn json_line(json: &str) -> String {
    let mut line = String::with_capacity(json.len());
    for character in json.chars() {
        if is_hidden(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                line.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            line.push(character);
        }
    }
    line
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
            ("soft\u{ad}ly \u{3164}\u{34f}", "soft\\u{ad}ly \\u{3164}\\u{34f}"),
            ("see\u{e0100}n", "see\\u{e0100}n"),
            ("family 👨\u{200d}👩\u{200d}👧", "family 👨\u{200d}👩\u{200d}👧"),
        ];
        for (given, expected) in cases {
            assert_eq!(one_line(given, 100), expected);
        }
        assert_eq!(lines("a\r\n\tb\rc\u{1b}[0m"), "a\n\tb\\u{d}c\\u{1b}[0m");
    }

    #[test]
    fn of_what_steers_a_terminal_only_our_colours_are_left() {
        let ours = "\u{1b}[1m\u{1b}[31merror\u{1b}[0m: \u{1b}[1;36mx\u{1b}[m";
        assert_eq!(printable(ours), ours);
        for (given, expected) in [
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("\u{1b}[8mhidden\u{1b}[0m", "\\u{1b}[8mhidden\u{1b}[0m"),
            ("\u{1b}[1A\u{1b}[2Kok", "\\u{1b}[1A\\u{1b}[2Kok"),
            ("\u{1b}]52;c;aGk=\u{7}", "\\u{1b}]52;c;aGk=\\u{7}"),
            ("\u{9b}31m\u{202e}x\r\n\ty\u{1b}", "\\u{9b}31m\\u{202e}x\n\ty\\u{1b}"),
            ("\u{1b}[38;5;1mx", "\\u{1b}[38;5;1mx"),
            ("a\u{1b}[30mb\u{1b}[97mc\u{1b}[90md", "a\\u{1b}[30mb\\u{1b}[97mc\\u{1b}[90md"),
        ] {
            assert_eq!(printable(given), expected);
        }
    }

    #[test]
    fn a_colour_that_nobody_ends_ends_with_its_text() {
        assert_eq!(printable("a\u{1b}[31mb"), "a\u{1b}[31mb\u{1b}[0m");
        assert_eq!(printable("\u{1b}[31ma\u{1b}[0mb\u{1b}[1;32m"), "\u{1b}[31ma\u{1b}[0mb\u{1b}[1;32m\u{1b}[0m");
    }

    #[test]
    fn what_stands_in_a_row_begins_no_row() {
        assert_eq!(cell("\u{1b}[2ma\nb\tc\u{1b}[0m\u{1b}[2J"), "\u{1b}[2ma\\nb\\tc\u{1b}[0m\\u{1b}[2J");
    }

    #[test]
    fn a_json_line_says_the_same_and_steers_nothing() {
        let value = serde_json::json!({ "a\u{1b}b": "c\u{9b}d\u{202e}e\u{7f}f\u{e0041}\u{200b}\n\"ä🙂" });
        let line = json_line(&value.to_string());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
        assert!(!line.chars().any(is_hidden) && line.contains("ä🙂") && line.contains("\\udb40\\udc41"), "{line}");
    }

    #[test]
    fn marks_over_a_letter_stay_within_its_line() {
        let text = format!("e\u{301}\u{302}x{}y", "\u{301}".repeat(6));
        let expected = format!("e\u{301}\u{302}x{}\\u{{301}}\\u{{301}}y", "\u{301}".repeat(4));
        assert_eq!((one_line(&text, 100), lines(&text)), (expected.clone(), expected));
        let joined = "x\u{301}\u{301}\u{301}\u{200d}\u{301}\u{301}";
        assert_eq!(one_line(joined, 100), "x\u{301}\u{301}\u{301}\u{200d}\u{301}\\u{301}");
    }

    #[test]
    fn long_text_is_cut_and_counted() {
        assert_eq!(one_line("äöü", 3), "äöü");
        assert_eq!(one_line("äöü!", 3), "äöü… (1 more characters)");
        assert_eq!(capped("ä\nü!", 3), "ä\nü… (1 more characters)");
        assert_eq!(capped("ä\nü", 3), "ä\nü");
    }
}
