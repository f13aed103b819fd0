//! The state of a run: a map from keys to values whose clones share everything, whatever its size.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::template::Lookup;
use crate::value::{Key, Object, Value};

/// The state of a run or of one of its branches. A clone costs nothing, a write costs the logarithm of the number of
/// keys. Keys keep the order in which they were first written.
#[derive(Clone, Debug, Default)]
pub struct State {
    slots: imbl::HashMap<Slot, ()>,
    next: u64,
}

/// A key with its value. It is one pointer, because a write into a state of which somebody has a clone copies some dozens
/// of them.
#[derive(Clone, Debug)]
struct Slot(Arc<Written>);

#[derive(Debug)]
struct Written {
    key: Key,
    /// How many keys were there before it
    order: u64,
    value: Value,
}

impl Borrow<str> for Slot {
    fn borrow(&self) -> &str {
        &self.0.key
    }
}

impl Hash for Slot {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for Slot {}

impl State {
    /// A state with the keys of an object.
    pub fn from_object(object: &Object) -> Self {
        let mut state = State::default();
        for (key, value) in object.iter() {
            state.set(key.clone(), value.clone());
        }
        state
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.written(key).map(|written| &written.value)
    }

    fn written(&self, key: &str) -> Option<&Written> {
        self.slots.get_key_value(key).map(|(slot, ())| &*slot.0)
    }

    /// Sets a key; one that is there keeps its place.
    pub fn set(&mut self, key: Key, value: Value) {
        let order = self.written(&key).map_or(self.next, |written| written.order);
        self.next = self.next.max(order + 1);
        self.slots.insert(Slot(Arc::new(Written { key, order, value })), ());
    }

    /// Whether this is a clone of the other one, and nothing was set in either since. Two that only say the same need not be.
    pub fn is_clone_of(&self, other: &Self) -> bool {
        self.next == other.next && self.slots.ptr_eq(&other.slots)
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The whole state as one object, keys in order. This is the only operation whose cost grows with the state.
    pub fn to_object(&self) -> Object {
        let mut entries: Vec<&Written> = self.slots.keys().map(|slot| &*slot.0).collect();
        entries.sort_by_key(|written| written.order);
        entries.into_iter().map(|written| (written.key.clone(), written.value.clone())).collect()
    }
}

impl Lookup for State {
    fn lookup(&self, name: &str) -> Option<&Value> {
        self.get(name)
    }
}

/// A state with one more name in front of it, which hides a key of the same name and never becomes one.
pub struct Scoped<'a> {
    /// The state behind
    pub state: &'a State,
    /// The name in front, if there is one
    pub local: Option<(&'a str, &'a Value)>,
}

impl Lookup for Scoped<'_> {
    fn lookup(&self, name: &str) -> Option<&Value> {
        match self.local {
            Some((local, value)) if local == name => Some(value),
            _ => self.state.get(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::State;
    use crate::value::Value;

    #[test]
    fn a_key_that_is_written_again_keeps_its_place_and_clones_keep_theirs() {
        let mut state = State::default();
        for (key, value) in [("b", 1), ("a", 2), ("c", 3)] {
            state.set(key.into(), value.into());
        }
        let before = state.clone();
        assert!(state.is_clone_of(&before));
        state.set("a".into(), 4.into());
        assert!(!state.is_clone_of(&before));
        state.set("d".into(), 5.into());
        let shown = |state: &State| Value::Object(state.to_object()).to_json();
        assert_eq!(shown(&state), r#"{"b":1,"a":4,"c":3,"d":5}"#);
        assert_eq!(shown(&before), r#"{"b":1,"a":2,"c":3}"#);
        assert_eq!((state.len(), before.len(), before.get("d")), (4, 3, None));
    }
}
