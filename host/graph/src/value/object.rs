//! Objects: keys with values, in an order.

use std::sync::Arc;

use indexmap::IndexMap;

use super::{Key, Value};

/// Entries up to which an object of which there are other clones is copied when it is changed.
const FEW: usize = 32;

/// An object that keeps the order of its keys. Clones share what they have in common: a change copies a few entries, whatever
/// the size of the object.
#[derive(Clone, Debug)]
pub struct Object(Entries);

#[derive(Clone, Debug)]
enum Entries {
    /// Compact, and copied as a whole when it is changed and somebody else has it
    Whole(Arc<IndexMap<Key, Value>>),
    /// What a large object becomes when it is changed and somebody else has it
    Parts(Parts),
}

/// Entries in trees of which clones share the branches.
#[derive(Clone, Debug, Default)]
struct Parts {
    places: imbl::HashMap<Key, u64>,
    /// One pointer each, because a change copies some dozens of them
    entries: imbl::OrdMap<u64, Arc<(Key, Value)>>,
    next: u64,
}

impl Parts {
    fn insert(&mut self, key: Key, value: Value) {
        let place = self.places.get(&key).copied().unwrap_or_else(|| {
            self.next += 1;
            self.places.insert(key.clone(), self.next);
            self.next
        });
        self.entries.insert(place, Arc::new((key, value)));
    }

    fn remove(&mut self, key: &str) -> Option<Value> {
        let place = self.places.remove(key)?;
        let entry = self.entries.remove(&place)?;
        Some(Arc::try_unwrap(entry).map_or_else(|shared| shared.1.clone(), |(_, value)| value))
    }
}

impl Object {
    /// The number of keys.
    pub fn len(&self) -> usize {
        match &self.0 {
            Entries::Whole(map) => map.len(),
            Entries::Parts(parts) => parts.entries.len(),
        }
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match &self.0 {
            Entries::Whole(map) => map.get(key),
            Entries::Parts(parts) => Some(&parts.entries.get(parts.places.get(key)?)?.1),
        }
    }

    /// All keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Value)> {
        let (whole, parts) = match &self.0 {
            Entries::Whole(map) => (Some(map.iter()), None),
            Entries::Parts(parts) => (None, Some(parts.entries.values().map(|entry| (&entry.0, &entry.1)))),
        };
        whole.into_iter().flatten().chain(parts.into_iter().flatten())
    }

    /// Sets `key`; a key that is there keeps its place.
    pub fn insert(&mut self, key: impl Into<Key>, value: Value) {
        match self.changeable() {
            Entries::Whole(map) => drop(Arc::make_mut(map).insert(key.into(), value)),
            Entries::Parts(parts) => parts.insert(key.into(), value),
        }
    }

    /// Takes `key` out; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        match self.changeable() {
            Entries::Whole(map) => Arc::make_mut(map).shift_remove(key),
            Entries::Parts(parts) => parts.remove(key),
        }
    }

    /// The entries, of a form in which a change costs little.
    fn changeable(&mut self) -> &mut Entries {
        if let Entries::Whole(map) = &mut self.0
            && map.len() > FEW
            && Arc::get_mut(map).is_none()
        {
            let mut parts = Parts::default();
            for (key, value) in map.iter() {
                parts.insert(key.clone(), value.clone());
            }
            self.0 = Entries::Parts(parts);
        }
        &mut self.0
    }

    fn is_the_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Entries::Whole(map), Entries::Whole(other)) => Arc::ptr_eq(map, other),
            (Entries::Parts(parts), Entries::Parts(other)) => parts.entries.ptr_eq(&other.entries),
            _ => false,
        }
    }
}

impl Default for Object {
    fn default() -> Self {
        Object(Entries::Whole(Arc::default()))
    }
}

impl PartialEq for Object {
    /// Equal keys with equal values, whatever their order.
    fn eq(&self, other: &Self) -> bool {
        let is_there = |(key, value): (&Key, &Value)| other.get(key) == Some(value);
        self.is_the_same(other) || self.len() == other.len() && self.iter().all(is_there)
    }
}

impl FromIterator<(Key, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (Key, Value)>>(entries: I) -> Self {
        Object(Entries::Whole(Arc::new(entries.into_iter().collect())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Change {
        Insert(u8, i64),
        Remove(u8),
        /// A clone is kept from here on, and looked at in the end
        Keep,
    }

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let change = prop_oneof![
            6 => (0_u8..120, any::<i64>()).prop_map(|(key, value)| Change::Insert(key, value)),
            2 => (0_u8..120).prop_map(Change::Remove),
            1 => Just(Change::Keep),
        ];
        prop::collection::vec(change, 0..400)
    }

    fn shown(object: &Object) -> Vec<(Key, Value)> {
        object.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    proptest! {
        #[test]
        fn an_object_is_a_map_in_the_order_of_its_first_writes_and_its_clones_stay_as_they_were(changes in changes()) {
            let (mut object, mut map) = (Object::default(), IndexMap::<Key, Value>::new());
            let mut kept = Vec::new();
            for change in changes {
                match change {
                    Change::Insert(key, value) => {
                        object.insert(key.to_string(), value.into());
                        map.insert(key.to_string().into(), value.into());
                    }
                    Change::Remove(key) => {
                        prop_assert_eq!(object.remove(&key.to_string()), map.shift_remove(key.to_string().as_str()));
                    }
                    Change::Keep => kept.push((object.clone(), map.clone())),
                }
            }
            kept.push((object, map));
            for (object, map) in kept {
                prop_assert_eq!(object.len(), map.len());
                for key in (0_u8..120).map(|key| key.to_string()) {
                    prop_assert_eq!(object.get(&key), map.get(key.as_str()));
                }
                let whole: Object = map.clone().into_iter().collect();
                prop_assert_eq!((&object, &whole), (&whole, &object));
                prop_assert_eq!(shown(&object), map.into_iter().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_large_object_that_others_have_is_not_copied_when_it_is_changed() {
        let mut object: Object = (0..1_000_i64).map(|key| (Key::from(key.to_string()), key.into())).collect();
        let first = object.clone();
        object.insert("1000", 1_000.into());
        let second = object.clone();
        object.insert("1001", 1_001.into());
        let (Entries::Parts(second), Entries::Parts(third)) = (&second.0, &object.0) else { panic!("it has parts") };
        let shared =
            second.entries.values().filter(|entry| third.entries.values().any(|other| Arc::ptr_eq(entry, other)));
        assert_eq!(shared.count(), 1_001);
        assert_eq!((first.len(), object.len()), (1_000, 1_002));
    }

    #[test]
    fn objects_are_equal_whatever_their_order_and_their_form() {
        let forward: Object = (0..100_i64).map(|key| (Key::from(key.to_string()), key.into())).collect();
        let backward: Object = (0..100_i64).rev().map(|key| (Key::from(key.to_string()), key.into())).collect();
        let mut parts = backward.clone();
        parts.insert("0", 0.into());
        assert!(matches!(parts.0, Entries::Parts(_)));
        for (left, right) in [(&forward, &backward), (&forward, &parts), (&parts, &forward)] {
            assert_eq!(left, right);
        }
        parts.insert("0", 1.into());
        assert_ne!(forward, parts);
        assert_ne!(parts, forward);
    }
}
