//! What all steps are lowered with.

use std::collections::BTreeSet;
use std::time::Duration;

use hotcell_graph::ir::{Expression, Jitter, Retry, RetryOn, Update};
use hotcell_graph::{Key, Place};

use super::schema::{Attempts, Config, Given, Workflow};

/// The name under which updates see what a step gave.
pub(super) const ANSWER: &str = "answer";

/// What every step is lowered with.
pub(super) struct Context<'w> {
    pub(super) workflow: &'w Workflow,
    pub(super) config: &'w Config,
    /// The entries of the state of which some step writes only a part
    pub(super) parts: &'w BTreeSet<Key>,
}

impl Context<'_> {
    /// The write of a value to a place of the state.
    pub(super) fn write(&self, place: &Place, value: Expression) -> Update {
        let key = place.root().clone();
        let value = match self.parts.contains(&key) {
            true => Expression::Placed(place.clone(), Box::new(value)),
            false => value,
        };
        Update { key, value }
    }
}

/// How often something is tried: the pauses are powers of the base.
pub(super) fn retry(attempts: &Attempts, on: RetryOn) -> Retry {
    Retry {
        attempts: attempts.more.saturating_add(1),
        on,
        pause: Duration::from_secs(1),
        growth: attempts.base,
        longest_pause: attempts.longest,
        jitter: if attempts.jitter { Jitter::Quarter } else { Jitter::None },
        time: None,
    }
}

/// A value that is handed over.
pub(super) fn value(given: &Given) -> Expression {
    match given {
        Given::State(place, _) => Expression::At(place.clone()),
        Given::Template(prompt) => match prompt.template.literal() {
            Some(text) => Expression::Value(text.into()),
            None => Expression::Braces(prompt.template.clone()),
        },
        Given::Value(value) => Expression::Value(value.clone()),
    }
}
