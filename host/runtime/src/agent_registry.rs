//! The agents that a run may call, at any depth, and what has to be there before it starts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hotcell_engine::{Agents, Callee, Hooks, PortError};
use hotcell_graph::Key;

use crate::hooks::Stacked;
use crate::knowledge::AgentKnowledge;
use crate::load_failure::LoadFailure;

/// Agents by their names.
#[derive(Default)]
pub(crate) struct AgentRegistry {
    agents: HashMap<Key, Result<Callee, Arc<LoadFailure>>>,
    /// Those that do not admit whoever calls them: their events are none of the hooks' business that came with the caller
    behind_border: HashSet<Key>,
    knowledge: Vec<Arc<AgentKnowledge>>,
}

impl AgentRegistry {
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.agents.contains_key(name)
    }

    /// Adds an agent, or why it cannot be called.
    pub(crate) fn add(&mut self, name: Key, agent: Result<Callee, Arc<LoadFailure>>, knowledge: Arc<AgentKnowledge>) {
        self.agents.insert(name, agent);
        self.add_knowledge(knowledge);
    }

    /// Tells only the operator's own hooks of what the agent does.
    pub(crate) fn put_behind_border(&mut self, name: Key) {
        self.behind_border.insert(name);
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
    fn find(&self, name: &str) -> Result<Callee, PortError> {
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
    /// Those of the guards that did not come with the folder of whoever calls
    pub(crate) operators_guards: Arc<dyn Hooks>,
}

impl Agents for GuardedAgents {
    fn find(&self, name: &str) -> Result<Callee, PortError> {
        let agent = self.family.agents.get(name).ok_or_else(|| PortError::new("it is not there"))?;
        let guards = if self.family.behind_border.contains(name) { &self.operators_guards } else { &self.guards };
        agent.clone().map(|agent| guarded(agent, guards)).map_err(PortError::new)
    }
}
