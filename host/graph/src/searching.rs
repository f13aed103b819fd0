//! Regular expressions that somebody else wrote. A search takes no more than time in proportion to the text and to the expression as it is
//! compiled, but that is hours where both are large: so how large an expression is, is known, and each search is counted in steps.

use std::cell::Cell;
use std::time::Duration;

use regex::{Regex, RegexBuilder};
use thiserror::Error;

/// Bytes of the smallest and of the largest expression as it is compiled. Between them are two sizes more. What `\w` stands for in all
/// scripts takes some fifty thousand bytes, wherever it is repeated.
const SMALL: usize = 16 << 10;
const LARGE: usize = 8 << 20;
const BETWEEN: usize = 8;
/// Bytes of a text that an expression of the smallest size looks at in one step, and steps in which one is compiled.
const BYTES: usize = 8;
const COMPILING: usize = 100;
/// Steps in which it turns out that an expression is too large.
pub(crate) const MOST_COMPILING: usize = LARGE / SMALL * COMPILING;
/// Bytes of what a search remembers to be fast.
const REMEMBERED: usize = 512 << 10;
/// Bytes of all expressions of a file as they are compiled, and for how many a small one counts.
const OF_A_FILE: usize = 64 << 20;
const LEAST: usize = 64 << 10;

/// Steps of one search: some seconds at worst, for texts and expressions that are made for it.
pub(crate) const MOST_STEPS: usize = 2 << 20;
/// How long one text may be searched again and again: each search may look at all of it that is left.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

thread_local! {
    /// Bytes that are left for the file that this thread reads
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Why there is no such expression.
#[derive(Debug, Error)]
pub(crate) enum SearchError {
    /// It is none, or too large
    #[error(transparent)]
    Invalid(#[from] regex::Error),
    /// All expressions of the file together are too large
    #[error("the regular expressions of the file have more than {OF_A_FILE} bytes when they are compiled")]
    Spent,
}

impl SearchError {
    /// Whether it could be one, if it were smaller.
    pub(crate) fn is_size(&self) -> bool {
        matches!(self, SearchError::Spent | SearchError::Invalid(regex::Error::CompiledTooBig(_)))
    }
}

/// A regular expression that is compiled.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    regex: Regex,
    /// How many expressions of the smallest size it is as large as
    weight: usize,
}

impl Search {
    /// Compiles an expression; `set` says what it pays attention to. While a file is read, it counts for that.
    pub(crate) fn new(expression: &str, set: impl FnOnce(&mut RegexBuilder)) -> Result<Self, SearchError> {
        let left = LEFT.get();
        if left == Some(0) {
            return Err(SearchError::Spent);
        }
        let mut builder = RegexBuilder::new(expression);
        set(builder.dfa_size_limit(REMEMBERED));
        let mut size = SMALL;
        let built = loop {
            match builder.size_limit(size).build() {
                Err(regex::Error::CompiledTooBig(_)) if size < LARGE => size *= BETWEEN,
                built => break built,
            }
        };
        LEFT.set(left.map(|left| left.saturating_sub(size.max(LEAST))));
        Ok(Search { regex: built?, weight: size / SMALL })
    }

    pub(crate) fn regex(&self) -> &Regex {
        &self.regex
    }

    /// Steps in which it was compiled.
    pub(crate) fn compiling(&self) -> usize {
        self.weight * COMPILING
    }

    /// Steps of one search of so many bytes.
    pub(crate) fn steps(&self, bytes: usize) -> usize {
        bytes.saturating_mul(self.weight) / BYTES
    }

    /// Bytes of a text that can be searched.
    pub(crate) fn longest(&self) -> usize {
        MOST_STEPS * BYTES / self.weight
    }
}

/// Lets the expressions that are compiled on this thread count for one file from now on: for the one that is read already, if there is one.
pub(crate) fn begin_file() {
    LEFT.set(Some(LEFT.get().unwrap_or(OF_A_FILE)));
}

/// The file is read.
pub(crate) fn end_file() {
    LEFT.set(None);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(expression: &str) -> Option<usize> {
        Search::new(expression, |_| {}).ok().map(|search| search.weight)
    }

    #[test]
    fn what_is_larger_searches_less() {
        for (expression, expected) in [
            ("a", Some(1)),
            ("(?:a{10}){100}", Some(8)),
            ("(?:a{100}){100}", Some(64)),
            ("(?:a{1000}){1000}", None),
            ("(", None),
        ] {
            assert_eq!(weight(expression), expected, "{expression}");
        }
        assert!(weight(r"sk-[\w-]{40}").is_some(), "a key, as people write it");
        let small = Search::new("a", |_| {}).expect("an expression");
        let large = Search::new("(?:a{100}){100}", |_| {}).expect("an expression");
        assert_eq!((small.steps(80), small.longest()), (10, 16 << 20));
        assert_eq!((large.steps(80), large.longest()), (640, 256 << 10));
        assert_eq!(large.steps(usize::MAX), usize::MAX / BYTES);
    }

    #[test]
    fn expressions_of_a_file_have_a_size_together() {
        begin_file();
        assert_eq!(LEFT.get(), Some(OF_A_FILE));
        let size = SMALL * BETWEEN * BETWEEN;
        LEFT.set(Some(2 * size + LEAST));
        for left in [size + LEAST, LEAST] {
            assert!(Search::new("(?:a{100}){100}", |_| {}).is_ok());
            assert_eq!(LEFT.get(), Some(left));
        }
        assert!(Search::new("a", |_| {}).is_ok());
        let spent = Search::new("a", |_| {}).expect_err("nothing is left");
        assert!(spent.is_size() && spent.to_string().contains("67108864 bytes"), "{spent}");
        // What is read within it counts for it.
        begin_file();
        assert!(Search::new("a", |_| {}).is_err());
        end_file();
        assert_eq!(weight("a"), Some(1));
        // What is too large counts, too.
        begin_file();
        assert!(Search::new("(?:a{1000}){1000}", |_| {}).is_err_and(|error| error.is_size()));
        assert_eq!(LEFT.get(), Some(OF_A_FILE - LARGE));
        end_file();
    }
}
