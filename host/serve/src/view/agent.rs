//! Agents as clients are shown them.

use hotcell_runtime::{Agent, input_schema};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::time;
use crate::agents::Agents;
use crate::object::{Object, object};

/// An agent that is served.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Agent)]
pub(crate) struct AgentView {
    /// What runs name it by
    pub(crate) agent_id: String,
    /// Its own name
    pub(crate) name: String,
    /// What it does
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Its language, and prompts to begin with
    #[schema(value_type = Object)]
    pub(crate) metadata: Object,
    /// What of the protocol it can do
    #[schema(value_type = Object)]
    pub(crate) capabilities: Object,
    /// Why it is not served as its files are now, but as it was before; none if it is
    pub(crate) load_error: Option<LoadErrorView>,
}

/// Why an agent is not served as its files are now.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoadError)]
pub(crate) struct LoadErrorView {
    /// What is wrong with them, one line for each error
    pub(crate) detail: String,
    /// Since when
    #[schema(format = DateTime)]
    pub(crate) since: String,
}

impl AgentView {
    pub(crate) fn of(id: &str, agent: &Agent, agents: &Agents) -> Self {
        let metadata = json!({
            "language": format!("{:?}", agent.dialect).to_lowercase(),
            "revision": agent.digest(),
            "conversation_starters": agent.conversation_starters,
            "origin": if agents.was_sent(agent.source()) { "sent" } else { "folder" },
        });
        let capabilities = json!({ "ap.io.messages": agent.graph.takes_text(), "ap.io.streaming": true });
        AgentView {
            agent_id: id.to_owned(),
            name: agent.graph.name.clone(),
            description: agent.graph.description.clone(),
            metadata: object(metadata),
            capabilities: object(capabilities),
            load_error: agents
                .trouble_of(id)
                .map(|trouble| LoadErrorView { detail: trouble.detail.clone(), since: time(trouble.since) }),
        }
    }
}

/// What an agent takes and gives, as JSON schemas.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentSchemas)]
pub(crate) struct AgentSchemas {
    /// The agent
    pub(crate) agent_id: String,
    /// What `input` of a run has to be, if it is an object. A text stands for `{"prompt": text}`
    #[schema(value_type = Object)]
    pub(crate) input_schema: Object,
    /// What `output` of a run is
    #[schema(value_type = Object)]
    pub(crate) output_schema: Object,
    /// What `values` of a run are
    #[schema(value_type = Object)]
    pub(crate) state_schema: Object,
}

impl AgentSchemas {
    pub(crate) fn of(id: &str, agent: &Agent) -> Self {
        let mut input = object(input_schema(agent));
        let graph = &agent.graph;
        if let Some(Value::Object(properties)) = input.get_mut("properties") {
            for key in &graph.open_state {
                properties.entry(&**key).or_insert_with(|| json!({ "description": "A value of the state" }));
            }
        }
        if graph.is_open {
            input.insert("additionalProperties".to_owned(), true.into());
        }
        let keys = graph.initial_state.iter().map(|(key, _)| key.to_string()).map(|key| (key, json!({})));
        let properties: Object = keys.collect();
        AgentSchemas {
            agent_id: id.to_owned(),
            input_schema: input,
            output_schema: object(json!({ "type": "string" })),
            state_schema: object(json!({ "type": "object", "properties": properties, "additionalProperties": true })),
        }
    }
}
