//! The keys of JSON objects that a prompt writes out, to show what a reply looks like.

/// The keys at the top of all objects that a text writes out, each once, in order.
pub(super) fn keys(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    // What is open: for each bracket whether it is that of an object at the top of a written value.
    let mut open: Vec<char> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '[', '}', ']', '"']) {
        let sign = rest[at..].chars().next().unwrap_or_default();
        let behind = &rest[at + 1..];
        rest = behind;
        match sign {
            // A placeholder is no object.
            '{' if behind.starts_with('{') => rest = behind.split_once("}}").map_or("", |(_, rest)| rest),
            '{' => open.push('{'),
            '[' if !open.is_empty() => open.push('['),
            '}' | ']' => {
                open.pop();
            }
            '"' if !open.is_empty() => {
                let Some(end) = end_of_text(behind) else { return found };
                rest = &behind[end + 1..];
                let is_key = open == ['{'] || open == ['[', '{'];
                if is_key && rest.trim_start().starts_with(':') && !found.iter().any(|key| *key == behind[..end]) {
                    found.push(behind[..end].to_owned());
                }
            }
            _ => {}
        }
    }
    found
}

/// Where the quote is that ends a text; a line break ends no text.
fn end_of_text(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '"' if !escaped => return Some(at),
            _ => escaped = letter == '\\' && !escaped,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::keys;

    #[test]
    fn only_keys_at_the_top_of_objects_count() {
        for (text, expected) in [
            (r#"Answer {"grade": "A to F", "remarks": "one \"good\" sentence"}"#, &["grade", "remarks"][..]),
            (r#"{"a": {"b": 1}, "c": [{"d": 2}]}"#, &["a", "c"]),
            (r#"Say "hello": {{name}} and {"a" : 1}"#, &["a"]),
            ("no object, \"quoted\": text", &[]),
            ("{score: number}", &[]),
            (r#"{"open": "#, &["open"]),
            (r#"} ] {"a": 1} {"a": 2, "b": 3}"#, &["a", "b"]),
            ("{\"unclosed", &[]),
        ] {
            assert_eq!(keys(text), expected, "{text}");
        }
    }
}
