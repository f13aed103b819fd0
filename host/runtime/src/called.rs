//! What an agent takes from programs that call it: one object, with its text and its values by their names.

use hotcell_engine::RunInput;
use hotcell_graph::Key;
use serde_json::{Map, Value, json};

use crate::agent::Agent;

/// The member that is the message to the agent.
pub const PROMPT: &str = "prompt";

/// The JSON schema of the object that an agent is called with.
pub fn input_schema(agent: &Agent) -> Value {
    let graph = &agent.graph;
    let mut properties = Map::new();
    let about = agent.conversation_starters.first().map_or_else(
        || "What you want from the agent".to_owned(),
        |starter| format!("What you want from the agent, for example: {starter}"),
    );
    properties.insert(PROMPT.to_owned(), json!({ "type": "string", "description": about }));
    let mut required = vec![PROMPT.to_owned()];
    if !graph.takes_text() {
        properties.clear();
        required.clear();
    }
    for input in inputs_of(agent) {
        properties.insert(input.to_string(), json!({ "description": "An input of the flow" }));
        let has_default = graph.optional.contains(input) || graph.initial_state.iter().any(|(key, _)| key == input);
        required.extend((!has_default).then(|| input.to_string()));
    }
    for variable in &graph.variables {
        let mut schema = json!({ "type": "string", "description": variable.description });
        match &variable.default {
            Some(default) => schema["default"] = default.as_str().into(),
            None => required.push(variable.name.to_string()),
        }
        properties.insert(variable.name.to_string(), schema);
    }
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// The JSON schema of what an agent gives that says of which form its results are: an object with values by their names.
pub fn output_schema(agent: &Agent) -> Option<Value> {
    let graph = &agent.graph;
    graph.output_schema.as_ref().filter(|_| graph.results.is_some()).map(Value::from)
}

/// What a run of an agent is given that is called with this object. Whether it may be given that, the run says.
pub fn called_with(agent: &Agent, arguments: &Map<String, Value>) -> RunInput {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let takes_text = agent.graph.takes_text();
    let prompt = arguments.get(PROMPT).filter(|_| takes_text);
    let mut given = RunInput { input: prompt.map(text), ..RunInput::default() };
    for (name, value) in arguments.iter().filter(|(name, _)| *name != PROMPT || !takes_text) {
        let graph = &agent.graph;
        let is_variable = graph.variables.iter().any(|variable| *variable.name == **name);
        let is_of_state = inputs_of(agent).any(|input| **input == **name)
            || !is_variable && (graph.is_open || graph.open_state.iter().any(|key| **key == **name));
        if is_of_state {
            given.state.insert(name.as_str(), hotcell_graph::Value::from(value));
            continue;
        }
        given.variables.insert(Key::from(name.as_str()), hotcell_graph::Value::text(text(value)));
    }
    given
}

/// The inputs of an agent that is called like a function.
fn inputs_of(agent: &Agent) -> impl Iterator<Item = &Key> {
    let graph = &agent.graph;
    let is_called = graph.results.is_some();
    graph.open_state.iter().filter(move |key| is_called && graph.conversation.as_ref() != Some(key))
}
