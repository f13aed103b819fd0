//! The agents that a run may call, at any depth, and what has to be there before it starts.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_engine::{Agents, Callee, Hooks};
use hotcell_graph::Key;

use crate::hooks::Stacked;
use crate::knowledge::AgentKnowledge;

/// Agents by their names.
#[derive(Default)]
pub(crate) struct AgentRegistry {
    agents: HashMap<Key, Result<Callee, String>>,
    knowledge: Vec<Arc<AgentKnowledge>>,
}

impl AgentRegistry {
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.agents.contains_key(name)
    }

    /// Adds an agent, or why it cannot be called.
    pub(crate) fn add(&mut self, name: Key, agent: Result<Callee, String>, knowledge: Arc<AgentKnowledge>) {
        self.agents.insert(name, agent);
        self.add_knowledge(knowledge);
    }

    /// Adds what an agent looks things up in.
    pub(crate) fn add_knowledge(&mut self, knowledge: Arc<AgentKnowledge>) {
        if !knowledge.is_empty() {
            self.knowledge.push(knowledge);
        }
    }

    /// Everything that the agents look things up in.
    pub(crate) fn knowledge(&self) -> &[Arc<AgentKnowledge>] {
        &self.knowledge
    }
}

/// The agents of an agent of a registry, under the same guards.
struct AgentsUnderGuard {
    agents: Arc<dyn Agents>,
    guards: Arc<dyn Hooks>,
}

impl Agents for AgentsUnderGuard {
    fn find(&self, name: &str) -> Result<Callee, String> {
        self.agents.find(name).map(|agent| guarded(agent, &self.guards))
    }
}

fn guarded(mut agent: Callee, guards: &Arc<dyn Hooks>) -> Callee {
    agent.hooks = Arc::new(Stacked { first: guards.clone(), second: agent.hooks });
    agent.agents =
        agent.agents.map(|agents| Arc::new(AgentsUnderGuard { agents, guards: guards.clone() }) as Arc<dyn Agents>);
    agent
}

/// The agents as a run sees them: whoever guards the run guards them too.
pub(crate) struct GuardedAgents {
    pub(crate) family: Arc<AgentRegistry>,
    pub(crate) guards: Arc<dyn Hooks>,
}

impl Agents for GuardedAgents {
    fn find(&self, name: &str) -> Result<Callee, String> {
        let agent = self.family.agents.get(name).ok_or("it is not there")?;
        agent.clone().map(|agent| guarded(agent, &self.guards))
    }
}
