//! Datastores in memory: collections in the state of a run, which the nodes of the entry flow read and write.

use std::sync::Arc;

use hotcell_graph::ir::{Action, Collection, CollectionEntry, Drawn, Expression, Node, Rows, RowsAct, Update};
use hotcell_graph::{Key, Object, Value, closest};

use super::Lowering;
use super::site::Site;
use super::store::Store;
use crate::agent_spec::datastores::{ENTITY, UPDATE, filled_in, gives_one};
use crate::agent_spec::model::{Component, ComponentId};
use crate::agent_spec::placeholders::{more_than_placeholders, names};
use crate::agent_spec::properties::entries_of;

impl<'c> Lowering<'c> {
    /// The datastores of the nodes of a flow. Their keys are none of the `names`.
    pub(super) fn stores(&mut self, flow: &'c Component, nodes: &'c [ComponentId], names: &[&str]) -> Vec<Store> {
        let is_entry = std::ptr::eq(flow, self.component(self.configuration.root));
        let mut stores: Vec<Store> = Vec::new();
        for id in nodes {
            let Some(used) = self.component(*id).child("datastore") else { continue };
            if stores.iter().any(|store| store.id == used) {
                continue;
            }
            let component = self.component(used);
            if &*component.component_type != "InMemoryCollectionDatastore" {
                let problem = format!(
                    "hotcell has no client for a `{}`: use an `InMemoryCollectionDatastore`, or read and write the data \
                     with a tool",
                    component.component_type
                );
                self.refuse(component, problem);
                continue;
            }
            if !is_entry {
                let problem = format!(
                    "the datastore `{}` is kept with the entry flow, and the flow `{}`, which runs within another, has no \
                     access to it: move its datastore nodes into the entry flow",
                    component.shown, flow.shown
                );
                self.refuse(self.component(*id), problem);
                continue;
            }
            let Some(collections) = self.collections(component) else { continue };
            let mut key = format!("datastore.{}", component.shown);
            while names.contains(&&*key) || stores.iter().any(|known| *known.key == *key) {
                key.push('\'');
            }
            stores.push(Store { id: used, key: Key::from(key), collections });
        }
        stores
    }

    /// The collections of a datastore; none, with a reason, if one is none.
    fn collections(&mut self, store: &'c Component) -> Option<Arc<[Collection]>> {
        let schema = store.value("datastore_schema").and_then(Value::as_object)?;
        let mut collections = Vec::new();
        for (name, object) in schema.iter() {
            let properties = match entries_of(object) {
                Ok(properties) if !properties.is_empty() => properties,
                Ok(_) => {
                    let problem = format!("the collection `{name}` has no `properties`: its objects would be empty");
                    self.refuse_field(store, "datastore_schema", problem);
                    return None;
                }
                Err(problem) => {
                    self.refuse_field(store, "datastore_schema", format!("the collection `{name}`: {problem}"));
                    return None;
                }
            };
            let entries = properties
                .into_iter()
                .map(|property| (property.title, CollectionEntry { ty: property.ty, default: property.default }));
            collections.push(Collection::new(name.clone(), entries));
        }
        Some(collections.into())
    }

