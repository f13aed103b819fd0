//! What a run is given: the caller's text and values of variables.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::ir::Graph;
use hotcell_graph::value::Number;
use hotcell_graph::{Key, Object, State, Value, closest};
use hotcell_journal::Write;

use crate::branch::{WriteError, apply};
use crate::outcome::{RunError, list};
use crate::what_if::ForkOrigin;

/// What a run is given by whoever starts it.
#[derive(Clone, Debug, Default)]
pub struct RunInput {
    /// The caller's text
    pub input: Option<String>,
    /// Values of variables
    pub variables: HashMap<Key, Value>,
    /// Values of the state, over those that the graph begins with
    pub state: Object,
    /// The conversation that the run belongs to: runs of one conversation go on with the state of the one before
    pub thread: Option<String>,
    /// The state with which the run before it ended, if it goes on with one
    pub earlier: Option<Object>,
    /// The run with that state, if the journal is to refer to it in place of keeping the state once more
    pub after: Option<String>,
    /// How many runs before it, one after the other, only refer to the one before them
    pub depth: u32,
    /// How it was started, in the words of whoever starts it. It is kept for whoever goes on with the run, and not looked at
    pub origin: Object,
    /// Of which run it is a fork, and how it differs from it
    pub fork: Option<ForkOrigin>,
    /// The name that the run is to have; none for a new one
    pub id: Option<String>,
}

impl RunInput {
    /// The values of a run's variables, for the agents that it calls.
    pub(crate) fn of_variables(variables: &[(Key, String)]) -> Self {
        let variables = variables.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        RunInput { variables, ..RunInput::default() }
    }

    /// What an agent is given that a run calls: a text, and the values of the variables that it declares too.
    pub(crate) fn for_agent(&self, graph: &Graph, input: String) -> Self {
        let declared = graph.variables.iter().map(|variable| &variable.name);
        let variables = declared.filter_map(|name| Some((name.clone(), self.variables.get(name)?.clone()))).collect();
        RunInput { input: Some(input), variables, ..RunInput::default() }
    }

    pub(crate) fn to_object(&self) -> Object {
        let mut object = Object::default();
        if let Some(input) = &self.input {
            object.insert("input", input.as_str().into());
        }
        let mut variables: Vec<(Key, Value)> =
            self.variables.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        variables.sort_by(|left, right| left.0.cmp(&right.0));
        object.insert("variables", Value::Object(variables.into_iter().collect()));
        if !self.state.is_empty() {
            object.insert("state", Value::Object(self.state.clone()));
        }
        if let Some(thread) = &self.thread {
            object.insert("thread", thread.as_str().into());
        }
        if !self.origin.is_empty() {
            object.insert("origin", Value::Object(self.origin.clone()));
        }
        if let Some(id) = &self.id {
            object.insert("id", id.as_str().into());
        }
        if let Some(fork) = &self.fork {
            object.insert("fork", Value::Object(fork.to_object()));
        }
        match (&self.after, &self.earlier) {
            (Some(after), _) => {
                object.insert("after", after.as_str().into());
                object.insert("depth", Value::from(i64::from(self.depth)));
            }
            (None, Some(earlier)) => object.insert("earlier", Value::Object(earlier.clone())),
            (None, None) => {}
        }
        object
    }

    /// How many runs before a run that was given this, one after the other, only refer to the one before them.
    pub fn depth_of(given: &Object) -> u32 {
        let depth = given.get("depth").map(|depth| serde_json::Value::from(depth).as_u64());
        depth.flatten().and_then(|depth| u32::try_from(depth).ok()).unwrap_or(0)
    }

    pub(crate) fn from_object(object: &Object) -> Self {
        let variables = object.get("variables").and_then(Value::as_object);
        RunInput {
            input: object.get("input").and_then(Value::as_text).map(str::to_owned),
            variables: variables
                .map(|variables| variables.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
                .unwrap_or_default(),
            state: object.get("state").and_then(Value::as_object).cloned().unwrap_or_default(),
            thread: object.get("thread").and_then(Value::as_text).map(str::to_owned),
            earlier: object.get("earlier").and_then(Value::as_object).cloned(),
            origin: object.get("origin").and_then(Value::as_object).cloned().unwrap_or_default(),
            after: object.get("after").and_then(Value::as_text).map(str::to_owned),
            depth: RunInput::depth_of(object),
            fork: ForkOrigin::of_given(object),
            id: object.get("id").and_then(Value::as_text).map(str::to_owned),
        }
    }
}

/// Looks whether the caller gave only values that the graph takes and that can be kept.
pub(crate) fn check_state(graph: &Graph, given: &RunInput) -> Result<(), RunError> {
    for (key, value) in given.state.iter().chain(&given.variables) {
        value.check_size().map_err(|problem| {
            RunError::UnknownState(format!("the value that is given for `{key}` cannot be kept: {problem}"))
        })?;
    }
    let declared = |key: &Key| graph.is_open || graph.open_state.contains(key);
    let unknown: Vec<String> =
        given.state.iter().map(|(key, _)| key).filter(|key| !declared(key)).map(|key| key.to_string()).collect();
    let Some(first) = unknown.first() else { return Ok(()) };
    // A graph with results is called like a function: what it takes are inputs, and the conversation is none of them.
    let called = graph.results.is_some();
    let (no, those) = if called { ("there is no input", "inputs") } else { ("the state has no field", "fields") };
    let hidden = graph.conversation.as_ref().filter(|_| called);
    let taken: Vec<&str> = graph.open_state.iter().filter(|key| hidden != Some(key)).map(|key| &**key).collect();
    let help = advise(first, &taken, those);
    Err(RunError::UnknownState(format!("{no} {}; {help}", list(&unknown))))
}

/// What to give in place of a name that is not taken: the one that is most like it, or all that are.
fn advise(name: &str, taken: &[&str], those: &str) -> String {
    match (closest(name, taken.iter().copied()), taken) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => format!("it takes no {those}"),
        (None, all) => {
            let all: Vec<String> = all.iter().map(|name| (*name).to_owned()).collect();
            format!("its {those} are {}", list(&all))
        }
    }
}

