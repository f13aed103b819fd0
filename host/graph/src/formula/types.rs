//! What is known of the value of an expression before it is evaluated.

use std::sync::Arc;

use super::kinds::Kinds;
use crate::value::{Key, Value};

/// What is known of a value before there is one.
#[derive(Clone, Debug)]
pub struct ValueType {
    kinds: Kinds,
    inside: Inside,
    /// The value itself, where it is always the same
    exact: Option<Value>,
}

/// What is known of what is in a list or a map.
#[derive(Clone, Debug)]
enum Inside {
    Unknown,
    /// Of every item of a list
    Each(Arc<ValueType>),
    /// Of the items of a list, one after the other
    Items(Arc<[ValueType]>),
    /// Of the entries of a map, which has no others
    Entries(Arc<[(Key, ValueType)]>),
}

fn join_entries(one: &[(Key, ValueType)], another: &[(Key, ValueType)]) -> Inside {
    if one.len() != another.len() || one.iter().zip(another).any(|((key, _), (other, _))| key != other) {
        return Inside::Unknown;
    }
    let joined = one.iter().zip(another).map(|((key, one), (_, other))| (key.clone(), one.clone().join(other.clone())));
    Inside::Entries(joined.collect())
}

/// How many items of a list are looked at to find out what all of them are.
const LOOKED_AT: usize = 64;

impl ValueType {
    pub(super) const fn of_kinds(kinds: Kinds) -> Self {
        ValueType { kinds, inside: Inside::Unknown, exact: None }
    }

    /// A value of which nothing is known.
    pub const fn any() -> Self {
        ValueType::of_kinds(Kinds::ANY)
    }

    /// A truth value.
    pub const fn bool() -> Self {
        ValueType::of_kinds(Kinds::BOOL)
    }

    /// An integer.
    pub const fn int() -> Self {
        ValueType::of_kinds(Kinds::INT)
    }

    /// A floating point number.
    pub const fn double() -> Self {
        ValueType::of_kinds(Kinds::DOUBLE)
    }

    /// A text.
    pub const fn string() -> Self {
        ValueType::of_kinds(Kinds::STRING)
    }

    /// A list of anything.
    pub const fn list() -> Self {
        ValueType::of_kinds(Kinds::LIST)
    }

    /// A list whose items are all of one type.
    pub fn list_of(items: ValueType) -> Self {
        ValueType { inside: Inside::Each(Arc::new(items)), ..ValueType::list() }
    }

    /// A map with any keys.
    pub const fn map() -> Self {
        ValueType::of_kinds(Kinds::MAP)
    }

    /// A value that is always the same.
    pub(super) fn of_value(value: Value) -> Self {
        ValueType { exact: Some(value.clone()), ..ValueType::of_kinds(Kinds::of(&value)) }
    }

    /// A list of these.
    pub(super) fn of_items(items: Vec<ValueType>) -> Self {
        ValueType { inside: Inside::Items(items.into()), ..ValueType::list() }
    }

    /// A map of exactly these.
    pub(super) fn of_entries(entries: Vec<(Key, ValueType)>) -> Self {
        ValueType { inside: Inside::Entries(entries.into()), ..ValueType::map() }
    }

    pub(super) fn kinds(&self) -> Kinds {
        self.kinds
    }

    pub(super) fn exact(&self) -> Option<&Value> {
        self.exact.as_ref()
    }

    /// Whether a value is of this type.
    #[cfg(test)]
    pub(super) fn admits(&self, value: &Value) -> bool {
        let inside = match (&self.inside, value) {
            (Inside::Each(each), Value::List(list)) => list.iter().all(|item| each.admits(item)),
            (Inside::Items(items), Value::List(list)) => {
                items.len() == list.len() && items.iter().zip(list.iter()).all(|(of, item)| of.admits(item))
            }
            (Inside::Entries(entries), Value::Object(object)) => {
                let admitted = |(key, of): &(Key, ValueType)| object.get(key).is_some_and(|value| of.admits(value));
                entries.len() == object.len() && entries.iter().all(admitted)
            }
            _ => true,
        };
        // Texts of both, because `1` and `1.0` are equal.
        let exact = self.exact.as_ref().is_none_or(|exact| exact.to_json() == value.to_json());
        self.kinds.meets(Kinds::of(value)) && inside && exact
    }

