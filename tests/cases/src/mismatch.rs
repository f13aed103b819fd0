//! One difference between what a case expects and what was there.

use std::fmt::{self, Write as _};

use hotcell_graph::Value;

/// How much of a value is printed before it is cut off, in characters.
const SHOWN: usize = 4_000;

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Where the expectation stands in `case.json`: `expect.state.items[2]`
    pub place: String,
    /// What was expected, with the rule that failed
    pub expected: String,
    /// What was there
    pub got: String,
}

impl Mismatch {
    /// A difference at a place.
    pub fn new(place: impl fmt::Display, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Mismatch { place: place.to_string(), expected: expected.into(), got: got.into() }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.place)?;
        block(f, "expected", &self.expected)?;
        block(f, "     got", &self.got)
    }
}

/// One line as it is; more lines each under a bar, so that it is plain where the text ends.
fn block(f: &mut fmt::Formatter<'_>, label: &str, text: &str) -> fmt::Result {
    let shown: String = text.chars().take(SHOWN).collect();
    let rest = text.chars().count() - shown.chars().count();
    let cut = if rest > 0 { format!(" ... ({rest} characters more)") } else { String::new() };
    if !shown.contains('\n') {
        return writeln!(f, "  {label}: {shown}{cut}");
    }
    writeln!(f, "  {label}:")?;
    for line in shown.split('\n') {
        writeln!(f, "    | {line}")?;
    }
    if rest > 0 {
        writeln!(f, "    {cut}")?;
    }
    Ok(())
}

/// A value as a difference shows it: texts of several lines as they are, everything else as JSON.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) if text.contains('\n') => text.to_string(),
        other => other.to_json(),
    }
}

/// A value that may be missing, as a difference shows it.
pub fn shown_or_missing(value: Option<&Value>) -> String {
    value.map_or_else(|| "(missing)".to_owned(), shown)
}

/// Texts as one JSON list.
pub fn shown_list<T: AsRef<str>>(texts: &[T]) -> String {
    let mut line = String::from("[");
    for (index, text) in texts.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        // Writing to a `String` cannot fail.
        let _ = write!(line, "{comma}{}", Value::from(text.as_ref()).to_json());
    }
    line.push(']');
    line
}
