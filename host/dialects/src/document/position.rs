//! From an offset in a text to the place in the file, through quotes, escapes, indentation and folding.
//!
//! However YAML folds a text, it only changes white space: every other character stands in the file once and in order.
//! So a character is found by counting those before it.

/// How a text is written in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes
    Plain,
    /// In single quotes
    Single,
    /// In double quotes
    Double,
    /// As a block behind `|` or `>`
    Block,
    /// Without quotes and as a variable alone. The text is its value, and may stand for a number or a flag where one is meant
    Variable,
}

/// The bytes of `raw`, the text as it is in the file, that hold the character at `offset` of `value`. Behind the last
/// character it is the end of the text, for white space the end of what stands before it.
pub(super) fn locate(raw: &str, style: Style, value: &str, offset: usize) -> std::ops::Range<usize> {
    let offset = value.floor_char_boundary(offset.min(value.len()));
    let visible_before = value[..offset].chars().filter(|c| !c.is_whitespace()).count();
    let on_visible = value[offset..].chars().next().is_some_and(|c| !c.is_whitespace());
    let mut units = Units { rest: body(raw, style), raw, style };
    let mut end_of_previous = raw.len() - units.rest.len();
    for _ in 0..visible_before {
        match units.next_visible() {
            Some(unit) => end_of_previous = unit.end,
            None => return end_of_previous..end_of_previous,
        }
    }
    match units.next_visible() {
        Some(unit) if on_visible => unit,
        _ => end_of_previous..end_of_previous,
    }
}

/// What lies behind the opening quote or the block header.
fn body(raw: &str, style: Style) -> &str {
    match style {
        Style::Plain | Style::Variable => raw,
        Style::Single | Style::Double => raw.get(1..).unwrap_or_default(),
        Style::Block if raw.starts_with(['|', '>']) => raw.find('\n').map_or("", |end| &raw[end..]),
        Style::Block => raw,
    }
}

struct Units<'a> {
    raw: &'a str,
    rest: &'a str,
    style: Style,
}

impl Units<'_> {
    /// The bytes of the next character that is not white space, its escape included.
    fn next_visible(&mut self) -> Option<std::ops::Range<usize>> {
        loop {
            let start = self.raw.len() - self.rest.len();
            let c = self.rest.chars().next()?;
            let (length, visible) = match (self.style, c) {
                (Style::Double, '\\') => escape(self.rest),
                (Style::Single, '\'') => (2, true),
                _ => (c.len_utf8(), !c.is_whitespace()),
            };
            self.rest = self.rest.get(length..).unwrap_or_default();
            if visible {
                return Some(start..(start + length).min(self.raw.len()));
            }
        }
    }
}

/// The length of an escape of a double-quoted text, and whether it stands for something that is not white space.
fn escape(from: &str) -> (usize, bool) {
    let code = |digits: usize| {
        let number = from.get(2..2 + digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match number {
            // A pair of surrogates is one character.
            Some(0xd800..=0xdbff) if from[2 + digits..].starts_with("\\u") => (4 + 2 * digits, true),
            Some(number) => (2 + digits, char::from_u32(number).is_none_or(|c| !c.is_whitespace())),
            None => (2, true),
        }
    };
    match from[1..].chars().next() {
        Some('x') => code(2),
        Some('u') => code(4),
        Some('U') => code(8),
        Some(c @ ('n' | 't' | 'v' | 'f' | 'r' | 'N' | '_' | 'L' | 'P' | ' ' | '\t' | '\n' | '\r')) => {
            (1 + c.len_utf8(), false)
        }
        Some(c) => (1 + c.len_utf8(), true),
        None => (1, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_the_value_is_found_in_the_source() {
        for (style, raw, value, word, expected) in [
            (Style::Plain, "a {{x}} b", "a {{x}} b", "{{x}}", "{{x}}"),
            (Style::Plain, "a\n   folded {{x}}", "a folded {{x}}", "{{x}}", "{{x}}"),
            (Style::Single, "'it''s {{x}}'", "it's {{x}}", "{{x}}", "{{x}}"),
            (Style::Double, r#""a\n\t\u00e9\\ \x41{{x}}""#, "a\n\té\\ A{{x}}", "{{x}}", "{{x}}"),
            (Style::Double, "\"\\ud83d\\ude00 {{\\u0078}}\"", "😀 {{x}}", "{{x}}", "{{\\u0078}}"),
            (Style::Double, "\"one \\\n  two\"", "one two", "two", "two"),
            (Style::Block, "|\n    one\n    {{x}} é\n", "one\n{{x}} é\n", "{{x}}", "{{x}}"),
            (Style::Block, ">-  # why\n  one\n  {{x}}", "one {{x}}", "{{x}}", "{{x}}"),
        ] {
            let at = value.find(word).unwrap();
            let last = at + word.len() - 1;
            let found = locate(raw, style, value, at).start..locate(raw, style, value, last).end;
            assert_eq!(&raw[found], expected, "{raw:?}");
        }
    }

    #[test]
    fn white_space_and_the_end_are_where_the_text_before_them_ends() {
        assert_eq!(locate("'ab  c'", Style::Single, "ab  c", 2), 3..3);
        assert_eq!(locate("'ab  c'", Style::Single, "ab  c", 5), 6..6);
        assert_eq!(locate("", Style::Plain, "", 0), 0..0);
        assert_eq!(locate("'", Style::Single, "surprise", 3), 1..1);
    }
}