/// What is wrong with values for names that are no variables of the graph.
fn no_variables(graph: &Graph, unknown: &[String]) -> String {
    // Whoever calls a graph with inputs gives these by name, and knows of no variables.
    if graph.results.is_some() && graph.variables.is_empty() {
        let taken = graph.open_state.iter().filter(|key| graph.conversation.as_ref() != Some(*key));
        let taken: Vec<&str> = taken.map(|key| &**key).collect();
        let help = unknown.first().map_or_else(String::new, |first| advise(first, &taken, "inputs"));
        return format!("there is no input {}; {help}", list(unknown));
    }
    let taken: Vec<&str> = graph.variables.iter().map(|variable| &*variable.name).collect();
    let is_state = |name: &&String| {
        let mut state = graph.open_state.iter().chain(graph.initial_state.iter().map(|(key, _)| key));
        state.any(|key| **key == ***name)
    };
    let help = match (unknown.iter().find(is_state), unknown.first()) {
        (Some(name), _) => format!("`{name}` is a field of its state"),
        (None, first) => first.map_or_else(String::new, |first| advise(first, &taken, "variables")),
    };
    format!("the graph declares no variable {}; {help}", list(unknown))
}

/// The values of all variables of a graph.
pub(crate) fn check_variables(graph: &Graph, given: &RunInput) -> Result<Arc<[(Key, String)]>, RunError> {
    let declared = |name: &Key| graph.variables.iter().any(|variable| variable.name == *name);
    let mut unknown: Vec<String> =
        given.variables.keys().filter(|name| !declared(name)).map(|name| name.to_string()).collect();
    if !unknown.is_empty() {
        unknown.sort();
        return Err(RunError::UnknownVariables(no_variables(graph, &unknown)));
    }
    let mut values = Vec::with_capacity(graph.variables.len());
    let mut missing = Vec::new();
    for variable in &graph.variables {
        match (given.variables.get(&variable.name), &variable.default) {
            (Some(value), _) => values.push((variable.name.clone(), value.to_display().into_owned())),
            (None, Some(default)) => values.push((variable.name.clone(), default.clone())),
            (None, None) => missing.push(match &*variable.description {
                "" => format!("`{}`", variable.name),
                description => format!("`{}` ({description})", variable.name),
            }),
        }
    }
    if missing.is_empty() { Ok(values.into()) } else { Err(RunError::MissingVariables(missing)) }
}

/// A value that the caller gives: JSON may have a whole number where a fraction is as good.
fn as_declared(graph: &Graph, key: &Key, value: &Value) -> Value {
    match value {
        Value::Number(number) if graph.floats.contains(key) => {
            Number::from_f64(number.to_f64()).map_or_else(|| value.clone(), Value::Number)
        }
        value => value.clone(),
    }
}

/// The state before the first node: values of variables, then the graph's own, then what the caller gave.
pub(crate) fn initial_state(graph: &Graph, given: &RunInput) -> Result<State, WriteError> {
    let mut state = State::default();
    for variable in &graph.variables {
        if let Some(value) = given.variables.get(&variable.name) {
            state.set(variable.name.clone(), value.clone());
        } else if let Some(default) = &variable.default {
            state.set(variable.name.clone(), default.as_str().into());
        }
    }
    for (key, value) in &graph.initial_state {
        state.set(key.clone(), value.clone());
    }
    let kept = |key: &Key| graph.kept.as_ref().is_none_or(|kept| kept.contains(key));
    for (key, value) in given.earlier.iter().flat_map(|earlier| earlier.iter()).filter(|(key, _)| kept(key)) {
        state.set(key.clone(), value.clone());
    }
    for (key, value) in given.state.iter() {
        apply(graph, &mut state, &Write { key: key.clone(), value: as_declared(graph, key, value) })?;
    }
    if let (Some(key), Some(text)) = (&graph.input_key, &given.input) {
        state.set(key.clone(), text.as_str().into());
    }
    if let (Some(key), Some(text)) = (&graph.conversation, &given.input) {
        apply(graph, &mut state, &Write { key: key.clone(), value: text.as_str().into() })?;
    }
    Ok(state)
}
