//! Documents that are read, written and read again: what is written says the same.

use hotcell_dialects::document;
use hotcell_graph::diagnostic::SourceFile;
use hotcell_graph::{List, Object, Value};
use hotcell_runtime::{Host, Loading};
use std::collections::HashSet;
use std::sync::Arc;

use crate::agent_spec::written_back;
use crate::case_file::{CaseFile, Status};
use crate::loki::rejected;
use crate::observed::Observed;
use crate::world::World;

/// The version that a document is written in.
const VERSION: &str = "25.4.1";
/// Lists that are sets.
const SETS: [&str; 8] =
    ["inputs", "outputs", "branches", "nodes", "tools", "control_flow_connections", "data_flow_connections", "agents"];
/// Fields whose contents mean nothing to the language.
const OPAQUE: [&str; 3] = ["metadata", "default_generation_parameters", "session_parameters"];

/// Plays a case that expects a document to survive being written.
pub(crate) fn play(case: &CaseFile, host: &Host, loading: &Loading<'_>, world: &World) -> Observed {
    let written = match host.write(world.entry(), loading) {
        Ok(written) => written,
        Err(failure) => return rejected(&failure, world),
    };
    let failed = |problem: String| Observed { status: Status::Failed, error: Some(problem), ..written_back() };
    let copy = world.entry().with_file_name("written-back.json");
    if let Err(error) = std::fs::write(&copy, &written) {
        return failed(error.to_string());
    }
    if let Err(failure) = host.write(&copy, loading) {
        return rejected(&failure, world);
    }
    let original = match &case.expect.equivalent_to {
        Some(file) => world.entry().with_file_name(file),
        None => world.entry().to_owned(),
    };
    let compared = read(&original).and_then(|original| Ok((original, parse(&written)?, handed_in(loading)?)));
    let (original, written, handed_in) = match compared {
        Ok(compared) => compared,
        Err(problem) => return failed(problem),
    };
    match problem(&original, &written, &handed_in, case.expect.equivalent_to.is_some()) {
        Some(problem) => failed(problem),
        None => written_back(),
    }
}

fn read(file: &std::path::Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    parse(&text)
}

/// What is handed in beside the documents, by the keys under which they know it.
fn handed_in(loading: &Loading<'_>) -> Result<Object, String> {
    let mut all = Object::default();
    for part in loading.components {
        let part_of = read(&part.file)?;
        let parts = part_of.as_object().and_then(|part| part.get("$referenced_components")?.as_object().cloned());
        for (key, value) in parts.unwrap_or_default().iter() {
            let renamed = part.rename.iter().find(|(written, _)| **written == **key).map(|(_, known)| known.as_str());
            all.insert(renamed.unwrap_or(key), value.clone());
        }
    }
    Ok(all)
}

fn parse(text: &str) -> Result<Value, String> {
    let file = Arc::new(SourceFile { name: "document".to_owned(), text: text.to_owned() });
    let (document, problems) = document::parse(&file);
    document.map(|document| document.root.to_value()).ok_or_else(|| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        problems.join("; ")
    })
}

/// What is wrong with a document that was written.
fn problem(original: &Value, written: &Value, handed_in: &Object, without_descriptions: bool) -> Option<String> {
    let version = written.as_object().and_then(|root| root.get("agentspec_version")).and_then(Value::as_text);
    if version != Some(VERSION) {
        return Some(format!("`agentspec_version` is {version:?} and not `{VERSION}`"));
    }
    let mut ids = HashSet::new();
    if let Some(id) = twice(written, &mut ids) {
        return Some(format!("the id `{id}` stands on two components"));
    }
    let canonical = |value: &Value| {
        let mut form = Canonical { without_descriptions, scopes: vec![handed_in], depth: 0 };
        form.component(value).map(|value| value.to_json())
    };
    match (canonical(original), canonical(written)) {
        (Ok(original), Ok(written)) if original == written => None,
        (Ok(original), Ok(written)) => Some(format!("it says something else:\n{original}\nwritten:\n{written}")),
        (Err(problem), _) | (_, Err(problem)) => Some(problem),
    }
}

