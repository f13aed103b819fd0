//! The patterns of a schema: how many they are, and how much work it is to look for them.

use std::collections::HashMap;

use serde_json::Value;

use super::{SchemaProblem, too_much};
use crate::searching::{self, MOST_FOLDED};

/// Patterns, bytes of one, and of all: some are read again for each letter that has to be written another way.
const MAX_PATTERNS: usize = 1_000;
const MAX_PATTERN: usize = 4_096;
const MAX_TOGETHER: usize = 128 << 10;
/// Places of a pattern for one byte that count as one step.
const PLACES_A_STEP: u64 = 16;
/// Places of the largest pattern that there may be. One that looks back at what it has found counts as one.
const MOST_PLACES: u64 = 20_000;
/// What looks around, and for how many places each place of a pattern with such a part counts: it goes back and forth.
const AROUND: [&str; 4] = ["(?=", "(?!", "(?<=", "(?<!"];
const TIMES_AROUND: u64 = 256;
/// Which part of the square of its bytes reading a pattern takes in steps: each name of a group is compared with all others.
const SQUARE_A_STEP: u64 = 2_048;

/// The patterns of a schema.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    number: usize,
    bytes: usize,
    /// Large classes that are read letter by letter
    folded: usize,
    /// At how many places of each a match may be at once
    places: HashMap<String, u64>,
    /// At how many of all, each as often as it is there
    all_places: u64,
    /// Whether there are texts that have to be patterns
    reads_patterns: bool,
}

impl Patterns {
    /// Takes note of one that is in the schema.
    pub(super) fn add(&mut self, pattern: &str) -> Result<(), SchemaProblem> {
        if pattern.len() > MAX_PATTERN {
            return too_much(format!("a pattern of it is longer than {MAX_PATTERN} bytes"));
        }
        self.number += 1;
        self.bytes += pattern.len();
        self.folded += searching::folded(pattern, false);
        if self.number > MAX_PATTERNS {
            return too_much(format!("it has more than {MAX_PATTERNS} patterns"));
        }
        if self.bytes > MAX_TOGETHER {
            return too_much(format!("its patterns have more than {MAX_TOGETHER} bytes together"));
        }
        if self.folded > MOST_FOLDED {
            let problem =
                format!("its patterns have more than {MOST_FOLDED} large classes of letters that ignore case");
            return too_much(problem);
        }
        let places = places(pattern);
        self.places.insert(pattern.to_owned(), places);
        self.all_places = self.all_places.saturating_add(places);
        Ok(())
    }

    /// Takes note that texts have to be patterns.
    pub(super) fn are_read(&mut self) {
        self.reads_patterns = true;
    }

    /// Steps of looking for one pattern in a text of so many bytes.
    pub(super) fn steps(&self, pattern: &str, bytes: usize) -> u64 {
        let places = self.places.get(pattern).copied().unwrap_or(MOST_PLACES);
        places.saturating_mul(bytes as u64) / PLACES_A_STEP
    }

    /// Steps of looking for all of them.
    pub(super) fn all_steps_of(&self, bytes: usize) -> u64 {
        let read = if self.reads_patterns { steps_of_reading(bytes) } else { 0 };
        (self.all_places.saturating_mul(bytes as u64) / PLACES_A_STEP).saturating_add(read)
    }

    /// Steps of looking for all of them in all texts of a value.
    pub(super) fn all_steps(&self, value: &Value) -> u64 {
        if self.number == 0 && !self.reads_patterns {
            return 0;
        }
        self.all_steps_of(bytes(value))
    }
}

/// Steps of finding out whether a text of so many bytes is a pattern.
pub(super) fn steps_of_reading(bytes: usize) -> u64 {
    (bytes as u64).saturating_mul(bytes as u64) / SQUARE_A_STEP
}

/// At how many places of a pattern a match may be at once, or what counts as much.
fn places(pattern: &str) -> u64 {
    let of = |pattern: &str| searching::places_of(pattern).map(|places| places as u64);
    let around = || {
        let straight = AROUND.iter().fold(pattern.to_owned(), |pattern, look| pattern.replace(look, "(?:"));
        of(&straight).map(|places| places.saturating_mul(TIMES_AROUND))
    };
    of(pattern).or_else(around).map_or(MOST_PLACES, |places| places.min(MOST_PLACES))
}

/// Bytes of the texts in a value, and of the names of its properties.
fn bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(entries) => entries.iter().map(|(name, inner)| name.len() + bytes(inner)).sum(),
        _ => 0,
    }
}
