//! The state of a run: a map from keys to values whose clones share everything, whatever its size.

use crate::template::Lookup;
use crate::value::{Key, Object, Value};

/// The state of a run or of one of its branches. A clone costs nothing, a write costs the logarithm of the number of
/// keys. Keys keep the order in which they were first written.
#[derive(Clone, Debug, Default)]
pub struct State {
    slots: imbl::HashMap<Key, Slot>,
    next: u64,
}

#[derive(Clone, Debug)]
struct Slot {
    order: u64,
    value: Value,
}

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
        self.slots.get(key).map(|slot| &slot.value)
    }

    /// Sets a key; one that is there keeps its place.
    pub fn set(&mut self, key: Key, value: Value) {
        match self.slots.get_mut(&key) {
            Some(slot) => slot.value = value,
            None => {
                self.slots.insert(key, Slot { order: self.next, value });
                self.next += 1;
            }
        }
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
        let mut entries: Vec<_> = self.slots.iter().collect();
        entries.sort_by_key(|(_, slot)| slot.order);
        entries.into_iter().map(|(key, slot)| (key.clone(), slot.value.clone())).collect()
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
