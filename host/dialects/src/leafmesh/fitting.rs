//! What the data of an entry point has to be: the data structures that the `inputs` of its agent name, at any depth. Each is written
//! once and referred to, so they may name each other, also in circles.

use hotcell_graph::ir::{Fit, WayCase};
use hotcell_graph::{Key, Object, Value};

use super::schema::{EntryPoint, Mesh, Structure};
use super::shapes::{Field, object, of_type};

/// An entry point with what its data has to be.
pub(super) fn way(entry: &EntryPoint, mesh: &Mesh) -> Result<WayCase, String> {
    let target = mesh.agents.iter().find(|agent| agent.name == entry.target.value);
    let schema = target.and_then(|agent| of_inputs(&agent.inputs, &mesh.structures));
    let fit = schema.map(|schema| {
        let name = &entry.name.value;
        Fit::new(schema).map_err(|problem| {
            format!("what the entry point `{name}` takes cannot be held against its data structures: {problem}")
        })
    });
    let condition = entry.condition.as_ref().map(|condition| condition.condition.clone());
    Ok(WayCase { name: entry.name.value.clone(), condition, fit: fit.transpose()? })
}

/// The JSON schema of what an agent is given; none if its inputs name no data structure.
pub(super) fn of_inputs(inputs: &[(Key, Field)], structures: &[(Key, Structure)]) -> Option<Value> {
    let mut named = Named { structures, found: Vec::new() };
    let structured = inputs.iter().filter(|(_, field)| field.names_structure());
    let schema = |(name, field): &(Key, Field)| (name.clone(), field.schema_with(&mut |name| named.reference(name)));
    let properties: Object = structured.map(schema).collect();
    if properties.is_empty() {
        return None;
    }
    let mut definitions = Object::default();
    let mut done = 0;
    // One that is written out may name further ones.
    while let Some(number) = named.found.get(done).copied() {
        let (_, structure) = &structures[number];
        definitions.insert(number.to_string(), structure.schema_with(&mut |name| named.reference(name)));
        done += 1;
    }
    Some(object([("type", "object".into()), ("properties", properties.into()), ("$defs", definitions.into())]))
}

/// The data structures that are named.
struct Named<'s> {
    structures: &'s [(Key, Structure)],
    /// Their numbers, as they were found
    found: Vec<usize>,
}

impl Named<'_> {
    /// What stands for one. It is found by its number: a name may have letters that mean something in a reference.
    fn reference(&mut self, name: &Key) -> Value {
        let Some(number) = self.structures.iter().position(|(known, _)| known == name) else {
            return of_type("object");
        };
        if !self.found.contains(&number) {
            self.found.push(number);
        }
        object([("$ref", format!("#/$defs/{number}").into())])
    }
}
