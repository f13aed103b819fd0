//! The fields of a component: those that hold components, those that hold values, those that a later version added.

use std::sync::Arc;

use hotcell_graph::Value;
use hotcell_graph::diagnostic::Diagnostic;
use serde_json::{Map, Value as Json};

use super::builder::Builder;
use super::declared;
use super::draft::Draft;
use super::kinds::Kind;
use super::later;
use super::memory::MayHave;
use super::model::{Field, Piece};
use super::schema::FieldKind;
use super::sources::{COMPONENT_TYPE, Located, PLUGIN_NAME, PLUGIN_VERSION, REFERENCED, VERSION};
use crate::document::{Entry, Kind as NodeKind};

/// Fields of later versions that keep a configuration from being run here.
const NOT_RUN: &[&str] = &["auth", "conversation_store_id"];

impl<'d> Builder<'_, 'd> {
    /// Reads a field.
    pub(super) fn entry(&mut self, at: Located<'d>, entry: &'d Entry, kind: &Kind, draft: &mut Draft) {
        let key = &*entry.key;
        let is_null = entry.value.kind == NodeKind::Null;
        if matches!(key, COMPONENT_TYPE | REFERENCED | VERSION) {
            return;
        }
        if matches!(key, PLUGIN_NAME | PLUGIN_VERSION) && (kind.names_plugin() || is_null) {
            return;
        }
        draft.written.insert(Arc::clone(&entry.key), self.sources.span(at.document, entry.key_place));
        let value = at.with(&entry.value);
        if self.is_settled(value, entry, kind) {
            return;
        }
        match kind.field(key) {
            Some(FieldKind::Component(_)) if is_null && kind.takes_null(key) => {}
            Some(FieldKind::Component(family)) => {
                if let Some(child) = self.child(value, key, &family) {
                    draft.fields.insert(Arc::clone(&entry.key), Field::Component(child));
                }
                // What is wrong with it was said where it is.
                draft.shallow.insert(key.to_owned(), Json::Object(Map::new()));
            }
            Some(FieldKind::Components(family)) if !is_null => {
                let Some(list) = self.follow(value) else {
                    draft.shallow.insert(key.to_owned(), Json::Array(Vec::new()));
                    return;
                };
                if let (0, Some(part)) = (value.document, list.part) {
                    draft.pieces.insert(Arc::clone(&entry.key), Piece::HandedIn(Arc::clone(part)));
                }
                if let NodeKind::List(items) = &list.node.kind {
                    let children = items.iter().filter_map(|item| self.child(list.with(item), key, &family)).collect();
                    draft.fields.insert(Arc::clone(&entry.key), Field::Components(children));
                    draft.shallow.insert(key.to_owned(), Json::Array(Vec::new()));
                } else {
                    draft.shallow.insert(key.to_owned(), Json::from(&list.node.to_value()));
                }
            }
            // The schema of the component says that there is no such field; what is in it matters to nobody.
            None => drop(draft.shallow.insert(key.to_owned(), Json::Null)),
            Some(_) => self.value_field(value, entry, kind, draft),
        }
    }

    fn value_field(&mut self, at: Located<'d>, entry: &'d Entry, kind: &Kind, draft: &mut Draft) {
        let key = &*entry.key;
        // Nothing in it is meant for whoever reads the configuration.
        let is_opaque = key == "metadata";
        let may_have = if kind.takes_components(key) { MayHave::Components } else { MayHave::Values };
        let value = if is_opaque { Some((at.node.to_value(), at)) } else { self.value(at, &entry.key, may_have) };
        let Some((value, target)) = value else {
            draft.shallow.insert(key.to_owned(), kind.placeholder(key));
            return;
        };
        let is_described = matches!(kind.field(key), Some(FieldKind::Described));
        // An id is what everything is found by, so it is written as it is.
        if !is_opaque
            && !is_described
            && key != "id"
            && let Some(piece) = self.piece(at, may_have)
        {
            draft.pieces.insert(Arc::clone(&entry.key), piece);
        }
        if !(value == Value::Null && kind.may_leave_out(key)) {
            draft.shallow.insert(key.to_owned(), Json::from(&value));
        }
        match (key, &value) {
            (_, Value::Null) if !kind.keeps_null(key) => {}
            ("id" | "name", _) => {}
            ("inputs", Value::List(list)) if kind.has_io() => {
                draft.inputs = Some(declared::read(self, list, target, "inputs"));
            }
            ("outputs", Value::List(list)) if kind.has_io() => {
                draft.outputs = Some(declared::read(self, list, target, "outputs"));
            }
            _ => {
                let span = self.sources.span(target.document, target.node.place);
                draft.fields.insert(Arc::clone(&entry.key), Field::Value { value, span });
            }
        }
    }

    /// Whether all is said about a field: it is one of a later version than that of the document, or has the value that means
    /// the same as leaving it out, which documents of earlier versions have to.
    fn is_settled(&mut self, at: Located<'d>, entry: &'d Entry, kind: &Kind) -> bool {
        let Some(field) = later::field(kind.component_type(), &entry.key) else { return false };
        let (key, since) = (&entry.key, field.since);
        if self.version() < since {
            let span = self.sources.span(at.document, entry.key_place);
            let message =
                format!("`{key}` is a field of {since}, and the configuration is written for {}", self.version());
            let help = if NOT_RUN.contains(&&**key) {
                format!("remove it: {since} has it, but it would be refused when the configuration is to run")
            } else {
                format!("remove it, or write `\"{VERSION}\": \"{since}\"` at the top of the file")
            };
            self.report(Diagnostic::error(message).at(&span).help(help));
            return true;
        }
        // A reference that leads nowhere is reported where it is read.
        at.reference().is_none() && field.is_default(&at.node.kind)
    }
}
