//! Collections of objects, as the tables of a database are: objects are found in them, added, changed and removed.

use std::sync::Arc;

use indexmap::IndexMap;

use super::{Expression, NoValue};
use crate::template::Lookup;
use crate::types::{Type, to_text};
use crate::value::{Key, List, Object, Value};

/// Letters of a name that are shown in errors.
const SHOWN: usize = 60;

/// A collection of objects that all have the same entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Collection {
    name: Key,
    entries: IndexMap<Key, CollectionEntry>,
}

/// An entry that each object of a collection has.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionEntry {
    /// What its value has to be
    pub ty: Arc<Type>,
    /// The value in an object that is added without one; without a default each object has to say it
    pub default: Option<Value>,
}

/// Something that is done with a collection. What it gives is the objects that it is about, or all collections as they are
/// after it. Values are not converted: one that is not of its type is an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// The collections that there are
    pub collections: Arc<[Collection]>,
    /// An object with a list of objects for each collection
    pub all: Expression,
    /// The name of the collection that is meant
    pub name: Expression,
    /// What is done
    pub act: RowsAct,
    /// Whether it gives all collections
    pub gives_all: bool,
}

/// What is done with a collection. Objects are chosen by an object: they have all of its entries. One without entries chooses
/// no object, and nothing equals `null`.
#[derive(Clone, Debug, PartialEq)]
pub enum RowsAct {
    /// Finds objects, in the order in which they were added
    Find {
        /// What they have; without it all are meant
        having: Option<Expression>,
        /// The most that are found
        most: Option<usize>,
    },
    /// Finds the first object; it is an error that there is none
    FindFirst {
        /// What it has; without it the first of all is meant
        having: Option<Expression>,
    },
    /// Adds an object, with the defaults of entries that it lacks
    Add(Expression),
    /// Puts the entries of an object over those of objects
    Change {
        /// What they have
        having: Expression,
        /// The new entries
        with: Expression,
    },
    /// Removes objects; it is about none
    Remove {
        /// What they have
        having: Expression,
    },
}

impl Collection {
    /// A collection whose objects have these entries.
    pub fn new(name: impl Into<Key>, entries: impl IntoIterator<Item = (Key, CollectionEntry)>) -> Self {
        Collection { name: name.into(), entries: entries.into_iter().collect() }
    }

    /// Its name.
    pub fn name(&self) -> &Key {
        &self.name
    }

    /// The entry of that name.
    pub fn entry(&self, name: &str) -> Option<&CollectionEntry> {
        self.entries.get(name)
    }

    /// The names of its entries.
    pub fn entry_names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(|name| &**name)
    }

    /// An object, all of whose entries are entries of the collection with values of their types.
    fn checked(&self, object: &Expression, scope: &dyn Lookup) -> Result<Object, NoValue> {
        let object = match object.evaluate(scope)? {
            Value::Object(object) => object,
            other => return Err(NoValue::Unfit(format!("an object is needed, not {}", other.a_kind()))),
        };
        for (key, value) in object.iter() {
            let Some(entry) = self.entries.get(key) else {
                let problem = format!("the collection `{}` has no `{}`", self.name, shown(key));
                return Err(NoValue::Unfit(problem));
            };
            if !entry.ty.fits(value) {
                let problem = format!(
                    "`{key}` of the collection `{}` has the type {}, and `{}` is not of it",
                    self.name,
                    entry.ty,
                    shown(&value.to_json())
                );
                return Err(NoValue::Unfit(problem));
            }
        }
        Ok(object)
    }

    /// An object as it is in the collection.
    fn complete(&self, object: &Object) -> Result<Object, NoValue> {
        let defaults = self.entries.iter().filter_map(|(name, entry)| Some((name.clone(), entry.default.clone()?)));
        let mut complete: Object = defaults.collect();
        object.iter().for_each(|(key, value)| complete.insert(key.clone(), value.clone()));
        match self.entries.keys().find(|name| complete.get(name).is_none()) {
            Some(missing) => {
                Err(NoValue::Unfit(format!("an object of the collection `{}` needs `{missing}`", self.name)))
            }
            None => Ok(complete),
        }
    }
}

