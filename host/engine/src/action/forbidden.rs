//! Texts that a reply of a model may not have.

use std::borrow::Cow;

use hotcell_graph::Value;
use hotcell_graph::ir::{Forbidden, Pattern, TakesTooLong};
use hotcell_graph::value::parse_json;
use hotcell_models::Reply;

use super::read_value::unfenced;

/// Why a reply is refused, if it has a text that it may not have. The reason has the pattern and not the text.
pub(super) fn problem(forbidden: &Forbidden, reply: &Reply) -> Option<String> {
    let Forbidden { patterns, only_last, setting } = forbidden;
    let mut texts = said(&reply.content);
    if !only_last {
        texts.extend(reply.tool_calls.iter().flat_map(|call| said(&call.arguments)));
    }
    let setting = if setting.is_empty() { String::new() } else { format!(" by `{setting}`") };
    match Pattern::first_in(patterns, &texts) {
        Ok(found) => {
            found.map(|pattern| format!("the model's reply has a text that is forbidden{setting} (`{pattern}`)"))
        }
        Err(TakesTooLong) => {
            Some(format!("the model's reply is too long to be searched for what is forbidden{setting}"))
        }
    }
}

/// A text; where it is JSON with escapes, also the texts that it stands for, which is what others see of it.
fn said(text: &str) -> Vec<Cow<'_, str>> {
    let mut texts = vec![Cow::Borrowed(text)];
    if text.contains('\\')
        && let Ok(value) = parse_json(unfenced(text))
    {
        collect(&value, &mut texts);
    }
    texts
}

fn collect(value: &Value, texts: &mut Vec<Cow<'_, str>>) {
    match value {
        Value::Text(text) => texts.push(Cow::Owned(text.to_string())),
        Value::List(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(object) => object.iter().for_each(|(key, item)| {
            texts.push(Cow::Owned(key.to_string()));
            collect(item, texts);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_takes_too_long_to_be_searched_is_refused() {
        // All places of it have to be looked at where a text has other letters than those of ASCII.
        let large = Pattern::of_text(r"\b(?:a{100}){100}").expect("a pattern");
        let refused = |text: &str, bytes: usize| {
            let patterns = vec![large.clone()];
            let forbidden = Forbidden { patterns, setting: "forbidden_patterns", ..Forbidden::default() };
            problem(&forbidden, &Reply::text(format!("{text}{}", "c".repeat(bytes))))
        };
        for (text, bytes) in [("é", 100), ("e", 1 << 20)] {
            assert_eq!(refused(text, bytes), None);
        }
        let told = refused("é", 10_000).expect("it is too long");
        assert!(told.contains("too long to be searched") && told.contains("`forbidden_patterns`"), "{told}");
    }

    #[test]
    fn escapes_hide_nothing() {
        for text in [
            r#"{"a": ["plain"]}"#,
            r#"{"a": [{"b": "p\u006cain"}]}"#,
            r#"{"p\u006cain": 1}"#,
            "```json\n{\"a\": \"p\\u006cain\"}\n```",
            r#""p\u006cain""#,
            "plain \\",
        ] {
            assert!(said(text).iter().any(|said| said.contains("plain")), "{text}");
        }
        // What is no JSON is what it is.
        assert_eq!(said(r"p\u006cain"), [r"p\u006cain"]);
    }
}
