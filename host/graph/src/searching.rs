//! Regular expressions that somebody else wrote. A search takes no more than time in proportion to the text and to the expression as it is
//! compiled, but that is hours where both are large: so how large an expression is, is known, and each search has an end.

mod cost;
mod engine;
mod kept;

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use regex_automata::Input;
use thiserror::Error;

use cost::{LARGEST, LEAST, LONGEST, MOST_STEPS, OF_A_FILE};
pub(crate) use cost::{MOST_COMPILING, MOST_FOLDED, folded, places_of};
pub(crate) use engine::Matches;
use engine::{Compiled, Looking};
pub(crate) use kept::Recent;

/// How long one value may be searched again and again. Nothing else goes on meanwhile on the thread that evaluates, so that it is no longer
/// than whoever stops a run waits.
const LONG: Duration = Duration::from_secs(1);

thread_local! {
    /// Bytes that are left for the file that this thread reads
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Why there is no such expression.
#[derive(Debug, Error)]
pub(crate) enum SearchError {
    /// It is none
    #[error(transparent)]
    Invalid(Box<regex_syntax::Error>),
    /// It is too long as it is written
    #[error("a regular expression has {LONGEST} bytes at most")]
    TooLong,
    /// It takes too long to read it
    #[error("a regular expression that ignores case has {MOST_FOLDED} large classes of letters at most")]
    TooManyClasses,
    /// It is too large
    #[error("the regular expression has more than {LARGEST} bytes when it is compiled")]
    TooLarge,
    /// All expressions of the file together are too large
    #[error("the regular expressions of the file have more than {OF_A_FILE} bytes when they are compiled")]
    Spent,
}

impl SearchError {
    /// Whether it could be one, if it were smaller.
    pub(crate) fn is_size(&self) -> bool {
        !matches!(self, SearchError::Invalid(_))
    }
}

/// What a search for a regular expression pays attention to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchFlags {
    /// Small and capital letters are the same
    pub ignores_case: bool,
    /// `^` and `$` stand for the ends of lines
    pub by_line: bool,
    /// `.` stands for the end of a line, too
    pub dot_is_all: bool,
    /// White space in the pattern means nothing
    pub is_verbose: bool,
}

/// A text cannot be searched: it is too long for what is looked for, or needs more time than there is.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("it takes too long to search the text")]
pub struct TakesTooLong;

/// How long one value may still be searched. Steps that nowhere take longer are never too many, so that what people usually look for is
/// found on a machine, too, that is busy with something else; after these, the clock decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    steps: usize,
    end: Instant,
}

impl Patience {
    pub(crate) fn begin() -> Self {
        Patience { steps: MOST_STEPS, end: Instant::now() + LONG }
    }

    /// There is none left.
    #[cfg(test)]
    pub(crate) fn over() -> Self {
        Patience { steps: 0, end: Instant::now() }
    }

    /// Takes note of a search that takes so many steps at worst.
    fn search(&mut self, steps: usize) -> Result<(), TakesTooLong> {
        if self.steps == 0 && Instant::now() >= self.end {
            return Err(TakesTooLong);
        }
        self.steps = self.steps.saturating_sub(steps);
        Ok(())
    }
}

/// A regular expression that is compiled.
#[derive(Clone)]
pub(crate) struct Search(Arc<Compiled>);

impl Search {
    /// Compiles an expression. While a file is read, it counts for that.
    pub(crate) fn new(expression: &str, flags: SearchFlags) -> Result<Self, SearchError> {
        count(|| Compiled::new(expression, flags).map(|compiled| Search(Arc::new(compiled))))
    }

    /// The same for one that is used again and again, and pays attention to nothing in particular. It counts as one that is compiled.
    pub(crate) fn kept(expression: &str) -> Result<Self, SearchError> {
        if let Some(known) = kept::get(expression) {
            return count(|| Ok(known));
        }
        let search = Search::new(expression, SearchFlags::default())?;
        kept::keep(expression, &search);
        Ok(search)
    }

    /// The expression as it is written.
    pub(crate) fn source(&self) -> &str {
        &self.0.source
    }

    /// How many groups it has.
    pub(crate) fn groups(&self) -> usize {
        self.0.groups
    }

    fn size(&self) -> usize {
        self.0.cost.size
    }

    /// Whether a text has it, where others are searched, too.
    pub(crate) fn is_in_one(&self, text: &str, patience: &mut Patience) -> Result<bool, TakesTooLong> {
        patience.search(self.0.cost.at_worst(text.len()))?;
        self.is_in(text)
    }

    /// Whether a text has it.
    pub(crate) fn is_in(&self, text: &str) -> Result<bool, TakesTooLong> {
        Looking::begin(&self.0).search(&Input::new(text).earliest(true), &mut [])
    }

    /// Where a text has it, and one of its groups there (0 for all of it).
    pub(crate) fn matches<'t>(&self, text: &'t str, group: usize) -> Matches<'_, 't> {
        Matches::new(&self.0, text, group)
    }

    /// Steps of a formula in which it was compiled.
    pub(crate) fn compiling(&self) -> usize {
        self.0.cost.compiling()
    }

    /// Steps of a formula for which a search of so many bytes counts.
    pub(crate) fn steps(&self, bytes: usize) -> usize {
        self.0.cost.counted(bytes)
    }
}

impl fmt::Debug for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Search").field(&self.source()).finish()
    }
}

/// Lets an expression count for the file that is read, whether there is one or not.
fn count(make: impl FnOnce() -> Result<Search, SearchError>) -> Result<Search, SearchError> {
    let left = LEFT.get();
    if left == Some(0) {
        return Err(SearchError::Spent);
    }
    let made = make();
    let size = match &made {
        Ok(search) => search.0.cost.of_file(),
        Err(SearchError::TooLarge) => LARGEST,
        Err(_) => LEAST,
    };
    LEFT.set(left.map(|left| left.saturating_sub(size)));
    made
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
mod tests;