impl Rows {
    pub(super) fn evaluate(&self, scope: &dyn Lookup) -> Result<Value, NoValue> {
        let name = to_text(&self.name.evaluate(scope)?);
        let Some(collection) = self.collections.iter().find(|collection| *collection.name == *name) else {
            return Err(NoValue::Unfit(format!("there is no collection `{}`", shown(&name))));
        };
        let mut all = match self.all.evaluate(scope)? {
            Value::Object(all) => all,
            other => return Err(NoValue::Unfit(format!("collections are in an object, not in {}", other.a_kind()))),
        };
        let rows = all.get(&name).and_then(Value::as_list).cloned().unwrap_or_default();
        let (about, after) = self.act.done(collection, rows, scope)?;
        if !self.gives_all {
            return Ok(about);
        }
        all.insert(collection.name.clone(), Value::List(after));
        Ok(Value::Object(all))
    }
}

impl RowsAct {
    /// The objects that it is about, and all objects after it.
    fn done(&self, of: &Collection, mut rows: List, scope: &dyn Lookup) -> Result<(Value, List), NoValue> {
        match self {
            RowsAct::Find { having, most } => {
                let found = found(of, &rows, having.as_ref(), most.unwrap_or(usize::MAX), scope)?;
                Ok((Value::List(found), rows))
            }
            RowsAct::FindFirst { having } => {
                let found = found(of, &rows, having.as_ref(), 1, scope)?;
                let first = found.get(0).cloned();
                let none = || NoValue::Unfit(format!("the collection `{}` has no such object", of.name));
                Ok((first.ok_or_else(none)?, rows))
            }
            RowsAct::Add(object) => {
                let added = Value::Object(of.complete(&of.checked(object, scope)?)?);
                rows.push(added.clone());
                Ok((added, rows))
            }
            RowsAct::Change { having, with } => {
                let (having, with) = (of.checked(having, scope)?, of.checked(with, scope)?);
                let mut changed = List::default();
                for index in 0..rows.len() {
                    let Some(Value::Object(row)) = rows.get(index).filter(|row| has(row, &having)) else { continue };
                    let mut row = row.clone();
                    with.iter().for_each(|(key, value)| row.insert(key.clone(), value.clone()));
                    rows.set(index, Value::Object(row.clone()));
                    changed.push(Value::Object(row));
                }
                Ok((Value::List(changed), rows))
            }
            RowsAct::Remove { having } => {
                let having = of.checked(having, scope)?;
                let left = rows.iter().filter(|row| !has(row, &having)).cloned().collect();
                Ok((Value::Null, left))
            }
        }
    }
}

/// The objects that have what is wanted. In an empty collection nothing is compared, and so nothing is wrong with what is wanted.
fn found(
    of: &Collection,
    rows: &List,
    having: Option<&Expression>,
    most: usize,
    scope: &dyn Lookup,
) -> Result<List, NoValue> {
    let having = match having {
        Some(having) if !rows.is_empty() => Some(of.checked(having, scope)?),
        _ => None,
    };
    let is_wanted = |row: &&Value| having.as_ref().is_none_or(|having| has(row, having));
    Ok(rows.iter().filter(is_wanted).take(most).cloned().collect())
}

/// Whether an object has all these entries.
fn has(row: &Value, entries: &Object) -> bool {
    let Some(row) = row.as_object() else { return false };
    let is_there = |(key, value): (&Key, &Value)| *value != Value::Null && row.get(key) == Some(value);
    !entries.is_empty() && entries.iter().all(is_there)
}

