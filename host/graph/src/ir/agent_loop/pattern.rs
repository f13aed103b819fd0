//! What texts may not have.

use std::fmt;
use std::time::Instant;

use regex::Regex;

use crate::searching::{MOST_STEPS, Search};

/// What a text may not have: a regular expression, or a text as it is.
#[derive(Clone, Debug)]
pub struct Pattern {
    expression: Option<Search>,
    literal: Option<String>,
}

impl Pattern {
    /// The pattern of that expression.
    ///
    /// # Errors
    /// When it is none, or too large; the text says why.
    pub fn new(expression: &str) -> Result<Self, String> {
        let expression = Search::new(expression, |_| {}).map_err(|error| error.to_string())?;
        Ok(Pattern { expression: Some(expression), literal: None })
    }

    /// The pattern of what somebody wrote who need not know which signs mean something in expressions: a text has it that has
    /// these letters, or fits them as an expression, if they are one.
    ///
    /// # Errors
    /// When they are an expression that is too large; the text says so.
    pub fn of_text(text: &str) -> Result<Self, String> {
        let expression = match Search::new(text, |_| {}) {
            Ok(expression) => Some(expression),
            Err(error) if error.is_size() => return Err(error.to_string()),
            Err(_) => None,
        };
        Ok(Pattern { expression, literal: Some(text.to_owned()) })
    }

    /// A text with other words wherever it has it. They stand for all of it, or for the rest, where that cannot be found out until then.
    pub(crate) fn without(&self, text: &str, instead: &str, end: Instant) -> String {
        let text = match &self.literal {
            Some(literal) if !literal.is_empty() => text.replace(literal, instead),
            _ => text.to_owned(),
        };
        let Some(expression) = &self.expression else { return text };
        if !self.searches(text.len()) {
            return instead.to_owned();
        }
        let (mut clean, mut from) = (String::with_capacity(text.len()), 0);
        for found in expression.regex().find_iter(&text) {
            clean.push_str(&text[from..found.start()]);
            clean.push_str(instead);
            from = found.end();
            if Instant::now() >= end {
                return clean;
            }
        }
        clean.push_str(&text[from..]);
        clean
    }

    /// Whether a text has it, or is too long for that to be found out.
    pub fn is_in(&self, text: &str) -> bool {
        let found = |expression: &Search| !self.searches(text.len()) || expression.regex().is_match(text);
        self.literal.as_deref().is_some_and(|literal| text.contains(literal))
            || self.expression.as_ref().is_some_and(found)
    }

    /// Whether a text of so many bytes is short enough to be searched for it.
    pub fn searches(&self, bytes: usize) -> bool {
        self.expression.as_ref().is_none_or(|expression| expression.steps(bytes) <= MOST_STEPS)
    }

    /// In how many steps a text of so many bytes is searched for it. In a second a computer takes a hundred thousand of them at least.
    pub fn steps(&self, bytes: usize) -> usize {
        self.expression.as_ref().map_or(0, |expression| expression.steps(bytes))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        let source = |pattern: &Pattern| pattern.expression.as_ref().map(|search| search.regex().as_str().to_owned());
        self.literal == other.literal && source(self) == source(other)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expression = self.expression.as_ref().map(Search::regex).map(Regex::as_str);
        f.write_str(self.literal.as_deref().or(expression).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// An expression that is large when it is compiled.
    const LARGE: &str = "(?:a{100}){100}";

    #[test]
    fn what_takes_too_long_to_be_searched_counts_as_having_it() {
        let (small, large) = (Pattern::new("a|b").unwrap(), Pattern::of_text(LARGE).unwrap());
        let text = "c".repeat((256 << 10) + 1);
        assert!(large.is_in(&text) && !large.is_in("c") && !small.is_in(&text));
        assert!(small.steps(text.len()) < large.steps(text.len()));
        let later = Instant::now() + Duration::from_secs(60);
        assert_eq!(large.without(&text, "*", later), "*");
        assert_eq!(large.without("cac", "*", later), "cac");
        assert_eq!(small.without("cacbc", "*", later), "c*c*c");
        assert_eq!(small.without("cacbc", "*", Instant::now()), "c*", "the rest is not looked at");
    }

    #[test]
    fn letters_that_are_no_expression_are_looked_for_as_they_are() {
        assert!(Pattern::of_text("a(").is_ok_and(|pattern| pattern.is_in("ba(b") && !pattern.is_in("a")));
        assert!(Pattern::new("a(").is_err());
        // What would be one, and is too large, is not looked for as something else.
        for pattern in [Pattern::new("(?:a{1000}){1000}"), Pattern::of_text("(?:a{1000}){1000}")] {
            assert!(pattern.is_err_and(|problem| problem.contains("exceeds size limit")));
        }
    }
}
