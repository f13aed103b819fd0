//! The agents that are served, as tools.

use std::collections::HashSet;
use std::sync::Arc;

use hotcell_runtime::mcp::{CallContext, Calling, Catalog, CatalogError, Client, OfferedTool};
use hotcell_runtime::{Agent, AgentTool, tool_name};
use serde_json::{Map, Value};

use super::runs::ServedRuns;
use crate::state::Server;

/// The only agent that a client wants, by its id.
#[derive(Clone)]
pub(super) struct Only(pub(super) String);

/// The agents of a server, as tools.
pub(super) struct Tools(pub(super) Server);

impl Tools {
    /// The agents that a client may call.
    fn of(&self, client: &Client) -> Vec<AgentTool> {
        let agents = self.0.agents();
        match client.get::<Only>() {
            Some(Only(id)) => match agents.find(id) {
                Ok((_, agent)) => named(vec![(id.clone(), agent.clone())]),
                // Its file was removed meanwhile.
                Err(_) => Vec::new(),
            },
            None => named(agents.all()),
        }
    }
}

impl Catalog for Tools {
    fn tools(&self, client: &Client) -> Vec<OfferedTool> {
        self.of(client).iter().map(|tool| tool.offered().clone()).collect()
    }

    fn call<'a>(&'a self, name: &'a str, arguments: Map<String, Value>, call: CallContext) -> Calling<'a> {
        Box::pin(async move {
            let tools = self.of(call.client());
            let Some(tool) = tools.iter().find(|tool| tool.offered().name == name) else {
                return Err(CatalogError::Unavailable(format!("there is no tool `{name}`")));
            };
            tool.call(&arguments, &call, &ServedRuns(self.0.clone())).await
        })
    }
}

/// Each agent by its own name where no other one has it, else by its id.
fn named(agents: Vec<(String, Arc<Agent>)>) -> Vec<AgentTool> {
    let own: Vec<String> = agents.iter().map(|(_, agent)| tool_name(&agent.graph.name)).collect();
    let is_own = |name: &String| !name.is_empty() && own.iter().filter(|other| *other == name).count() == 1;
    let mut taken: HashSet<String> = own.iter().filter(|name| is_own(name)).cloned().collect();
    let mut tools = Vec::with_capacity(agents.len());
    for ((id, agent), own) in agents.into_iter().zip(&own) {
        let name = if is_own(own) { own.clone() } else { free(&tool_name(&id), &mut taken) };
        tools.push(AgentTool::new(name, agent));
    }
    tools
}

/// The name, with a number if it is taken.
fn free(name: &str, taken: &mut HashSet<String>) -> String {
    let mut numbered = std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}_{number}")));
    // There are more numbers than agents.
    let free = numbered.find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(free.clone());
    free
}
