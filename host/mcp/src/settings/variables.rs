//! `${NAME}` in the values of settings.

/// Why a value cannot be filled in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unfilled {
    /// A variable is not set
    Missing(String),
    /// A reference is not of the form `${NAME}`
    Malformed(String),
}

/// The text with every `${NAME}` replaced by what `lookup` gives for `NAME`. What is filled in is not looked at
/// again. A `$` without a brace is itself.
pub(super) fn fill(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, Unfilled> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        filled.push_str(&rest[..start]);
        let reference = &rest[start + 2..];
        let Some(end) = reference.find('}') else {
            return Err(Unfilled::Malformed(rest[start..].to_owned()));
        };
        let name = &reference[..end];
        let is_letter = |character: char| character.is_ascii_alphabetic() || character == '_';
        let is_name = name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit());
        if !is_name {
            return Err(Unfilled::Malformed(format!("${{{name}}}")));
        }
        filled.push_str(&lookup(name).ok_or_else(|| Unfilled::Missing(name.to_owned()))?);
        rest = &reference[end + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "A" => Some("one".to_owned()),
            "B_2" => Some("${A}".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn references_are_filled_once() {
        for (text, expected) in
            [("", ""), ("$A $ {A} }", "$A $ {A} }"), ("${A}", "one"), ("x${A}y${A}z", "xoneyonez"), ("${B_2}", "${A}")]
        {
            assert_eq!(fill(text, &lookup).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_filled_is_named() {
        assert_eq!(fill("${NONE}", &lookup), Err(Unfilled::Missing("NONE".to_owned())));
        for text in ["${A", "${}", "${A:-b}", "${1}", "${a b}"] {
            assert!(matches!(fill(text, &lookup), Err(Unfilled::Malformed(_))), "{text}");
        }
    }
}
