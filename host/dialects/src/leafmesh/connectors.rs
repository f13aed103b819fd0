//! The connectors that agents may name, and the settings that each takes.

use serde_json::json;

/// What external agents may be.
pub(super) const FRAMEWORKS: [&str; 9] =
    ["crewai", "langgraph", "autogen", "a2a", "mcp", "zapier", "composio", "n8n", "custom"];
/// What programmatic agents may use.
pub(super) const INTEGRATIONS: [&str; 4] = ["zapier", "composio", "n8n", "mcp"];
/// Those of later versions of the documentation.
pub(super) const LATER: [&str; 29] = [
    "hermes",
    "lyzr",
    "writer",
    "dify",
    "flowise",
    "vellum",
    "stackai",
    "agentforce",
    "watsonx",
    "relevance",
    "wordware",
    "lindy",
    "claude_agent",
    "openai_agents",
    "claude_managed",
    "openai_agents_api",
    "foundry_agents",
    "vertex_agent_engine",
    "bedrock_agentcore",
    "copilot_studio",
    "mistral_agents",
    "letta",
    "glean_agents",
    "servicenow",
    "sap_joule",
    "workday",
    "box",
    "atlassian_rovo",
    "gemini_enterprise",
];

/// A setting of a connector: its name, what it is, whether it has to be there, and the variables that stand in for it.
pub(super) struct Setting(
    pub(super) &'static str,
    pub(super) Type,
    pub(super) bool,
    pub(super) &'static [&'static str],
);

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Type {
    Text,
    Url,
    Secret,
    Seconds,
    List,
    Map,
    /// A flag that asks for the only way there is
    Preference,
    /// No longer in use
    Retired,
}

const POLLS: [Setting; 2] =
    [Setting("poll_interval", Type::Seconds, false, &[]), Setting("max_poll_seconds", Type::Seconds, false, &[])];

/// The settings of a connector.
pub(super) fn settings(connector: &str) -> Vec<Setting> {
    use Type::{List, Map, Preference, Retired, Seconds, Secret, Text, Url};
    let own: Vec<Setting> = match connector {
        "crewai" => vec![
            Setting("endpoint", Url, true, &["CREWAI_ENDPOINT"]),
            Setting("api_key", Secret, false, &["CREWAI_API_KEY"]),
            Setting("user_api_key", Secret, false, &["CREWAI_USER_API_KEY"]),
            Setting("http_timeout", Seconds, false, &[]),
        ],
        "langgraph" => vec![
            Setting("endpoint", Url, true, &["LANGGRAPH_ENDPOINT", "LANGCHAIN_ENDPOINT"]),
            Setting("api_key", Secret, false, &["LANGCHAIN_API_KEY", "LANGGRAPH_API_KEY"]),
            Setting("graph_id", Text, false, &[]),
            Setting("http_timeout", Seconds, false, &[]),
        ],
        "autogen" => vec![
            Setting("endpoint", Url, true, &["AUTOGEN_ENDPOINT"]),
            Setting("api_key", Secret, false, &["AUTOGEN_API_KEY"]),
            Setting("workflow_id", Text, false, &[]),
            Setting("api_style", Text, false, &[]),
            Setting("timeout", Seconds, false, &[]),
        ],
        "a2a" => vec![
            Setting("url", Url, true, &["A2A_AGENT_URL"]),
            Setting("auth_token", Secret, false, &["A2A_AUTH_TOKEN"]),
            Setting("auth_scheme", Text, false, &[]),
            Setting("http_timeout", Seconds, false, &[]),
        ],
        "mcp" => vec![
            Setting("tool_name", Text, true, &[]),
            Setting("transport", Text, false, &[]),
            Setting("timeout", Seconds, false, &[]),
            Setting("command", Text, false, &[]),
            Setting("args", List, false, &[]),
            Setting("env", Map, false, &[]),
            Setting("url", Url, false, &[]),
            Setting("auth_token", Secret, false, &[]),
        ],
        "zapier" => vec![
            Setting("connection", Text, false, &[]),
            Setting("action", Text, false, &[]),
            Setting("mcp_key", Secret, false, &["ZAPIER_MCP_KEY"]),
            Setting("mcp_endpoint", Url, false, &[]),
            Setting("vault_connection", Text, false, &[]),
            Setting("timeout", Seconds, false, &[]),
            Setting("api_key", Retired, false, &[]),
            Setting("prefer_mcp", Preference, false, &[]),
            Setting("instructions", Retired, false, &[]),
        ],
        "composio" => vec![
            Setting("action", Text, true, &[]),
            Setting("entity_id", Text, false, &["COMPOSIO_ENTITY_ID"]),
            Setting("api_key", Secret, false, &["COMPOSIO_API_KEY"]),
            Setting("connected_account_id", Text, false, &[]),
            Setting("version", Text, false, &[]),
            Setting("timeout", Seconds, false, &[]),
        ],
        "n8n" => vec![
            Setting("webhook_url", Url, true, &["N8N_WEBHOOK_URL"]),
            Setting("auth_token", Secret, false, &["N8N_AUTH_TOKEN"]),
            Setting("timeout", Seconds, false, &[]),
        ],
        _ => Vec::new(),
    };
    own.into_iter().chain(POLLS.into_iter().filter(|_| is_polled(connector))).collect()
}

/// The settings of each connector: what they are called, whether they have to be there, and the variables that stand in for them.
pub(super) fn described() -> serde_json::Value {
    let of_one = |connector: &str| {
        let settings = settings(connector).into_iter().filter(|Setting(_, kind, ..)| *kind != Type::Retired);
        settings
            .map(|Setting(name, kind, required, variables)| {
                let is_secret = kind == Type::Secret;
                json!({ "name": name, "required": required, "secret": is_secret, "variables": variables })
            })
            .collect::<serde_json::Value>()
    };
    FRAMEWORKS.iter().map(|connector| ((*connector).to_owned(), of_one(connector))).collect()
}

/// Whether a connector is asked until it is done.
pub(super) fn is_polled(connector: &str) -> bool {
    matches!(connector, "crewai" | "langgraph" | "autogen" | "a2a")
}
