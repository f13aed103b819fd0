//! Plain values, with the references in them replaced by what they name.

use std::collections::HashMap;

use hotcell_graph::{List, Object, Value};

use super::builder::Builder;
use super::sources::{Identity, Located};
use crate::document::{Kind, MAX_COPIES, MAX_DEPTH};

/// The values that references name, each read once.
pub(super) struct Memory {
    read: HashMap<Identity, Option<(Value, usize)>>,
    copies_left: usize,
    depth: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Memory { read: HashMap::new(), copies_left: MAX_COPIES, depth: 0 }
    }
}

impl<'d> Builder<'_, 'd> {
    /// The value of a piece of a text, and the text where it is written; none, with an error, if a reference in it names
    /// no value.
    pub(super) fn value(&mut self, at: Located<'d>) -> Option<(Value, Located<'d>)> {
        let target = self.follow(at)?;
        let (value, _) = self.sized(at)?;
        Some((value, target))
    }

    /// The value and of how many it is made.
    fn sized(&mut self, at: Located<'d>) -> Option<(Value, usize)> {
        if self.values.depth > MAX_DEPTH {
            self.error(format!("values are nested more than {MAX_DEPTH} levels deep"), at.node.place, at);
            return None;
        }
        self.values.depth += 1;
        let sized = if at.reference().is_some() { self.referenced(at) } else { self.plain(at) };
        self.values.depth -= 1;
        sized
    }

    fn referenced(&mut self, at: Located<'d>) -> Option<(Value, usize)> {
        let target = self.follow(at)?;
        if target.is_component() {
            self.error("a value belongs here, and the reference names a component", at.node.place, at);
            return None;
        }
        let identity = target.identity();
        let (value, size) = match self.values.read.get(&identity) {
            Some(Some(known)) => known.clone(),
            Some(None) => {
                self.error("the value contains itself: the references go in a circle", at.node.place, at);
                return None;
            }
            None => {
                self.values.read.insert(identity, None);
                let sized = self.plain(target);
                match &sized {
                    Some(sized) => self.values.read.insert(identity, Some(sized.clone())),
                    None => self.values.read.remove(&identity),
                };
                sized?
            }
        };
        if size > self.values.copies_left {
            self.error(format!("references copy more than {MAX_COPIES} values"), at.node.place, at);
            return None;
        }
        self.values.copies_left -= size;
        Some((value, size))
    }

    fn plain(&mut self, at: Located<'d>) -> Option<(Value, usize)> {
        let mut total = 1;
        let mut add = |sized: Option<(Value, usize)>| {
            let (value, size) = sized?;
            total += size;
            Some(value)
        };
        let value = match &at.node.kind {
            Kind::List(items) => {
                Value::List(items.iter().map(|item| add(self.sized(at.with(item)))).collect::<Option<List>>()?)
            }
            Kind::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|entry| Some((entry.key.clone(), add(self.sized(at.with(&entry.value)))?)))
                    .collect::<Option<Object>>()?,
            ),
            _ => at.node.to_value(),
        };
        Some((value, total))
    }
}