    /// A node that reads or writes a datastore.
    pub(super) fn datastore_node(&mut self, site: &Site<'_, 'c>) -> Option<Node> {
        let component = site.component;
        let used = component.child("datastore")?;
        // One that cannot be used has said why.
        let store = site.frame.stores.iter().find(|store| store.id == used)?;
        let name = component.text("collection_name").unwrap_or_default();
        self.only_placeholders(component, "collection_name", name)?;
        let is_fixed = names(name).is_empty();
        let collection = store.collections.iter().find(|collection| **collection.name() == *name);
        if is_fixed && collection.is_none() {
            let near = closest(name, store.collections.iter().map(|collection| &**collection.name()));
            let near = near.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
            let problem = format!("the datastore has no collection `{name}`{near}");
            self.refuse_field(component, "collection_name", problem);
            return None;
        }
        let own = match &*component.component_type {
            "PluginDatastoreCreateNode" => Some(ENTITY),
            "PluginDatastoreUpdateNode" => Some(UPDATE),
            _ => None,
        };
        if let Some(own) = own.filter(|own| filled_in(component).contains(own)) {
            let problem = format!("`{own}` is an input of the node already: give the placeholder another name");
            self.refuse(component, problem);
            return None;
        }
        let having = match component.value("where").and_then(Value::as_object) {
            Some(wanted) => Some(self.wanted(site, wanted, collection)?),
            None => None,
        };
        let act = match (&*component.component_type, having) {
            ("PluginDatastoreCreateNode", _) => RowsAct::Add(site.input(ENTITY)),
            ("PluginDatastoreUpdateNode", Some(having)) => RowsAct::Change { having, with: site.input(UPDATE) },
            ("PluginDatastoreDeleteNode", Some(having)) => RowsAct::Remove { having },
            ("PluginDatastoreListNode", having) => self.list_of(component, having)?,
            _ => return None,
        };
        let rows = |gives_all: bool| {
            Expression::Drawn(Box::new(Drawn::Rows(Box::new(Rows {
                collections: store.collections.clone(),
                all: Expression::Key(store.key.clone()),
                name: site.template(name),
                act: act.clone(),
                gives_all,
            }))))
        };
        let is_written = !matches!(act, RowsAct::Find { .. } | RowsAct::FindFirst { .. });
        let mut updates = Vec::new();
        if is_written {
            updates.push(Update { key: store.key.clone(), value: rows(true) });
        }
        updates.extend(site.outputs(&|_| rows(false)));
        Some(site.node(Action::Pass, updates))
    }

    /// What a node does that lists objects.
    fn list_of(&mut self, component: &Component, having: Option<Expression>) -> Option<RowsAct> {
        let most = match component.value("limit") {
            Some(Value::Number(number)) => Some(number.to_f64() as usize),
            _ => None,
        };
        match (gives_one(component), most) {
            (true, Some(1)) => Some(RowsAct::FindFirst { having }),
            (true, _) => {
                let field = "unpack_single_entity_from_list";
                self.refuse_field(component, field, format!("`{field}` needs `limit: 1`"));
                None
            }
            (false, most) => Some(RowsAct::Find { having, most }),
        }
    }

    /// The object with what the objects have that are meant.
    fn wanted(&mut self, site: &Site<'_, 'c>, wanted: &Object, collection: Option<&Collection>) -> Option<Expression> {
        let component = site.component;
        let mut entries = Vec::new();
        for (key, value) in wanted.iter() {
            self.only_placeholders(component, "where", key)?;
            if let Some(collection) = collection.filter(|known| names(key).is_empty() && known.entry(key).is_none()) {
                let near = closest(key, collection.entry_names());
                let near = near.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
                let problem = format!("the collection `{}` has no `{key}`{near}", collection.name());
                self.refuse_field(component, "where", problem);
                return None;
            }
            let text = value.as_text().unwrap_or_default();
            self.only_placeholders(component, "where", text)?;
            let is_text = |name: &str| {
                let input = component.input(&site.mapped("input_mapping", name));
                input.is_none_or(|input| input.ty.is_text())
            };
            let value = match &names(text)[..] {
                [] => Expression::Value(value.clone()),
                // What is no text stays what it is.
                [name] if !is_text(name) => site.input(name),
                [_] => site.template(text),
                _ => {
                    let problem = format!("`{key}` in `where` has several placeholders, and one is the most");
                    self.refuse_field(component, "where", problem);
                    return None;
                }
            };
            entries.push((site.template(key), value));
        }
        Some(Expression::Entries(entries))
    }

    /// Nothing, with a reason, if there is more in a text than placeholders.
    fn only_placeholders(&mut self, component: &Component, field: &str, text: &str) -> Option<()> {
        let more = more_than_placeholders(text);
        let Some(first) = more.first() else { return Some(()) };
        let problem =
            format!("`{first}` in `{field}` is not supported: a name in double braces is, and no other template");
        self.refuse_field(component, field, problem);
        None
    }
}
