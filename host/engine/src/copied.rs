//! How many entries a run has of another one, of which it is a fork or a copy.

use hotcell_graph::{Object, Value};

/// What a run is given that says how many of its entries it has of another one.
const COPIED: &str = "copied";

/// Says in what a run is given how many of its entries it has of another one.
pub fn mark_copied(given: &mut Object, entries: usize) {
    given.insert(COPIED, Value::from(i64::try_from(entries).unwrap_or(i64::MAX)));
}

/// How many of its entries a run has of another one, by what it was given; none if it has none.
pub fn copied_in(given: &Object) -> Option<usize> {
    let copied = serde_json::Value::from(given.get(COPIED)?).as_u64()?;
    usize::try_from(copied).ok()
}
