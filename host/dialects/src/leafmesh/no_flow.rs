//! Why a mesh is not written in a language of flows: what its agents do that a flow has no words for.

use hotcell_graph::ir::{Graph, Next};

use super::settings::{AgentKind, AgentSettings, MeshSettings};

/// What a mesh has that a flow has not, by the names of its agents: each a sentence.
pub fn no_flow(graph: &Graph, mesh: &MeshSettings) -> Vec<String> {
    let mut reasons = vec![
        "a mesh has no order of its own: an agent is called by what others gave, in sessions that go on, and a flow goes from its start \
         to its end"
            .to_owned(),
    ];
    let mut say = |what: &str, does: &dyn Fn(&AgentSettings) -> bool| {
        let names: Vec<String> =
            mesh.agents.iter().filter(|agent| does(agent)).map(|agent| format!("`{}`", agent.name)).collect();
        if !names.is_empty() {
            reasons.push(format!("{what}: {}", names.join(", ")));
        }
    };
    say("agents call others by a condition (`can_call`)", &|agent| calls(graph, mesh, agent).contains(&true));
    say("agents call several others side by side (`can_call`)", &|agent| calls(graph, mesh, agent).len() > 1);
    say("agents wait for several others (`wait_for`)", &|agent| agent.waits);
    say("agents are people, who are asked in a session and may answer days later", &|agent| {
        agent.kind == AgentKind::Human
    });
    say("other systems work for agents (`framework`, `integration`)", &|agent| agent.connector.is_some());
    say("agents wake up by themselves (`wake_up`)", &|agent| !agent.wake_ups.is_empty());
    if mesh.entry_points.len() > 1 {
        let names: Vec<String> = mesh.entry_points.iter().map(|entry| format!("`{}`", entry.name)).collect();
        reasons.push(format!("it has several entry points: {}", names.join(", ")));
    }
    if mesh.manager.is_some() {
        reasons.push("a manager looks at what agents give (`manager`)".to_owned());
    }
    reasons
}

/// The agents that an agent calls: for each of them, whether there is a condition.
fn calls(graph: &Graph, mesh: &MeshSettings, agent: &AgentSettings) -> Vec<bool> {
    let Some(Next::Open(edges)) = graph.find(&agent.name).map(|index| &graph.node(index).next) else {
        return Vec::new();
    };
    // What follows beside them is the manager's.
    let to_agents = edges.iter().filter(|edge| mesh.agent(&graph.node(edge.target).id).is_some());
    to_agents.map(|edge| edge.condition.is_some()).collect()
}
