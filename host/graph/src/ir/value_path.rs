//! Paths into a value as jq writes them: names behind dots, numbers in brackets.

use std::fmt;

use crate::value::{Key, Value};

/// Steps of a path.
const MOST_STEPS: usize = 64;

/// A path into a value: `.a.b[0]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuePath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(Key),
    Index(usize),
    /// 1 is the last item
    FromEnd(usize),
}

impl ValuePath {
    /// Reads a path: names behind dots, numbers and quoted names in brackets. None if the text is no such path.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim().strip_prefix('.')?;
        let mut steps = Vec::new();
        let mut needs_dot = false;
        while !rest.is_empty() {
            if steps.len() == MOST_STEPS {
                return None;
            }
            let (step, behind) = match rest.strip_prefix('[') {
                Some(inside) => bracketed(inside)?,
                None => {
                    let rest = if needs_dot { rest.strip_prefix('.')? } else { rest };
                    match (rest.strip_prefix('['), rest.strip_prefix('"')) {
                        (Some(inside), _) => bracketed(inside)?,
                        (_, Some(quoted)) => quoted_name(quoted)?,
                        _ => plain_name(rest)?,
                    }
                }
            };
            steps.push(step);
            needs_dot = true;
            rest = behind.strip_prefix('?').unwrap_or(behind);
        }
        Some(ValuePath(steps))
    }

    /// What is there in a value.
    pub fn follow<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |value, step| match (step, value) {
            (Step::Key(key), Value::Object(object)) => object.get(key),
            (Step::Index(index), Value::List(list)) => list.get(*index),
            (Step::FromEnd(back), Value::List(list)) => list.get(list.len().checked_sub(*back)?),
            _ => None,
        })
    }
}

impl fmt::Display for ValuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(".");
        }
        self.0.iter().try_for_each(|step| match step {
            Step::Key(key) => write!(f, ".{key}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::FromEnd(back) => write!(f, "[-{back}]"),
        })
    }
}

/// A step in brackets, and what is behind it.
fn bracketed(inside: &str) -> Option<(Step, &str)> {
    if let Some(quoted) = inside.strip_prefix('"') {
        let (step, behind) = quoted_name(quoted)?;
        return Some((step, behind.strip_prefix(']')?));
    }
    let (index, behind) = inside.split_once(']')?;
    let step = match index.trim().strip_prefix('-') {
        Some(back) => Step::FromEnd(back.parse::<usize>().ok().filter(|back| *back > 0)?),
        None => Step::Index(index.trim().parse().ok()?),
    };
    Some((step, behind))
}

/// The step of a name whose first quotation mark was read.
fn quoted_name(quoted: &str) -> Option<(Step, &str)> {
    let (name, behind) = quoted.split_once('"')?;
    (!name.contains('\\')).then(|| (Step::Key(name.into()), behind))
}

fn plain_name(rest: &str) -> Option<(Step, &str)> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
    let (name, behind) = rest.split_at(end);
    let begins = name.chars().next().is_some_and(|first| !first.is_ascii_digit());
    begins.then(|| (Step::Key(name.into()), behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Option<String> {
        ValuePath::parse(text).map(|path| path.to_string())
    }

    #[test]
    fn paths_are_names_and_numbers_and_nothing_else() {
        for (text, shown) in [
            (".", "."),
            (".a", ".a"),
            (".a.b[0]", ".a.b[0]"),
            (".[2].x", "[2].x"),
            (r#".["a b"][-1]"#, ".a b[-1]"),
            (r#".a."b c"?"#, ".a.b c"),
        ] {
            assert_eq!(path(text).as_deref(), Some(shown), "{text}");
        }
        for text in ["", "a", ".a | length", ".a[]", "..a", ".[1:2]", ".a[-0]", r#".["a\"b"]"#, ".1"] {
            assert_eq!(path(text), None, "{text}");
        }
    }
}
