//! What a stranger wrote, made fit to be shown: cut to a length and without characters that nobody sees.
//!
//! This is for names, descriptions, questions, log lines and errors. What a tool answers is data and is not touched.

use serde_json::Value;

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

/// How deeply a schema may be nested.
const MOST_LEVELS: usize = 127;

/// A JSON value whose names and texts have no hidden characters: models and people are shown all of a schema. None if it is nested more deeply
/// than JSON that is read may be; the library lets a server hide JSON in texts, and more in the texts of that.
pub(crate) fn visible(value: Value) -> Option<Value> {
    visible_within(value, MOST_LEVELS)
}

fn visible_within(value: Value, levels: usize) -> Option<Value> {
    let seen = |text: String| match text.contains(hotcell_visible::is_hidden) {
        true => clean(&text, usize::MAX),
        false => text,
    };
    Some(match value {
        Value::String(text) => Value::String(seen(text)),
        Value::Array(items) => {
            let levels = levels.checked_sub(1)?;
            Value::Array(items.into_iter().map(|item| visible_within(item, levels)).collect::<Option<_>>()?)
        }
        Value::Object(entries) => {
            let levels = levels.checked_sub(1)?;
            let entry = |(name, value)| Some((seen(name), visible_within(value, levels)?));
            Value::Object(entries.into_iter().map(entry).collect::<Option<_>>()?)
        }
        other => other,
    })
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
    use serde_json::json;

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
    fn nothing_of_a_schema_is_hidden() {
        let schema = json!({
            "properties": { "pa\u{200b}th": { "description": "a file\u{e0041}\u{e0042}\n", "enum": ["a\u{202e}b", 1] } },
            "x": [[null, true, { "default": "\u{1b}[2J" }]],
        });
        let expected = json!({
            "properties": { "path": { "description": "a file\n", "enum": ["ab", 1] } },
            "x": [[null, true, { "default": "[2J" }]],
        });
        assert_eq!(visible(schema), Some(expected.clone()));
        assert_eq!(visible(expected.clone()), Some(expected));
        let nested = |levels| (0..levels).fold(json!(1), |inner, _| Value::Array(vec![inner]));
        assert_eq!(visible(nested(127)), Some(nested(127)));
        assert_eq!(visible(json!({ "a": nested(127) })), None);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(clean("äöü", 4), "äö…");
        assert_eq!(clean("äöü", 6), "äöü");
        assert!(shown(&"x ".repeat(10_000)).len() < 510);
        assert_eq!(shown("two\n  lines\u{7}"), "two lines");
    }
}