/// The first id that two components have.
fn twice<'v>(value: &'v Value, seen: &mut HashSet<&'v str>) -> Option<&'v str> {
    match value {
        Value::Object(object) => {
            if object.get("component_type").is_some()
                && let Some(id) = object.get("id").and_then(Value::as_text)
                && !seen.insert(id)
            {
                return Some(id);
            }
            object.iter().filter(|(key, _)| !OPAQUE.contains(&&***key)).find_map(|(_, value)| twice(value, seen))
        }
        Value::List(items) => items.iter().find_map(|item| twice(item, seen)),
        _ => None,
    }
}

struct Canonical<'v> {
    without_descriptions: bool,
    scopes: Vec<&'v Object>,
    depth: usize,
}

impl<'v> Canonical<'v> {
    /// A component, or whatever else stands where one may.
    fn component(&mut self, value: &'v Value) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > 200 {
            return Err("references go in a circle".to_owned());
        }
        let result = self.of(value);
        self.depth -= 1;
        result
    }

    fn of(&mut self, value: &'v Value) -> Result<Value, String> {
        let object = match value {
            Value::List(items) => {
                return Ok(Value::List(items.iter().map(|item| self.component(item)).collect::<Result<_, _>>()?));
            }
            Value::Object(object) => object,
            other => return Ok(other.clone()),
        };
        let inner = object.get("$referenced_components").and_then(Value::as_object);
        self.scopes.extend(inner);
        let result = match object.get("$component_ref").and_then(Value::as_text) {
            Some(key) => {
                let found = self.scopes.iter().rev().find_map(|scope| scope.get(key));
                let found = found.ok_or_else(|| format!("nothing has the key `{key}`"))?;
                self.component(found)
            }
            None => self.fields(object),
        };
        if inner.is_some() {
            self.scopes.pop();
        }
        result
    }

    fn fields(&mut self, object: &'v Object) -> Result<Value, String> {
        let is_component = object.get("component_type").is_some();
        let mut fields: Vec<(String, Value)> = Vec::new();
        for (key, value) in object.iter() {
            let means_nothing = is_component
                && match (&**key, value) {
                    ("$referenced_components" | "agentspec_version", _) => true,
                    ("data_flow_connections", Value::List(_)) => false,
                    ("from_branch" | "branch_name", Value::Text(branch)) => &**branch == "next",
                    (_, Value::Null) => true,
                    (_, Value::Object(object)) => object.is_empty(),
                    (_, Value::List(list)) => list.is_empty(),
                    _ => false,
                };
            if means_nothing {
                continue;
            }
            let value = match &**key {
                "inputs" | "outputs" if is_component => self.properties(value),
                key if is_component && OPAQUE.contains(&key) => value.clone(),
                _ => self.component(value)?,
            };
            let value = match value {
                Value::List(items) if is_component && SETS.contains(&&**key) => Value::List(sorted(&items)),
                other => other,
            };
            fields.push((key.to_string(), value));
        }
        fields.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(Value::Object(fields.into_iter().map(|(key, value)| (key.as_str().into(), value)).collect()))
    }

    fn properties(&self, value: &Value) -> Value {
        let Value::List(items) = value else { return value.clone() };
        let property = |property: &Value| {
            let Value::Object(property) = ordered(property) else { return property.clone() };
            let keep = |key: &str| !(self.without_descriptions && key == "description");
            Value::Object(
                property.iter().filter(|(key, _)| keep(key)).map(|(key, value)| (key.clone(), value.clone())).collect(),
            )
        };
        Value::List(items.iter().map(property).collect())
    }
}

/// The value with the keys of its objects in order.
fn ordered(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().map(|(key, value)| (key.clone(), ordered(value))).collect();
            entries.sort_by(|left, right| left.0.cmp(&right.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::List(items) => Value::List(items.iter().map(ordered).collect()),
        other => other.clone(),
    }
}

fn sorted(items: &List) -> List {
    let mut items: Vec<Value> = items.iter().cloned().collect();
    items.sort_by_key(Value::to_json);
    items.into_iter().collect()
}
