//! A datastore in the state of a run.

use std::sync::Arc;

use hotcell_graph::ir::Collection;
use hotcell_graph::{Key, List, Value};

use crate::agent_spec::model::ComponentId;

/// A datastore that nodes of a flow use.
pub(super) struct Store {
    pub(super) id: ComponentId,
    /// The state key under which its collections are
    pub(super) key: Key,
    pub(super) collections: Arc<[Collection]>,
}

impl Store {
    /// The state before the first node: all collections, empty.
    pub(super) fn initial(&self) -> (Key, Value) {
        let empty = |collection: &Collection| (collection.name().clone(), Value::List(List::default()));
        (self.key.clone(), Value::Object(self.collections.iter().map(empty).collect()))
    }
}
