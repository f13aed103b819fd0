//! Texts of the description: doc comments, names, JSON strings.

use proc_macro2::Span;
use syn::{Attribute, Error, Expr, ExprLit, Lit, Meta, Result};

/// The inside of a JSON string.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            control if control.is_control() => escaped.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The doc comment, without the space that each line begins with.
pub(crate) fn documentation(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes {
        if let Meta::NameValue(meta) = &attribute.meta
            && meta.path.is_ident("doc")
            && let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &meta.value
        {
            let text = text.value();
            if text.is_empty() {
                lines.push(String::new());
            }
            lines.extend(text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()));
        }
    }
    lines.join("\n").trim().to_owned()
}

/// A name of a tool or node type.
pub(crate) fn name(text: &str, span: Span, what: &str) -> Result<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if (1..=64).contains(&text.len()) && text.bytes().all(plain) {
        return Ok(text.to_owned());
    }
    let message = format!("{what} has 1 to 64 ASCII letters, digits, `_`, `-` and `.`; `{text}` has not");
    Err(Error::new(span, message))
}

/// A name of an object, or a text of a choice: it stands in JSON as it is.
pub(crate) fn unescaped(text: &str, span: Span) -> Result<String> {
    if !text.is_empty() && escape(text) == text {
        return Ok(text.to_owned());
    }
    Err(Error::new(span, "a name here is not empty and has no quotes, backslashes or control characters"))
}

/// How `rename_all` writes names.
#[derive(Clone, Copy)]
pub(crate) struct Case(&'static str);

const CASES: [&str; 8] = [
    "lowercase",
    "UPPERCASE",
    "PascalCase",
    "camelCase",
    "snake_case",
    "SCREAMING_SNAKE_CASE",
    "kebab-case",
    "SCREAMING-KEBAB-CASE",
];

impl Case {
    pub(crate) fn parse(text: &str, span: Span) -> Result<Self> {
        let known = CASES.iter().find(|case| **case == text);
        let message =
            || format!("`rename_all` knows {}; not `{text}`", CASES.map(|case| format!("`{case}`")).join(", "));
        known.map(|case| Self(case)).ok_or_else(|| Error::new(span, message()))
    }

    /// The name of a field (`snake_case` in the source) or a variant (`PascalCase`) in this case.
    pub(crate) fn apply(self, source: &str) -> String {
        let words = words(source);
        let capital = |word: &String| {
            let mut characters = word.chars();
            characters
                .next()
                .map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect::<String>())
        };
        match self.0 {
            "lowercase" => words.concat(),
            "UPPERCASE" => words.concat().to_uppercase(),
            "PascalCase" => words.iter().map(capital).collect(),
            "camelCase" => words
                .iter()
                .enumerate()
                .map(|(index, word)| if index == 0 { word.clone() } else { capital(word) })
                .collect(),
            "snake_case" => words.join("_"),
            "SCREAMING_SNAKE_CASE" => words.join("_").to_uppercase(),
            "kebab-case" => words.join("-"),
            _ => words.join("-").to_uppercase(),
        }
    }
}

/// The words of a name, in lower case.
fn words(source: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut begins = true;
    for character in source.chars() {
        if character == '_' {
            begins = true;
            continue;
        }
        if begins || character.is_uppercase() {
            words.push(String::new());
        }
        begins = false;
        if let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;

    use super::{CASES, Case, escape};

    #[test]
    fn all_cases_are_written() {
        let written = |source: &str| {
            CASES.map(|case| Case::parse(case, Span::call_site()).map(|case| case.apply(source)).unwrap_or_default())
        };
        let expected = [
            "unitprice",
            "UNITPRICE",
            "UnitPrice",
            "unitPrice",
            "unit_price",
            "UNIT_PRICE",
            "unit-price",
            "UNIT-PRICE",
        ];
        assert_eq!(written("unit_price"), expected);
        assert_eq!(written("UnitPrice"), expected);
    }

    #[test]
    fn what_json_forbids_is_escaped() {
        assert_eq!(escape("a \"b\"\\\n\u{1}ö"), "a \\\"b\\\"\\\\\\n\\u0001ö");
    }
}
