//! How large a schema is, as it is written and when its references are written out.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::patterns::Patterns;
use super::{
    DATA, DEFINITIONS, NAMED, REFERENCES, SchemaProblem, Targets, compared, is_for_patterns, references, too_much,
};

/// Values that a schema consists of.
const MAX_NODES: usize = 100_000;
/// Values that it consists of where what a `$ref` refers to is written in its place, circles aside.
const MAX_EXPANDED: u64 = 200_000;
/// Schemas in each other, counted the same way.
const MAX_DEPTH: usize = 128;

/// How large a schema is when it is written out.
pub(super) struct Survey<'a, 'v> {
    targets: &'a Targets<'v>,
    structure: Structure,
    /// By address, and whether it has schemas by name: how large, and how deep
    known: HashMap<(*const Value, bool), (u64, usize)>,
    open: HashSet<(*const Value, bool)>,
    circular: bool,
}

impl<'v> Survey<'_, 'v> {
    /// How large it is, none for one that refers to itself, and its patterns.
    pub(super) fn of(root: &'v Value) -> Result<(Option<u64>, Patterns), SchemaProblem> {
        let mut structure = Structure::default();
        structure.add(root, Place::Root, 0)?;
        let targets = Targets::of(root);
        let (known, open) = (HashMap::new(), HashSet::new());
        let mut survey = Survey { targets: &targets, structure, known, open, circular: false };
        let (size, _) = survey.expand(root, false, 0)?;
        Ok(((!survey.circular).then_some(size), survey.structure.patterns))
    }

    fn expand(&mut self, value: &'v Value, is_names: bool, above: usize) -> Result<(u64, usize), SchemaProblem> {
        let key = (std::ptr::from_ref(value), is_names);
        // Each with whether it has schemas by name.
        let (mut inner, references): (Vec<(&'v Value, bool)>, Vec<&'v str>) = match value {
            Value::Array(items) => (items.iter().map(|item| (item, false)).collect(), Vec::new()),
            Value::Object(entries) if is_names => (entries.values().map(|inner| (inner, false)).collect(), Vec::new()),
            Value::Object(entries) => {
                let applies = |key: &str| !DATA.contains(&key) && !DEFINITIONS.contains(&key);
                let inner = entries.iter().filter(|(key, _)| applies(key));
                let inner = inner.map(|(key, inner)| (inner, NAMED.contains(&key.as_str()))).collect();
                (inner, references(entries).collect())
            }
            _ => return Ok((1, 1)),
        };
        if let Some((size, depth)) = self.known.get(&key) {
            deep(above + depth)?;
            return Ok((*size, *depth));
        }
        if !self.open.insert(key) {
            self.circular = true;
            return Ok((1, 1));
        }
        deep(above + 1)?;
        // Data is not gone into, but a value is compared with all of it.
        let compared = value.as_object().filter(|_| !is_names).map_or(0, compared);
        let (mut size, mut depth) = (compared.saturating_add(1), 0);
        for target in references.into_iter().filter_map(|reference| self.targets.find(reference)) {
            // It may stand where nothing but data is expected.
            self.structure.add(target, Place::Schema, 0)?;
            inner.push((target, false));
        }
        for (inner, is_names) in inner {
            let (more, below) = self.expand(inner, is_names, above + 1)?;
            size = size.saturating_add(more);
            depth = depth.max(below);
            if size > MAX_EXPANDED {
                return too_much(format!("with its references written out it has more than {MAX_EXPANDED} parts"));
            }
        }
        self.open.remove(&key);
        self.known.insert(key, (size, depth + 1));
        Ok((size, depth + 1))
    }
}

fn deep(depth: usize) -> Result<(), SchemaProblem> {
    // A schema, the list it is in and the keyword of that are three levels.
    match depth > MAX_DEPTH * 3 {
        true => too_much(format!("with its references written out it is more than {MAX_DEPTH} schemas deep")),
        false => Ok(()),
    }
}

/// Where a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is the whole schema
    Root,
    /// It may be a schema
    Schema,
    /// It has schemas by name
    Names,
}

/// The values and patterns of a schema, each of which counts once.
#[derive(Default)]
struct Structure {
    nodes: usize,
    /// By address, and whether it has schemas by name
    seen: HashSet<(*const Value, bool)>,
    patterns: Patterns,
}

impl Structure {
    fn add(&mut self, value: &Value, place: Place, depth: usize) -> Result<(), SchemaProblem> {
        if !self.seen.insert((std::ptr::from_ref(value), place == Place::Names)) {
            return Ok(());
        }
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return too_much(format!("it has more than {MAX_NODES} parts"));
        }
        deep(depth)?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.add(item, Place::Schema, depth + 1)),
            Value::Object(entries) if place == Place::Names => {
                entries.values().try_for_each(|inner| self.add(inner, Place::Schema, depth + 1))
            }
            Value::Object(entries) => {
                if let Some(text) = entries.get("pattern").and_then(Value::as_str) {
                    self.patterns.add(text)?;
                }
                if is_for_patterns(entries) {
                    self.patterns.are_read();
                }
                if let Some(Value::Object(named)) = entries.get("patternProperties") {
                    named.keys().try_for_each(|text| self.patterns.add(text))?;
                }
                let has_id = entries.get("$id").is_some_and(Value::is_string);
                if place != Place::Root && has_id && references_or_shapes(entries) {
                    return too_much("a schema with an `$id` of its own lies in it, which is not supported");
                }
                entries.iter().filter(|(key, _)| !DATA.contains(&key.as_str())).try_for_each(|(key, inner)| {
                    let place = if NAMED.contains(&key.as_str()) { Place::Names } else { Place::Schema };
                    self.add(inner, place, depth + 1)
                })
            }
            _ => Ok(()),
        }
    }
}

/// Whether an object is a schema rather than a list of properties, one of which is called `$id`.
fn references_or_shapes(entries: &Map<String, Value>) -> bool {
    entries.keys().any(|key| REFERENCES.contains(&key.as_str()) || DEFINITIONS.contains(&key.as_str()))
}
