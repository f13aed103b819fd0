//! What texts may not have.

use std::fmt;

use regex::Regex;

/// What a text may not have: a regular expression, which takes time in proportion to the text, or a text as it is.
#[derive(Clone, Debug)]
pub struct Pattern {
    expression: Option<Regex>,
    literal: Option<String>,
}

impl Pattern {
    /// The pattern of that expression.
    ///
    /// # Errors
    /// When it is none; the text says why.
    pub fn new(expression: &str) -> Result<Self, String> {
        let expression = Regex::new(expression).map_err(|error| error.to_string())?;
        Ok(Pattern { expression: Some(expression), literal: None })
    }

    /// The pattern of what somebody wrote who need not know which signs mean something in expressions: a text has it that has
    /// these letters, or fits them as an expression, if they are one.
    pub fn of_text(text: &str) -> Self {
        Pattern { expression: Regex::new(text).ok(), literal: Some(text.to_owned()) }
    }

    /// A text with other words wherever it has it.
    pub fn without(&self, text: &str, instead: &str) -> String {
        let text = match &self.literal {
            Some(literal) if !literal.is_empty() => text.replace(literal, instead),
            _ => text.to_owned(),
        };
        match &self.expression {
            Some(expression) => expression.replace_all(&text, regex::NoExpand(instead)).into_owned(),
            None => text,
        }
    }

    /// Whether a text has it.
    pub fn is_in(&self, text: &str) -> bool {
        self.literal.as_deref().is_some_and(|literal| text.contains(literal))
            || self.expression.as_ref().is_some_and(|expression| expression.is_match(text))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        let source = |pattern: &Pattern| pattern.expression.as_ref().map(|expression| expression.as_str().to_owned());
        self.literal == other.literal && source(self) == source(other)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expression = self.expression.as_ref().map(Regex::as_str);
        f.write_str(self.literal.as_deref().or(expression).unwrap_or_default())
    }
}
