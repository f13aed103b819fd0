//! Which values of a state are for nobody but the run.

use std::borrow::Borrow;

use glob::{MatchOptions, Pattern, PatternError};

/// Names of values that leave the run for no journal, event, picture or log.
///
/// A pattern without a dot is held against the name of a value, at any depth; `*` and `?` stand for what may differ. One with dots is
/// held against as many names, the innermost last: `user.ssn`. A place in a list has no name of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Redacted {
    patterns: Vec<Pattern>,
}

impl Redacted {
    /// The same, and values that this pattern names.
    ///
    /// # Errors
    /// When it is no pattern; the error says why.
    pub fn add(&mut self, pattern: &str) -> Result<(), PatternError> {
        let pattern = Pattern::new(pattern)?;
        if !self.patterns.contains(&pattern) {
            self.patterns.push(pattern);
        }
        Ok(())
    }

    /// The same, and what others name.
    pub fn extend(&mut self, other: &Redacted) {
        let new: Vec<Pattern> =
            other.patterns.iter().filter(|pattern| !self.patterns.contains(pattern)).cloned().collect();
        self.patterns.extend(new);
    }

    /// Whether everything that others name is named here, too.
    pub fn covers(&self, other: &Redacted) -> bool {
        other.patterns.iter().all(|pattern| self.patterns.contains(pattern))
    }

    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether the value at a place is named; the place is the names that lead to it, its own last.
    pub fn names<S: Borrow<str>>(&self, place: &[S]) -> bool {
        let options = MatchOptions::new();
        self.patterns.iter().any(|pattern| {
            let depth = pattern.as_str().split('.').count();
            let Some(from) = place.len().checked_sub(depth) else { return false };
            match &place[from..] {
                [name] => pattern.matches_with(name.borrow(), options),
                names => pattern.matches_with(&names.join("."), options),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Redacted;

    fn redacted(patterns: &[&str]) -> Redacted {
        let mut redacted = Redacted::default();
        patterns.iter().for_each(|pattern| redacted.add(pattern).unwrap());
        redacted
    }

    #[test]
    fn a_name_is_found_at_any_depth() {
        let redacted = redacted(&["api_key", "*token*"]);
        for place in [&["api_key"][..], &["user", "api_key"], &["access_token"], &["a", "b", "tokens"]] {
            assert!(redacted.names(place), "{place:?}");
        }
        for place in [&[][..], &["api_keys"], &["api_key", "name"], &["tok"]] {
            assert!(!redacted.names(place), "{place:?}");
        }
    }

    #[test]
    fn a_place_is_as_many_names_as_it_has() {
        let redacted = redacted(&["user.ssn"]);
        assert!(redacted.names(&["user", "ssn"]) && redacted.names(&["order", "user", "ssn"]));
        assert!(!redacted.names(&["ssn"]) && !redacted.names(&["user", "x", "ssn"]));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        assert!(Redacted::default().add("a[").is_err());
    }
}