    /// Whether nothing is known.
    pub(super) fn is_any(&self) -> bool {
        self.kinds == Kinds::ANY
    }

    /// The accumulator of a loop, of which only its beginning is known: a list may get items, a number may change.
    pub(super) fn accumulating(self) -> Self {
        // Nothing is in the list at first; what is added to it decides of what it is.
        let of_nothing = || ValueType::list_of(ValueType::of_kinds(Kinds::NONE));
        let empty = matches!(&self.exact, Some(Value::List(list)) if list.is_empty());
        if empty { of_nothing() } else { ValueType::of_kinds(self.kinds) }
    }

    /// What the items of a list are.
    pub(super) fn items(&self) -> Self {
        let items = match (&self.exact, &self.inside) {
            (Some(Value::List(list)), _) if list.len() <= LOOKED_AT => {
                let of_kind = |item: &Value| ValueType::of_kinds(Kinds::of(item));
                list.iter().map(of_kind).reduce(ValueType::join)
            }
            (None, Inside::Each(each)) => Some(ValueType::clone(each)),
            (None, Inside::Items(items)) => items.iter().cloned().reduce(ValueType::join),
            _ => None,
        };
        // Nobody gets an item of a list that is always empty.
        items.filter(|items| !items.kinds.is_empty()).unwrap_or(ValueType::any())
    }

    /// How many items a list has, where that is known.
    pub(super) fn length(&self) -> Option<usize> {
        match (&self.exact, &self.inside) {
            (Some(Value::List(list)), _) => Some(list.len()),
            (None, Inside::Items(items)) if self.kinds == Kinds::LIST => Some(items.len()),
            _ => None,
        }
    }

    /// The item of a list at a place, where it is known.
    pub(super) fn item(&self, place: usize) -> Option<&ValueType> {
        match &self.inside {
            Inside::Items(items) => items.get(place),
            _ => None,
        }
    }

    /// All entries of a map, where they are known.
    pub(super) fn entries(&self) -> Option<&[(Key, ValueType)]> {
        match &self.inside {
            Inside::Entries(entries) if self.kinds == Kinds::MAP => Some(entries),
            _ => None,
        }
    }

    /// A value that is of one of two types.
    pub(super) fn join(self, other: Self) -> Self {
        let has_inside = |one: &Self| one.kinds.meets(Kinds::LIST.or(Kinds::MAP));
        let inside = match (has_inside(&self), has_inside(&other)) {
            (true, true) if self.kinds == Kinds::LIST && other.kinds == Kinds::LIST => {
                match (self.each(), other.each()) {
                    (Some(one), Some(another)) => Inside::Each(Arc::new(one.join(another))),
                    _ => Inside::Unknown,
                }
            }
            (true, true) => match (self.entries(), other.entries()) {
                (Some(one), Some(another)) => join_entries(one, another),
                _ => Inside::Unknown,
            },
            (true, false) => self.inside,
            (false, true) => other.inside,
            _ => Inside::Unknown,
        };
        ValueType { kinds: self.kinds.or(other.kinds), inside, exact: None }
    }

    /// What every item of a list is, if something is known of it; one that is always empty has items of no kind.
    fn each(&self) -> Option<ValueType> {
        match (&self.exact, &self.inside) {
            (Some(Value::List(list)), _) if list.is_empty() => Some(ValueType::of_kinds(Kinds::NONE)),
            (None, Inside::Each(each)) => Some(ValueType::clone(each)),
            (None, Inside::Unknown) => None,
            _ => Some(self.items()).filter(|items| !items.is_any()),
        }
    }

    /// A list that goes on with another one.
    pub(super) fn followed_by(&self, other: &Self) -> Self {
        match (self.each(), other.each()) {
            (Some(one), Some(another)) => ValueType::list_of(one.join(another)),
            _ => ValueType::list(),
        }
    }
}
