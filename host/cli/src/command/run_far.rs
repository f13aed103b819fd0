//! `hotcell run --server`: a run of an agent that a server has.

use hotcell_graph::Object;
use serde_json::{Map, Value, json};

use super::Context;
use super::far_session::{FarSession, Order, refuse};
use super::given::{input, object, variables};
use crate::arguments::Run;
use crate::exit::{Exit, Failure};
use crate::far::Client;

/// What a server calls the text that an agent is given.
const PROMPT: &str = "prompt";

pub(super) fn perform(context: &Context, client: Client, arguments: Run) -> Result<Exit, Failure> {
    refuse(&[("--components", !arguments.parts.components.is_empty())])?;
    let prompt = input(arguments.prompt)?;
    let state = match (&arguments.inputs, &arguments.state) {
        (Some(inputs), _) => object("--inputs", inputs)?,
        (None, Some(state)) => object("--state", state)?,
        (None, None) => Object::default(),
    };
    let mut given: Map<String, Value> = state.iter().map(|(key, value)| (key.to_string(), value.into())).collect();
    let texts = prompt.iter().map(|prompt| (PROMPT.to_owned(), prompt.clone().into()));
    let variables = variables(arguments.variables)?;
    let variables = variables.iter().map(|(name, value)| (name.to_string(), Value::from(value)));
    for (name, value) in variables.chain(texts) {
        if given.insert(name.clone(), value).is_some() {
            return Err(Failure::refused(format!("`{name}` is given twice: a server takes all values by their names")));
        }
    }
    let agent = arguments.path.to_string_lossy();
    let agent = match &arguments.which.agent {
        Some(name) => format!("{agent}.{name}"),
        None => agent.into_owned(),
    };
    let mut body = json!({ "agent_id": agent, "input": given });
    if let Some(thread) = arguments.thread {
        body["thread_id"] = thread.into();
        body["if_not_exists"] = "create".into();
    }
    FarSession::new(context, &client, arguments.session)?.go(Order::Begin { body, prompt })
}
