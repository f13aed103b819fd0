//! The ids of components: unique, and there for all.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hotcell_graph::diagnostic::{Diagnostic, Span};

use super::builder::Built;
use super::generated::Generated;
use super::model::{Component, ComponentId, Configuration, Field, Piece};
use super::names::is_machine_made;
use super::versions::Version;

/// What the checks know of a component beside itself.
pub(super) struct Written {
    /// The place of its id, or of what tells its type
    pub(super) id: Span,
    /// Where its fields are written, as far as they are
    pub(super) fields: HashMap<Arc<str>, Span>,
    /// The node of the entry flow in which it is
    pub(super) within: Option<ComponentId>,
    /// What its configuration implies
    pub(super) generated: Generated,
    /// The version that its text is written for
    pub(super) version: Version,
}

/// Reports ids that two components have.
pub(super) fn check(built: &[Built], diagnostics: &mut Vec<Diagnostic>) {
    let mut in_order: Vec<&Built> = built.iter().filter(|built| built.component.id_is_written).collect();
    in_order.sort_by_key(|built| built.identity);
    let all: HashMap<_, &Built> = built.iter().map(|built| (built.identity, built)).collect();
    let mut first: HashMap<&str, &Built> = HashMap::new();
    for built in in_order {
        let id = &*built.component.id;
        let Some(other) = first.get(id) else {
            first.insert(id, built);
            continue;
        };
        let entry = built.within.and_then(|identity| all.get(&identity));
        let inside = entry.map(|entry| format!(" (inside of the node `{}`)", called(&entry.component)));
        let error = Diagnostic::error(format!("two components have the id `{id}`{}", inside.unwrap_or_default()))
            .at(&built.id_span)
            .label("again here")
            .related(&other.id_span, "first here")
            .node(id)
            .help("give one of them another id; a component that is used twice is written once and referred to");
        diagnostics.push(error);
    }
}

/// What a component is called as long as those without an id have none.
fn called(component: &Component) -> &str {
    let is_readable = component.id_is_written && !is_machine_made(&component.id);
    if is_readable || component.name.is_empty() { &component.id } else { &component.name }
}

/// The configuration: what its root reaches, in the order of the text, all with ids.
pub(super) fn arrange(
    version: Version,
    has_parts: bool,
    root: usize,
    built: Vec<Built>,
) -> (Configuration, Vec<Written>) {
    let mut reached = vec![false; built.len()];
    let mut open = vec![root];
    while let Some(index) = open.pop() {
        if !std::mem::replace(&mut reached[index], true) {
            open.extend(children(&built[index].component).map(|id| id.0 as usize));
        }
    }
    let mut taken: HashSet<Arc<str>> = built.iter().map(|built| Arc::clone(&built.component.id)).collect();
    let mut kept: Vec<(usize, Built)> = built.into_iter().enumerate().filter(|(index, _)| reached[*index]).collect();
    kept.sort_by_key(|(_, built)| built.identity);
    let ids: HashMap<usize, ComponentId> =
        kept.iter().enumerate().map(|(new, (old, _))| (*old, ComponentId(new as u32))).collect();
    let by_identity: HashMap<_, ComponentId> =
        kept.iter().enumerate().map(|(new, (_, built))| (built.identity, ComponentId(new as u32))).collect();
    let mut components = Vec::with_capacity(kept.len());
    let mut written = Vec::with_capacity(kept.len());
    for (_, built) in kept {
        let mut component = built.component;
        let renumbered = |id: &mut ComponentId| *id = ids[&(id.0 as usize)];
        for field in component.fields.values_mut() {
            match field {
                Field::Component(id) => renumbered(id),
                Field::Components(ids) => ids.iter_mut().for_each(renumbered),
                Field::Value { .. } => {}
            }
        }
        component.pieces.values_mut().for_each(|piece| piece.renumber(&renumbered));
        if !component.id_is_written {
            component.id = free(&component, &taken);
            taken.insert(Arc::clone(&component.id));
        }
        component.shown = Arc::clone(&component.id);
        if is_machine_made(&component.id) && !component.name.is_empty() && !component.pieces.contains_key("name") {
            component.shown = free(&component, &taken);
            taken.insert(Arc::clone(&component.shown));
        }
        components.push(component);
        written.push(Written {
            id: built.id_span,
            fields: built.written,
            within: built.within.and_then(|identity| by_identity.get(&identity).copied()),
            generated: built.generated,
            version: built.version,
        });
    }
    (Configuration::new(version, ids[&root], has_parts, components), written)
}

/// The components that a component has in its fields.
pub(super) fn children(component: &Component) -> impl Iterator<Item = ComponentId> + '_ {
    let in_fields = component.fields.values().flat_map(Field::components);
    in_fields.copied().chain(component.pieces.values().flat_map(Piece::components))
}

/// An id that no component has: the name, or the type where there is no name in the document, with a number if needed.
fn free(component: &Component, taken: &HashSet<Arc<str>>) -> Arc<str> {
    let has_name = !component.name.is_empty() && !component.pieces.contains_key("name");
    let name = if has_name { &component.name } else { &component.component_type };
    if !taken.contains(name) {
        return Arc::clone(name);
    }
    let numbered = (2..).map(|number| Arc::from(format!("{name} {number}")));
    numbered.into_iter().find(|id: &Arc<str>| !taken.contains(id)).unwrap_or_default()
}
