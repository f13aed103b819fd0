//! What texts may not have.

use std::fmt;

use crate::searching::{Patience, Search, SearchFlags, TakesTooLong};

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
        let expression = Search::new(expression, SearchFlags::default()).map_err(|error| error.to_string())?;
        Ok(Pattern { expression: Some(expression), literal: None })
    }

    /// The pattern of what somebody wrote who need not know which signs mean something in expressions: a text has it that has
    /// these letters, or fits them as an expression, if they are one.
    ///
    /// # Errors
    /// When they are an expression that is too large; the text says so.
    pub fn of_text(text: &str) -> Result<Self, String> {
        let expression = match Search::new(text, SearchFlags::default()) {
            Ok(expression) => Some(expression),
            Err(error) if error.is_size() => return Err(error.to_string()),
            Err(_) => None,
        };
        Ok(Pattern { expression, literal: Some(text.to_owned()) })
    }

    fn source(&self) -> Option<&str> {
        self.expression.as_ref().map(Search::source)
    }

    /// A text with other words wherever it has it. They stand for all of it, or for the rest, where that cannot be found out until then, and
    /// for all of it where it would have more bytes than there may be: the words are found in turn by what is looked for next.
    pub(crate) fn without(&self, text: &str, instead: &str, most: usize, patience: &mut Patience) -> String {
        let text = match &self.literal {
            Some(literal) if !literal.is_empty() => {
                let made = text.matches(literal.as_str()).count().saturating_mul(instead.len());
                if text.len().saturating_add(made) > most {
                    return instead.to_owned();
                }
                text.replace(literal.as_str(), instead)
            }
            _ => text.to_owned(),
        };
        let Some(expression) = &self.expression else { return text };
        let (mut clean, mut from) = (String::with_capacity(text.len()), 0);
        let mut matches = expression.matches(&text, 0);
        loop {
            match matches.advance(patience) {
                Ok(Some(found)) => {
                    clean.push_str(&text[from..found.whole.start]);
                    clean.push_str(instead);
                    from = found.whole.end;
                }
                Ok(None) => {
                    clean.push_str(&text[from..]);
                    return if clean.len() > most { instead.to_owned() } else { clean };
                }
                // It ends with the words that stand for the rest.
                Err(TakesTooLong) if from > 0 => return clean,
                Err(TakesTooLong) => return instead.to_owned(),
            }
            if clean.len() > most {
                return instead.to_owned();
            }
        }
    }

    /// Whether a text has it.
    fn is_in(&self, text: &str, patience: &mut Patience) -> Result<bool, TakesTooLong> {
        match &self.expression {
            _ if self.literal.as_deref().is_some_and(|literal| text.contains(literal)) => Ok(true),
            Some(expression) => expression.is_in_one(text, patience),
            None => Ok(false),
        }
    }

    /// The first of several patterns that one of several texts has.
    ///
    /// # Errors
    /// When that cannot be found out within the time that there is for it.
    pub fn first_in<'p>(
        patterns: &'p [Pattern],
        texts: &[impl AsRef<str>],
    ) -> Result<Option<&'p Pattern>, TakesTooLong> {
        Pattern::first_within(patterns, texts, Patience::begin())
    }

    fn first_within<'p>(
        patterns: &'p [Pattern],
        texts: &[impl AsRef<str>],
        mut patience: Patience,
    ) -> Result<Option<&'p Pattern>, TakesTooLong> {
        for pattern in patterns {
            for text in texts {
                if pattern.is_in(text.as_ref(), &mut patience)? {
                    return Ok(Some(pattern));
                }
            }
        }
        Ok(None)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.literal == other.literal && self.source() == other.source()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.literal.as_deref().or(self.source()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An expression of which all places have to be looked at, where a text has other letters than those of ASCII.
    const LARGE: &str = r"\b(?:a{100}){100}";
    const MOST: usize = 1 << 20;

    #[test]
    fn what_takes_too_long_to_be_searched_is_not_said_to_be_without_it() {
        let (small, large) = (Pattern::new("a|b").unwrap(), Pattern::of_text(LARGE).unwrap());
        let text = format!("é{}", "c".repeat(10_000));
        let first = |patterns: &[&Pattern], texts: &[&str], patience| {
            let patterns: Vec<Pattern> = patterns.iter().copied().cloned().collect();
            Pattern::first_within(&patterns, texts, patience).map(|found| found.map(Pattern::to_string))
        };
        assert_eq!(first(&[&large], &["c", &text], Patience::begin()), Err(TakesTooLong));
        assert_eq!(first(&[&large, &small], &["c", "cb"], Patience::begin()), Ok(Some("a|b".to_owned())));
        assert_eq!(first(&[&large, &small], &["c"], Patience::begin()), Ok(None));
        assert_eq!(first(&[&small], &["c"], Patience::over()), Err(TakesTooLong));
        assert_eq!(large.without(&text, "*", MOST, &mut Patience::begin()), "*");
        assert_eq!(large.without("cac", "*", MOST, &mut Patience::begin()), "cac");
        assert_eq!(small.without("cacbc", "*", MOST, &mut Patience::begin()), "c*c*c");
        assert_eq!(small.without("cacbc", "*", MOST, &mut Patience::over()), "*", "it is not looked at");
    }

    /// What was put in place of something is looked at by the next pattern, and would grow tenfold with each.
    #[test]
    fn what_is_taken_out_does_not_make_a_text_grow() {
        let (letters, nothing) = (Pattern::new("[a-z]").unwrap(), Pattern::new("").unwrap());
        let literal = Pattern { expression: None, literal: Some("a".to_owned()) };
        for pattern in [&letters, &nothing, &literal] {
            assert_eq!(pattern.without(&"a".repeat(100), "[redacted]", 200, &mut Patience::begin()), "[redacted]");
            assert!(pattern.without("a", "[redacted]", 200, &mut Patience::begin()).len() > 9);
        }
    }

    #[test]
    fn letters_that_are_no_expression_are_looked_for_as_they_are() {
        let letters = Pattern::of_text("a(").unwrap();
        assert_eq!(["ba(b", "a"].map(|text| letters.is_in(text, &mut Patience::begin())), [Ok(true), Ok(false)]);
        assert!(Pattern::new("a(").is_err());
        // What would be one, and is too large, is not looked for as something else.
        for pattern in [Pattern::new("(?:a{1000}){1000}"), Pattern::of_text("(?:a{1000}){1000}")] {
            assert!(pattern.is_err_and(|problem| problem.contains("8388608 bytes")));
        }
    }
}
