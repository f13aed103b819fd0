//! What a run is given: the caller's text and values of variables.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::ir::Graph;
use hotcell_graph::{Key, Value};

use crate::run::RunError;

/// What a run is given by whoever starts it.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The caller's text
    pub input: Option<String>,
    /// Values of variables
    pub variables: HashMap<Key, Value>,
}

impl Given {
    /// The values of a run's variables, for the agents that it calls.
    pub(crate) fn of_variables(variables: &[(Key, String)]) -> Self {
        let variables = variables.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        Given { input: None, variables }
    }

    /// What an agent is given that a run calls: a text, and the values of the variables that it declares too.
    pub(crate) fn for_agent(&self, graph: &Graph, input: String) -> Self {
        let declared = graph.variables.iter().map(|variable| &variable.name);
        let variables = declared.filter_map(|name| Some((name.clone(), self.variables.get(name)?.clone()))).collect();
        Given { input: Some(input), variables }
    }

    pub(crate) fn to_object(&self) -> hotcell_graph::Object {
        let mut object = hotcell_graph::Object::default();
        if let Some(input) = &self.input {
            object.insert("input", input.as_str().into());
        }
        let mut variables: Vec<(Key, Value)> =
            self.variables.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        variables.sort_by(|left, right| left.0.cmp(&right.0));
        object.insert("variables", Value::Object(variables.into_iter().collect()));
        object
    }

    pub(crate) fn from_object(object: &hotcell_graph::Object) -> Self {
        let variables = object.get("variables").and_then(Value::as_object);
        Given {
            input: object.get("input").and_then(Value::as_text).map(str::to_owned),
            variables: variables
                .map(|variables| variables.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
                .unwrap_or_default(),
        }
    }
}

/// The values of all variables of a graph.
pub(crate) fn check_variables(graph: &Graph, given: &Given) -> Result<Arc<[(Key, String)]>, RunError> {
    let declared = |name: &Key| graph.variables.iter().any(|variable| variable.name == *name);
    let mut unknown: Vec<String> =
        given.variables.keys().filter(|name| !declared(name)).map(|name| name.to_string()).collect();
    if !unknown.is_empty() {
        unknown.sort();
        return Err(RunError::UnknownVariables(unknown));
    }
    let mut values = Vec::with_capacity(graph.variables.len());
    let mut missing = Vec::new();
    for variable in &graph.variables {
        match (given.variables.get(&variable.name), &variable.default) {
            (Some(value), _) => values.push((variable.name.clone(), value.to_display().into_owned())),
            (None, Some(default)) => values.push((variable.name.clone(), default.clone())),
            (None, None) => missing.push(match &*variable.description {
                "" => variable.name.to_string(),
                description => format!("{} ({description})", variable.name),
            }),
        }
    }
    if missing.is_empty() { Ok(values.into()) } else { Err(RunError::MissingVariables(missing)) }
}

pub(crate) fn missing_variables(names: &[String]) -> String {
    let verb = if names.len() == 1 { "variable has" } else { "variables have" };
    format!("the graph's {verb} no value and no default: {}; give it with `--var NAME=VALUE`", list(names))
}

pub(crate) fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