/// A text for a message, cut where it is long.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Drawn;
    use super::*;
    use crate::state::State;
    use crate::value::parse_json;

    fn given(json: &str) -> Expression {
        Expression::Value(parse_json(json).unwrap())
    }

    fn entry(schema: &str, default: Option<&str>) -> CollectionEntry {
        let ty = Type::of_schema(&parse_json(schema).unwrap()).unwrap();
        CollectionEntry { ty: Arc::new(ty), default: default.map(|json| parse_json(json).unwrap()) }
    }

    fn done(act: RowsAct, gives_all: bool) -> Result<String, String> {
        let entries = [
            ("id".into(), entry(r#"{"type": "integer"}"#, None)),
            ("text".into(), entry(r#"{"type": "string"}"#, Some(r#""-""#))),
            ("kind".into(), entry(r#"{"type": ["string", "null"]}"#, Some("null"))),
        ];
        let collections = [Collection::new("docs", entries), Collection::new("other", [])].into();
        let all = given(
            r#"{"docs": [{"id": 1, "text": "a", "kind": null}, {"id": 2, "text": "b", "kind": "x"},
                {"id": 3, "text": "a", "kind": "x"}], "other": []}"#,
        );
        let rows = Rows { collections, all, name: given(r#""docs""#), act, gives_all };
        let value = Expression::Drawn(Box::new(Drawn::Rows(Box::new(rows)))).evaluate(&State::default());
        value.map(|value| value.to_json()).map_err(|problem| problem.to_string())
    }

    fn ids(having: Option<&str>, most: Option<usize>) -> Result<usize, String> {
        let found = done(RowsAct::Find { having: having.map(given), most }, false)?;
        Ok(parse_json(&found).unwrap().as_list().unwrap().len())
    }

    #[test]
    fn objects_are_found_by_all_of_their_entries() {
        for (having, most, found) in [
            (None, None, 3),
            (None, Some(2), 2),
            (Some(r#"{"text": "a"}"#), None, 2),
            (Some(r#"{"text": "a"}"#), Some(1), 1),
            (Some(r#"{"text": "a", "kind": "x"}"#), None, 1),
            (Some(r#"{"id": 9}"#), None, 0),
            (Some(r#"{"kind": null}"#), None, 0),
            (Some("{}"), None, 0),
        ] {
            assert_eq!(ids(having, most), Ok(found), "{having:?} {most:?}");
        }
        let first = |having: &str| done(RowsAct::FindFirst { having: Some(given(having)) }, false);
        assert_eq!(first(r#"{"text": "a"}"#).unwrap(), r#"{"id":1,"text":"a","kind":null}"#);
        assert_eq!(first(r#"{"id": 9}"#).unwrap_err(), "the collection `docs` has no such object");
        assert!(ids(Some(r#"{"ids": 1}"#), None).unwrap_err().contains("has no `ids`"));
        assert!(ids(Some(r#"{"id": "1"}"#), None).unwrap_err().contains("has the type integer"));
        assert!(ids(Some("[]"), None).unwrap_err().contains("an object is needed"));
        let long = format!(r#"{{"{}": 1}}"#, "é".repeat(SHOWN + 1));
        assert!(ids(Some(&long), None).unwrap_err().ends_with("...`"));
    }

    #[test]
    fn objects_are_added_with_defaults_changed_and_removed() {
        let add = |json: &str, gives_all| done(RowsAct::Add(given(json)), gives_all);
        assert_eq!(add(r#"{"id": 4}"#, false).unwrap(), r#"{"text":"-","kind":null,"id":4}"#);
        assert!(add(r#"{"id": 4}"#, true).unwrap().contains(r#"{"text":"-","kind":null,"id":4}],"other":[]}"#));
        assert!(add(r#"{"text": "c"}"#, false).unwrap_err().contains("needs `id`"));
        assert!(add(r#"{"id": null}"#, false).unwrap_err().contains("has the type integer"));

        let change = |having: &str, with: &str, gives_all| {
            done(RowsAct::Change { having: given(having), with: given(with) }, gives_all)
        };
        let changed = r#"{"id":2,"text":"c","kind":"x"}"#;
        assert_eq!(change(r#"{"id": 2}"#, r#"{"text": "c"}"#, false).unwrap(), format!("[{changed}]"));
        assert!(change(r#"{"id": 2}"#, r#"{"text": "c"}"#, true).unwrap().contains(changed));
        assert_eq!(change("{}", r#"{"text": "c"}"#, false).unwrap(), "[]");
        assert!(change(r#"{"id": 2}"#, r#"{"text": 3}"#, true).is_err());

        let remove = |having: &str, gives_all| done(RowsAct::Remove { having: given(having) }, gives_all);
        let left = r#"{"docs":[{"id":2,"text":"b","kind":"x"}],"other":[]}"#;
        assert_eq!(remove(r#"{"text": "a"}"#, true).unwrap(), left);
        assert_eq!(remove(r#"{"text": "a"}"#, false).unwrap(), "null");
        assert!(remove(r#"{"ids": 1}"#, true).is_err());
    }
}
