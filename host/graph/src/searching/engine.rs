//! Searching a text for an expression, within what that may cost.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::nfa::thompson::{self, Compiler};
use regex_automata::util::iter::Searcher;
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Input, Match, MatchError, PatternID};
use regex_syntax::ParserBuilder;

use super::cost::{self, Cost, LARGEST, LONGEST, MOST_FOLDED, MOST_STEPS};
use super::{Patience, SearchError, SearchFlags, TakesTooLong};

/// An expression that is compiled.
pub(super) struct Compiled {
    pub(super) source: Box<str>,
    pub(super) cost: Cost,
    /// How many groups it has
    pub(super) groups: usize,
    /// Makes states of it, where that is quick enough
    states: Option<DFA>,
    /// Looks at all places of it
    machine: PikeVM,
    /// The states of the search before, of which there is one for all threads: they are no larger than the expression itself
    met: Mutex<Option<Box<dfa::Cache>>>,
}

impl Compiled {
    pub(super) fn new(expression: &str, flags: SearchFlags) -> Result<Self, SearchError> {
        if expression.len() > LONGEST {
            return Err(SearchError::TooLong);
        }
        let folded = cost::folded(expression, flags.ignores_case);
        if folded > MOST_FOLDED {
            return Err(SearchError::TooManyClasses);
        }
        let mut parser = ParserBuilder::new();
        parser
            .case_insensitive(flags.ignores_case)
            .multi_line(flags.by_line)
            .dot_matches_new_line(flags.dot_is_all)
            .ignore_whitespace(flags.is_verbose);
        let read = parser.build().parse(expression).map_err(|error| SearchError::Invalid(Box::new(error)))?;
        let config = thompson::Config::new().nfa_size_limit(Some(LARGEST));
        // It is an expression, so that nothing but its size is wrong with it.
        let program = Compiler::new().configure(config).build_from_hir(&read).map_err(|_| SearchError::TooLarge)?;
        let states = cost::states(&program)
            .and_then(|config| DFA::builder().configure(config).build_from_nfa(program.clone()).ok());
        Ok(Compiled {
            source: expression.into(),
            cost: Cost::of(&read, &program, folded),
            groups: read.properties().explicit_captures_len(),
            states,
            machine: PikeVM::new_from_nfa(program).map_err(|_| SearchError::TooLarge)?,
            met: Mutex::new(None),
        })
    }

    fn met(&self) -> MutexGuard<'_, Option<Box<dfa::Cache>>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Searches of one text for one expression.
pub(super) struct Looking<'s> {
    compiled: &'s Compiled,
    /// The states that were met; none where none can be made, or too many were
    states: Option<Box<dfa::Cache>>,
    threads: Option<pikevm::Cache>,
    /// Steps that are left where one search goes on behind the one before
    steps_left: usize,
}

impl<'s> Looking<'s> {
    pub(super) fn begin(compiled: &'s Compiled) -> Self {
        let make = |states: &DFA| compiled.met().take().unwrap_or_else(|| Box::new(states.create_cache()));
        let states = compiled.states.as_ref().map(make);
        Looking { compiled, states, threads: None, steps_left: MOST_STEPS }
    }

    /// Whether there is a match in a part of a text. Its bounds and those of its groups are put into the slots, as far as there are any.
    pub(super) fn search(
        &mut self,
        input: &Input<'_>,
        slots: &mut [Option<NonMaxUsize>],
    ) -> Result<bool, TakesTooLong> {
        let mut input = input.clone();
        let seen = match (&self.compiled.states, self.states.as_deref_mut()) {
            (Some(states), Some(met)) => Some(states.try_search_fwd(met, &input)),
            _ => None,
        };
        match seen {
            Some(Ok(None)) => return Ok(false),
            Some(Ok(Some(_))) if slots.is_empty() => return Ok(true),
            // It ends there, so that nothing behind it has to be looked at to find where it begins.
            Some(Ok(Some(found))) => input.set_end(found.offset()),
            // The text needs too many states, or has letters of which these do not know whether they are part of a word.
            Some(Err(_)) => self.states = None,
            None => {}
        }
        let steps = self.compiled.cost.steps(input.end().saturating_sub(input.start()));
        if self.states.is_some() {
            self.steps_left = self.steps_left.checked_sub(steps).ok_or(TakesTooLong)?;
        } else if steps > MOST_STEPS {
            return Err(TakesTooLong);
        }
        let machine = &self.compiled.machine;
        let threads = self.threads.get_or_insert_with(|| machine.create_cache());
        slots.fill(None);
        Ok(machine.search_slots(threads, &input, slots).is_some())
    }
}

impl Drop for Looking<'_> {
    /// What was met is met again, unless it was too much.
    fn drop(&mut self) {
        if let Some(states) = self.states.take()
            && states.clear_count() == 0
            && states.memory_usage() <= self.compiled.cost.size
            && !std::thread::panicking()
        {
            *self.compiled.met() = Some(states);
        }
    }
}

/// A match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matched {
    /// Where it is
    pub(crate) whole: Range<usize>,
    /// Where its group is; an empty part of the text where that is not part of it
    pub(crate) group: Range<usize>,
}

/// The matches in a text, one behind the other.
pub(crate) struct Matches<'s, 't> {
    looking: Looking<'s>,
    searcher: Searcher<'t>,
    slots: Vec<Option<NonMaxUsize>>,
}

impl<'s, 't> Matches<'s, 't> {
    pub(super) fn new(compiled: &'s Compiled, text: &'t str, group: usize) -> Self {
        let searcher = Searcher::new(Input::new(text));
        Matches { looking: Looking::begin(compiled), searcher, slots: vec![None; 2 * (group + 1)] }
    }

    /// The next one, if there is another one. Each search may look at all of the text that is left.
    pub(crate) fn advance(&mut self, patience: &mut Patience) -> Result<Option<Matched>, TakesTooLong> {
        let Matches { looking, searcher, slots } = self;
        let left = searcher.input().end().saturating_sub(searcher.input().start());
        patience.search(looking.compiled.cost.at_worst(left))?;
        let found = searcher.try_advance(|input| match looking.search(input, slots) {
            Ok(true) => Ok(range(slots, 0).map(|whole| Match::new(PatternID::ZERO, whole))),
            Ok(false) => Ok(None),
            Err(TakesTooLong) => Err(MatchError::gave_up(input.start())),
        });
        let found = found.map_err(|_| TakesTooLong)?;
        let group = self.slots.len() / 2 - 1;
        Ok(found.map(|whole| Matched { whole: whole.range(), group: range(&self.slots, group).unwrap_or_default() }))
    }
}

fn range(slots: &[Option<NonMaxUsize>], group: usize) -> Option<Range<usize>> {
    let bound = |slot: usize| slots.get(slot).copied().flatten().map(NonMaxUsize::get);
    Some(bound(2 * group)?..bound(2 * group + 1)?)
}
