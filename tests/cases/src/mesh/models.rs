//! The runs of agents that are models. They have no function that could tell: they are known by what the model was asked.

use hotcell_graph::Value;
use hotcell_graph::value::parse_json;
use hotcell_loopback::{Loopback, ModelRequest};
use hotcell_runtime::ir::{Action, CallTarget, Expression, Graph, PromptPart, Said};

use super::functions::Ran;

/// An agent and what its model is told first.
pub(super) type Prompt = (String, String);

/// The prompts of the agents of a mesh.
pub(super) fn prompts(graph: &Graph) -> Vec<Prompt> {
    let prompt = |(_, node): (_, &hotcell_runtime::ir::Node)| {
        let Action::Call(call) = &node.action else { return None };
        Some((node.speaks_as().to_string(), within(&call.target)?))
    };
    graph.nodes().filter_map(prompt).collect()
}

fn within(target: &CallTarget) -> Option<String> {
    if let CallTarget::Loop(of_model) = target {
        return of_model.agent.prompt.iter().find_map(text);
    }
    target.graph()?.nodes().find_map(|(_, node)| match &node.action {
        Action::Call(call) => within(&call.target),
        _ => None,
    })
}

fn text(part: &PromptPart) -> Option<String> {
    match &part.said {
        Said::Text(_, Expression::Value(Value::Text(text))) => Some(text.to_string()),
        _ => None,
    }
}

/// The runs of agents with these prompts, in the order of their first requests.
pub(super) fn runs(prompts: &[Prompt], model: &Loopback) -> Vec<Ran> {
    let (requests, arrivals) = (model.requests(), model.arrivals());
    let mut runs = Vec::new();
    for (place, (request, arrival)) in requests.iter().zip(&arrivals).enumerate() {
        // What was refused is asked again, and of other models, in the same words.
        let mut before = requests[..place].iter().zip(&arrivals).rev();
        let last = before.find(|(earlier, _)| earlier.messages == request.messages);
        if last.is_some_and(|(_, earlier)| earlier.is_refused) || !is_first(request) {
            continue;
        }
        let says = |(_, prompt): &&Prompt| {
            request.messages.iter().any(|message| message.role == "system" && message.content.trim() == prompt.trim())
        };
        if let Some((agent, _)) = prompts.iter().find(says) {
            runs.push(Ran { agent: agent.clone(), input: input(request), at: arrival.at });
        }
    }
    runs
}

/// Whether a request is the first one of a run: no tool has answered in it.
fn is_first(request: &ModelRequest) -> bool {
    request.messages.last().is_none_or(|message| message.role != "tool")
}

/// What the agent was given: the JSON of the last message of a user.
fn input(request: &ModelRequest) -> serde_json::Value {
    let mut messages = request.messages.iter().rev();
    let input = messages.find(|message| message.role == "user").and_then(|message| parse_json(&message.content).ok());
    input.as_ref().map(serde_json::Value::from).unwrap_or_default()
}
