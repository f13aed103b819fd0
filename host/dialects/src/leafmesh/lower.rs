//! From a checked mesh to a graph: an agent is a node, what it calls are its edges.

use std::sync::Arc;

use hotcell_graph::Object;
use hotcell_graph::diagnostic::Span;
use hotcell_graph::ir::{
    Action, Arrived, Edge, Ends, Expression, Graph, Join, JoinWhen, Next, Node, NodeIds, OnFailure, Scheduling,
    Sharing, Unmet,
};

use super::schema::{Agent, Condition, Mesh};
use super::wait::Wait;

/// The node with which a mesh begins. No agent can have this name.
const START: &str = "(entry)";
/// The key with what the last agent gave.
const OUTPUT: &str = "output";

/// The graph of a mesh. `later` is what hotcell does not run yet.
pub(super) fn mesh(mesh: &Mesh, later: &[String], span: &Span) -> Option<Graph> {
    let names: Vec<&str> = [START].into_iter().chain(mesh.agents.iter().map(|agent| &*agent.name)).collect();
    let ids = NodeIds::new(names.iter().copied());
    let doors = mesh.entry_points.iter().filter_map(|entry| {
        let condition = entry.condition.as_ref().map(meets);
        Some(Edge { condition, target: ids.get(&entry.target)? })
    });
    let reason = format!("meshes are loaded, checked and drawn, and not run yet{}", also(later));
    let mut nodes = vec![Node {
        implied_by: Some(mesh.name.as_str().into()),
        on_failure: OnFailure::Fail,
        ..bare(START, "entry", Action::Fail(reason), Next::Open(doors.collect()), span)
    }];
    for agent in &mesh.agents {
        nodes.push(node(agent, &ids));
    }
    let mut graph = Graph::new(mesh.name.as_str(), nodes, START)?;
    graph.is_open = true;
    graph.scheduling = Scheduling {
        ends: Ends::WhenQuiet { output: Box::new(Expression::Value(Object::default().into())) },
        sharing: Sharing::Shared,
        ..Scheduling::default()
    };
    Some(graph)
}

fn also(later: &[String]) -> String {
    if later.is_empty() { String::new() } else { format!("; this one has, beside, {}", later.join(", ")) }
}

fn node(agent: &Agent, ids: &NodeIds) -> Node {
    let edges = agent.edges.iter().filter_map(|edge| {
        Some(Edge { condition: edge.condition.as_ref().map(meets), target: ids.get(&edge.target)? })
    });
    let join = agent.wait.as_ref().and_then(|wait| {
        let condition = arrived(&wait.expression, ids)?;
        Some(Join::When(JoinWhen { condition, deadline: Some(wait.timeout), unmet: Unmet::Fail }))
    });
    Node {
        description: agent.description.clone(),
        join: join.unwrap_or(Join::Each),
        on_failure: OnFailure::EndBranch,
        ..bare(&agent.name, agent.body.agent_type().word(), Action::Pass, Next::Open(edges.collect()), &agent.span)
    }
}

/// What has to have arrived.
fn arrived(wait: &Wait, ids: &NodeIds) -> Option<Arrived> {
    let all = |parts: &[Wait]| parts.iter().map(|part| arrived(part, ids)).collect::<Option<Vec<_>>>();
    Some(match wait {
        Wait::Agent(name, _) => Arrived::From(ids.get(name)?),
        Wait::Optional(inner) => Arrived::Optional(Box::new(arrived(inner, ids)?)),
        Wait::All(parts) => Arrived::All(all(parts)?),
        Wait::Any(parts) => Arrived::Any(all(parts)?),
    })
}

fn meets(condition: &Condition) -> Expression {
    Expression::Meets { object: Box::new(Expression::Key(OUTPUT.into())), condition: condition.condition.clone() }
}

/// A node with an action and nothing else.
fn bare(id: &str, kind: &'static str, action: Action, next: Next, span: &Span) -> Node {
    Node {
        id: Arc::from(id),
        kind,
        description: None,
        action,
        updates: Vec::new(),
        join: Join::Each,
        retry: None,
        next,
        on_failure: OnFailure::Fail,
        timeout: None,
        span: span.clone(),
        implied_by: None,
    }
}
