//! From a checked mesh to what it says beside its graph.

use hotcell_graph::ir::WayCase;

use super::fitting::way;
use super::learning::{flags, learnable};
use super::lower_connector;
use super::schema::{Agent, Body, Communication, EntryPoint, Interface, Mesh};
use super::settings::{AgentKind, AgentSettings, EntrySettings, HumanInterface, HumanSettings, MeshSettings};

/// What a mesh says beside its graph.
pub(super) fn of(mesh: &Mesh) -> MeshSettings {
    MeshSettings {
        name: mesh.name.clone(),
        is_production: mesh.is_production,
        entry_points: mesh.entry_points.iter().map(|entry| entry_point(entry, mesh)).collect(),
        agents: mesh.agents.iter().map(|of_one| agent(of_one, mesh)).collect(),
        cors_origins: mesh.cors_origins.clone(),
        webhooks: mesh.webhooks,
        max_history_bytes: mesh.max_history_bytes,
        session_ttl: mesh.session_ttl,
        misfire_grace: mesh.misfire_grace,
        manager: mesh.manager.as_ref().and_then(|manager| manager.settings.clone()),
        healing: mesh.healing,
        scenarios: mesh.scenarios.clone(),
        evolution: mesh.evolution.clone(),
    }
}

fn entry_point(entry: &EntryPoint, mesh: &Mesh) -> EntrySettings {
    let condition_alone = |_| WayCase {
        name: entry.name.value.clone(),
        condition: entry.condition.as_ref().map(|condition| condition.condition.clone()),
        fit: None,
    };
    let condition = entry.condition.as_ref().map(|condition| condition.condition.source().to_owned());
    EntrySettings {
        name: entry.name.to_string(),
        target: entry.target.to_string(),
        description: entry.description.clone(),
        condition: condition.unwrap_or_else(|| "always".to_owned()),
        // Where the data cannot be held against anything, the graph says so when it is run.
        way: way(entry, mesh).unwrap_or_else(condition_alone),
    }
}

fn agent(agent: &Agent, mesh: &Mesh) -> AgentSettings {
    let kind = match &agent.body {
        Body::Llm(_) => AgentKind::Llm,
        Body::Human(_) => AgentKind::Human,
        Body::Programmatic { .. } => AgentKind::Programmatic,
        Body::External(_) => AgentKind::External,
    };
    let connector = agent.body.connector();
    let component = connector.filter(|connector| !connector.is_function() && !connector.is_program());
    let component = component.map(|connector| lower_connector::component(&agent.name, connector));
    let human = match &agent.body {
        Body::Human(human) => Some(HumanSettings {
            interface: human.interface.into(),
            webhook: human.webhook.clone(),
            channels: human.channels.clone(),
            operator_ids: human.operator_ids.clone(),
        }),
        _ => None,
    };
    let model = match &agent.body {
        Body::Llm(llm) => llm.model.as_ref().map(|model| model.to_string()),
        _ => None,
    };
    AgentSettings {
        name: agent.name.to_string(),
        previous_name: agent.previous_name.as_ref().map(|name| name.to_string()),
        kind,
        description: agent.description.clone(),
        answers_first: agent.communication == Communication::Dual,
        model,
        connector: connector.map(|connector| connector.name.to_string()),
        release: component.map(|component| component.tool("release")),
        human,
        budget: agent.budget,
        history: agent.history,
        remembers: agent.memory.is_some(),
        remembers_others: agent.memory.as_ref().is_some_and(|memory| memory.of_others.is_some()),
        wake_ups: agent.wake_ups.clone(),
        waits: agent.wait.is_some(),
        learnable: learnable(agent, mesh).map(str::to_owned).collect(),
        flags: flags(agent).map(|name| name.to_string()).collect(),
    }
}

impl From<Interface> for HumanInterface {
    fn from(interface: Interface) -> Self {
        match interface {
            Interface::Default => HumanInterface::Inbox,
            Interface::Webhook => HumanInterface::Webhook,
            Interface::Api | Interface::Custom => HumanInterface::Function,
        }
    }
}
