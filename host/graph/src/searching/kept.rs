//! Expressions that are kept, so that they are not compiled again.

use std::sync::LazyLock;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::Search;

/// Bytes of those that are kept for the whole process, what they met included.
const MAX_BYTES: u64 = 32 << 20;
/// Expressions for which there is room at first.
const USUAL: usize = 64;
/// Expressions of one evaluation.
const RECENT: usize = 16;

static KEPT: LazyLock<Cache<String, Search, Size>> = LazyLock::new(|| Cache::with_weighter(USUAL, MAX_BYTES, Size));

#[derive(Clone)]
struct Size;

impl Weighter<String, Search> for Size {
    fn weight(&self, text: &String, search: &Search) -> u64 {
        (text.len() + 2 * search.size()) as u64
    }
}

pub(super) fn get(expression: &str) -> Option<Search> {
    KEPT.get(expression)
}

pub(super) fn keep(expression: &str, search: &Search) {
    KEPT.insert(expression.to_owned(), search.clone());
}

/// The expressions that one evaluation used last: a loop compiles what it looks for once.
#[derive(Debug, Default)]
pub(crate) struct Recent(Vec<Search>);

impl Recent {
    /// The expression, if it is one of them.
    pub(crate) fn get(&mut self, expression: &str) -> Option<Search> {
        let place = self.0.iter().position(|known| known.source() == expression)?;
        // The one that was used last is the last one.
        self.0[place..].rotate_left(1);
        self.0.last().cloned()
    }

    /// Takes note of one that was compiled, in place of the one that was not used for the longest time.
    pub(crate) fn keep(&mut self, search: Search) {
        if self.0.len() == RECENT {
            self.0.remove(0);
        }
        self.0.push(search);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_is_kept() {
        let mut recent = Recent::default();
        let expression = |number: usize| format!("kept{number}");
        for number in 0..RECENT {
            recent.keep(Search::kept(&expression(number)).expect("an expression"));
        }
        assert!(recent.get(&expression(0)).is_some());
        recent.keep(Search::kept("kept").expect("an expression"));
        let known: Vec<bool> = (0..RECENT).map(|number| recent.get(&expression(number)).is_some()).collect();
        assert_eq!(known.iter().filter(|known| **known).count(), RECENT - 1);
        assert!(known[0] && !known[1], "{known:?}");
    }

    #[test]
    fn those_of_a_stranger_do_not_fill_the_memory() {
        for number in 0..200 {
            Search::kept(&format!("(?:kept{number}){{1000}}")).expect("an expression");
        }
        assert!(KEPT.weight() <= MAX_BYTES, "{}", KEPT.weight());
    }
}
