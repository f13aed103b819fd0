//! Plain values, with the references in them replaced by what they name.

use std::sync::Arc;

use hotcell_graph::{List, Object, Value};

use super::builder::Builder;
use super::memory::MayHave;
use super::model::Piece;
use super::names::label;
use super::sources::{Located, REFERENCED};
use crate::document::{BYTES_A_COPY, Kind, MAX_COPIES, MAX_DEPTH};

impl<'d> Builder<'_, 'd> {
    /// The value of a field, and the text where it is written; none, with an error, if a reference in it names no value.
    pub(super) fn value(
        &mut self,
        at: Located<'d>,
        field: &Arc<str>,
        may_have: MayHave,
    ) -> Option<(Value, Located<'d>)> {
        self.values.field = Arc::clone(field);
        let target = self.follow(at)?;
        let (value, _) = self.sized(at, may_have)?;
        Some((value, target))
    }

    /// How a value is written that could be read, if that is not as it is. The components in it are built.
    pub(super) fn piece(&mut self, at: Located<'d>, may_have: MayHave) -> Option<Piece> {
        // Without either there is nothing that could be found.
        if may_have == MayHave::Values && !self.has_parts() {
            return None;
        }
        match self.pieces(at, may_have) {
            Piece::Value(_) => None,
            piece => Some(piece),
        }
    }

    fn pieces(&mut self, at: Located<'d>, may_have: MayHave) -> Piece {
        let target = self.follow(at).unwrap_or(at);
        if may_have == MayHave::Components && target.is_component() {
            // What is wrong with it was said where it is.
            return self.used(at, target).map_or(Piece::Value(Value::Null), Piece::Component);
        }
        if at.document == 0
            && let Some(key) = target.part
        {
            return Piece::HandedIn(key.clone());
        }
        match &target.node.kind {
            Kind::List(items) => {
                Piece::of_list(items.iter().map(|item| self.pieces(target.with(item), may_have)).collect())
            }
            Kind::Map(entries) => Piece::of_object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), self.pieces(target.with(&entry.value), may_have)))
                    .collect(),
            ),
            _ => Piece::Value(target.node.to_value()),
        }
    }

    /// The value and of how many it is made.
    fn sized(&mut self, at: Located<'d>, may_have: MayHave) -> Option<(Value, usize)> {
        if self.values.depth > MAX_DEPTH {
            self.error(format!("values are nested more than {MAX_DEPTH} levels deep"), at.node.place, at);
            return None;
        }
        self.values.depth += 1;
        let sized = if at.reference().is_some() { self.referenced(at, may_have) } else { self.plain(at, may_have) };
        self.values.depth -= 1;
        sized
    }

    fn referenced(&mut self, at: Located<'d>, may_have: MayHave) -> Option<(Value, usize)> {
        let target = self.follow(at)?;
        if may_have == MayHave::Values && target.is_component() {
            let named = label(target);
            let message =
                format!("`{}` takes a value, and the reference names the component `{named}`", self.values.field);
            self.error(message, at.node.place, at);
            return None;
        }
        let identity = (target.identity(), may_have);
        let (value, size) = match self.values.read.get(&identity) {
            Some(Some(known)) => known.clone(),
            Some(None) => {
                self.error("the value contains itself: the references go in a circle", at.node.place, at);
                return None;
            }
            None => {
                self.values.read.insert(identity, None);
                let sized = self.plain(target, may_have);
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

    fn plain(&mut self, at: Located<'d>, may_have: MayHave) -> Option<(Value, usize)> {
        let is_component = may_have == MayHave::Components && at.is_component();
        let at = if is_component { self.sources.inside(at, &mut self.diagnostics) } else { at };
        let mut total = 1;
        let value = match &at.node.kind {
            Kind::List(items) => {
                let items = items.iter().map(|item| {
                    let (value, size) = self.sized(at.with(item), may_have)?;
                    total += size;
                    Some(value)
                });
                Value::List(items.collect::<Option<List>>()?)
            }
            Kind::Map(entries) => {
                let mut object = Object::default();
                for entry in entries {
                    let (value, size) = match &*entry.key {
                        REFERENCED if is_component => continue,
                        "metadata" if is_component => (entry.value.to_value(), entry.value.copied().0),
                        _ => self.sized(at.with(&entry.value), may_have)?,
                    };
                    total += size + entry.key.len() / BYTES_A_COPY;
                    object.insert(entry.key.clone(), value);
                }
                Value::Object(object)
            }
            _ => {
                total = at.node.copied().0;
                at.node.to_value()
            }
        };
        Some((value, total))
    }
}
