//! The agents that a run may call.

use std::collections::HashSet;

use hotcell_graph::Key;
use hotcell_graph::ir::{Action, CallTarget, Callable, Graph, MapBody, ToolKind};

use super::Variables;
use crate::outcome::RunError;
use crate::ports::Agents;
use crate::run_input::{RunInput, check_variables};

/// Looks before a run starts whether every agent that it may call, at any depth, has the variables it needs: those that
/// its caller has too, and those with a default.
pub(super) fn check_agents(graph: &Graph, agents: &dyn Agents, variables: &Variables) -> Result<(), RunError> {
    let mut seen: HashSet<(CalledAgent, Variables)> = HashSet::new();
    let mut open: Vec<_> = called(graph).into_iter().map(|agent| (agent, variables.clone())).collect();
    while let Some((called_agent, of_caller)) = open.pop() {
        if !seen.insert((called_agent.clone(), of_caller.clone())) {
            continue;
        }
        let CalledAgent { agent, inputs } = called_agent;
        // An agent that is not there is an error of the node that calls it.
        let Ok(callee) = agents.find(&agent) else { continue };
        let mut given = RunInput::of_variables(&of_caller).for_agent(&callee.graph, String::new());
        for variable in callee.graph.variables.iter().filter(|variable| inputs.contains(&variable.name)) {
            given.variables.entry(variable.name.clone()).or_default();
        }
        let own = check_variables(&callee.graph, &given).map_err(|error| match error {
            RunError::MissingVariables(variables) => RunError::AgentVariables { agent: agent.to_string(), variables },
            other => other,
        })?;
        open.extend(called(&callee.graph).into_iter().map(|agent| (agent, own.clone())));
    }
    Ok(())
}

/// An agent that a graph calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CalledAgent {
    pub(crate) agent: Key,
    /// The names of the values that it is given beside its prompt
    inputs: Vec<Key>,
}

impl From<&Key> for CalledAgent {
    fn from(agent: &Key) -> Self {
        CalledAgent { agent: agent.clone(), inputs: Vec::new() }
    }
}

/// The agents that the nodes of a graph call, and those of graphs that it calls.
pub(crate) fn called(graph: &Graph) -> Vec<CalledAgent> {
    let mut agents = Vec::new();
    let mut seen: HashSet<*const Graph> = HashSet::new();
    let mut open = vec![graph];
    while let Some(graph) = open.pop() {
        // One that is called twice is looked at once, and the others after it all the same.
        if !seen.insert(std::ptr::from_ref(graph)) {
            continue;
        }
        for (_, node) in graph.nodes() {
            match &node.action {
                Action::AnswerCalls(action) => {
                    for offered in &action.tools {
                        match offered {
                            Callable::Agent { agent, .. } => agents.push(agent.into()),
                            Callable::Loop(nested) => open.push(&nested.steps.graph),
                            Callable::Defined(tool) => {
                                if let ToolKind::Graph(nested) = &tool.kind {
                                    open.push(&nested.0);
                                }
                            }
                            _ => {}
                        }
                    }
                }
                Action::Tool(action) => {
                    if let ToolKind::Graph(nested) = &action.tool.kind {
                        open.push(&nested.0);
                    }
                }
                Action::Call(action) => match &action.target {
                    CallTarget::Agent { agent, inputs, .. } => {
                        let inputs = inputs.iter().map(|(key, _)| key.clone()).collect();
                        agents.push(CalledAgent { agent: agent.clone(), inputs });
                    }
                    target => open.extend(target.graph().map(|graph| &**graph)),
                },
                Action::Map(action) => match &action.body {
                    MapBody::Graph(items) => open.push(&items.graph),
                    // Its node is one of the graph.
                    MapBody::Node(_) => {}
                },
                _ => {}
            }
        }
    }
    agents
}
