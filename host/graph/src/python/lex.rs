//! From text to tokens.

use std::ops::Range;

use super::PythonProblem;
use crate::value::Number;

/// Bytes that an expression may have.
const MAX_BYTES: usize = 4 << 10;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) range: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A name or a word of the language
    Word(String),
    Number(Number),
    Text(String),
    /// An operator or a bracket
    Sign(&'static str),
    /// What is no part of the language, with what is to be said of it; nothing behind it is read
    Refused(String),
    End,
}

/// Signs that mean something, the longer ones first; and those that mean something elsewhere.
const SIGNS: [&str; 17] = ["==", "!=", "<=", ">=", "<", ">", "+", "-", "(", ")", "[", "]", ",", ".", ":", "{", "}"];
const REFUSED: [&str; 11] = ["**", "//", "*", "/", "%", ":=", "=", "@", "&", "|", "~"];

pub(super) fn tokens(source: &str) -> Result<Vec<Token>, PythonProblem> {
    if source.len() > MAX_BYTES {
        let message = format!("the expression has more than {MAX_BYTES} bytes");
        return Err(PythonProblem { message, range: 0..0 });
    }
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        match token(&source[at..], first, at) {
            Ok((kind, length)) => {
                tokens.push(Token { kind, range: at..at + length });
                at += length;
            }
            // What stands before it may be wrong already, and is said first.
            Err(problem) => {
                tokens.push(Token { kind: Kind::Refused(problem.message), range: problem.range });
                return Ok(tokens);
            }
        }
    }
    tokens.push(Token { kind: Kind::End, range: at..at });
    Ok(tokens)
}

/// The token that a text begins with, and its length.
fn token(rest: &str, first: char, at: usize) -> Result<(Kind, usize), PythonProblem> {
    if first.is_alphabetic() || first == '_' {
        return word(rest, at);
    }
    if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
        return number(rest, at);
    }
    if matches!(first, '\'' | '"') {
        return text(rest, at);
    }
    if !rest.starts_with(":=")
        && let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign))
    {
        return Ok((Kind::Sign(sign), sign.len()));
    }
    let sign = REFUSED.iter().find(|sign| rest.starts_with(**sign));
    let (shown, length) = sign
        .map_or_else(|| (first.escape_debug().to_string(), first.len_utf8()), |sign| ((*sign).to_owned(), sign.len()));
    Err(PythonProblem { message: format!("`{shown}` is not supported in conditions"), range: at..at + length })
}

fn word(rest: &str, at: usize) -> Result<(Kind, usize), PythonProblem> {
    let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let word = &rest[..length];
    if rest[length..].starts_with(['\'', '"']) {
        let message = format!("texts with `{word}` in front of their quotes are not supported in conditions");
        return Err(PythonProblem { message, range: at..at + length });
    }
    Ok((Kind::Word(word.to_owned()), length))
}

fn number(rest: &str, at: usize) -> Result<(Kind, usize), PythonProblem> {
    let bytes = rest.as_bytes();
    let digits = |mut from: usize| {
        while bytes.get(from).is_some_and(u8::is_ascii_digit) {
            from += 1;
        }
        from
    };
    let mut length = digits(0);
    let mut is_float = false;
    if bytes.get(length) == Some(&b'.') {
        is_float = true;
        length = digits(length + 1);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let end = digits(length + 1 + sign);
        if end > length + 1 + sign {
            is_float = true;
            length = end;
        }
    }
    let written = &rest[..length];
    let number = match is_float {
        true => written.parse().ok().and_then(Number::from_f64),
        false => Number::parse_integer(written, 10),
    };
    let ends = !rest[length..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    match number.filter(|_| ends) {
        Some(number) => Ok((Kind::Number(number), length)),
        None => Err(PythonProblem { message: format!("`{written}` is not a number"), range: at..at + length }),
    }
}

fn text(rest: &str, at: usize) -> Result<(Kind, usize), PythonProblem> {
    let open = || PythonProblem { message: "a text is not closed".to_owned(), range: at..at + 1 };
    let mut letters = rest.char_indices();
    let (_, quote) = letters.next().ok_or_else(open)?;
    let mut text = String::new();
    while let Some((place, letter)) = letters.next() {
        if letter == quote {
            return Ok((Kind::Text(text), place + 1));
        }
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        let (_, escaped) = letters.next().ok_or_else(open)?;
        match escaped {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'a' => text.push('\x07'),
            'b' => text.push('\x08'),
            'f' => text.push('\x0c'),
            'v' => text.push('\x0b'),
            '\\' | '\'' | '"' => text.push(escaped),
            'x' | 'u' | 'U' => {
                let digits = match escaped {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let code = letters.as_str().get(..digits).filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()));
                let code = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
                text.push(code.ok_or_else(|| PythonProblem {
                    message: format!("`\\{escaped}` takes {digits} hexadecimal digits of a character"),
                    range: at + place..at + place + 2,
                })?);
                letters.nth(digits - 1);
            }
            // As Python has it: what is no escape stays.
            other => text.extend(['\\', other]),
        }
    }
    Err(open())
}
